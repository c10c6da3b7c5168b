"""A worker of MultiWorkerMirroredStrategy, or of another: trains an Estimator, then says what it has learned."""

import json
import operator
import os
import sys

import numpy as np

import tensorfleet as tf


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2, 1], initializer=tf.random_normal_initializer())
    loss = tf.losses.mean_squared_error(labels, tf.matmul(features, w))
    step = tf.train.get_global_step()
    train = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def input_fn(input_context=None):
    x = np.random.RandomState(3).rand(16, 2).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x @ np.float32([[1.0], [-2.0]])))
    if input_context is not None:
        data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.repeat().batch(4)


def evaluation():
    return input_fn().take(4)


def main(folder, steps, kind="experimental.MultiWorkerMirroredStrategy"):
    tf.logging.set_verbosity(tf.logging.INFO)
    strategy = operator.attrgetter(kind)(tf.distribute)()
    config = tf.estimator.RunConfig(folder, train_distribute=strategy, save_checkpoints_steps=10)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    train = tf.estimator.TrainSpec(input_fn, max_steps=int(steps))
    tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(evaluation, steps=None))
    print("ended", json.loads(os.environ.get("TF_CONFIG", "{}")).get("task"), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
