"""Steps go on when the server of a durable task is lost and another one leads it.

The servers here are in this process and share their state, in place of a standby that has a copy of it. Each remembers the
results of requests by session, step and stage, as servers of durable tasks do.
"""

import dataclasses
import threading
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.cluster.server import Server
from tensorfleet.cluster.transport import peers
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.testing.cluster import free_ports
from tests.support.waiting import in_background, until


class DurableTask:
    """A ps that may be at several places, one of which leads."""

    def __init__(self, index, places):
        self.index, self.places = index, places
        self.epoch = 1
        self.servers = {}
        self.leader = None
        self.results, self.locks, self.lock = {}, {}, threading.Lock()
        self.runs = []  # requests: server, session, step, stage, oldest
        self.resources = ResourceManager()

    def start(self, cluster, place, leads=False):
        """A server at a place, which stands by until it leads."""
        jobs = {**cluster, "ps": list(cluster["ps"])}
        jobs["ps"][self.index] = place
        server = Server(jobs, "ps", self.index, start=False)
        server.worker.resources = self.resources
        server.leads_in = 0
        welcome = server._welcome

        def welcomed():
            return dataclasses.replace(
                welcome(), places=self.places, epoch=server.leads_in, stands_by=not server.leads_in
            )

        server._welcome = welcomed
        self._remember(server)
        self.servers[place] = server
        server.start()
        if leads:
            self.lead(place)
        return server

    def _remember(self, server):
        worker, request = server.worker, threading.local()
        run, alone, in_step = worker.run, worker.run_alone, worker._run_in_step
        server.is_given_up = False
        server.hangs = threading.Event()
        server.hangs.set()
        server._shorts._short = _Nothing()

        def noted(session, step, stage, *args):
            request.key = session, step, stage
            self.runs.append((server, *request.key))
            server.hangs.wait(30)
            if server.is_given_up:
                raise errors.AbortedError(None, None, f"{messages.GIVEN_UP}: another leads {server.task}.")
            return run(session, step, stage, *args)

        def remembered(compute):
            key = request.key
            with self.lock:
                mine = self.locks.setdefault(key, threading.Lock())
            with mine:
                if key not in self.results:
                    self.results[key] = list(compute())
            return list(self.results[key])

        def kept(session, step, stage, *args):
            results = remembered(lambda: in_step(session, step, stage, *args))
            session.step(step).values.update({name: results[i] for name, i in stage.keep})
            return results

        worker.run = noted
        worker.run_alone = lambda *args: remembered(lambda: alone(*args))
        worker._run_in_step = kept

    def lead(self, place):
        """From now on the server at that place leads the task."""
        if self.leader is not None:
            self.epoch += 1
        self.leader = self.servers[place]
        for server in self.servers.values():
            server.leads_in = self.epoch if server is self.leader else 0

    def kill(self, place):
        """Ends a server as if its process were gone: nothing is said to anybody."""
        server = self.servers.pop(place)
        server.worker.resources = ResourceManager()  # or `stop` would clear what the others have
        server._stopping.set()
        server._listener.close()
        for channel in list(server._channels):
            channel.close()

    def fail_over(self):
        """The leading server is killed; the other one leads."""
        (dead,) = [p for p, s in self.servers.items() if s is self.leader]
        (heir,) = [p for p, s in self.servers.items() if s is not self.leader]
        self.lead(heir)
        self.kill(dead)

    def stop(self):
        for server in self.servers.values():
            server.hangs.set()
            server.stop()


class _Nothing(set):
    """Connections that are never lent: every request comes to `Worker.run`."""

    def add(self, _):
        pass


@pytest.fixture
def fleet(monkeypatch):
    """A worker beside this session, and two durable ps with a primary and a standby each."""
    monkeypatch.setenv("TENSORFLEET_FAILOVER_SECONDS", "10")
    a, b, c, d, own = (f"127.0.0.1:{port}" for port in free_ports(5))
    pairs = [[a, b], [c, d]]
    cluster = {"ps": [a, c], "worker": [own]}
    tasks = [DurableTask(i, places) for i, places in enumerate(pairs)]
    for task in tasks:
        for place in task.places:
            task.start(cluster, place, leads=place == task.places[0])
    worker = Server(cluster, "worker", 0)
    yield tasks, worker
    for task in tasks:
        task.stop()
    worker.stop()
    for peer in peers.known():
        peer.forget()


