"""Synchronous training on a durable parameter server: python durable_training.py CLUSTER WORKER OPTIMIZER STEPS.

Both workers compute the gradients of a step from its number alone, so their mean has the same bits as each, whichever
worker was faster. The products are exact, so numpy and XLA give the same bits too.
"""

import json
import sys

import numpy as np

import tensorfleet as tf

PS = "/job:ps/task:0"
OPTIMIZERS = {
    "adam": lambda: tf.train.AdamOptimizer(1 / 128, 0.5, 0.5, 1 / 1024),
    "momentum": lambda: tf.train.MomentumOptimizer(1 / 128, 0.5),
}


class Model:
    """The model, on the parameter server or, to compare, in one process."""

    def __init__(self, name, device, make=lambda optimizer: optimizer):
        with tf.device(device):
            self.step = tf.train.get_or_create_global_step()
            self.weights = tf.get_variable("weights", initializer=np.linspace(-1, 1, 50, dtype=np.float32))
            self.bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        factor = tf.cast(tf.mod(self.step, 17), tf.float32) / 16
        loss = (
            tf.reduce_sum(self.weights * (np.arange(50, dtype=np.float32) / 64) * factor) - self.bias * factor
        )
        self.optimizer = make(OPTIMIZERS[name]())
        self.train = self.optimizer.minimize(loss, global_step=self.step)


def wanted(name, steps):
    """The weights after so many steps in one process."""
    with tf.Graph().as_default():
        model = Model(name, "")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                sess.run(model.train)
            return sess.run([model.weights, model.bias])


def main(cluster, worker, name, steps):
    worker = int(worker)
    server = tf.train.Server(json.loads(cluster), "worker", worker)
    both = lambda optimizer: tf.train.SyncReplicasOptimizer(optimizer, 2)  # noqa: E731
    model = Model(name, PS, both)
    hooks = [
        model.optimizer.make_session_run_hook(worker == 0),
        tf.train.StopAtStepHook(last_step=int(steps)),
    ]
    config = tf.ConfigProto(operation_timeout_in_ms=100_000)
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=worker == 0, hooks=hooks, config=config
    ) as sess:
        while not sess.should_stop():
            sess.run(model.train)
    print(f"worker {worker} has trained", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
