"""What benchmarks/input.py measures: one work on one library, in a process of its own.

    input_works.py LIBRARY WORK FOLDER

prints one line of JSON: the seconds of a step. FOLDER has the files that `prepare` wrote, the same for both libraries.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from works import load

RECORDS, LINES, BATCH = 5_120, 12_800, 128
_SECONDS = 6.0  # that a work is repeated for


@dataclass(frozen=True)
class Work:
    """One thing to measure: how many steps one timed block has, what is asked, and what one step is."""

    name: str
    steps: int
    floor: float
    about: str
    run: Callable[..., tuple[float, float]]


# -- files -------------------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Writes a file of Examples, MNIST's pixels and label each, and one of lines of ten numbers."""
    import tensorfleet as tf

    random = np.random.default_rng(7)
    with tf.python_io.TFRecordWriter(str(folder / "digits.tfrecord")) as writer:
        for i in range(RECORDS):
            pixels = random.integers(0, 256, 784, dtype=np.uint8).tobytes()
            features = {
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    rows = random.normal(size=(LINES, 10))
    lines = [",".join(f"{v:.5f}" for v in row) for row in rows.tolist()]
    (folder / "numbers.csv").write_text("\n".join(lines) + "\n")


# -- in one process ----------------------------------------------------------------------------------


def block(step: Callable[[], Any], steps: int) -> tuple[float, float]:
    """Seconds per step, and seconds of processor time."""
    began, worked = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps, (time.process_time() - worked) / steps


def blocks(steps: int, *each: Callable[[], Any]) -> list[list[tuple[float, float]]]:
    """Many blocks of each step, in turns."""
    for step in each:
        block(step, max(steps, 5))
    found: list[list] = [[] for _ in each]
    began = time.perf_counter()
    while len(found[0]) < 3 or time.perf_counter() - began < _SECONDS:
        for seen, step in zip(found, each, strict=True):
            seen.append(block(step, steps))
    return found


def fastest(steps: int, step: Callable[[], Any]) -> tuple[float, float]:
    """The fastest of many blocks: the rest is what else the machine did."""
    (found,) = blocks(steps, step)
    return min(s for s, _ in found), min(p for _, p in found)


def batch_of_images() -> np.ndarray:
    return np.random.default_rng(7).random((100, 784), dtype=np.float32)


def queue(tf: Any, folder: Path, steps: int) -> tuple[float, float]:
    """A batch goes in and comes out."""
    line = tf.FIFOQueue(10, [tf.float32], [[100, 784]])
    given = tf.placeholder(tf.float32, [100, 784])
    put, take, images = line.enqueue(given), line.dequeue(), batch_of_images()
    with tf.Session() as sess:

        def step() -> None:
            sess.run(put, {given: images})
            sess.run(take)

        return fastest(steps, step)


def batches(tf: Any, dataset: Any, steps: int) -> tuple[float, float]:
    """Seconds per element of a dataset; the last batch of each round is smaller, for both libraries alike."""
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        return fastest(steps, lambda: sess.run(element))


def records(tf: Any, folder: Path, steps: int) -> tuple[float, float]:
    features = {"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}

    def parse(record: Any) -> tuple:
        found = tf.parse_single_example(record, features)
        pixels = tf.decode_raw(found["image_raw"], tf.uint8)
        return tf.cast(pixels, tf.float32) / 255.0, found["label"]

    dataset = tf.data.TFRecordDataset(str(folder / "digits.tfrecord")).map(parse)
    return batches(tf, dataset.shuffle(RECORDS // 2).repeat().batch(BATCH).prefetch(4), steps)


def lines(tf: Any, folder: Path, steps: int) -> tuple[float, float]:
    def decode(line: Any) -> Any:
        return tf.stack(tf.decode_csv(line, [[0.0]] * 10))

    dataset = tf.data.TextLineDataset(str(folder / "numbers.csv")).map(decode)
    return batches(tf, dataset.repeat().batch(BATCH), steps)


def feeding(tf: Any, folder: Path, steps: int) -> tuple[float, float]:
    """How much longer a training step takes that gets its batch from a dataset than one that is fed; 1 is as long."""
    random = np.random.default_rng(7)
    images = random.random((10_000, 784), dtype=np.float32)
    labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, len(images))]

    def training(pixels: Any, classes: Any) -> Any:
        with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
            layer = tf.nn.relu(
                tf.matmul(pixels, tf.get_variable("w1", [784, 100])) + tf.get_variable("b1", [100])
            )
            logits = tf.matmul(layer, tf.get_variable("w2", [100, 10])) + tf.get_variable("b2", [10])
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=classes, logits=logits))
        return [tf.train.GradientDescentOptimizer(0.01).minimize(loss), loss]

    pixels, classes = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    all_images, all_labels = (
        tf.placeholder(tf.float32, images.shape),
        tf.placeholder(tf.float32, labels.shape),
    )
    dataset = tf.data.Dataset.from_tensor_slices((all_images, all_labels))
    iterator = dataset.shuffle(len(images)).repeat().batch(100).make_initializable_iterator()
    fed, read = training(pixels, classes), training(*iterator.get_next())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(iterator.initializer, {all_images: images, all_labels: labels})
        starts = itertools.cycle(range(0, len(images), 100))

        def step() -> None:
            at = next(starts)
            sess.run(fed, {pixels: images[at : at + 100], classes: labels[at : at + 100]})

        pairs = list(zip(*blocks(steps, step, lambda: sess.run(read)), strict=True))
    # Neighbours see the same machine.
    seconds, processor = (statistics.median(b[i] / a[i] for a, b in pairs) for i in (0, 1))
    return seconds, processor


