"""What is measured: each work builds its graph on the given library and returns one step to repeat.

A training step fetches its loss. A call that only names an operation may return while the work still
goes on elsewhere; one that hands back a number cannot, so no clock here stops too early.

Run by `run.py` in a process of its own, once per library:

    python benchmarks/works.py tensorfleet mlp100 --size half

prints one line of JSON: the seconds of a step by the clock, the processor time that all threads spent on it, and the most
memory the process has used, in bytes. On `torch` and `jax` the step comes from peers_torch.py or peers_jax.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from report import SIZES

LIBRARIES = {"tensorflow": "tensorflow.compat.v1", "tensorfleet": "tensorfleet"}
#: libraries without graphs and sessions, and the modules that have their works
PEERS = {"torch": "peers_torch", "jax": "peers_jax"}
_BLOCKS = 5
_WARM_STEPS, _WARM_SECONDS = 5, 1.0


@dataclass(frozen=True)
class Work:
    """One measured program; `floor` is the least ratio to TensorFlow that `--check` accepts."""

    name: str
    about: str
    #: given the library and the size, 1.0 for full: one step
    build: Callable[[Any, float], Callable[[], Any]]
    #: how many steps one timed block has; 0 when the work is timed once, from the start of its process
    steps: int
    #: how many results one step stands for
    units: int
    floor: float | None
    #: what is halved and doubled; empty if the work has one size only
    scales: str


WORKS: dict[str, Work] = {}


def work(
    name: str, about: str, steps: int, floor: float | None = None, units: int = 1, scales: str = ""
) -> Callable:
    """Registers the decorated function as the builder of a work."""

    def register(build: Callable) -> Callable:
        WORKS[name] = Work(name, about, build, steps, units, floor, scales)
        return build

    return register


def load(library: str) -> Any:
    """A library as the module that scripts call `tf`."""
    tf = importlib.import_module(LIBRARIES[library])
    if library == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


def session(tf: Any) -> Any:
    """A session in which every variable made so far has its initial value."""
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    return sess


@work("add", "a placeholder plus one", steps=3000, floor=5)
def add(tf: Any, size: float) -> Callable[[], Any]:
    number = tf.placeholder(tf.float32, [])
    following = number + 1.0
    sess = tf.Session()
    return lambda: sess.run(following, {number: 41.0})


@work("assign", "one `assign_add` on a scalar variable", steps=3000, floor=2)
def assign(tf: Any, size: float) -> Callable[[], Any]:
    counter = tf.Variable(0.0)
    count = tf.assign_add(counter, 1.0)
    sess = session(tf)
    return lambda: sess.run(count)


def model(name: str, *arguments: Any) -> Callable[[Any, float], Callable[[], Any]]:
    """The builder of a model: a function of models.py with more arguments. Only the process that runs it needs NumPy."""

    def build(tf: Any, size: float) -> Callable[[], Any]:
        import models

        return getattr(models, name)(tf, size, *arguments)

    return build


HIDDEN, FILTERS, UNITS, WIDTH = "hidden units", "filters", "units", "width"
MLP = "training step, 784-{}-10, batch 100, SGD"
work("mlp100", MLP.format(100), 200, 1.3, scales=HIDDEN)(model("perceptron", 100, False))
work("mlp100adam", "the same with Adam", 200, 1.3, scales=HIDDEN)(model("perceptron", 100, True))
work("mlp1024", MLP.format(1024), 60, 1.1, scales=HIDDEN)(model("perceptron", 1024, False))
work("mlp1024adam", "the same with Adam", 60, 1.1, scales=HIDDEN)(model("perceptron", 1024, True))
work("cnn", "training step of LeNet (5x5x32, 5x5x64, 512), batch 64, SGD", 10, 1.0, scales=FILTERS)(
    model("cnn")
)
work("embed", "sampled softmax over 50,000 words, batch 128, SGD", 60, 1.2, scales="batch and samples")(
    model("embedding", 50_000)
)
work(
    "embed_large",
    "the same with 500,000 words: a step must not cost more",
    steps=60,
    scales="batch and samples",
)(model("embedding", 500_000))
work("lstm", "training step, LSTM of 128 units unrolled 28 times, batch 128, SGD", 12, 1.3, scales=UNITS)(
    model("lstm")
)
work("lstm_fused", "the same program; PyTorch by its fused op, JAX by a loop", steps=12, scales=UNITS)(
    model("lstm")
)
work("lstm_block", "the same LSTM by the fused op of each library", steps=12, scales=UNITS)(
    model("lstm_block")
)
work("resnet", "training step of a residual network of 20 layers, batch 32, momentum", 10, scales=FILTERS)(
    model("resnet")
)
work("transformer", "training step, 4 layers of attention, 16 x 64 of 2,000 words, Adam", 5, scales=WIDTH)(
    model("transformer")
)
work(
    "wide_deep",
    "training step, 20 columns of hashed words embedded and weighed, batch 512",
    steps=64,
    scales="columns",
)(model("wide_and_deep", False))
work("wide_deep_ids", "the same from numbers instead of words", steps=64, scales="columns")(
    model("wide_and_deep", True)
)
work("sentences", "training step, LSTM over 32 sentences of 10 to 40 words, Adam", 64, scales="lengths")(
    model("sentences")
)
work("start", "process start to the end of the first step of mlp100adam", steps=0, floor=1.3)(
    model("perceptron", 100, True)
)


@work("graphs", "a small new graph: build, initialize, run once", steps=1, floor=1.0, units=100)
def graphs(tf: Any, size: float) -> Callable[[], Any]:
    def hundred() -> None:
        for i in range(100):
            with tf.Graph().as_default():
                weights = tf.get_variable("weights", [i % 10 + 1, 4])
                result = tf.reduce_mean(tf.tanh(weights) * 3.0 + float(i))
                with tf.Session() as sess:
                    sess.run(tf.global_variables_initializer())
                    sess.run(result)

    return hundred


def measure(chosen: Work, step: Callable[[], Any], since: float) -> tuple[float, float]:
    """Seconds per step, by the clock and of all processors: those of the fastest of a few blocks.

    Whatever else the machine does only ever makes a block slower.
    """
    if not chosen.steps:
        step()
        return time.time() - since, time.process_time()
    if chosen.steps > 1:
        started, warm = time.perf_counter(), 0
        while warm < _WARM_STEPS or time.perf_counter() - started < _WARM_SECONDS:
            step()
            warm += 1
    blocks = []
    for _ in range(_BLOCKS if chosen.steps > 1 else 1):
        started, busy = time.perf_counter(), time.process_time()
        for _ in range(chosen.steps):
            step()
        blocks.append((time.perf_counter() - started, time.process_time() - busy))
    count = chosen.steps * chosen.units
    return min(clock for clock, _ in blocks) / count, min(busy for _, busy in blocks) / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one work on one library.")
    parser.add_argument("library", choices=[*LIBRARIES, *PEERS])
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--size", choices=SIZES, default="full", help="how large the work is")
    parser.add_argument("--since", type=float, default=time.time(), help="when this process was started")
    flags = parser.parse_args()
    chosen, size = WORKS[flags.work], SIZES[flags.size]
    if flags.library in PEERS:
        step = importlib.import_module(PEERS[flags.library]).WORKS[flags.work](size)
    else:
        step = chosen.build(load(flags.library), size)
    seconds, processors = measure(chosen, step, flags.since)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"seconds": seconds, "processors": processors, "bytes": peak}))


if __name__ == "__main__":
    main()
