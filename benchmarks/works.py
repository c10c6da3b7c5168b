"""What is measured: each work builds its graph on the given library and returns one step to repeat.

A training step fetches its loss. A call that only names an operation may return while the work still
goes on elsewhere; one that hands back a number cannot, so no clock here stops too early.

Run by `run.py` in a process of its own, once per library:

    python benchmarks/works.py tensorfleet mlp100

prints one line of JSON: the seconds of a step by the clock, the processor time that all threads spent on it, and the most
memory the process has used, in bytes.
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

LIBRARIES = {"tensorflow": "tensorflow.compat.v1", "tensorfleet": "tensorfleet"}
_BLOCKS = 5
_WARM_STEPS, _WARM_SECONDS = 5, 1.0


@dataclass(frozen=True)
class Work:
    """One measured program; `floor` is the least ratio to TensorFlow that `--check` accepts."""

    name: str
    about: str
    build: Callable[[Any], Callable[[], Any]]
    #: how many steps one timed block has; 0 when the work is timed once, from the start of its process
    steps: int
    #: how many results one step stands for
    units: int
    floor: float | None


WORKS: dict[str, Work] = {}


def work(name: str, about: str, steps: int, floor: float | None, units: int = 1) -> Callable:
    """Registers the decorated function as the builder of a work."""

    def register(build: Callable) -> Callable:
        WORKS[name] = Work(name, about, build, steps, units, floor)
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


def training(tf: Any, optimizer: Any, loss: Any, feed: dict) -> Callable[[], Any]:
    """A step that updates every variable and gives the loss."""
    train = optimizer.minimize(loss)
    sess = session(tf)
    return lambda: sess.run([train, loss], feed)


def images(pixels: Any, labels: Any, count: int) -> dict:
    """Feeds random images of 784 pixels with one-hot labels."""
    import numpy as np

    random = np.random.default_rng(7)
    classes = np.eye(10, dtype=np.float32)[random.integers(0, 10, count)]
    return {pixels: random.random((count, 784), dtype=np.float32), labels: classes}


def zeros(tf: Any, name: str, size: int) -> Any:
    """A bias."""
    return tf.get_variable(name, [size], initializer=tf.zeros_initializer())


def cross_entropy(tf: Any, labels: Any, logits: Any) -> Any:
    """The mean loss of a batch."""
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))


@work("add", "a placeholder plus one", steps=3000, floor=5)
def add(tf: Any) -> Callable[[], Any]:
    number = tf.placeholder(tf.float32, [])
    following = number + 1.0
    sess = tf.Session()
    return lambda: sess.run(following, {number: 41.0})


@work("assign", "one `assign_add` on a scalar variable", steps=3000, floor=2)
def assign(tf: Any) -> Callable[[], Any]:
    counter = tf.Variable(0.0)
    count = tf.assign_add(counter, 1.0)
    sess = session(tf)
    return lambda: sess.run(count)


def perceptron(tf: Any, hidden: int, optimizer: Any) -> Callable[[], Any]:
    """784 pixels, one hidden layer, ten classes, a batch of 100."""
    pixels, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    layer = tf.nn.relu(tf.matmul(pixels, tf.get_variable("w1", [784, hidden])) + zeros(tf, "b1", hidden))
    logits = tf.matmul(layer, tf.get_variable("w2", [hidden, 10])) + zeros(tf, "b2", 10)
    return training(tf, optimizer, cross_entropy(tf, labels, logits), images(pixels, labels, 100))


@work("mlp100", "training step, 784-100-10, batch 100, SGD", steps=200, floor=1.3)
def mlp100(tf: Any) -> Callable[[], Any]:
    return perceptron(tf, 100, tf.train.GradientDescentOptimizer(0.01))


@work("mlp100adam", "the same with Adam", steps=200, floor=1.3)
def mlp100adam(tf: Any) -> Callable[[], Any]:
    return perceptron(tf, 100, tf.train.AdamOptimizer())


@work("mlp1024", "training step, 784-1024-10, batch 100, SGD", steps=60, floor=1.1)
def mlp1024(tf: Any) -> Callable[[], Any]:
    return perceptron(tf, 1024, tf.train.GradientDescentOptimizer(0.01))


@work("mlp1024adam", "the same with Adam", steps=60, floor=1.1)
def mlp1024adam(tf: Any) -> Callable[[], Any]:
    return perceptron(tf, 1024, tf.train.AdamOptimizer())


@work("cnn", "training step of LeNet (5x5x32, 5x5x64, 512), batch 64, SGD", steps=10, floor=1.0)
def cnn(tf: Any) -> Callable[[], Any]:
    pixels, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    maps, depth = tf.reshape(pixels, [-1, 28, 28, 1]), 1
    for i, filters in enumerate((32, 64)):
        kernel = tf.get_variable(f"kernel{i}", [5, 5, depth, filters])
        maps = tf.nn.conv2d(maps, kernel, strides=[1, 1, 1, 1], padding="SAME")
        maps = tf.nn.relu(tf.nn.bias_add(maps, zeros(tf, f"bias{i}", filters)))
        maps = tf.nn.max_pool(maps, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        depth = filters
    flat = tf.reshape(maps, [-1, 7 * 7 * 64])
    layer = tf.nn.relu(tf.matmul(flat, tf.get_variable("w1", [7 * 7 * 64, 512])) + zeros(tf, "b1", 512))
    logits = tf.matmul(layer, tf.get_variable("w2", [512, 10])) + zeros(tf, "b2", 10)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    return training(tf, optimizer, cross_entropy(tf, labels, logits), images(pixels, labels, 64))


def embedding(tf: Any, rows: int) -> Callable[[], Any]:
    """Two tables of `rows` x 128, a batch of 128 words, 64 sampled classes."""
    import numpy as np

    words = tf.placeholder(tf.int32, [128])
    following = tf.placeholder(tf.int64, [128, 1])
    vectors = tf.nn.embedding_lookup(tf.get_variable("vectors", [rows, 128]), words)
    weights, biases = tf.get_variable("weights", [rows, 128]), zeros(tf, "biases", rows)
    losses = tf.nn.sampled_softmax_loss(
        weights=weights, biases=biases, labels=following, inputs=vectors, num_sampled=64, num_classes=rows
    )
    random = np.random.default_rng(7)
    feed = {words: random.integers(0, rows, 128), following: random.integers(0, rows, (128, 1))}
    return training(tf, tf.train.GradientDescentOptimizer(0.1), tf.reduce_mean(losses), feed)


@work("embed", "sampled softmax over 50,000 words, batch 128, SGD", steps=60, floor=1.2)
def embed(tf: Any) -> Callable[[], Any]:
    return embedding(tf, 50_000)


@work("embed_large", "the same with 500,000 words: a step must not cost more", steps=60, floor=None)
def embed_large(tf: Any) -> Callable[[], Any]:
    return embedding(tf, 500_000)


@work("lstm", "training step, LSTM of 128 units unrolled 28 times, batch 128, SGD", steps=12, floor=1.3)
def lstm(tf: Any) -> Callable[[], Any]:
    units = 128
    pixels, labels = tf.placeholder(tf.float32, [128, 784]), tf.placeholder(tf.float32, [128, 10])
    gates = tf.get_variable("gates", [28 + units, 4 * units])
    biases = zeros(tf, "biases", 4 * units)
    memory = output = tf.zeros([128, units])
    for row in tf.split(pixels, 28, axis=1):
        together = tf.matmul(tf.concat([row, output], axis=1), gates) + biases
        write, new, keep, show = tf.split(together, 4, axis=1)
        memory = memory * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(new)
        output = tf.sigmoid(show) * tf.tanh(memory)
    logits = tf.matmul(output, tf.get_variable("w", [units, 10])) + zeros(tf, "b", 10)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return training(tf, optimizer, cross_entropy(tf, labels, logits), images(pixels, labels, 128))


@work("resnet", "training step of a residual network of 20 layers, batch 32, momentum", steps=10, floor=None)
def resnet(tf: Any) -> Callable[[], Any]:
    import models

    return models.resnet(tf)


@work(
    "transformer", "training step, 4 layers of attention, 16 x 64 of 2,000 words, Adam", steps=5, floor=None
)
def transformer(tf: Any) -> Callable[[], Any]:
    import models

    return models.transformer(tf)


@work(
    "wide_deep",
    "training step, 20 columns of hashed words embedded and weighed, batch 512",
    steps=60,
    floor=None,
)
def wide_deep(tf: Any) -> Callable[[], Any]:
    import models

    return models.wide_and_deep(tf)


@work("sentences", "training step, LSTM over 32 sentences of 10 to 40 words, Adam", steps=60, floor=None)
def sentences(tf: Any) -> Callable[[], Any]:
    import models

    return models.sentences(tf)


@work("start", "process start to the end of the first step of mlp100adam", steps=0, floor=1.3)
def start(tf: Any) -> Callable[[], Any]:
    return mlp100adam(tf)


@work("graphs", "a small new graph: build, initialize, run once", steps=1, floor=1.0, units=100)
def graphs(tf: Any) -> Callable[[], Any]:
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
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--since", type=float, default=time.time(), help="when this process was started")
    flags = parser.parse_args()
    tf = load(flags.library)
    chosen = WORKS[flags.work]
    seconds, processors = measure(chosen, chosen.build(tf), flags.since)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"seconds": seconds, "processors": processors, "bytes": peak}))


if __name__ == "__main__":
    main()
