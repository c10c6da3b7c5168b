"""A worker that says where it is after every step, and where it began, so that others can kill it at a known place."""

import sys
import time

import numpy as np

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config

INTERVAL = 20


class Begin(tf.train.SessionRunHook):
    """Says at which step a session starts."""

    def after_create_session(self, session, coord):
        print(f"begins at {session.run(tf.train.get_global_step())}", flush=True)


def main(folder, last_step, together):
    config = tf_config.read()
    server = tf.train.Server(config.cluster, config.task_type, config.task_index)
    if config.task_type == "ps":
        server.join()
        return
    device = f"/job:{config.task_type}/task:{config.task_index}"
    with tf.device(tf.train.replica_device_setter(cluster=config.cluster, worker_device=device)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 4])
        loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 1) - tf.reduce_sum(x, axis=1, keepdims=True)))
        opt = tf.train.GradientDescentOptimizer(0.05)
        hooks = [tf.train.StopAtStepHook(last_step=last_step), Begin()]
        if together:
            opt = tf.train.SyncReplicasOptimizer(opt, config.cluster.num_tasks("worker"))
        train = opt.minimize(loss, global_step=step)
        if together:
            hooks.append(opt.make_session_run_hook(config.is_chief))
    random = np.random.RandomState(config.task_index)
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=config.is_chief,
        checkpoint_dir=folder,
        hooks=hooks,
        save_checkpoint_steps=INTERVAL,
        save_summaries_steps=None,
    ) as sess:
        while not sess.should_stop():
            sess.run(train, {x: random.rand(16, 4)})
            now = sess.run_step_fn(lambda step_context: step_context.session.run(step))
            print(f"at {now}", flush=True)
            time.sleep(0.01)  # the test has time to act in the middle of the training
    print("trained", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "sync")
