"""Hyper-parameter search over devices: one network for each choice, each on a device, all in one session.

    python examples/hyperparameter_search.py --devices 4 --plot search.svg

Twelve networks with different learning rates and widths take part. A thread for each device trains the networks
that are on it. After each round the worse half is given up (successive halving), so that most of the time goes to
the promising ones. The devices are virtual ones of this machine's CPU: `--target grpc://host:port` searches on the
devices of a cluster instead.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.9
LEARNING_RATES = (0.003, 0.03, 0.3, 3.0)
WIDTHS = (8, 32, 128)


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--devices", type=int, default=4, help="virtual devices of this machine (4)")
    parser.add_argument("--target", default="", help="a server of a cluster whose devices to use instead")
    parser.add_argument(
        "--steps", type=int, default=60, help="of the first round; each later one doubles (60)"
    )
    parser.add_argument("--plot", help="draw the curves into this file (needs matplotlib)")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    flat = [x.reshape(-1, 784).astype(np.float32) / 255 for x in (images, test_images)]
    return flat[0], labels.astype(np.int32), flat[1], test_labels.astype(np.int32)


class Trial:
    """One choice of hyper-parameters: a network on a device, and how well it does."""

    def __init__(self, number: int, device: str, learning_rate: float, width: int) -> None:
        self.device, self.learning_rate, self.width = device, learning_rate, width
        self.random = np.random.RandomState(number)
        self.steps, self.curve = 0, []
        with tf.device(device), tf.variable_scope(f"trial_{number}"):
            self.images = tf.placeholder(tf.float32, [None, 784])
            self.labels = tf.placeholder(tf.int32, [None])
            scores = tf.layers.dense(tf.layers.dense(self.images, width, tf.nn.relu), 10)
            loss = tf.losses.sparse_softmax_cross_entropy(self.labels, scores)
            self.train = tf.train.GradientDescentOptimizer(learning_rate).minimize(loss)
            right = tf.equal(tf.argmax(scores, 1, output_type=tf.int32), self.labels)
            self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    def go_on(self, sess: tf.Session, steps: int, data: tuple[np.ndarray, ...]) -> None:
        """Trains for some steps more, then looks how well it does."""
        images, labels, test_images, test_labels = data
        for _ in range(steps):
            batch = self.random.randint(0, len(labels), 100)
            sess.run(self.train, {self.images: images[batch], self.labels: labels[batch]})
        self.steps += steps
        reached = sess.run(self.accuracy, {self.images: test_images, self.labels: test_labels})
        self.curve.append((self.steps, float(reached)))

    @property
    def reached(self) -> float:
        return self.curve[-1][1]


def train_all(sess: tf.Session, trials: list[Trial], steps: int, data: tuple[np.ndarray, ...]) -> None:
    """A round: every device trains its trials one after the other, all devices at the same time."""

    def work(mine: list[Trial]) -> None:
        with coordinator.stop_on_exception():
            for trial in mine:
                trial.go_on(sess, steps, data)

    coordinator = tf.train.Coordinator()
    by_device = [[t for t in trials if t.device == device] for device in {t.device for t in trials}]
    threads = [threading.Thread(target=work, args=(mine,)) for mine in by_device]
    for thread in threads:
        thread.start()
    coordinator.join(threads)  # raises what a thread has raised


def places(trials: list[Trial]) -> list[str]:
    """The devices, without what is the same for all."""
    return sorted({t.device.replace("/replica:0", "").replace("/device", "") for t in trials})


def show(trials: list[Trial]) -> None:
    """A table of all choices: the accuracy that each reached, and in how many steps."""
    print("learning rate " + "".join(f"   width {width:<7d}" for width in WIDTHS))
    for rate in LEARNING_RATES:
        cells = [t for t in trials if t.learning_rate == rate]
        print(f"{rate:13g} " + "".join(f"   {t.reached:.4f} ({t.steps:4d})" for t in cells))


def draw(trials: list[Trial], path: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('No plot: it needs matplotlib (pip install "tensorfleet[examples]").')
        return
    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    for trial in trials:
        axes.plot(*zip(*trial.curve, strict=True), "o-", label=f"{trial.learning_rate:g}, {trial.width}")
    axes.set(xlabel="step", ylabel="test accuracy", title="Half of the choices are given up after each round")
    axes.legend(title="learning rate, width", fontsize="small", ncols=2)
    figure.savefig(path)
    print(f"The curves are in {path}.")


def main() -> int:
    flags = read_flags()
    tf.set_random_seed(1)
    data, began = digits(), time.time()
    config = tf.ConfigProto(device_count={"CPU": flags.devices})
    with tf.Session(flags.target, config=config) as sess:
        devices = itertools.cycle([d.name for d in sess.list_devices() if d.device_type in ("CPU", "GPU")])
        choices = itertools.product(LEARNING_RATES, WIDTHS)
        trials = [Trial(i, next(devices), rate, width) for i, (rate, width) in enumerate(choices)]
        sess.run(tf.global_variables_initializer())
        best, steps = trials, flags.steps
        while True:
            print(f"{len(best):2d} of {len(trials)} train for {steps:3d} steps each, on", *places(best))
            train_all(sess, best, steps, data)
            best = sorted(best, key=lambda t: -t.reached)
            if len(best) == 1:
                break
            best, steps = best[: len(best) // 2], steps * 2
    show(trials)
    if flags.plot:
        draw(trials, flags.plot)
    found, seconds = best[0], time.time() - began
    print(f"Best: learning rate {found.learning_rate:g}, width {found.width}, found in {seconds:.1f} s.")
    print(f"Final test accuracy {found.reached:.4f} after {found.steps} steps (target {TARGET}).")
    return 0 if found.reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
