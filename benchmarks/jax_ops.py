"""A training step of a Flax network with Optax: as ops of a graph, beside the same functions under `jax.jit` alone.

    python benchmarks/jax_ops.py
    python benchmarks/jax_ops.py --rounds 5 cnn

In each round, both libraries have a process of their own, and the two run short blocks of steps in turns. The fastest
block of each counts, because other load can only make a block slower. The ratio is the time of plain JAX divided by ours,
its median over the rounds: 1 is no cost, and 0.91 a tenth more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import optax
from flax import linen as nn
from measuring import ENVIRONMENT
from report import LEAST_ROUNDS, Row, conditions, peers_table, save, write_between

LIBRARIES = ("jax", "tensorfleet")
ABOUT = {"mlp": "784-1024-1024-10, batch 64, AdamW", "cnn": "two convolutions and two dense layers, the same"}
_BLOCKS = 20
_BLOCK_SECONDS = 0.1
_WARM_SECONDS, _WARM_STEPS = 1.0, 5
_LONGEST_ROUND = 300.0


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


def answer_blocks(library: str, work: str) -> None:
    """Runs a block of steps for each line of the input, and prints the seconds of a step by the clock and by processors."""
    run = (in_jax if library == "jax" else in_tensorfleet)(work)
    began, warm = time.perf_counter(), 0
    while warm < _WARM_STEPS or time.perf_counter() - began < _WARM_SECONDS:
        run()
        warm += 1
    began = time.perf_counter()
    run()
    steps = max(1, round(_BLOCK_SECONDS / (time.perf_counter() - began)))
    print("ready", flush=True)
    for _ in sys.stdin:
        run()  # wakes the threads, and brings the variables back into the cache
        began, busy = time.perf_counter(), time.process_time()
        for _ in range(steps):
            run()
        busy, seconds = time.process_time() - busy, time.perf_counter() - began
        print(json.dumps({"seconds": seconds / steps, "processors": busy / steps}), flush=True)


class Measured:
    """A library in a process of its own, which runs a block of steps when it is asked to."""

    def __init__(self, library: str, work: str, running: contextlib.ExitStack) -> None:
        self.blocks: list[dict[str, float]] = []
        self._name = f"{work} on {library}"
        self._process = subprocess.Popen(
            [sys.executable, __file__, work, "--library", library],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.enter_context(self._process)
        running.callback(self._process.kill)
        timer = threading.Timer(_LONGEST_ROUND, self._process.kill)
        timer.start()
        running.callback(timer.cancel)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(
                f"{self._name} ended early, or was not done after {_LONGEST_ROUND:.0f} s. Its output is above."
            )
        return line

    def wait_until_ready(self) -> None:
        """Waits until it has compiled its program."""
        self._line()

    def run_block(self) -> None:
        """Has it run one more block."""
        assert self._process.stdin is not None
        self._process.stdin.write("block\n")
        self._process.stdin.flush()
        self.blocks.append(json.loads(self._line()))

    def fastest(self, key: str) -> float:
        """The seconds of a step in the fastest block, by the clock or by processors."""
        return min(block[key] for block in self.blocks)


def add_round(row: Row) -> None:
    """Measures a work once more."""
    with contextlib.ExitStack() as running:
        both = {library: Measured(library, row.name, running) for library in LIBRARIES}
        for one in both.values():
            one.wait_until_ready()
        for _ in range(_BLOCKS):
            for one in both.values():
                one.run_block()
    for library, one in both.items():
        row.seen[library].append(one.fastest("seconds"))
        row.busy[library].append(one.fastest("processors"))


def report(names: Sequence[str], rounds: int, write: bool) -> None:
    """Measures, and prints the table or writes it into the page."""
    rows = [Row(name, ABOUT[name]) for name in names]
    for row in rows:
        for i in range(rounds):
            print(f"{row.name}, round {i + 1} of {rounds}", file=sys.stderr, flush=True)
            add_round(row)
    where = conditions(rounds)
    save("jax_ops", rows, where)
    print(f"{peers_table(rows, ['jax'], False)}\n\n{where}")
    if write:
        write_between("jax_ops table", f"{peers_table(rows, ['jax'], True)}\n\n{where}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("works", nargs="*", metavar="work", help=f"what to measure ({' '.join(WORKS)})")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help=f"default: {LEAST_ROUNDS}")
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    unknown = set(flags.works) - set(WORKS)
    if unknown:
        parser.error(f"There is no {', '.join(sorted(unknown))}. Known: {', '.join(WORKS)}.")
    if flags.library:
        answer_blocks(flags.library, flags.works[0])
    else:
        report(flags.works or list(WORKS), flags.rounds, flags.write)


if __name__ == "__main__":
    main()
