"""A model-parallel recurrent network: each layer, its weights and its work are on a task of their own.

    tensorfleet run --ps 0 --workers 2 examples/model_parallel_rnn.py

It reads a handwritten digit as a sequence of 28 rows. The rows come in four pieces, so that the layers work at the
same time: while layer 1 reads the second piece, layer 0 is at the third.

    worker 0, layer 0   rows 0-6 | rows 7-13 | rows 14-20 | rows 21-27
                              \\           \\            \\            \\
    worker 1, layer 1          rows 0-6 | rows 7-13  | rows 14-20 | rows 21-27 -> ten scores

No parameter server is needed: a layer's weights stay on its worker, only what one layer says to the next travels.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

import numpy as np

import tensorfleet as tf

TARGET = 0.85


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=150, help="training steps (150)")
    parser.add_argument("--batch_size", type=int, default=64, help="images in each step (64)")
    parser.add_argument("--units", type=int, default=48, help="of each layer (48)")
    parser.add_argument("--pieces", type=int, default=4, help="that the rows are cut into (4)")
    parser.add_argument("--learning_rate", type=float, default=0.01, help="of Adam (0.01)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 0 --workers 2 {sys.argv[0]}")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    rows = [x.astype(np.float32) / 255 for x in (images, test_images)]
    return rows[0], labels.astype(np.int32), rows[1], test_labels.astype(np.int32)


def network(images: tf.Tensor, layers: int, units: int, pieces: int) -> tf.Tensor:
    """Ten scores per image, from a layer on each worker."""
    states = [None] * layers
    for piece in tf.split(images, pieces, axis=1):
        inputs = piece
        for layer in range(layers):
            with (
                tf.device(f"/job:worker/task:{layer}"),
                tf.variable_scope(f"layer_{layer}", reuse=tf.AUTO_REUSE),
            ):
                cell = tf.nn.rnn_cell.GRUCell(units)
                inputs, states[layer] = tf.nn.dynamic_rnn(
                    cell, inputs, initial_state=states[layer], dtype=tf.float32
                )
    with tf.device(f"/job:worker/task:{layers - 1}"):
        return tf.layers.dense(states[-1], 10, name="scores")


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = told.cluster_spec()
    server = tf.train.Server(cluster, told.task_type, told.task_id)
    if (told.task_type, told.task_id) != ("worker", 0):
        server.join()  # keeps and computes its layer, until the client is done
        return 0

    tf.set_random_seed(1)
    layers = cluster.num_tasks("worker")
    images = tf.placeholder(tf.float32, [None, 28, 28])
    labels = tf.placeholder(tf.int32, [None])
    scores = network(images, layers, flags.units, flags.pieces)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
    right = tf.equal(tf.argmax(scores, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    # Gradients are computed where the layer is; Adam's state and its updates stay with the weights.
    train = tf.train.AdamOptimizer(flags.learning_rate).minimize(loss, colocate_gradients_with_ops=True)

    held = Counter()
    for variable in tf.global_variables():
        held[variable.device] += variable.shape.num_elements()
    print("task                       numbers it keeps")
    for device, count in sorted(held.items()):
        print(f"{device:26s} {count:8d}")

    train_images, train_labels, test_images, test_labels = digits()
    random, began = np.random.RandomState(1), time.time()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(1, flags.steps + 1):
            batch = random.randint(0, len(train_labels), flags.batch_size)
            _, cost = sess.run([train, loss], {images: train_images[batch], labels: train_labels[batch]})
            if step % 50 == 0 or step == flags.steps:
                print(f"step {step:4d}   loss {cost:.4f}")
        reached = sess.run(accuracy, {images: test_images, labels: test_labels})
    seconds = time.time() - began
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
