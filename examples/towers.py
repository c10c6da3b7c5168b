"""Several devices in each of several workers: towers inside a worker, replicas between workers.

    tensorfleet run --ps 1 --workers 2 examples/towers.py -- --devices 2
    tensorfleet run --ps 1 --workers 2 examples/towers.py -- --devices 2 --sync

    worker 0   device 0: tower, a part of the batch --+
               device 1: tower, another part       ---+-- mean = this worker's gradient --+
    worker 1   device 0: tower  ----------------------+                                   |
               device 1: tower  ----------------------+-- mean ---------------------------+
                                                                                          |
    ps 0       weights <--- applied one by one, or with --sync as the mean over workers --+

A machine with GPUs has /gpu:0, /gpu:1, ... ; here each worker's CPU is made to look like several devices, which
shows the same program. The parameter server does not join(): it waits in a queue until every worker has said that
it is done, and then ends by itself, as it has to where nobody is there to stop it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

import numpy as np

import tensorfleet as tf

TARGET = 0.88


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=400, help="steps of all workers together (400)")
    parser.add_argument("--devices", type=int, default=2, help="devices in each worker (2)")
    parser.add_argument("--batch_size", type=int, default=100, help="images for each device and step (100)")
    parser.add_argument("--learning_rate", type=float, default=0.5, help="of gradient descent (0.5)")
    parser.add_argument("--sync", action="store_true", help="a step is the mean over all workers")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --workers 2 {sys.argv[0]}")
    return parser.parse_args()


def task_of_a_cluster() -> tuple[tf.train.ClusterSpec, str, int]:
    """All tasks with their addresses, and which of them this process is: `tensorfleet run` has set TF_CONFIG."""
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return told.cluster_spec(), told.task_type, told.task_id


def done_queue(ps: int, workers: int) -> tf.FIFOQueue:
    """On each parameter server, where every worker says that it is done; shared by its name."""
    with tf.device(f"/job:ps/task:{ps}"):
        return tf.FIFOQueue(workers, tf.int32, shapes=[[]], shared_name=f"done_{ps}")


def serve(server: tf.train.Server, index: int, workers: int) -> None:
    """What a parameter server does: it is there until all workers are done."""
    done = done_queue(index, workers).dequeue()
    with tf.Session(server.target) as sess:
        for count in range(1, workers + 1):
            print(f"Worker {sess.run(done)} is done ({count} of {workers}).")


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


def tower_gradients(images: tf.Tensor, labels: tf.Tensor, place: str, devices: int, ps: int) -> tuple:
    """The loss and the gradients of one worker: a tower on each of its devices, then the mean over the towers."""
    losses, gradients = [], []
    shares = zip(tf.split(images, devices), tf.split(labels, devices), strict=True)
    for i, (some_images, some_labels) in enumerate(shares):
        setter = tf.train.replica_device_setter(ps_tasks=ps, worker_device=f"{place}/cpu:{i}")
        with tf.device(setter), tf.name_scope(f"tower_{i}"):
            loss = tf.losses.sparse_softmax_cross_entropy(some_labels, network(some_images))
            weights = tf.trainable_variables()
            losses.append(loss)
            gradients.append(tf.gradients(loss, weights))
    with tf.device(f"{place}/cpu:0"):
        together = [tf.add_n(same) / devices for same in zip(*gradients, strict=True)]
        return tf.add_n(losses) / devices, list(zip(together, weights, strict=True))


def main() -> int:
    flags = read_flags()
    cluster, job, index = task_of_a_cluster()
    workers, ps = cluster.num_tasks("worker"), cluster.num_tasks("ps")
    config = tf.ConfigProto(device_count={"CPU": flags.devices if job == "worker" else 1})
    server = tf.train.Server(cluster, job, index, config=config)
    if job == "ps":
        serve(server, index, workers)
        return 0

    tf.set_random_seed(1)
    place = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=f"{place}/cpu:0", cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 784])
        labels = tf.placeholder(tf.int32, [None])
        loss, gradients = tower_gradients(images, labels, place, flags.devices, ps)
        right = tf.equal(tf.argmax(network(images), 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        optimizer = tf.train.GradientDescentOptimizer(flags.learning_rate)
        if flags.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
        train = optimizer.apply_gradients(gradients, global_step=step)
    done = [done_queue(i, workers).enqueue(index) for i in range(ps)]

    where = Counter(op.device for op in tf.get_default_graph().get_operations() if "/MatMul" in op.name)
    print("Matrix products of this worker's graph:", dict(sorted(where.items())))
    train_images, train_labels, test_images, test_labels = digits()
    test = {images: test_images, labels: test_labels}
    final = tf.train.FinalOpsHook(accuracy, test)
    hooks = [tf.train.StopAtStepHook(last_step=flags.steps), final]
    if flags.sync:
        hooks.append(optimizer.make_session_run_hook(index == 0))
    random, began, steps_made = np.random.RandomState(index), time.time(), 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session:
        while not session.should_stop():
            batch = random.randint(0, len(train_labels), flags.batch_size * flags.devices)
            feed = {images: train_images[batch], labels: train_labels[batch]}
            _, now, cost = session.run([train, step, loss], feed)
            steps_made += 1
            if steps_made % 50 == 0:
                print(f"step {now:6d}   loss {cost:.4f}")
    with tf.Session(server.target) as sess:
        sess.run(done)  # the last thing: from now on the parameter server may be gone
    reached, seconds = final.final_ops_values, time.time() - began
    print(
        f"{steps_made} steps on {flags.devices} devices: {steps_made * flags.devices * flags.batch_size} images."
    )
    print(
        f"Final test accuracy {reached:.4f} after {flags.steps} steps in {seconds:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
