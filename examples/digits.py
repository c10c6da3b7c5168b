"""Train a small convolutional network on real handwritten digits; it must read 97 % of the unseen ones.

    python examples/digits.py --steps 800 --batch_size 32 --learning_rate 0.001

The data are the 1797 images of 8x8 pixels that come with scikit-learn (`pip install ".[examples]"` brings
it); nothing is downloaded.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

import tensorfleet as tf

TARGET = 0.97
TEST_IMAGES = 400


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small convolutional network on digits.")
    parser.add_argument("--steps", type=int, default=500, help="training steps (default: 500)")
    parser.add_argument("--batch_size", type=int, default=64, help="images per step (default: 64)")
    parser.add_argument("--learning_rate", type=float, default=0.002, help="Adam's rate (default: 0.002)")
    parser.add_argument("--seed", type=int, default=1, help="of weights, split and batches (default: 1)")
    flags = parser.parse_args()
    if flags.steps < 1 or flags.batch_size < 1:
        parser.error("--steps and --batch_size must be at least 1")
    return flags


def load(random: np.random.RandomState) -> tuple[np.ndarray, ...]:
    """Images and labels to train on, then images and labels to test on."""
    images, labels = load_digits(return_X_y=True)
    order = random.permutation(len(labels))
    images, labels = images[order].astype(np.float32) / 16, labels[order].astype(np.int32)
    return images[TEST_IMAGES:], labels[TEST_IMAGES:], images[:TEST_IMAGES], labels[:TEST_IMAGES]


def convolve(inputs: tf.Tensor, filters: int, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [3, 3, inputs.shape[3], filters])
        biases = tf.get_variable("biases", [filters], initializer=tf.zeros_initializer())
        return tf.nn.relu(tf.nn.conv2d(inputs, kernel, [1, 1, 1, 1], "SAME") + biases)


def dense(inputs: tf.Tensor, units: int, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [inputs.shape[1], units])
        biases = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, weights) + biases


def network(images: tf.Tensor) -> tf.Tensor:
    """Ten scores per image."""
    maps = convolve(tf.reshape(images, [-1, 8, 8, 1]), 16, "conv1")
    maps = tf.nn.max_pool(convolve(maps, 32, "conv2"), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    hidden = tf.nn.relu(dense(tf.reshape(maps, [-1, 4 * 4 * 32]), 64, "hidden"))
    return dense(hidden, 10, "scores")


def show(line: str, last: bool = False) -> None:
    """One line that keeps changing on a terminal, one line each time elsewhere."""
    if sys.stdout.isatty():
        print(f"\r\033[K{line}", end="\n" if last else "", flush=True)
    else:
        print(line, flush=True)


def main() -> int:
    flags = read_flags()
    started = time.perf_counter()
    random = np.random.RandomState(flags.seed)
    train_images, train_labels, test_images, test_labels = load(random)

    tf.set_random_seed(flags.seed)
    images = tf.placeholder(tf.float32, [None, 64], name="images")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    logits = network(images)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    train = tf.train.AdamOptimizer(flags.learning_rate).minimize(loss)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(1, flags.steps + 1):
            batch = random.randint(0, len(train_labels), flags.batch_size)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            _, current = sess.run([train, loss], feed)
            if step % 50 == 0 or step == flags.steps:
                found = sess.run(accuracy, {images: test_images, labels: test_labels})
                line = f"step {step:4d} of {flags.steps}   loss {current:.4f}   test accuracy {found:.4f}"
                show(line, last=step == flags.steps)

    seconds = time.perf_counter() - started
    print(f"Final test accuracy {found:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET}).")
    if found < TARGET:
        print("The target was missed: try more --steps or another --learning_rate.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
