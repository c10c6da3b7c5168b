"""Silence, partitions, latency and resets between a session and its ps: an error in time or the right answer."""

import itertools
import os
import threading
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cli.certificates import make_certificates
from tensorfleet.testing.cluster import ProcessCluster

SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261116"))
ROUNDS = int(os.environ.get("TENSORFLEET_CHAOS_ROUNDS", "20"))
LONG = ROUNDS >= 100  # as long as it may take in life
SILENT = 3.0
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
IN_TIME = 60  # on a busy machine; else five seconds


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_SILENT_SECONDS", str(SILENT))


@pytest.fixture
def cluster(silent):
    with ProcessCluster(ps=1, worker=1, proxied=[("ps", 0)], seed=SEED) as result:
        yield result


@pytest.fixture
def adding():
    """A counter on the ps with a mark for each addition, and the addition."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            marks = tf.Variable(tf.zeros([10_000], tf.int32), name="marks")
        number = tf.placeholder(tf.int32, [], name="number")
        with tf.device("/job:worker/task:0"):
            here = tf.identity(number) + 0
        with tf.control_dependencies([here]):
            more = counter.assign_add(1)
        with tf.control_dependencies([more]):
            add = tf.scatter_add(marks, here, 1).op
        yield counter, marks, number, add, tf.global_variables_initializer()


def fresh(cluster):
    return tf.Session(cluster.target("worker", 0))


def until_answered(cluster, fetch, check=lambda found: True):
    """A fresh session's answer, once it has one that will do."""
    limit = time.monotonic() + IN_TIME
    while True:
        try:
            with fresh(cluster) as sess:
                result = sess.run(fetch)
                if check(result) or time.monotonic() > limit:
                    return result
        except LOST:
            if time.monotonic() > limit:
                raise


def test_a_task_silent_for_a_moment_is_waited_for(adding):
    counter, _, number, add, init = adding
    with ProcessCluster(ps=1, worker=1) as cluster, fresh(cluster) as sess:
        sess.run(init)
        cluster.stop("ps", 0)
        timer = threading.Timer(1.0, cluster.resume, ("ps", 0))
        timer.start()
        sess.run(add, {number: 1})
        timer.join(IN_TIME)
        assert sess.run(counter) == 1


@pytest.mark.parametrize("job", ["ps", "worker"])
def test_a_task_given_up_does_nothing_for_the_step_when_it_wakes(adding, silent, job):
    counter, marks, number, add, init = adding
    with ProcessCluster(ps=1, worker=1) as cluster:
        with fresh(cluster) as sess:
            sess.run(init)
            sess.run(add, {number: 0})
            cluster.stop(job, 0)
            began = time.monotonic()
            with pytest.raises(tf.errors.UnavailableError, match=f"/job:{job}"):
                sess.run(add, {number: 1})
            assert time.monotonic() - began < IN_TIME
            if LONG:
                time.sleep(10)
            cluster.resume(job, 0)
        assert until_answered(cluster, counter) == 1
        with fresh(cluster) as sess:
            sess.run(add, {number: 2})
            assert sess.run(counter) == 2  # the step it slept through is nowhere
            assert sess.run(marks)[:4].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("way", ["both", "to the server", "to the client"])
def test_a_partition_is_an_error_in_time_and_heals(cluster, adding, way):
    counter, marks, number, add, init = adding
    network = cluster.network("ps", 0)
    with fresh(cluster) as sess:
        sess.run(init)
        for n in range(3):
            sess.run(add, {number: n})
        network.partition(way)
        began = time.monotonic()
        with pytest.raises(LOST, match="/job:ps"):
            sess.run(add, {number: 3})
        assert time.monotonic() - began < IN_TIME
    network.heal()
    result = until_answered(cluster, marks)
    assert result[:3].tolist() == [1, 1, 1] and result[3] <= 1
    with fresh(cluster) as sess:
        sess.run(add, {number: 4})
        assert sess.run(marks)[4] == 1


def test_latency_changes_nothing_but_time(adding):
    counter, _, number, add, init = adding
    with ProcessCluster(ps=1, worker=1, proxied=[("ps", 0)]) as cluster:
        cluster.network("ps", 0).delay(0.2)
        with fresh(cluster) as sess:
            sess.run(init)
            for n in range(3):
                sess.run(add, {number: n})
            assert sess.run(counter) == 3


