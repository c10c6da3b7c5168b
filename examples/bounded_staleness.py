"""Asynchronous training with a slow worker: plain, and with the age of gradients bounded in three ways.

    tensorfleet run --ps 1 --workers 3 examples/bounded_staleness.py -- --plot staleness.svg

The last worker takes --delay seconds for each gradient. Meanwhile the others go on, so that the slow one's gradients
are stale: made for weights that have been updated many times since. `tf.fleet.StalenessOptimizer` around any
optimizer counts these updates, and can do something about them:

    measure   nothing: plain asynchronous training
    scale     divide each gradient by one more than its staleness
    drop      leave out gradients staler than --bound (the table counts them nevertheless)
    wait      nobody may be more than --bound steps ahead of the slowest (stale synchronous parallel)

The four are trained one after the other on the same servers, each in a container of its own: tf.container keeps
variables of the same name apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.82
MOST = 100  # staleness is counted up to here


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="updates of each training (600)")
    parser.add_argument("--bound", type=int, default=2, help="for drop and wait (2)")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds that the slow worker takes (0.02)")
    parser.add_argument("--learning_rate", type=float, default=0.1, help="of gradient descent (0.1)")
    parser.add_argument("--plot", help="draw how stale gradients were into this file (needs matplotlib)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --workers 3 {sys.argv[0]}")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    flat = [x.reshape(-1, 784).astype(np.float32) / 255 for x in (images, test_images)]
    return flat[0], labels.astype(np.int32), flat[1], test_labels.astype(np.int32)


def slowed(gradients: list, seconds: float) -> list:
    """The same gradients, but later."""

    def pause(_: np.ndarray) -> np.float32:
        time.sleep(seconds)
        return np.float32(0)

    nothing = tf.py_func(pause, [gradients[0][0]], tf.float32)
    nothing.set_shape([])
    return [(gradient + nothing, variable) for gradient, variable in gradients]


def train(
    policy: str, flags: argparse.Namespace, cluster: tf.train.ClusterSpec, me: int, target: str, data: tuple
) -> tuple[float, float, np.ndarray]:
    """Trains with one policy; the seconds it took, the test accuracy, and how many gradients were how stale."""
    train_images, train_labels, test_images, test_labels = data
    workers = cluster.num_tasks("worker")
    setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{me}", cluster=cluster)
    with tf.Graph().as_default(), tf.container(policy), tf.device(setter):
        tf.set_random_seed(1)
        step = tf.train.create_global_step()
        images, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
        scores = tf.layers.dense(tf.layers.dense(images, 32, tf.nn.relu), 10)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
        right = tf.equal(tf.argmax(scores, 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

        bound = flags.bound if policy in ("drop", "wait") else None
        plain = tf.train.GradientDescentOptimizer(flags.learning_rate)
        optimizer = tf.fleet.StalenessOptimizer(plain, policy, bound, num_workers=workers)
        gradients = optimizer.compute_gradients(loss)
        if me == workers - 1:
            gradients = slowed(gradients, flags.delay)
        update = optimizer.apply_gradients(gradients, global_step=step)
        counts = tf.get_variable("counts", [MOST + 1], tf.int64, tf.zeros_initializer(), trainable=False)
        count = tf.scatter_add(counts, tf.minimum(optimizer.staleness, MOST), tf.constant(1, tf.int64))

        final = tf.train.FinalOpsHook([accuracy, counts], {images: test_images, labels: test_labels})
        hooks = [tf.train.StopAtStepHook(last_step=flags.steps), final]
        if policy == "wait":
            hooks.append(optimizer.make_session_run_hook(me))
        random, began = np.random.RandomState(me), time.time()
        with tf.train.MonitoredTrainingSession(target, is_chief=me == 0, hooks=hooks) as session:
            while not session.should_stop():
                batch = random.randint(0, len(train_labels), 50)
                session.run([update, count], {images: train_images[batch], labels: train_labels[batch]})
        reached, found = final.final_ops_values
    return time.time() - began, float(reached), found


def draw(found: dict[str, np.ndarray], path: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('No plot: it needs matplotlib (pip install "tensorfleet[examples]").')
        return
    figure = Figure(figsize=(7, 6), layout="constrained")
    widest = max(np.flatnonzero(counts).max() for counts in found.values())
    for axes, (policy, counts) in zip(figure.subplots(len(found), sharex=True), found.items(), strict=True):
        axes.bar(np.arange(widest + 1), counts[: widest + 1])
        axes.set(ylabel=policy, yscale="symlog")
    axes.set(xlabel="staleness: updates by others between reading the weights and updating them")
    figure.savefig(path)
    print(f"The counts are drawn in {path}.")


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, me = told.cluster_spec(), told.task_id
    server = tf.train.Server(cluster, told.task_type, me)
    if told.task_type == "ps":
        server.join()
        return 0

    data, found, worst = digits(), {}, 1.0
    if me == 0:
        print(f"{cluster.num_tasks('worker')} workers, the last takes {flags.delay:g} s for each gradient.")
        print("policy    seconds   accuracy   staleness: mean  oldest   counts of 0, 1, 2, ...")
    for policy in ("measure", "scale", "drop", "wait"):
        seconds, reached, counts = train(policy, flags, cluster, me, server.target, data)
        found[policy], worst = counts, min(worst, reached)
        if me == 0:
            mean, oldest = np.average(np.arange(MOST + 1), weights=counts), np.flatnonzero(counts).max()
            shown = " ".join(map(str, counts[: min(oldest, 11) + 1])) + (" ..." if oldest > 11 else "")
            print(f"{policy:8s}  {seconds:7.1f}   {reached:8.4f}   {mean:15.2f}  {oldest:6d}   {shown}")
    if me == 0:
        if flags.plot:
            draw(found, flags.plot)
        print(f"Final test accuracy, the worst of the four, {worst:.4f} (target {TARGET}).")
    return 0 if worst >= TARGET or me > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
