"""An experiment of tf.contrib.learn: each task is told by TF_CONFIG which it is."""

import sys

import numpy as np

import tensorfleet as tf


def input_fn():
    x = np.random.RandomState(0).rand(64, 2).astype(np.float32)
    return tf.constant(x), tf.constant(x.sum(1, keepdims=True))


def model_fn(features, labels, mode):
    y = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, y)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.contrib.learn.ModelFnOps(mode, y, loss, train)


def experiment_fn(output_dir):
    config = tf.contrib.learn.RunConfig(tf_random_seed=1, save_checkpoints_steps=50)
    return tf.contrib.learn.Experiment(
        tf.contrib.learn.Estimator(model_fn, output_dir, config),
        input_fn,
        input_fn,
        train_steps=100,
        eval_steps=1,
    )


if __name__ == "__main__":
    tf.contrib.learn.learn_runner.run(experiment_fn, sys.argv[1])