def counter(task=0, name="v"):
    with tf.device(f"/job:ps/task:{task}"):
        v = tf.get_variable(name, [3], initializer=tf.zeros_initializer(), use_resource=True)
        return v, v.assign_add(tf.ones([3]))


def test_a_step_after_the_loss_goes_to_the_server_that_leads_now(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        sess.run(more)
        ps.fail_over()
        sess.run(more)
        np.testing.assert_array_equal(sess.run(v), [2, 2, 2])


def test_a_request_that_was_not_answered_is_sent_again(fleet):
    (ps, _), worker = fleet
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.float32, shared_name="q")
        add, take = queue.enqueue(5.0), queue.dequeue()
    with tf.Session(worker.target) as sess, tf.Session(worker.target) as other:
        sess.run(queue.size())
        waiting = in_background(lambda: sess.run(take))
        until(lambda: len(ps.runs) > 1)
        old = ps.leader
        ps.fail_over()
        old.worker.close()
        other.run(add)
        assert waiting.result() == 5.0


def test_values_that_the_lost_server_kept_for_the_step_are_made_again(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    losses = []

    def lose(x):
        if not losses:
            losses.append(ps.fail_over())
        return x

    with tf.device("/job:ps/task:0"):
        kept = more * 2.0
    with tf.device("/job:worker/task:0"):
        seen = tf.py_func(lose, [kept], tf.float32)
        seen.set_shape([3])
    with tf.device("/job:ps/task:0"):
        total = kept + seen
        result = v.assign_add(total)
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(result), [5, 5, 5])  # 1, and 2 + 2
        np.testing.assert_array_equal(sess.run(v), [5, 5, 5])


def test_values_that_another_task_sent_to_the_lost_server_are_sent_again(fleet):
    (ps, other), worker = fleet
    v, more = counter(0, "v")
    w, _ = counter(1, "w")
    losses = []

    def lose(x):
        if not losses:
            losses.append(other.fail_over())
        return x

    with tf.device("/job:worker/task:0"):
        seen = tf.py_func(lose, [more], tf.float32)
        seen.set_shape([3])
    with tf.device("/job:ps/task:1"):
        result = w.assign_add(more + seen)
    with tf.Session(worker.target) as sess:
        sess.run([v.initializer, w.initializer])
        np.testing.assert_array_equal(sess.run(result), [2, 2, 2])
        np.testing.assert_array_equal(sess.run(v), [1, 1, 1])


def test_a_task_that_sends_to_a_lost_server_sends_to_the_next(fleet):
    (ps, other), worker = fleet
    v, more = counter(0, "v")
    w, _ = counter(1, "w")
    with tf.device("/job:ps/task:1"):
        result = w.assign_add(more)
    with tf.Session(worker.target) as sess:
        sess.run([v.initializer, w.initializer])
        for n in range(1, 5):
            if n == 3:
                other.fail_over()
            sess.run(result)
            np.testing.assert_array_equal(sess.run(v), [n, n, n])


