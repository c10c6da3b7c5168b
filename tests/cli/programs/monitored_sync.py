"""Synchronous replicas: SyncReplicasOptimizer with its hook in a MonitoredTrainingSession; flags of argparse."""

import argparse
import sys

import numpy as np
import tensorflow as tf

FLAGS = None


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    elif FLAGS.job_name == "worker":
        is_chief = FLAGS.task_index == 0
        device = tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
        with tf.device(device):
            x = tf.placeholder(tf.float32, [None, 1])
            y = tf.placeholder(tf.float32, [None, 1])
            w = tf.get_variable("w", [1, 1], initializer=tf.zeros_initializer())
            loss = tf.losses.mean_squared_error(y, tf.matmul(x, w))
            global_step = tf.train.get_or_create_global_step()
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(0.3),
                replicas_to_aggregate=len(worker_hosts),
                total_num_replicas=len(worker_hosts),
            )
            train_op = optimizer.minimize(loss, global_step=global_step)
        hooks = [optimizer.make_session_run_hook(is_chief), tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        rng = np.random.RandomState(FLAGS.task_index)
        with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=is_chief, hooks=hooks, stop_grace_period_secs=5
        ) as mon_sess:
            while not mon_sess.should_stop():
                xs = rng.uniform(-1, 1, [32, 1])
                _, value, step = mon_sess.run([train_op, w, global_step], {x: xs, y: 3 * xs})
        print("step %d: w is near 3: %s" % (step, abs(value[0, 0] - 3) < 0.5))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", type=str, default="")
    parser.add_argument("--worker_hosts", type=str, default="")
    parser.add_argument("--job_name", type=str, default="")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0]] + unparsed)
