"""In-graph replication, synchronous: one client, one graph, a copy of the network for every worker.

    tensorfleet run --ps 1 --workers 2 examples/in_graph_sync.py -- --steps 400

    worker 0   runs the client:  sess.run(train)
                 |  half of the batch: gradients --+
    worker 1     |  other half:        gradients --+-- mean
                 v                                     |
    ps 0       weights <--- one optimizer -------------+

The other three schemes are in_graph_async.py, between_graph_sync.py and between_graph_async.py: compare them
side by side, they differ only in what matters.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.88


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=400, help="steps to train (400)")
    parser.add_argument("--batch_size", type=int, default=100, help="images for each worker's share (100)")
    parser.add_argument("--learning_rate", type=float, default=0.5, help="of gradient descent (0.5)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --workers 2 {sys.argv[0]}")
    return parser.parse_args()


def task_of_a_cluster() -> tuple[tf.train.ClusterSpec, str, int]:
    """All tasks with their addresses, and which of them this process is: `tensorfleet run` has set TF_CONFIG."""
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return told.cluster_spec(), told.task_type, told.task_id


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    flat = [x.reshape(-1, 784).astype(np.float32) / 255 for x in (images, test_images)]
    return flat[0], labels.astype(np.int32), flat[1], test_labels.astype(np.int32)


def network(images: tf.Tensor) -> tf.Tensor:
    """Ten scores per image; called again, it uses the same weights."""
    with tf.variable_scope("network", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(images, 64, activation=tf.nn.relu, name="hidden")
        return tf.layers.dense(hidden, 10, name="scores")


def mean(gradients: list[tf.Tensor]) -> tf.Tensor:
    return tf.add_n(gradients) / len(gradients)


def main() -> int:
    flags = read_flags()
    cluster, job, index = task_of_a_cluster()
    server = tf.train.Server(cluster, job, index)
    if (job, index) != ("worker", 0):
        server.join()  # computes what the client's graph puts here, until the client is done
        return 0

    tf.set_random_seed(1)
    workers = cluster.num_tasks("worker")
    optimizer = tf.train.GradientDescentOptimizer(flags.learning_rate)
    with tf.device("/job:worker/task:0"):
        images = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int32, [None])
        shares = zip(tf.split(images, workers), tf.split(labels, workers), strict=True)

    losses, gradients = [], []
    for i, (some_images, some_labels) in enumerate(shares):
        # Variables go to the parameter server, everything else to worker i.
        with tf.device(
            tf.train.replica_device_setter(worker_device=f"/job:worker/task:{i}", cluster=cluster)
        ):
            scores = network(some_images)
            losses.append(tf.losses.sparse_softmax_cross_entropy(some_labels, scores))
            gradients.append(optimizer.compute_gradients(losses[i]))

    # One optimizer gets the mean over the copies: the same step as one machine with the whole batch would make.
    with tf.device("/job:ps/task:0"):
        together = [(mean([g for g, _ in pairs]), pairs[0][1]) for pairs in zip(*gradients, strict=True)]
        train = optimizer.apply_gradients(together)
        loss = mean(losses)
    with tf.device("/job:worker/task:0"):
        right = tf.equal(tf.argmax(network(images), 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    train_images, train_labels, test_images, test_labels = digits()
    random, began = np.random.RandomState(1), time.time()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        print(f"One graph over {workers} workers: each step is the mean of {workers} gradients.")
        print("  step    loss   test accuracy")
        for step in range(1, flags.steps + 1):
            batch = random.randint(0, len(train_labels), flags.batch_size * workers)
            _, cost = sess.run([train, loss], {images: train_images[batch], labels: train_labels[batch]})
            if step % 50 == 0 or step == flags.steps:
                reached = sess.run(accuracy, {images: test_images, labels: test_labels})
                print(f"{step:6d}  {cost:.4f}   {reached:.4f}")
    seconds = time.time() - began
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
