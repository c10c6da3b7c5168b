"""Actors and a learner over a queue: several workers play, one learns from all of them (advantage actor-critic).

    tensorfleet run --ps 1 --workers 3 examples/actors_and_learner.py -- --plot lengths.svg

    worker 1, 2   actors: copy the weights, balance poles for a while, send what happened ---> queue (on ps 0)
    worker 0      learner: takes what comes out of the queue, improves the weights   <---------+
    ps 0          the weights; actors fetch them before each round

In the manner of A3C, but gradients are computed where the learner is. The game is ours, a few lines of numpy: a pole
on a cart that is pushed left or right. An episode ends when the pole falls, the cart leaves, or after 200 steps; who
plays by chance lasts about 20. The learner stops when the last hundred episodes lasted 150 steps on average, closes
the queue, and the actors end with it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque

import numpy as np

import tensorfleet as tf

TARGET = 150
LONGEST = 200
SHAPES = [(4, 32), (32,), (32, 2), (2,), (32, 1), (1,)]


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--updates", type=int, default=1500, help="of the learner, at most (1500)")
    parser.add_argument("--carts", type=int, default=16, help="that each actor plays with at once (16)")
    parser.add_argument("--rounds", type=int, default=32, help="steps that an actor sends at a time (32)")
    parser.add_argument("--plot", help="draw how long episodes lasted into this file (needs matplotlib)")
    if "TF_CONFIG" not in os.environ:
        parser.error(f"this is a task of a cluster: tensorfleet run --ps 1 --workers 3 {sys.argv[0]}")
    return parser.parse_args()


class Carts:
    """Some carts with a pole on each: position, speed, angle and angular speed are what can be seen of one."""

    def __init__(self, count: int, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.state = self.random.uniform(-0.05, 0.05, [count, 4])
        self.age = np.zeros(count, int)

    def step(self, push_right: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """Pushes each cart for a fiftieth of a second; which episodes ended, and how long they were."""
        x, speed, angle, turning = self.state.T
        force = np.where(push_right, 10.0, -10.0)
        sin, cos = np.sin(angle), np.cos(angle)
        pushed = (force + 0.05 * turning**2 * sin) / 1.1
        turn = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        change = np.stack([speed, pushed - 0.05 * turn * cos / 1.1, turning, turn], axis=1)
        self.state = self.state + 0.02 * change
        self.age += 1
        fallen = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        ended = fallen | (self.age >= LONGEST)
        lengths = self.age[ended].tolist()
        self.state[ended] = self.random.uniform(-0.05, 0.05, [ended.sum(), 4])
        self.age[ended] = 0
        return ended, lengths


def network(seen: tf.Tensor, w: list[tf.Variable]) -> tuple[tf.Tensor, tf.Tensor]:
    """What to do (two scores) and how well it will go (the steps still to come, discounted)."""
    hidden = tf.tanh(tf.matmul(seen, w[0]) + w[1])
    return tf.matmul(hidden, w[2]) + w[3], tf.squeeze(tf.matmul(hidden, w[4]) + w[5], 1)


def act(
    flags: argparse.Namespace, me: int, server: tf.train.Server, shared: list, queue: tf.FIFOQueue
) -> None:
    """An actor: fetches the weights, plays, sends; until the queue is closed."""
    with tf.device(f"/job:worker/task:{me}"):
        local = {"trainable": False, "collections": [tf.GraphKeys.LOCAL_VARIABLES]}
        mine = [tf.get_variable(f"actor_{me}/w{i}", shape, **local) for i, shape in enumerate(SHAPES)]
        fetch = [copy.assign(weight) for copy, weight in zip(mine, shared, strict=True)]
        seen = tf.placeholder(tf.float32, [None, 4])
        scores, value = network(seen, mine)
        right = tf.nn.softmax(scores)[:, 1]
        kinds = (tf.float32, tf.int32, tf.float32, tf.int32)
        happened = [tf.placeholder(kind) for kind in kinds]
        send = queue.enqueue(happened)

    carts, random = Carts(flags.carts, seed=me), np.random.RandomState(me)
    episodes = 0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=False) as session:
        try:
            while True:
                session.run(fetch)
                states, pushes, ends, lengths = [], [], [], []
                for _ in range(flags.rounds):
                    chance = session.run(right, {seen: carts.state})
                    push = random.rand(flags.carts) < chance
                    states.append(carts.state)
                    pushes.append(push)
                    ended, finished = carts.step(push)
                    ends.append(ended)
                    lengths += finished
                # Working backwards, what each step was worth: 1 for itself, and the worth of the next, discounted.
                worth, worths = session.run(value, {seen: carts.state}), []
                for ended in reversed(ends):
                    worth = 1 + 0.99 * np.where(ended, 0, worth)
                    worths.append(worth)
                told = (np.concatenate(a) for a in (states, pushes, worths[::-1]))
                session.run(send, dict(zip(happened, (*told, np.array(lengths, int)), strict=True)))
                episodes += len(lengths)
        except tf.errors.CancelledError:
            print(f"Actor {me} played {episodes} episodes.")


def learn(flags: argparse.Namespace, server: tf.train.Server, shared: list, queue: tf.FIFOQueue) -> float:
    """The learner: improves the weights with what the actors send."""
    seen, pushes, worths, lengths = queue.dequeue()
    seen.set_shape([None, 4])
    pushes.set_shape([None])
    scores, value = network(seen, shared)
    surprise = worths - value  # better or worse than foretold
    advantage = tf.stop_gradient(surprise / (tf.sqrt(tf.reduce_mean(tf.square(surprise))) + 1e-6))
    unlikely = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=pushes, logits=scores)
    chances = tf.nn.softmax(scores)
    openness = -tf.reduce_mean(tf.reduce_sum(chances * tf.nn.log_softmax(scores), 1))
    loss = tf.reduce_mean(unlikely * advantage) + 0.01 * tf.reduce_mean(tf.square(surprise)) - 0.01 * openness
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    waiting, close = queue.size(), queue.close(cancel_pending_enqueues=True)

    recent, curve, episodes, mean = deque([20] * 100, maxlen=100), [], 0, 20.0
    with tf.train.MonitoredTrainingSession(server.target, is_chief=True) as session:
        print("update   episodes   mean length of the last hundred")
        for update in range(1, flags.updates + 1):
            _, finished, left = session.run([train, lengths, waiting])
            recent.extend(finished)
            episodes, mean = episodes + len(finished), float(np.mean(recent))
            curve.append((episodes, mean))
            if update % 25 == 0 or mean >= TARGET:
                print(f"{update:6d}   {episodes:8d}   {mean:6.1f}  {'#' * int(mean / 4)}  ({left} waiting)")
            if mean >= TARGET:
                break
        session.run(close)
    if flags.plot:
        draw(curve, flags.plot)
    return mean


def draw(curve: list[tuple[int, float]], path: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print('No plot: it needs matplotlib (pip install "tensorfleet[examples]").')
        return
    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    axes.plot(*zip(*curve, strict=True))
    axes.axhline(TARGET, linestyle=":")
    axes.set(xlabel="episodes", ylabel="steps", title="How long the last hundred episodes lasted")
    figure.savefig(path)
    print(f"The curve is in {path}.")


def main() -> int:
    flags = read_flags()
    told = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster, me = told.cluster_spec(), told.task_id
    server = tf.train.Server(cluster, told.task_type, me)
    if told.task_type == "ps":
        server.join()  # keeps the weights and the queue
        return 0

    tf.set_random_seed(1)
    actors = cluster.num_tasks("worker") - 1
    with tf.device("/job:ps/task:0"):
        shared = [tf.get_variable(f"w{i}", shape) for i, shape in enumerate(SHAPES)]
        tf.train.create_global_step()
        # A short queue: what waits in it was played with weights that are older than the learner's.
        kinds = [tf.float32, tf.int32, tf.float32, tf.int32]
        queue = tf.FIFOQueue(max(actors, 1), kinds, shared_name="happened")
    if me > 0:
        act(flags, me, server, shared, queue)
        return 0
    began = time.time()
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=cluster)):
        reached = learn(flags, server, shared, queue)
    print(
        f"Final mean length {reached:.1f} with {actors} actors in {time.time() - began:.1f} s (target {TARGET})."
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