# -- a queue on a parameter server -------------------------------------------------------------------


@contextlib.contextmanager
def child(*arguments: str, **options: Any) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__), *arguments], **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def await_listener(address: str) -> None:
    host, port = address.split(":")
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
            return
        time.sleep(0.1)
    raise RuntimeError(f"no server at {address}")


def remote_queue(tf: Any, address: str) -> tuple[Any, Any]:
    with tf.device("/job:ps/task:0"):
        line = tf.FIFOQueue(10, [tf.float32], [[100, 784]], shared_name="line")
    return line, tf.Session(f"grpc://{address}")


def serve(tf: Any, address: str) -> None:
    tf.train.Server({"ps": [address]}, job_name="ps", task_index=0).join()


def produce(tf: Any, address: str) -> None:
    line, sess = remote_queue(tf, address)
    given, images = tf.placeholder(tf.float32, [100, 784]), batch_of_images()
    put = line.enqueue(given)
    while True:
        sess.run(put, {given: images})


def queue_on_ps(tf: Any, folder: Path, steps: int) -> tuple[float, float]:
    """One process puts batches into a queue on a server, this one takes them out."""
    with socket.create_server(("localhost", 0)) as held:
        address = f"localhost:{held.getsockname()[1]}"
    library = "tensorflow" if "tensorflow" in tf.__name__ else "tensorfleet"
    with child(library, "serve", address), contextlib.ExitStack() as stack:
        await_listener(address)
        stack.enter_context(child(library, "produce", address))
        line, sess = remote_queue(tf, address)
        take, size = line.dequeue(), line.size()
        while sess.run(size) < 10:
            time.sleep(0.1)
        found = fastest(steps, lambda: sess.run(take))
        sess.close()  # while there is a server to tell: TensorFlow waits for its answer
        return found


_ALL = [
    Work("queue", 100, 2, "a batch of 100 x 784 into a queue and out of it, same process", queue),
    Work("queue_ps", 50, 4, "the same through a queue on a ps, between two processes", queue_on_ps),
    Work(
        "records",
        RECORDS // BATCH,
        1,
        "128 Examples of 784 bytes and a label: read, parsed, shuffled, batched, prefetched",
        records,
    ),
    Work("lines", LINES // BATCH, 1, "128 lines of ten floats: read, decoded, batched", lines),
    Work("feeding", 10, 0, "784-100-10 on batches of a shuffled dataset, over the same step fed", feeding),
]
WORKS = {work.name: work for work in _ALL}


def main() -> None:
    library, name, place = sys.argv[1:]
    tf = load(library)
    if name in ("serve", "produce"):
        (serve if name == "serve" else produce)(tf, place)
        return
    work = WORKS[name]
    seconds, processor = work.run(tf, Path(place), work.steps)
    print(json.dumps({"seconds": seconds, "processor": processor}))


if __name__ == "__main__":
    main()
