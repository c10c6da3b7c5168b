"""In-graph replication, asynchronous: one client, one graph, and each copy of the network has its own optimizer.

    tensorfleet run --ps 1 --workers 2 examples/in_graph_async.py -- --steps 800

    worker 0   runs the client, with a thread for each copy:
                 |  thread 0: sess.run(train[0])  gradients of copy 0 ---> its optimizer --+
    worker 1     |  thread 1: sess.run(train[1])  gradients of copy 1 ---> its optimizer --+
                 v                                                                         |
    ps 0       weights <-------------------------------------------------------------------+

Nobody waits for anybody: a gradient may be applied to weights that have moved on since it was computed.
The other three schemes are in_graph_sync.py, between_graph_sync.py and between_graph_async.py.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.88


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=800, help="steps of all copies together (800)")
    parser.add_argument("--batch_size", type=int, default=100, help="images in each step of a copy (100)")
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


class Copy:
    """The network on one worker, with placeholders, a loss and an optimizer of its own."""

    def __init__(self, worker: int, cluster: tf.train.ClusterSpec, learning_rate: float) -> None:
        # Variables go to the parameter server, everything else to the worker.
        device = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{worker}", cluster=cluster)
        with tf.device(device):
            self.step = tf.train.get_or_create_global_step()
            self.images = tf.placeholder(tf.float32, [None, 784])
            self.labels = tf.placeholder(tf.int32, [None])
            scores = network(self.images)
            self.loss = tf.losses.sparse_softmax_cross_entropy(self.labels, scores)
            right = tf.equal(tf.argmax(scores, 1, output_type=tf.int32), self.labels)
            self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
            optimizer = tf.train.GradientDescentOptimizer(learning_rate)
            self.train = optimizer.minimize(self.loss, global_step=self.step)
        self.steps_made = 0

    def feed(self, images: np.ndarray, labels: np.ndarray) -> dict:
        return {self.images: images, self.labels: labels}


def main() -> int:
    flags = read_flags()
    cluster, job, index = task_of_a_cluster()
    server = tf.train.Server(cluster, job, index)
    if (job, index) != ("worker", 0):
        server.join()  # computes what the client's graph puts here, until the client is done
        return 0

    tf.set_random_seed(1)
    copies = [Copy(i, cluster, flags.learning_rate) for i in range(cluster.num_tasks("worker"))]
    train_images, train_labels, test_images, test_labels = digits()
    coordinator = tf.train.Coordinator()  # stops all threads when one of them has stopped or failed

    def train(copy: Copy, seed: int) -> None:
        """What each thread does: steps of its copy, without looking at the others."""
        random = np.random.RandomState(seed)
        with coordinator.stop_on_exception():
            while not coordinator.should_stop():
                batch = random.randint(0, len(train_labels), flags.batch_size)
                feed = copy.feed(train_images[batch], train_labels[batch])
                _, step, cost = sess.run([copy.train, copy.step, copy.loss], feed)
                copy.steps_made += 1
                if copy.steps_made % 50 == 0:
                    print(f"{step:6d}  copy {seed}  {cost:.4f}")
                if step >= flags.steps:
                    coordinator.request_stop()

    began = time.time()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        print(f"One graph over {len(copies)} workers: {len(copies)} optimizers share the weights.")
        print("  step  who     loss")
        threads = [threading.Thread(target=train, args=(copy, i)) for i, copy in enumerate(copies)]
        for thread in threads:
            thread.start()
        coordinator.join(threads)
        reached = sess.run(copies[0].accuracy, copies[0].feed(test_images, test_labels))
    for i, copy in enumerate(copies):
        print(f"Copy {i} on worker {i} made {copy.steps_made:4d} steps  {'#' * (copy.steps_made // 20)}")
    seconds = time.time() - began
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
