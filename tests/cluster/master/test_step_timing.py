"""A measured step counts how many updates others have made between its reads and its own update."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import counters
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import in_background, until

SMALL, LARGE = (4, 8), (600, 500)  # more than 1 MB is never read from shared memory


@pytest.fixture(autouse=True)
def every_step_is_measured(monkeypatch):
    monkeypatch.setattr(counters, "_MEASURE_EVERY_SECONDS", 0.0)
    counters.forget()
    yield
    counters.forget()


@pytest.fixture
def spec():
    return free_addresses(ps=2, worker=1)


@pytest.fixture
def target(spec, serve, graph):
    """The target of a worker with two servers."""
    for task in range(2):
        serve(spec, "ps", task)
    return serve(spec, "worker", 0).target


def counts():
    """The histogram of this process, as it is told."""
    told = tf.fleet.stats("", "main/0")["staleness"]
    return {int(age): n for entry in told for age, n in entry["counts"].items()}


class Interleaved:
    """A training step that does something else between its reads and its update, once it is told what."""

    def __init__(self, loss_of, *variables, optimizer=None):
        self.between = None
        with tf.device("/job:worker/task:0"):
            self.reads = loss_of(*variables)
            now = tf.py_func(self._between, [self.reads], tf.float32)
            now.set_shape(self.reads.shape)
            loss = tf.reduce_sum(self.reads + tf.stop_gradient(now - self.reads))
            pairs = [
                (_after(now, g), v) for g, v in (optimizer or _sgd()).compute_gradients(loss, list(variables))
            ]
        self.update = (optimizer or _sgd()).apply_gradients(pairs)

    def _between(self, value):
        between, self.between = self.between, None
        if between is not None:
            between()
        return value


def _sgd():
    return tf.train.GradientDescentOptimizer(0.1)


def _after(now, grad):
    with tf.control_dependencies([now]):
        if isinstance(grad, tf.IndexedSlices):
            return tf.IndexedSlices(tf.identity(grad.values), grad.indices, grad.dense_shape)
        return tf.identity(grad)


def on_ps(name, shape, task=0):
    with tf.device(f"/job:ps/task:{task}"):
        return tf.get_variable(name, shape, initializer=tf.ones_initializer())


def interleave(target, step, updates):
    """One worker reads; another updates; the first updates. What the histogram was before and after that update."""
    seen = []
    with tf.Session(target) as a, tf.Session(target) as b:
        a.run(tf.global_variables_initializer())
        for session in (a, b):  # shared memory is used from the fourth read on
            for _ in range(6):
                session.run(step.update)
        assert counts() == {0: 12}

        def others():
            for _ in range(updates):
                b.run(step.update)
            seen.append(counts())

        step.between = others
        a.run(step.update)
    return seen[0], counts()


@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["from shared memory", "by messages"])
def test_the_updates_of_others_between_read_and_update_are_counted(target, shape):
    step = Interleaved(tf.square, on_ps("v", shape))
    before, after = interleave(target, step, 3)
    assert before == {0: 15}  # those of the other worker were not stale
    assert after == {0: 15, 3: 1}


def test_reads_from_shared_memory_are_among_those_that_count(target, monkeypatch):
    step = Interleaved(tf.square, on_ps("v", SMALL))
    read = []
    reads_of = Peer.reads_of
    monkeypatch.setattr(Peer, "reads_of", lambda self, size: read.append(reads_of(self, size)) or read[-1])
    interleave(target, step, 3)
    assert sum(reads.count for reads in read) > 3


def test_updates_of_rows_count_for_their_variable(target):
    step = Interleaved(lambda table: tf.nn.embedding_lookup(table, [1, 3]), on_ps("table", (2000, 256)))
    assert interleave(target, step, 2) == ({0: 14}, {0: 14, 2: 1})


def test_several_tables_that_are_read_and_updated_together_count_once(target):
    tables = [on_ps(f"table{i}", (2000, 256)) for i in range(4)]
    step = Interleaved(lambda *t: tf.add_n([tf.nn.embedding_lookup(one, [1, 3]) for one in t]), *tables)
    assert interleave(target, step, 2) == ({0: 14}, {0: 14, 2: 1})


def test_variables_in_packs_are_counted_as_others_are(target):
    variables = [on_ps(f"v{i}", (3,)) for i in range(40)]
    optimizer = tf.train.AdamOptimizer(0.01)
    step = Interleaved(lambda *v: tf.add_n([tf.square(one) for one in v]), *variables, optimizer=optimizer)
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        until(lambda: [sess.run(step.update), any(s.pack for s in _stores(target))][1], "a pack")
    counters.forget()
    assert interleave(target, step, 3) == ({0: 15}, {0: 15, 3: 1})


def _stores(target):
    from tensorfleet.cluster.process_servers import servers

    return [s for one in servers() for s in one.resources.of_kind("variable")]


def test_a_step_that_updates_variables_of_two_servers_counts_once_and_the_most(target):
    first, second = on_ps("v", SMALL), on_ps("w", SMALL, task=1)
    step = Interleaved(lambda v, w: tf.square(v) + tf.square(w), first, second)
    more = second.assign_add(tf.ones(SMALL)).op
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        step.between = lambda: [sess.run(more) for _ in range(2)]
        sess.run(step.update)
    assert counts() == {2: 1}


def test_one_worker_alone_is_never_stale(target):
    v = on_ps("v", SMALL)
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(tf.square(v))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(20):
            sess.run([train, loss, step])
    assert counts() == {0: 20}


def test_variables_that_the_worker_keeps_itself_are_counted(target):
    with tf.device("/job:worker/task:0"):
        own = tf.get_variable("own", SMALL, initializer=tf.ones_initializer())
        more = own.assign_add(tf.ones(SMALL)).op
    v = on_ps("v", SMALL)
    step = Interleaved(lambda v, own: tf.square(v) + tf.square(own), v, own)
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        step.between = lambda: [sess.run(more) for _ in range(4)]
        sess.run(step.update)
    assert counts() == {4: 1}


def test_a_step_that_reads_and_never_updates_leaves_nothing_behind(target):
    v = on_ps("v", SMALL)
    with tf.device("/job:worker/task:0"):
        twice = v * 2.0
    more = v.assign_add(tf.ones(SMALL)).op
    with tf.Session(target) as sess:
        sess.run(v.initializer)
        for _ in range(8):
            sess.run(twice)
            sess.run(more)
    assert counts() == {}


def test_a_plain_assignment_is_no_gradient(target):
    v = on_ps("v", SMALL)
    with tf.device("/job:worker/task:0"):
        twice = v * 2.0
    with tf.Session(target) as sess:
        sess.run(v.initializer)
        for _ in range(4):
            sess.run(v.assign(twice).op)
    assert counts() == {}


def test_synchronous_training_counts_nothing_here(target):
    v = on_ps("v", SMALL)
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(tf.square(v))
    optimizer = tf.train.SyncReplicasOptimizer(_sgd(), 1, total_num_replicas=1)
    train = optimizer.minimize(loss, global_step=step)
    hooks = [optimizer.make_session_run_hook(True)]
    with tf.train.MonitoredTrainingSession(target, hooks=hooks) as sess:
        for _ in range(10):
            sess.run(train)
    assert counts() == {}


def test_a_failed_step_counts_nothing(target):
    step = Interleaved(tf.square, on_ps("v", SMALL))

    def fail():
        raise ValueError("not today")

    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        step.between = fail
        with pytest.raises(tf.errors.OpError, match="not today"):
            sess.run(step.update)
    assert counts() == {}


def test_gradients_that_a_gate_counts_are_not_counted_twice():
    counters.note_measured_staleness(1)
    counters.leave_staleness_to_others()
    counters.note_measured_staleness(7)
    assert counts() == {}


def test_a_client_that_is_killed_between_read_and_update_leaves_nothing_behind(spec, serve, graph):
    server = serve(spec, "ps", 0)
    program = textwrap.dedent(f"""
        import time
        import tensorfleet as tf

        server = tf.train.Server({spec!r}, "worker", 0)
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [4], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            def hang(value):
                print("read", flush=True)
                time.sleep(600)
                return value
            held = tf.py_func(hang, [v * 1.0], tf.float32)
            held.set_shape([4])
        with tf.Session(server.target) as sess:
            sess.run(v.initializer)
            sess.run(v.assign_sub(held).op)
        """)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        try:
            assert in_background(killed.stdout.readline).result(120) == "read\n"
        finally:
            killed.kill()
    until(lambda: not server.worker.engines(), "the end of the session")
    told = tf.fleet.stats(server.target, "ps/0")
    assert told["staleness"] == [] and told["under_way"] == []
    v = on_ps("v", [4])
    with tf.device("/job:ps/task:0"):
        value = tf.identity(v)
    with tf.Session(server.target) as sess:
        np.testing.assert_array_equal(sess.run(value), np.ones(4))
