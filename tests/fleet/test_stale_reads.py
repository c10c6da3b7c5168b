"""Reads from standbys: values that were acknowledged, never older ones than before, and nothing is changed."""

import json
import time

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.durability import freshness
from tests.cluster.durability.conftest import pair  # noqa: F401
from tests.support.durable_cluster import DurableCluster
from tests.support.waiting import SECONDS, until

PS = "/job:ps/task:0"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made, tf.device(PS):
        yield made


@pytest.fixture
def guarded(pair, monkeypatch):  # noqa: F811
    """A pair whose standby is asked by a guard, as far as it knows."""
    monkeypatch.setattr(freshness, "_ASKED_SECONDS", 1000.0)
    for server in pair.servers:
        server.replica.freshness.asked(time.monotonic())
    return pair


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_are_read_from_the_standby_and_the_rest_is_computed(guarded, use_resource):
    weights = tf.get_variable("w", [3], tf.float32, tf.ones_initializer(), use_resource=use_resource)
    large = tf.get_variable("l", [300, 200], tf.float32, tf.zeros_initializer(), use_resource=use_resource)
    with tf.device("/job:worker/task:0"):
        given = tf.placeholder(tf.float32, [3])
        product = tf.reduce_sum(weights * given) + tf.reduce_sum(large)
    add = tf.assign_add(weights, [1, 1, 1])
    with guarded.session() as sess:
        sess.run(tf.global_variables_initializer())
        reader = tf.fleet.stale_reads(sess)
        for n in range(3):
            until(
                lambda n=n: reader.run(product, {given: [1, 2, 3]}) == 6 * (n + 1),
                "the update at the standby",
            )
            values = reader.run({"w": weights.value(), "l": large})
            assert values["w"].tolist() == [n + 1] * 3 and values["l"].shape == (300, 200)
            sess.run(add.op)
        assert reader.from_standbys >= 6 >= reader.from_leaders
        (standby,) = reader._standbys.values()
        assert standby.traffic().received_bytes > 3 * 300 * 200 * 4
        reader.close()


def test_a_standby_that_may_be_out_of_date_is_not_read(guarded):
    total = tf.Variable(np.int64(0))
    with guarded.session() as sess:
        sess.run(tf.global_variables_initializer())
        reader = tf.fleet.stale_reads(sess)
        until(lambda: reader.run(total) == 0 and reader.from_standbys == 1, "the value at the standby")
        guarded.servers[1].replica.freshness = freshness.Freshness()
        before = reader.from_leaders
        assert reader.run(total) == 0
        assert (reader.from_standbys, reader.from_leaders) == (1, before + 1)
        guarded.lead(0)  # alone: it has closed its connection to the standby
        guarded.servers[1].replica.freshness.asked(time.monotonic())
        guarded.servers[1].replica.freshness.heard(time.monotonic())
        sess.run(tf.assign_add(total, 5).op)
        until(lambda: not guarded.servers[1].replica.is_fed, "the end of the connection")
        assert reader.run(total) == 5
        assert reader.from_standbys == 1


def test_a_reader_does_not_go_back_after_a_failover(guarded):
    total = tf.Variable(np.int64(0))
    add = tf.assign_add(total, 1)
    with guarded.session() as sess:
        sess.run(tf.global_variables_initializer())
        reader = tf.fleet.stale_reads(sess)
        seen = []
        for n in range(20):
            sess.run(add.op)
            seen.append(int(reader.run(total)))
            if n % 5 == 4:
                guarded.hand_over(guarded.servers[1].replica.epoch > 0)
        assert seen == sorted(seen)
        until(lambda: reader.run(total) == 20, "the last update at the standby")
        assert reader.from_standbys > 5
        task = "/job:ps/replica:0/task:0"
        lineage, number = reader._seen[task]
        reader._seen[task] = lineage, number + 100  # as if a standby had not got the last commits
        before = reader.from_leaders
        assert reader.run(total) == 20
        assert reader.from_leaders == before + 1


def test_what_would_change_something_is_refused_and_not_run(guarded):
    total = tf.Variable(np.int64(0), name="total")
    queue = tf.FIFOQueue(3, tf.int64, [()], name="q")
    rows = tf.get_variable("rows", [5, 2], tf.float32, tf.zeros_initializer(), use_resource=True)
    with guarded.session() as sess:
        sess.run(tf.global_variables_initializer())
        reader = tf.fleet.stale_reads(sess)
        for fetch in (tf.assign_add(total, 1), queue.dequeue(), tf.assign(total, 7).op):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=r"changes something on /job:ps.*Run it with"
            ):
                reader.run(fetch)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="needs more of the variable 'rows' than its value"
        ):
            reader.run(tf.nn.embedding_lookup(rows, [1]))
        assert sess.run(total) == 0


def test_a_variable_without_a_value_is_an_error(guarded):
    total = tf.Variable(np.int64(0), name="total")
    other = tf.Variable(np.int64(0), name="other")
    with guarded.session() as sess:
        sess.run(other.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value total"):
            tf.fleet.stale_reads(sess).run(total)


def test_a_session_without_durable_tasks_reads_as_always():
    with tf.Graph().as_default(), tf.Session() as sess:
        total = tf.Variable(3)
        sess.run(total.initializer)
        assert tf.fleet.stale_reads(sess).run(total) == 3
    with pytest.raises(TypeError, match=r"must be a tf\.Session"):
        tf.fleet.stale_reads("grpc://beta:2222")


@pytest.mark.slow
def test_reads_go_to_the_standby_of_processes_and_never_back_when_the_leader_is_killed(tmp_path):
    with DurableCluster(workers=1) as cluster:
        cluster.wait_for_pair()
        half = tmp_path / "half"
        reader = cluster.script("stale_reader.py", json.dumps(cluster.cluster), half)
        until(half.exists, "the middle of the training")
        cluster.process(0).kill()
        cluster.wait_for("leads it now")
        reader.wait(SECONDS)
        assert reader.returncode == 0
