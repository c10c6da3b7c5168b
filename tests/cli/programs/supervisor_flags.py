"""Softmax regression on digits: flags of tf.app, a Supervisor, asynchronous replicas."""

from __future__ import print_function

import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "localhost:2222", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("worker_hosts", "localhost:2223", "Comma-separated list of hostname:port pairs")
flags.DEFINE_string("job_name", None, "worker or ps")
flags.DEFINE_integer("task_index", None, "0 is the chief")
flags.DEFINE_integer("train_steps", 60, "Global steps")
flags.DEFINE_string("data_dir", "/tmp/mnist-data", "")
FLAGS = flags.FLAGS


def main(unused_argv):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
        return
    is_chief = FLAGS.task_index == 0
    mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True)
    with tf.device(
        tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
        )
    ):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.placeholder(tf.float32, [None, 784])
        y_ = tf.placeholder(tf.float32, [None, 10])
        w = tf.Variable(tf.zeros([784, 10]), name="w")
        b = tf.Variable(tf.zeros([10]), name="b")
        logits = tf.nn.xw_plus_b(x, w, b)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=logits))
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        train_op = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)
        summary_op = tf.summary.merge_all()
        init_op = tf.global_variables_initializer()
    sv = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=tempfile.mkdtemp(),
        init_op=init_op,
        summary_op=None,
        recovery_wait_secs=1,
        global_step=global_step,
        save_model_secs=0,
    )
    config = tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=False,
        device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index],
    )
    with sv.prepare_or_wait_for_session(server.target, config=config) as sess:
        step = 0
        while not sv.should_stop() and step < FLAGS.train_steps:
            xs, ys = mnist.train.next_batch(100)
            _, step, _ = sess.run([train_op, global_step, summary_op], feed_dict={x: xs, y_: ys})
        print("Worker %d: training ended (global step: %d)" % (FLAGS.task_index, step))
        value = sess.run(accuracy, feed_dict={x: mnist.test.images, y_: mnist.test.labels})
        print("test accuracy above 0.7: %s" % (value > 0.7))
    sv.stop()


if __name__ == "__main__":
    tf.app.run()
