"""slim.learning.train: layers under an arg_scope, a train_op, the loop with its Supervisor."""

import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim

tf.app.flags.DEFINE_integer("ps_tasks", 0, "")
FLAGS = tf.app.flags.FLAGS


def main(_):
    images = tf.constant(np.random.RandomState(0).rand(16, 8, 8, 1), tf.float32)
    labels = tf.constant(np.arange(16) % 2)
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-4)):
        net = slim.conv2d(images, 4, [3, 3], scope="conv1", normalizer_fn=slim.batch_norm)
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        logits = slim.fully_connected(slim.flatten(net), 2, activation_fn=None, scope="logits")
    slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, 2))
    total_loss = slim.losses.get_total_loss()
    train_op = slim.learning.create_train_op(total_loss, tf.train.AdamOptimizer(0.05))
    loss = slim.learning.train(
        train_op, tempfile.mkdtemp(), number_of_steps=30, save_summaries_secs=0, log_every_n_steps=10
    )
    print("loss below 0.5: %s; model variables: %d" % (loss < 0.5, len(slim.get_model_variables())))


if __name__ == "__main__":
    tf.app.run()
