"""A network of Flax on parameter servers without a graph: pull the parameters, compute, push the gradients.

    tensorfleet run --ps 2 --workers 2 examples/library_flax.py -- --epochs 30

    worker 0   model.pull() ---> value_and_grad (JAX) ---> model.push(gradients) --+
    worker 1   model.pull() ---> value_and_grad (JAX) ---> model.push(gradients) --+
                                                                                   |
    ps 0, 1    their parts of the parameters and of AdamW's moments <--------------+

The servers run the optimizer, each on its own parts; the norm by which gradients are clipped is that of all parts.
`--consistency` says how far workers may be apart. The data are the 1797 digits that come with scikit-learn
(`pip install ".[examples,jax]"` brings all that this needs).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits

from tensorfleet import fleet

TARGET = 0.95
TEST_IMAGES = 400


class Network(nn.Module):
    """Ten scores for each image."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        return nn.Dense(10)(nn.relu(nn.Dense(64)(images)))


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30, help="times that all images are gone through (30)")
    parser.add_argument("--batch_size", type=int, default=32, help="images in each step of a worker (32)")
    parser.add_argument("--consistency", default="ssp:4", help="how far workers may be apart (ssp:4)")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images and labels, in an order that is the same in all workers."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.data[order] / 16).astype(np.float32), data.target[order].astype(np.int32)


def batches(images: np.ndarray, labels: np.ndarray, flags: argparse.Namespace) -> Iterator[tuple]:
    """The batches of all workers."""
    rng = np.random.default_rng(1)
    for _ in range(flags.epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - flags.batch_size + 1, flags.batch_size):
            chosen = order[start : start + flags.batch_size]
            yield images[chosen], labels[chosen]


def main() -> None:
    flags = read_flags()
    images, labels = digits()
    net = Network()
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3))

    def loss_of(params: dict, batch: tuple) -> jax.Array:
        x, y = batch
        return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x), y).mean()

    with fleet.join() as cluster:
        value_and_grad = jax.jit(jax.value_and_grad(loss_of))
        model = cluster.parameters(
            "model",
            init=lambda: net.init(jax.random.key(0), jnp.zeros((1, 64))),
            optimizer=optimizer,
            consistency=flags.consistency,
        )
        train = batches(images[TEST_IMAGES:], labels[TEST_IMAGES:], flags)
        for step, batch in enumerate(cluster.shard(train)):
            loss, gradients = value_and_grad(model.pull(), batch)
            model.push(gradients)
            if step % 100 == 0:
                print(f"worker {cluster.rank}, step {step}: loss {loss:.3f}", flush=True)
        scores = net.apply(model.pull(), images[:TEST_IMAGES])
        accuracy = float(np.mean(np.argmax(scores, -1) == labels[:TEST_IMAGES]))
        print(f"worker {cluster.rank} is done. Test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
