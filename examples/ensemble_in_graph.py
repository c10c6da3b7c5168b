"""An ensemble in one graph: several networks on several devices, trained in one run, and their mean opinion.

    python examples/ensemble_in_graph.py --networks 5

Each network has a device of its own and sees its own selection of the digits. One `sess.run` trains all of them at
once; another asks all of them and takes the mean of what they say, which is right more often than any of them.
The devices are virtual ones of this machine's CPU; with "/job:worker/task:0" and so on in their place the same
graph spreads over a cluster.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.9


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", type=int, default=5, help="in the ensemble, one on each device (5)")
    parser.add_argument("--steps", type=int, default=300, help="training steps (300)")
    parser.add_argument("--batch_size", type=int, default=100, help="images for each network and step (100)")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    flat = [x.reshape(-1, 784).astype(np.float32) / 255 for x in (images, test_images)]
    return flat[0], labels.astype(np.int32), flat[1], test_labels.astype(np.int32)


def network(images: tf.Tensor, number: int) -> tf.Tensor:
    """Ten scores per image, with weights of its own."""
    with tf.variable_scope(f"network_{number}"):
        hidden = tf.layers.dense(images, 48, activation=tf.nn.relu, name="hidden")
        return tf.layers.dense(hidden, 10, name="scores")


def accuracy(probabilities: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    right = tf.equal(tf.argmax(probabilities, 1, output_type=tf.int32), labels)
    return tf.reduce_mean(tf.cast(right, tf.float32))


def main() -> int:
    flags = read_flags()
    tf.set_random_seed(1)
    train_images, train_labels, test_images, test_labels = digits()
    test_input, test_answers = tf.constant(test_images), tf.constant(test_labels)
    feeds, trainings, opinions = [], [], []
    for i in range(flags.networks):
        with tf.device(f"/cpu:{i}"):
            images, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
            with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
                loss = tf.losses.sparse_softmax_cross_entropy(labels, network(images, i))
                opinions.append(tf.nn.softmax(network(test_input, i)))
            trainings.append(tf.train.AdamOptimizer(0.005).minimize(loss))
            feeds.append((images, labels))
    with tf.device("/cpu:0"):
        alone = [accuracy(opinion, test_answers) for opinion in opinions]
        together = accuracy(tf.add_n(opinions) / flags.networks, test_answers)

    random, began = np.random.RandomState(1), time.time()
    # Each network learns from two thirds of the digits, a different selection for each.
    selections = [random.permutation(len(train_labels))[: len(train_labels) * 2 // 3] for _ in feeds]
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": flags.networks})) as sess:
        sess.run(tf.global_variables_initializer())
        print(f"{flags.networks} networks on {[d.name[-5:] for d in sess.list_devices()]}")
        print("  step   the mean opinion's test accuracy")
        for step in range(1, flags.steps + 1):
            batch = {}
            for (images, labels), selection in zip(feeds, selections, strict=True):
                chosen = selection[random.randint(0, len(selection), flags.batch_size)]
                batch |= {images: train_images[chosen], labels: train_labels[chosen]}
            sess.run(trainings, batch)
            if step % 100 == 0 or step == flags.steps:
                print(f"{step:6d}   {sess.run(together):.4f}")
        members, reached = sess.run([alone, together])

    # The plot a person would rather look at: how far each is above 80 %.
    for i, one in enumerate(members):
        print(f"network {i}   {one:.4f}  {'#' * round(200 * max(one - 0.8, 0))}")
    print(f"ensemble    {reached:.4f}  {'#' * round(200 * max(reached - 0.8, 0))}")
    seconds = time.time() - began
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET}),"
    )
    print(f"of the best network alone {max(members):.4f}, of the mean network {np.mean(members):.4f}.")
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