def test_a_server_that_was_given_up_is_not_asked_again(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        old = ps.leader
        ps.lead(ps.places[1])
        old.is_given_up = True
        for _ in range(3):
            sess.run(more)
        np.testing.assert_array_equal(sess.run(v), [3, 3, 3])
    asked = [server for server, *_ in ps.runs]
    assert asked.count(old) == 2  # for the initializer, and once in vain


def test_a_server_that_hangs_is_left_as_soon_as_another_one_leads(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        old = ps.leader
        old.hangs.clear()
        asked = in_background(lambda: sess.run(more))
        until(lambda: len(ps.runs) == 2)
        ps.lead(ps.places[1])
        began = time.monotonic()
        np.testing.assert_array_equal(asked.result(), [1, 1, 1])
        assert time.monotonic() - began < peers.silence() - 1
        old.is_given_up = True
        old.hangs.set()


def test_a_session_that_the_server_has_forgotten_is_registered_again(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        for handle in list(ps.leader.worker._sessions):
            ps.leader.worker.close_session(handle)
        sess.run(more)
        np.testing.assert_array_equal(sess.run(v), [1, 1, 1])


def test_connections_that_are_cut_are_opened_again(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        for _ in range(3):
            for channel in list(ps.leader._channels):
                channel.shut()
            sess.run(more)
        np.testing.assert_array_equal(sess.run(v), [3, 3, 3])


def test_a_session_can_begin_when_the_standby_has_the_place_of_the_clusterspec(fleet):
    (ps, _), worker = fleet
    ps.lead(ps.places[1])
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(more), [1, 1, 1])


def test_a_step_fails_when_nobody_leads_in_time(fleet, monkeypatch):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        sess.run(more)
        monkeypatch.setenv("TENSORFLEET_FAILOVER_SECONDS", "0.3")
        ps.kill(ps.places[0])
        with pytest.raises(errors.UnavailableError) as caught:
            sess.run(more)
        a, b = ps.places
        text = caught.value.message
        assert text.startswith("/job:ps/replica:0/task:0 ")
        assert f"Looked for a server that leads it at {b}, {a} for 0 s: " in text
        assert "Is its standby running? Start it, or raise TENSORFLEET_FAILOVER_SECONDS." in text


def test_a_step_with_a_deadline_looks_no_longer_than_that(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        sess.run(more)
        ps.kill(ps.places[0])
        with pytest.raises(errors.DeadlineExceededError, match="Looked for a server that leads"):
            sess.run(more, options=tf.RunOptions(timeout_in_ms=300))


def test_a_session_that_is_closed_looks_no_longer(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    sess = tf.Session(worker.target)
    sess.run(v.initializer)
    sess.run(more)
    ps.kill(ps.places[0])
    failing = in_background(lambda: sess.run(more))
    until(lambda: peers.peer(ps.servers[ps.places[1]].task, ps.places[0]).gone)
    sess.close()
    with pytest.raises(errors.CancelledError):
        failing.result()


def test_threads_of_a_session_recover_together(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        adding = [in_background(lambda: [sess.run(more) for _ in range(20)]) for _ in range(4)]
        until(lambda: len(ps.runs) > 20)
        ps.fail_over()
        for thread in adding:
            thread.result()
        np.testing.assert_array_equal(sess.run(v), [80, 80, 80])


def test_no_step_is_told_to_be_over_while_it_runs(fleet, monkeypatch):
    (ps, _), worker = fleet
    v, more = counter()
    told = []
    unpack = messages.Run.unpack

    def noted(fields):
        result = unpack(fields)
        told.append((result[1], result[-1]))
        return result

    monkeypatch.setattr(messages.Run, "unpack", staticmethod(noted))
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        adding = [in_background(lambda: [sess.run(more) for _ in range(20)]) for _ in range(4)]
        for thread in adding:
            thread.result()
        sess.run(more)
    assert all(1 <= oldest <= step for step, oldest in told)
    assert told[-1][0] == told[-1][1]


def test_a_step_that_is_traced_recovers_too(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        sess.run(more)
        ps.fail_over()
        metadata = tf.RunMetadata()
        np.testing.assert_array_equal(sess.run(more, options=options, run_metadata=metadata), [2, 2, 2])
        assert metadata.step_stats.dev_stats


def looped(ps, at, body_of):
    """A loop over this task and a ps, which loses a server at its iteration `at`."""
    turns = []

    def lose(x):
        turns.append(x)
        if len(turns) == at:
            ps.fail_over()
        return x

    def body(i, total):
        with tf.device("/job:worker/task:0"):
            seen = tf.py_func(lose, [i], tf.int32)
            seen.set_shape([])
        with tf.control_dependencies([seen]):
            return seen + 1, body_of(total)

    return tf.while_loop(lambda i, _: i < 6, body, [tf.constant(0), tf.zeros([3])])


def test_a_loop_over_several_tasks_goes_on_with_the_next_server(fleet):
    (ps, _), worker = fleet
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [3], initializer=tf.zeros_initializer(), use_resource=False)

    def body(total):
        with tf.device("/job:ps/task:0"):
            return total + tf.assign_add(v, tf.ones([3]))

    result = looped(ps, 3, body)
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
        i, total = sess.run(result)
        assert i == 6
        np.testing.assert_array_equal(total, [21, 21, 21])
        np.testing.assert_array_equal(sess.run(v), [6, 6, 6])


def test_a_variable_is_not_read_from_the_memory_of_a_server_that_was_lost(fleet):
    (ps, _), worker = fleet
    v, more = counter()
    with tf.Session(worker.target) as sess, tf.Session(worker.target) as other:
        sess.run(v.initializer)
        for _ in range(8):
            sess.run(v)
        ps.fail_over()
        for n in range(1, 10):
            other.run(more)
            np.testing.assert_array_equal(sess.run(v), [n, n, n])
