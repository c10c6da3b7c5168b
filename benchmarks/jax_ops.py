"""A training step of a Flax network with Optax: as ops of a graph, beside the same functions under `jax.jit` alone.

    python benchmarks/jax_ops.py --rounds 5
    python benchmarks/jax_ops.py tensorfleet cnn         # one process: prints the seconds of a step

Each measurement is a process of its own, and the two alternate. The fastest of eight blocks of steps counts. The ratio is
the time of plain JAX divided by ours, its median over the rounds: 1 is no cost, and 0.91 a tenth more.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn

_BLOCKS, _STEPS, _WARM_STEPS = 8, 20, 20
LIBRARIES = ("jax", "tensorfleet")


class Perceptron(nn.Module):
    """784-1024-1024-10."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        for _ in range(2):
            images = nn.relu(nn.Dense(1024)(images))
        return nn.Dense(10)(images)


class Convolutions(nn.Module):
    """Two convolutions, a pool and two dense layers."""

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        maps = nn.relu(nn.Conv(16, (3, 3))(images.reshape(-1, 28, 28, 1)))
        maps = nn.max_pool(nn.relu(nn.Conv(32, (3, 3))(maps)), (2, 2), (2, 2))
        return nn.Dense(10)(nn.relu(nn.Dense(64)(maps.reshape(maps.shape[0], -1))))


WORKS: dict[str, Callable[[], nn.Module]] = {"mlp": Perceptron, "cnn": Convolutions}


def parts(work: str) -> tuple[Any, Any, Any, np.ndarray, np.ndarray]:
    """The loss, its parameters, the transformation, and a batch."""
    random = np.random.RandomState(0)
    images, labels = random.rand(64, 784).astype(np.float32), random.randint(0, 10, 64).astype(np.int32)
    network = WORKS[work]()

    def loss(params: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
        scores = network.apply(params, images)
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    return loss, network.init(jax.random.key(0), images), optax.adamw(1e-3), images, labels


def in_jax(work: str) -> Callable[[], float]:
    loss, params, transformation, images, labels = parts(work)

    def step(held: Any, images: jax.Array, labels: jax.Array) -> Any:
        params, state = held
        value, grads = jax.value_and_grad(loss)(params, images, labels)
        updates, state = transformation.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    jitted, held = jax.jit(step, donate_argnums=0), [(params, transformation.init(params))]

    def run() -> float:
        held[0], value = jitted(held[0], images, labels)
        return float(value)

    return run


def in_tensorfleet(work: str) -> Callable[[], float]:
    import tensorfleet as tf

    function, params, transformation, images, labels = parts(work)
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
    loss = tf.fleet.jax_op(function)(tf.fleet.jax_variables(params), x, y)
    train = tf.fleet.OptaxOptimizer(transformation).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return lambda: float(session.run([train, loss], {x: images, y: labels})[1])


def seconds_of_a_step(library: str, work: str) -> float:
    run = (in_jax if library == "jax" else in_tensorfleet)(work)
    for _ in range(_WARM_STEPS):
        run()
    blocks = []
    for _ in range(_BLOCKS):
        began = time.perf_counter()
        for _ in range(_STEPS):
            run()
        blocks.append((time.perf_counter() - began) / _STEPS)
    return min(blocks)


def measured(library: str, work: str) -> float:
    done = subprocess.run(
        [sys.executable, __file__, library, work], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library", nargs="?", choices=LIBRARIES, help="measure this one, in this process")
    parser.add_argument("work", nargs="?", choices=WORKS, help="what to measure")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (5)")
    flags = parser.parse_args()
    if flags.work:
        print(seconds_of_a_step(flags.library, flags.work))
        return
    for work in WORKS:
        rounds = []
        for i in range(flags.rounds):
            order = LIBRARIES if i % 2 else LIBRARIES[::-1]
            rounds.append({library: measured(library, work) for library in order})
        ratio = statistics.median(one["jax"] / one["tensorfleet"] for one in rounds)
        times = {library: min(one[library] for one in rounds) * 1e3 for library in LIBRARIES}
        print(
            f"{work}: JAX {times['jax']:.2f} ms, TensorFleet {times['tensorfleet']:.2f} ms, ratio {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
