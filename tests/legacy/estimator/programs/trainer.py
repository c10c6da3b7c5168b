"""One script for every task: told by TF_CONFIG what it is, it trains, serves or evaluates."""

import sys
import time

import numpy as np

import tensorfleet as tf

W = np.array([[1.0], [-2.0]], np.float32)


def input_fn(batches=None):
    x = np.random.RandomState(0).rand(64, 2).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x @ W)).batch(16).repeat(batches)


def model_fn(features, labels, mode, params, config):
    y = tf.layers.dense(features["x"], 1, use_bias=False, name="d")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer, hooks = tf.train.GradientDescentOptimizer(0.05), []
    if params.get("together") and mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, config.num_worker_replicas)
    train = optimizer.minimize(loss, tf.train.get_global_step())
    if params.get("together") and mode == tf.estimator.ModeKeys.TRAIN:
        hooks.append(optimizer.make_session_run_hook(config.is_chief))
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train, eval_metric_ops={"y": tf.metrics.mean(y)}, training_hooks=hooks
    )


class Pace(tf.train.SessionRunHook):
    """Says that steps are made, and leaves time for what the test does meanwhile."""

    def after_run(self, run_context, run_values):
        time.sleep(0.02)
        print("step", flush=True)


def main(folder, last_step, together):
    tf.set_random_seed(1)
    config = tf.estimator.RunConfig(
        folder, tf_random_seed=3, save_checkpoints_steps=40, experimental_max_worker_delay_secs=0
    )
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"together": together})
    serving = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2], name="x")}
    )
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=last_step, hooks=[Pace()]),
        tf.estimator.EvalSpec(
            lambda: input_fn(1),
            steps=None,
            exporters=tf.estimator.FinalExporter("last", serving),
            start_delay_secs=0,
            throttle_secs=1,
        ),
    )
    print(f"{config.task_type} {config.task_id} is done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3)
