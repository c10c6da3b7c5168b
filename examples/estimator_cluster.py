"""An estimator on a cluster: one script for the chief, the workers, the parameter servers and the evaluator.

    tensorfleet run --ps 1 --chief --workers 1 --evaluator examples/estimator_cluster.py -- --model_dir /tmp/digits

    chief 0      trains, writes checkpoints ----------+
    worker 0     trains                               |  model_dir
    ps 0         weights of both                      |
    evaluator    reads each new checkpoint <----------+  accuracy on digits that were never trained on; at the end
                                                         the model for servers, in model_dir/export/final

`tf.estimator.train_and_evaluate` learns from TF_CONFIG which task it is; the model function knows nothing of it.
Without a cluster (`python examples/estimator_cluster.py`) one process trains and evaluates in turn. A second run with the
same folder finds the model trained: give another folder, or more steps.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

import numpy as np

import tensorfleet as tf

TARGET = 0.88


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--model_dir", help="the same folder for all tasks (a temporary one, without a cluster)"
    )
    parser.add_argument("--steps", type=int, default=600, help="steps of all workers together (600)")
    parser.add_argument("--batch_size", type=int, default=100, help="images in each step of a worker (100)")
    return parser.parse_args()


def digits(batch_size: int, training: bool) -> tf.data.Dataset:
    """Real handwritten digits that come with TensorFleet: shuffled for ever to train on, or once to test with."""
    images, labels = tf.keras.datasets.mnist.load_data()[0 if training else 1]
    images = images.reshape(-1, 784).astype(np.float32) / 255
    found = tf.data.Dataset.from_tensor_slices(({"pixels": images}, labels.astype(np.int32)))
    return found.shuffle(10000).repeat().batch(batch_size) if training else found.batch(batch_size)


def model_fn(features: dict, labels: tf.Tensor, mode: str, params: dict) -> tf.estimator.EstimatorSpec:
    """A network with one hidden layer, built for training, evaluation or use."""
    hidden = tf.layers.dense(features["pixels"], params["hidden"], activation=tf.nn.relu, name="hidden")
    scores = tf.layers.dense(hidden, 10, name="scores")
    digit = tf.argmax(scores, 1, output_type=tf.int32)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"digit": digit, "certainty": tf.nn.softmax(scores)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, digit)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)


def served_input() -> tf.estimator.export.ServingInputReceiver:
    """What the exported model is fed."""
    pixels = tf.placeholder(tf.float32, [None, 784])
    return tf.estimator.export.ServingInputReceiver({"pixels": pixels}, {"pixels": pixels})


def main() -> int:
    flags = read_flags()
    config = tf.estimator.RunConfig(
        flags.model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=200,
        experimental_max_worker_delay_secs=0,  # workers would come one after the other, five seconds apart
    )
    alone = not config.cluster_spec.jobs and config.task_type != "evaluator"
    if flags.model_dir is None:
        if not alone:
            print("The tasks of a cluster share a folder: --model_dir", file=sys.stderr)
            return 2
        config = config.replace(model_dir=tempfile.mkdtemp())
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"hidden": 64})
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: digits(flags.batch_size, True), max_steps=flags.steps),
        tf.estimator.EvalSpec(
            lambda: digits(500, False),
            steps=None,
            exporters=tf.estimator.FinalExporter("final", served_input),
            start_delay_secs=0,
            throttle_secs=2,
        ),
    )
    if not alone and config.task_type != "evaluator":
        print(f"{config.task_type} {config.task_id} has done its part.")
        return 0
    result = estimator.evaluate(lambda: digits(500, False))
    print(
        f"Final test accuracy {result['accuracy']:.4f} after {result['global_step']} steps (target {TARGET})."
    )
    return 0 if result["accuracy"] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
