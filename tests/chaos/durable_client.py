"""A client of a durable parameter server: python durable_client.py CLUSTER ME LEDGER FIRST.

It makes marked updates of every kind for ever, and writes each into its ledger (tensorfleet/testing/ledger.py). ME is 0
or 1, and the number of its worker; 0 has a plain session and reference variables, 1 has a MonitoredTrainingSession and
resource variables. FIRST is the number of its first update. What has ME and FIRST in its name belongs to this life alone.
"""

import contextlib
import itertools
import json
import os
import sys
import zlib

import numpy as np

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tensorfleet.testing.ledger import LedgerWriter

CLIENTS = 2
SLOTS = 16_384
ROWS = 400_000  # more than 32,768 elements: sent by rows
PS = "/job:ps/task:0"
# Milliseconds; a wait that is longer has no end.
TIMEOUT = int(os.environ.get("TENSORFLEET_TEST_TIMEOUT", "60000"))
LATE = 1 << 40  # the step of gradients that are never out of date


class Shared:
    """What both clients, and the test at the end, find on the parameter server."""

    def __init__(self):
        with tf.device(PS):
            self.dense = [
                tf.get_variable(f"dense{n}", [SLOTS], tf.int32, tf.zeros_initializer(), use_resource=bool(n))
                for n in range(CLIENTS)
            ]
            self.rows = [
                tf.get_variable(f"rows{n}", [ROWS], tf.int32, tf.zeros_initializer(), use_resource=bool(n))
                for n in range(CLIENTS)
            ]
            self.total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer())
            self.queues = [
                tf.FIFOQueue(10_000, tf.int64, [()], shared_name=f"queue{n}") for n in range(CLIENTS)
            ]
            self.table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="table")
        self.variables = [*self.dense, *self.rows, self.total]


class Adam:
    """Steps of Adam and a sum of random numbers, whose values are known after any number of steps."""

    def __init__(self, name, device):
        self.number = tf.placeholder(tf.float32, [], name="number")
        # In a container: the optimizer's accumulators have the same names in each life.
        with tf.device(device), tf.container(name):
            self.weights = tf.get_variable("weights", initializer=np.linspace(-1, 1, 50, dtype=np.float32))
            self.sum = tf.get_variable("sum", [3], initializer=tf.zeros_initializer())
            # Products that are exact: numpy and XLA give the same bits, in whatever order they multiply and add.
            loss = tf.reduce_sum(self.weights * (np.arange(50, dtype=np.float32) / 64) * self.number)
            optimizer = tf.train.AdamOptimizer(1 / 128, 0.5, 0.5, 1 / 1024)
            self.train = optimizer.minimize(loss, var_list=[self.weights])
            self.draw = tf.assign_add(self.sum, tf.random_uniform([3], seed=7))
        slots = [optimizer.get_slot(self.weights, name) for name in optimizer.get_slot_names()]
        self.variables = [self.weights, self.sum, *slots, *optimizer._get_beta_accumulators()]

    def step(self, run, number):
        """One step; gives the checksum of the weights after it."""
        run(self.train, {self.number: number % 17 / 16})
        return zlib.crc32(run(self.weights).tobytes())


@contextlib.contextmanager
def _one_process():
    """A session of a cluster without faults, all in this process."""
    jobs = free_addresses(ps=1, worker=1)
    servers = [tf.train.Server(jobs, job, 0) for job in jobs]
    try:
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            adam = Adam("", PS)
            with tf.Session(servers[1].target) as sess:
                sess.run(tf.variables_initializer(adam.variables))
                yield adam, sess
    finally:
        for server in servers:
            server.stop()


def adam_steps(first):
    """The values of the steps of a life, without faults."""
    with _one_process() as (adam, sess):
        for number in itertools.count(first):
            yield adam.step(sess.run, number)


def random_sums(_):
    """The sums of the random numbers of a life, without faults."""
    with _one_process() as (adam, sess):
        while True:
            yield sess.run(adam.draw).tolist()


class Client:
    """The updates of one life of a client."""

    def __init__(self, me, first):
        tf.set_random_seed(3)
        self.me = me
        self.shared = shared = Shared()
        self.adam = Adam(f"life{me}_{first}", PS)
        self.number = tf.placeholder(tf.int64, [], name="marked")
        with tf.device(PS):
            self.add_dense = self._add(shared.dense[me], self.number % SLOTS)
            self.add_row = self._add(shared.rows[me], self.number)
            self.add_total = shared.total.assign_add(1)
            self.put = shared.queues[me].enqueue(self.number)
            self.take = shared.queues[1 - me].dequeue()
            self.sums = tf.ConditionalAccumulator(tf.float64, [], shared_name=f"sums{me}_{first}")
            given = tf.cast(self.number, tf.float64)
            self.apply = [self.sums.apply_grad(given + more, local_step=LATE) for more in (0.0, 0.5)]
            self.mean = self.sums.take_grad(2)
            key = self.number * CLIENTS + me
            self.insert = shared.table.insert(key, self.number)
            self.look_up = shared.table.lookup(key)

    def _add(self, variable, at):
        if variable is self.shared.dense[self.me]:
            return variable.assign_add(tf.one_hot(at, SLOTS, dtype=tf.int32)).op
        return tf.scatter_add(variable, [at], [1]).op

    def steps(self, run, ledger, first):
        """Updates for ever. `run` is that of a session."""
        number = first
        while True:
            self.step(run, ledger, number)
            number += 1

    def step(self, run, ledger, number):
        """One update of each kind."""
        given = {self.number: number}
        ledger.run("dense", number, lambda: run(self.add_dense, given))
        ledger.run("rows", number, lambda: run(self.add_row, given))
        ledger.run("total", number, lambda: int(run(self.add_total)))
        ledger.run("put", number, lambda: run(self.put, given))
        ledger.run("take", number, lambda: int(run(self.take)))
        ledger.run("mean", number, lambda: self._sum(run, given) - number)
        ledger.run("table", number, lambda: run(self.insert, given))
        ledger.run("lookup", number, lambda: int(run(self.look_up, given)))
        ledger.run("adam", number, lambda: self.adam.step(run, number))
        ledger.run("random", number, lambda: run(self.adam.draw).tolist())
        ledger.run("read", number, lambda: int(run(self.shared.total)))

    def _sum(self, run, given):
        for apply in self.apply:
            run(apply, given)
        return float(run(self.mean))


def main(cluster, me, path, first):
    me, first = int(me), int(first)
    server = tf.train.Server(json.loads(cluster), "worker", me)
    ledger = LedgerWriter(path, first)
    client = Client(me, first)
    begin = tf.variables_initializer(client.adam.variables)
    config = tf.ConfigProto(operation_timeout_in_ms=TIMEOUT)
    if me == 0:
        with tf.Session(server.target, config=config) as sess:
            sess.run(begin)
            client.steps(sess.run, ledger, first)
    else:
        ready = tf.report_uninitialized_variables(client.adam.variables)
        scaffold = tf.train.Scaffold(
            init_op=begin, ready_op=ready, ready_for_local_init_op=ready, local_init_op=tf.no_op()
        )
        with tf.train.MonitoredTrainingSession(server.target, scaffold=scaffold, config=config) as sess:
            client.steps(sess.run, ledger, first)


if __name__ == "__main__":
    main(*sys.argv[1:])
