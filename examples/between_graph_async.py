"""Between-graph replication, asynchronous: every worker is a client with a graph of its own.

    tensorfleet run --ps 1 --workers 2 examples/between_graph_async.py -- --steps 800

    worker 0   client 0: session.run(train)  gradients ---> its optimizer --+
    worker 1   client 1: session.run(train)  gradients ---> its optimizer --+
                                                                            |
    ps 0       weights <----------------------------------------------------+

Each program looks as if it trained alone; but the variables, by their names, are the same ones on the parameter
server. Nobody waits: a gradient may be applied to weights that have moved on since it was computed.
The other three schemes are between_graph_sync.py, in_graph_sync.py and in_graph_async.py.
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
    parser.add_argument("--steps", type=int, default=800, help="steps of all workers together (800)")
    parser.add_argument("--batch_size", type=int, default=100, help="images in each step of a worker (100)")
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


def main() -> int:
    flags = read_flags()
    cluster, job, index = task_of_a_cluster()
    server = tf.train.Server(cluster, job, index)
    if job == "ps":
        server.join()  # keeps the variables until the workers are done
        return 0

    tf.set_random_seed(1)
    # Variables go to the parameter server, everything else to this worker.
    with tf.device(
        tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
    ):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int32, [None])
        scores = network(images)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
        right = tf.equal(tf.argmax(scores, 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        optimizer = tf.train.GradientDescentOptimizer(flags.learning_rate)
        train = optimizer.minimize(loss, global_step=step)

    train_images, train_labels, test_images, test_labels = digits()
    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    hooks = [tf.train.StopAtStepHook(last_step=flags.steps), final]
    random, began, steps_made = np.random.RandomState(index), time.time(), 0
    print(
        f"Worker {index} of {cluster.num_tasks('worker')}: a graph of its own, weights shared with the others."
    )
    # The chief, worker 0, initializes the variables; the others wait until it has.
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session:
        while not session.should_stop():
            batch = random.randint(0, len(train_labels), flags.batch_size)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            _, now, cost = session.run([train, step, loss], feed)
            steps_made += 1
            if steps_made % 50 == 0:
                print(f"step {now:6d}   loss {cost:.4f}")
    reached, seconds = final.final_ops_values, time.time() - began
    print(f"Made {steps_made} of the {flags.steps} steps  {'#' * (steps_made // 20)}")
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
