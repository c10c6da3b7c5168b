"""The same under a MonitoredTrainingSession, told by TF_CONFIG what it is."""

import sys

import numpy as np

import tensorfleet as tf
from tensorfleet.cluster.membership import tf_config


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
        opt = tf.train.GradientDescentOptimizer(0.1)
        hooks = [tf.train.StopAtStepHook(last_step=last_step)]
        if together:
            opt = tf.train.SyncReplicasOptimizer(
                opt, replicas_to_aggregate=config.cluster.num_tasks("worker")
            )
        train = opt.minimize(loss, global_step=step)
        if together:
            hooks.append(opt.make_session_run_hook(config.is_chief))
        tf.summary.scalar("loss", loss)
    random = np.random.RandomState(config.task_index)
    mine, value = 0, None
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=config.is_chief,
        checkpoint_dir=folder,
        hooks=hooks,
        save_checkpoint_steps=20,
        save_summaries_steps=None,
    ) as sess:
        while not sess.should_stop():
            _, value = sess.run([train, loss], {x: random.rand(16, 4)})
            mine += 1
            if mine == 5:
                print("under way", flush=True)
    print(f"worker {config.task_index}: {mine} steps, loss {value:.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3)
