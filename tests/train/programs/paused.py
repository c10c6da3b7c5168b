"""Trains until a file is there, and tells when the global step goes back."""

import os
import sys

import tensorfleet as tf
from tensorfleet.cluster import tf_config


def main(until, folder):
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        train = tf.group(weight.assign_add(1.0), step.assign_add(1))
    reached, begun = 0, False
    # The checkpoint of the beginning stays the only one.
    with tf.train.MonitoredTrainingSession(
        server.target, checkpoint_dir=folder, save_checkpoint_steps=10**9, save_summaries_steps=None
    ) as sess:
        while not os.path.exists(until):
            sess.run(train)
            now, value = sess.run([step, weight])
            if now < reached or value < now - 1:
                print(f"went back from {reached} to step {now}, weight {value}", flush=True)
            reached = now
            if reached >= 20 and not begun:
                begun = True
                print("under way", flush=True)
    print(f"ended at {reached}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
