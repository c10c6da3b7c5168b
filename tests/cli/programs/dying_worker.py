"""Asynchronous training in which a worker is killed once; the others go on, and it comes back to what they have."""

import os
import signal

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
STEPS = 300


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
    server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index, config=config)
    if FLAGS.job_name == "ps":
        server.join()
        return
    with tf.device(
        tf.train.replica_device_setter(
            cluster=cluster, worker_device="/job:worker/task:%d" % FLAGS.task_index
        )
    ):
        step = tf.train.get_or_create_global_step()
        died = tf.get_variable("died", [], tf.int32, tf.zeros_initializer(), trainable=False)
        w = tf.get_variable("w", [10], initializer=tf.ones_initializer())
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_sum(w * w), global_step=step)
        die = died.assign(1)
    with tf.train.MonitoredTrainingSession(
        server.target, FLAGS.task_index == 0, config=config, hooks=[tf.train.StopAtStepHook(last_step=STEPS)]
    ) as sess:
        while not sess.should_stop():
            _, number, before = sess.run([train, step, died])
            if FLAGS.task_index == 1 and not before:
                sess.run(die)
                os.kill(os.getpid(), signal.SIGKILL)
            if FLAGS.task_index == 0 and number >= STEPS - 50 and not before:
                while not sess.run(died):  # leave the other time to die
                    pass
    print("worker %d ended after step %d" % (FLAGS.task_index, number))


if __name__ == "__main__":
    tf.app.run()
