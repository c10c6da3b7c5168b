"""An estimator that trains until its input ends, with an evaluator that is in no hurry and knows no last step."""

import sys

import numpy as np
import tensorflow as tf


def input_fn(times):
    x = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x)).batch(10).repeat(times)


def model_fn(features, labels, mode):
    y = tf.layers.dense(features["x"], 1)
    loss = tf.losses.mean_squared_error(labels, y)
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


config = tf.estimator.RunConfig(sys.argv[1], experimental_max_worker_delay_secs=0)
estimator = tf.estimator.Estimator(model_fn, config=config)
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(lambda: input_fn(20)),
    tf.estimator.EvalSpec(lambda: input_fn(1), steps=None, start_delay_secs=1000, throttle_secs=1200),
)
print(config.task_type, config.task_id, "is done")