def test_connections_reset_at_random_lose_nothing_acknowledged_and_repeat_nothing(cluster, adding):
    _, marks, number, add, init = adding
    with fresh(cluster) as sess:
        sess.run(init)
    cluster.network("ps", 0).reset_at_random(0.01)
    done, n = set(), 0
    limit = time.monotonic() + IN_TIME
    while len(done) < 5 * ROUNDS and time.monotonic() < limit:
        try:
            with fresh(cluster) as sess:
                while len(done) < 5 * ROUNDS:
                    n += 1
                    sess.run(add, {number: n % 10_000})
                    done.add(n)
        except LOST:
            continue
    cluster.network("ps", 0).heal()
    result = until_answered(cluster, marks)
    assert len(done) >= ROUNDS
    assert all(result[i] == 1 for i in done if i < 10_000) and result.max() <= 1


def test_a_corrupted_connection_ends_in_an_error_and_not_in_silence(cluster, adding):
    counter, _, number, add, init = adding
    network = cluster.network("ps", 0)
    with fresh(cluster) as sess:
        sess.run(init)
    config = tf.ConfigProto(operation_timeout_in_ms=30_000)
    for n in range(max(ROUNDS // 4, 5)):
        with tf.Session(cluster.target("worker", 0), config=config) as sess:
            try:
                sess.run(add, {number: n})  # fails if a connection has been left with a mistake in it
                network.corrupt(0.3)
                for _ in range(20):
                    sess.run(add, {number: n})
            except tf.errors.OpError as e:
                print(type(e).__name__, e.message[:80])
            network.heal()
    assert until_answered(cluster, counter) > 0


def test_under_tls_corruption_never_changes_a_value(adding, silent, tmp_path, monkeypatch):
    _, marks, number, add, init = adding
    make_certificates(tmp_path, [])
    monkeypatch.setenv("TENSORFLEET_TLS", str(tmp_path))
    monkeypatch.setenv("TENSORFLEET_TLS_MUTUAL", "1")
    with ProcessCluster(ps=1, worker=1, proxied=[("ps", 0)], seed=SEED) as cluster:
        network = cluster.network("ps", 0)
        with fresh(cluster) as sess:
            sess.run(init)
        done, tried = set(), iter(range(10_000))
        for _ in range(max(ROUNDS // 4, 5)):
            with fresh(cluster) as sess:
                try:
                    sess.run(add, {number: (n := next(tried))})
                    done.add(n)
                    network.corrupt(0.1)
                    for _ in range(50):
                        sess.run(add, {number: (n := next(tried))})
                        done.add(n)
                except tf.errors.OpError as e:
                    print(type(e).__name__, e.message[:80])
                network.heal()
        result = until_answered(cluster, marks)
        assert all(result[i] == 1 for i in done) and result.max() <= 1
        assert result.sum() <= next(tried)


def test_a_slow_network_slows_its_sender(cluster):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.zeros([250_000]))
    x = tf.placeholder(tf.float32, [250_000])
    put = v.assign_add(x)
    with fresh(cluster) as sess:
        sess.run(v.initializer)
        cluster.network("ps", 0).throttle(4_000_000, "to the server")
        began = time.monotonic()
        sess.run(put.op, {x: np.ones(250_000, np.float32)})
        assert time.monotonic() - began > 0.2
        assert sess.run(tf.reduce_sum(v)) == 250_000


@pytest.mark.parametrize("tasks", list(itertools.permutations([("ps", 0), ("worker", 0), None])), ids=str)
def test_tasks_and_the_session_start_in_any_order(adding, tasks):
    counter, _, number, add, init = adding
    with ProcessCluster(here=[("ps", 0), ("worker", 0)], ps=1, worker=1) as cluster:
        results = []

        def client():
            with tf.Session(cluster.target("worker", 0), graph=init.graph) as sess:
                sess.run(init)
                sess.run(add, {number: 1})
                results.append(sess.run(counter))

        thread = threading.Thread(target=client)
        for task in tasks:
            if task is None:
                thread.start()
            else:
                time.sleep(60 if LONG and task == ("ps", 0) else 0.3)
                cluster.start(*task, wait=False)
        thread.join(2 * IN_TIME)
        assert results == [1]


def test_a_task_that_ends_early_is_missed_only_by_those_who_need_it(adding):
    counter, _, number, add, init = adding
    with ProcessCluster(ps=2, worker=2) as cluster:
        with fresh(cluster) as sess:
            sess.run(init)
            for job in ("ps", "worker"):
                cluster.process(job, 1).terminate()
                assert cluster.process(job, 1).wait(IN_TIME) == 0
            sess.run(add, {number: 1})
            assert sess.run(counter) == 1
        with fresh(cluster) as sess:
            assert sess.run(counter) == 1
