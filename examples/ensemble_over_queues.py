"""An ensemble over queues: questions go in, three networks on three tasks answer, and the slowest is not waited for.

    tensorfleet run --ps 1 --chief --workers 3 examples/ensemble_over_queues.py -- --slow 2 --delay 3

    chief   asks     ---> question queues 0, 1, 2 (on ps 0) ---> worker 0, 1, 2: a network each
            collects <--- answer queue (on ps 0) <-----------------+  worker 2 takes three seconds for each
            within --limit seconds, with however many have answered by then

The tasks are separate programs that know each other only by the names of the queues. A step with a deadline raises
`tf.errors.DeadlineExceededError` and has taken nothing; a closed queue raises `tf.errors.OutOfRangeError`, which ends
the networks when there are no more questions.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

import tensorfleet as tf

TARGET = 0.85


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--questions", type=int, default=6, help="each with some digits to read (6)")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds after which we go on (1.0)")
    parser.add_argument("--slow", type=int, default=2, help="the network that is slow; -1 for none (2)")
    parser.add_argument("--delay", type=float, default=3.0, help="seconds it takes longer than others (3.0)")
    parser.add_argument("--steps", type=int, default=300, help="that each network trains beforehand (300)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --chief --workers 3 {sys.argv[0]}")
    return parser.parse_args()


def digits() -> tuple[np.ndarray, ...]:
    """Real handwritten digits that come with TensorFleet: images and labels to train on, then to test with."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    flat = [x.reshape(-1, 784).astype(np.float32) / 255 for x in (images, test_images)]
    return flat[0], labels.astype(np.int32), flat[1], test_labels.astype(np.int32)


class Queues:
    """The queues that all programs share by their names: (number, images) in, (number, who, opinions) out."""

    def __init__(self, networks: int) -> None:
        with tf.device("/job:ps/task:0"):
            self.questions = [
                tf.FIFOQueue(100, [tf.int32, tf.float32], shared_name=f"questions_{i}")
                for i in range(networks)
            ]
            self.answers = tf.FIFOQueue(100, [tf.int32, tf.int32, tf.float32], shared_name="answers")


def answer(flags: argparse.Namespace, me: int, networks: int, server: tf.train.Server) -> None:
    """What each worker does: trains a network on its part of the digits, then answers questions."""
    images, labels, _, _ = digits()
    images, labels = images[me::networks], labels[me::networks]
    queues = Queues(networks)
    tf.set_random_seed(me)
    random = np.random.RandomState(me)
    with tf.device(f"/job:worker/task:{me}"), tf.variable_scope(f"network_{me}"):
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
        scores = tf.layers.dense(tf.layers.dense(x, 48, tf.nn.relu), 10)
        loss = tf.losses.sparse_softmax_cross_entropy(y, scores)
        train = tf.train.AdamOptimizer(0.005).minimize(loss)
        next_question = queues.questions[me].dequeue()
        waiting = queues.questions[me].size()
        number = tf.placeholder(tf.int32, [])
        reply = queues.answers.enqueue([number, me, tf.nn.softmax(scores)])

    with tf.Session(server.target) as sess:
        sess.run(tf.variables_initializer(tf.global_variables()))
        for _ in range(flags.steps):
            batch = random.randint(0, len(labels), 50)
            _, cost = sess.run([train, loss], {x: images[batch], y: labels[batch]})
        print(f"Network {me} is trained: loss {cost:.4f} after {flags.steps} steps.")
        try:
            while True:
                asked, pictures = sess.run(next_question)
                while sess.run(waiting):  # who is behind skips to the newest question
                    asked, pictures = sess.run(next_question)
                if me == flags.slow:
                    time.sleep(flags.delay)
                sess.run(reply, {number: asked, x: pictures})
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
            print(f"Network {me}: no more questions.")


def ask(flags: argparse.Namespace, networks: int, server: tf.train.Server) -> float:
    """What the chief does: asks all networks, takes the mean of those that answer in time."""
    _, _, images, labels = digits()
    queues = Queues(networks)
    number, pictures = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None, 784])
    put = [queue.enqueue([number, pictures]) for queue in queues.questions]
    get = queues.answers.dequeue()
    close = [queue.close(cancel_pending_enqueues=True) for queue in (*queues.questions, queues.answers)]
    right, late = 0, np.zeros(networks, int)

    with tf.Session(server.target) as sess:
        # The first question is for everybody to get ready: it has no limit.
        sess.run(put, {number: 0, pictures: images[:1]})
        for _ in range(networks):
            sess.run(get)
        print(f"All {networks} networks are there. Limit for an answer: {flags.limit:g} s.")
        print("question   in time   seconds   accuracy")
        shares = np.array_split(np.arange(len(labels)), flags.questions)
        for asked, share in enumerate(shares, start=1):
            began = time.monotonic()
            sess.run(put, {number: asked, pictures: images[share]})
            opinions: dict[int, np.ndarray] = {}
            while len(opinions) < networks:
                left = flags.limit - (time.monotonic() - began)
                if left <= 0 and opinions:
                    break
                # At least one answer is needed, however long it takes; the others have the time that is left.
                options = tf.RunOptions(timeout_in_ms=max(1, int(left * 1000))) if opinions else None
                try:
                    about, who, opinion = sess.run(get, options=options)
                except tf.errors.DeadlineExceededError:
                    break
                if about == asked:  # an answer to an earlier question is too late
                    opinions[int(who)] = opinion
            chosen = np.mean(list(opinions.values()), axis=0).argmax(axis=1)
            right += np.sum(chosen == labels[share])
            late += [i not in opinions for i in range(networks)]
            shown = " ".join(str(i) if i in opinions else "-" for i in range(networks))
            seconds = time.monotonic() - began
            print(f"{asked:8d}   {shown:7s}   {seconds:7.2f}   {np.mean(chosen == labels[share]):.4f}")
        sess.run(close)
    print("Answers that came too late:", ", ".join(f"network {i}: {n}" for i, n in enumerate(late)))
    return right / len(labels)


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = told.cluster_spec()
    if "chief" not in cluster.jobs:
        sys.exit("Nobody would ask: start it with --chief, as shown at the top.")
    server = tf.train.Server(cluster, told.task_type, told.task_id)
    networks = cluster.num_tasks("worker")
    if told.task_type == "ps":
        server.join()  # keeps the queues
    elif told.task_type == "worker":
        answer(flags, told.task_id, networks, server)
    else:
        reached = ask(flags, networks, server)
        print(f"Final accuracy of the mean opinion {reached:.4f} (target {TARGET}).")
        return 0 if reached >= TARGET else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
