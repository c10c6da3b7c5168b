"""A script for TensorFlow 1, as people wrote them, with no edit at all: it imports tensorflow, not tensorfleet.

    tensorfleet run --ps 1 --workers 2 examples/tf1_script.py

Flags for the cluster, a Supervisor, summaries, next_batch(), print with %: nothing here knows of TensorFleet.
Inside `tensorfleet run`, `import tensorflow` gives TensorFleet, and each task gets its flags.
"""

from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

tf.app.flags.DEFINE_string("ps_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("worker_hosts", "", "Comma-separated list of hostname:port pairs")
tf.app.flags.DEFINE_string("job_name", "", "One of 'ps', 'worker'")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of task within the job")
tf.app.flags.DEFINE_integer("steps", 400, "Global steps to train")
tf.app.flags.DEFINE_string("data_dir", "/tmp/mnist-data", "Directory with MNIST's files")
tf.app.flags.DEFINE_string("log_dir", "", "Where to write checkpoints and summaries")
FLAGS = tf.app.flags.FLAGS


def weight_variable(shape):
    return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=1))


def bias_variable(shape):
    return tf.Variable(tf.constant(0.1, shape=shape))


def main(_):
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

    if FLAGS.job_name == "ps":
        server.join()
    elif FLAGS.job_name == "worker":
        mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, seed=FLAGS.task_index)
        with tf.device(
            tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster
            )
        ):
            global_step = tf.Variable(0, name="global_step", trainable=False)
            x = tf.placeholder(tf.float32, [None, 784], name="x")
            y_ = tf.placeholder(tf.float32, [None, 10], name="y_")
            with tf.name_scope("hidden"):
                hidden = tf.nn.relu(tf.matmul(x, weight_variable([784, 100])) + bias_variable([100]))
            with tf.name_scope("softmax"):
                y = tf.matmul(hidden, weight_variable([100, 10])) + bias_variable([10])
            cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
            train_op = tf.train.AdamOptimizer(0.003).minimize(cross_entropy, global_step=global_step)
            correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
            accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
            tf.summary.scalar("cross_entropy", cross_entropy)
            summary_op = tf.summary.merge_all()
            init_op = tf.global_variables_initializer()

        sv = tf.train.Supervisor(
            is_chief=(FLAGS.task_index == 0),
            logdir=FLAGS.log_dir or tempfile.mkdtemp(),
            init_op=init_op,
            summary_op=None,
            saver=tf.train.Saver(),
            global_step=global_step,
            save_model_secs=600,
        )
        with sv.managed_session(server.target) as sess:
            step = 0
            while not sv.should_stop() and step < FLAGS.steps:
                batch_xs, batch_ys = mnist.train.next_batch(100)
                _, cost, step = sess.run([train_op, cross_entropy, global_step], {x: batch_xs, y_: batch_ys})
                if step % 100 == 0:
                    print("Step: %d, Cost: %.4f" % (step, cost))
                    if sv.is_chief:
                        sv.summary_computed(sess, sess.run(summary_op, {x: batch_xs, y_: batch_ys}))
            if sv.is_chief:
                test = {x: mnist.test.images, y_: mnist.test.labels}
                print("Test-Accuracy: %2.4f" % sess.run(accuracy, feed_dict=test))
        print("Done")


if __name__ == "__main__":
    tf.app.run()
