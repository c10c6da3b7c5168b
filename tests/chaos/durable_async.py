"""Asynchronous training on a durable parameter server: python durable_async.py CLUSTER WORKER OPTIMIZER STEPS."""

import json
import sys

import numpy as np

import tensorfleet as tf

PS = "/job:ps/task:0"
FEATURES, CLASSES, BATCH = 20, 5, 32
OPTIMIZERS = {
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
}


def examples(seed, count):
    """Points, and the class that each is nearest to."""
    centers = np.random.RandomState(1).normal(size=(CLASSES, FEATURES))
    chance = np.random.RandomState(seed)
    labels = chance.randint(0, CLASSES, count)
    return (centers[labels] + 1.2 * chance.normal(size=(count, FEATURES))).astype("f"), labels


class Model:
    """A softmax layer, on the parameter server or, to compare, in one process."""

    def __init__(self, name, device):
        self.points = tf.placeholder(tf.float32, [None, FEATURES])
        self.labels = tf.placeholder(tf.int64, [None])
        with tf.device(device):
            self.step = tf.train.get_or_create_global_step()
            weights = tf.get_variable("weights", [FEATURES, CLASSES], initializer=tf.zeros_initializer())
            bias = tf.get_variable("bias", [CLASSES], initializer=tf.zeros_initializer())
        scores = tf.matmul(self.points, weights) + bias
        loss = tf.losses.sparse_softmax_cross_entropy(self.labels, scores)
        self.train = OPTIMIZERS[name]().minimize(loss, global_step=self.step)
        self.accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), self.labels), tf.float32))

    def batch(self, seed, count=BATCH):
        """What to feed."""
        return dict(zip((self.points, self.labels), examples(seed, count), strict=True))


def accuracy_in_one_process(name, steps):
    """What the same number of steps comes to."""
    with tf.Graph().as_default():
        model = Model(name, "")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for n in range(steps):
                sess.run(model.train, model.batch(n))
            return sess.run(model.accuracy, model.batch(0, 5000))


def main(cluster, worker, name, steps):
    worker = int(worker)
    server = tf.train.Server(json.loads(cluster), "worker", worker)
    model = Model(name, PS)
    config = tf.ConfigProto(operation_timeout_in_ms=100_000)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=worker == 0, config=config) as sess:
        for n in range(int(steps)):
            sess.run(model.train, model.batch(2 * n + worker))
    print(f"worker {worker} has trained", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
