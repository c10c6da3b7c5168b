"""A network of Flax, trained by Optax on a parameter server: every worker computes with JAX, and nobody waits.

    tensorfleet run --ps 1 --workers 2 examples/jax_models.py -- --steps 600

    worker 0   loss and gradients by JAX ---> gradients --+
    worker 1   loss and gradients by JAX ---> gradients --+
                                                          |
    ps 0       parameters, and AdamW's moments <----------+   the update is Optax's, as one XLA program

The network and the loss are plain JAX. Each becomes one operation of the graph, so that all else is as in any other
program: devices, sessions, hooks, checkpoints. The data are the 1797 digits that come with scikit-learn
(`pip install ".[examples,jax]"` brings all that this needs).
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

import tensorfleet as tf

TARGET = 0.97
TEST_IMAGES = 400


class Network(nn.Module):
    """Ten scores for each image."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        maps = images.reshape(-1, 8, 8, 1)
        maps = nn.relu(nn.Conv(16, (3, 3))(maps))
        maps = nn.max_pool(nn.relu(nn.Conv(32, (3, 3))(maps)), (2, 2), (2, 2))
        hidden = nn.relu(nn.Dense(64)(maps.reshape(maps.shape[0], -1)))
        return nn.Dense(10)(hidden)


def mean_loss(scores: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def fraction_right(scores: jax.Array, labels: jax.Array) -> jax.Array:
    return jnp.mean(scores.argmax(-1) == labels)


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="steps of all workers together (600)")
    parser.add_argument("--batch_size", type=int, default=64, help="images in each step of a worker (64)")
    parser.add_argument("--learning_rate", type=float, default=0.002, help="of AdamW (0.002)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --workers 2 {sys.argv[0]}")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Images and labels to train on, then to test with."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(1).permutation(len(labels))
    images, labels = images[order].astype(np.float32) / 16, labels[order].astype(np.int32)
    return images[TEST_IMAGES:], labels[TEST_IMAGES:], images[:TEST_IMAGES], labels[:TEST_IMAGES]


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, job, index = told.cluster_spec(), told.task_type, told.task_id
    server = tf.train.Server(cluster, job, index)
    if job == "ps":
        server.join()  # keeps the parameters until the workers are done
        return 0

    train_images, train_labels, test_images, test_labels = digits()
    network = Network()
    # Variables go to the parameter server, everything else to this worker.
    with tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
    ):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int32, [None])
        params = tf.fleet.jax_variables(network.init(jax.random.key(1), train_images[:1]))
        scores = tf.fleet.jax_op(network.apply, name="network")(params, images)
        loss = tf.fleet.jax_op(mean_loss)(scores, labels)
        accuracy = tf.fleet.jax_op(fraction_right)(scores, labels)
        optimizer = tf.fleet.OptaxOptimizer(optax.adamw(flags.learning_rate))
        train = optimizer.minimize(loss, global_step=step)

    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    hooks = [tf.train.StopAtStepHook(last_step=flags.steps), final]
    random, began, steps_made = np.random.RandomState(index), time.time(), 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session:
        while not session.should_stop():
            batch = random.randint(0, len(train_labels), flags.batch_size)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            _, now, cost = session.run([train, step, loss], feed)
            steps_made += 1
            if steps_made % 50 == 0:
                print(f"step {now:6d}   loss {cost:.4f}")
    reached, seconds = final.final_ops_values, time.time() - began
    print(f"Made {steps_made} of the {flags.steps} steps.")
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
