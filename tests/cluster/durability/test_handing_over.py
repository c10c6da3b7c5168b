"""A primary hands over to its standby and becomes the standby: nothing is copied, lost or applied twice."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.durability.role import State
from tests.support.waiting import SECONDS, in_background, until

PS = "/job:ps/task:0"
TASK = "/job:ps/replica:0/task:0"


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made, tf.device(PS):
        yield made


def test_a_session_goes_on_through_many_handovers(pair):
    total = tf.Variable(np.zeros(3, np.int64))
    large = tf.get_variable("large", [300, 200], initializer=tf.zeros_initializer())
    add = tf.group(tf.assign_add(total, [1, 1, 1]), tf.assign_add(large, tf.ones([300, 200])))
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        for n in range(6):
            sess.run(add)
            told = pair.hand_over(n % 2)
            assert told.copied_bytes == 0 and not told.without_standby
            assert pair.servers[1 - n % 2].replica.epoch == pair.epoch
            assert pair.servers[n % 2].replica.stands_by
            assert sess.run(total).tolist() == [n + 1] * 3
        sess.run(add)
        assert sess.run(large).sum() == 7 * 300 * 200


def test_the_server_that_handed_over_has_every_update_when_its_successor_dies(pair):
    table = tf.Variable(np.zeros((50_000, 4), np.float32))
    rows = tf.scatter_add(table, [3, 7, 3], np.ones((3, 4), np.float32))
    queue = tf.FIFOQueue(10, tf.int64, [()], shared_name="q")
    given = tf.placeholder(tf.int64, [None])
    put, take = queue.enqueue_many(given), queue.dequeue()
    lookup = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="t")
    insert, find = lookup.insert([5], [6]), lookup.lookup(tf.constant([5], tf.int64))
    draw = tf.random_uniform([3], seed=3)
    with tf.Graph().as_default(), tf.Session() as alone:
        own = tf.random_uniform([3], seed=3)
        want = [alone.run(own) for _ in range(3)]
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([rows.op, insert])
        sess.run(put, {given: [1, 2, 3]})
        got = [sess.run(draw)]
        pair.hand_over(0)
        sess.run(rows.op)
        assert sess.run(take) == 1
        got.append(sess.run(draw))
        pair.servers[1].stop()
        pair.lead(0)
        assert sess.run(table)[3].tolist() == [4.0] * 4
        assert [sess.run(take), sess.run(take)] == [2, 3]
        assert sess.run(find).tolist() == [6]
        got.append(sess.run(draw))
    np.testing.assert_array_equal([a.shape for a in got], [a.shape for a in want])
    assert len({tuple(a.tolist()) for a in got}) == 3


def test_updates_under_way_are_applied_once_by_one_of_the_two(pair):
    total = tf.Variable(np.int64(0))
    add = tf.assign_add(total, 1)
    ended = threading.Event()

    def count():
        with tf.Session(pair.worker.target, graph=total.graph) as sess:
            seen = [int(sess.run(add))]
            while not ended.is_set():
                seen.append(int(sess.run(add)))
        return seen

    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        counting = [in_background(count) for _ in range(3)]
        for n in range(8):
            before = int(sess.run(total))
            until(lambda before=before: int(sess.run(total)) > before + 20, "the counters go on")
            pair.hand_over(n % 2)
        ended.set()
        seen = sorted(value for one in counting for value in one.result(SECONDS))
        assert seen == list(range(1, len(seen) + 1))
        assert int(sess.run(total)) == len(seen)


def test_a_wait_for_an_element_goes_on_at_the_successor(pair):
    queue = tf.FIFOQueue(10, tf.int64, [()], shared_name="q")
    given = tf.placeholder(tf.int64, [])
    put, take = queue.enqueue(given), queue.dequeue()
    with pair.session() as sess:
        sess.run(queue.size())
        waiting = in_background(sess.run, take)
        until(lambda: pair.servers[0].replica._running, "the wait")
        pair.hand_over(0)
        sess.run(put, {given: 7})
        assert waiting.result(SECONDS) == 7
        assert sess.run(queue.size()) == 0


def test_both_servers_may_lead_after_a_server_has_stood_down(pair):
    total = tf.Variable(np.int64(0))
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.assign_add(total, 5).op)
        pair.stand_down(0)
        assert all(server.replica.stands_by for server in pair.servers)
        pair.lead(0, with_standby=True)
        assert int(sess.run(tf.assign_add(total, 1))) == 6
        pair.stand_down(0)
        pair.lead(1)
        assert int(sess.run(tf.assign_add(total, 1))) == 7


def test_a_standby_does_not_take_over_with_a_server_that_has_gone(pair):
    pair.stand_down(0)
    pair.servers[0].stop()
    told = pair.lead(1, with_standby=True)
    assert told.without_standby
    assert pair.servers[1].replica.stands_by
    assert pair.lead(1).without_standby == ""


def test_a_standby_does_not_take_over_with_a_server_that_leads_by_a_later_decision(pair):
    pair.stand_down(0)
    stale, pair.epoch = pair.epoch + 1, pair.epoch + 1
    pair.lead(0)
    lead = messages.Lead(TASK, stale, pair.places[0], pair.places)
    assert "another server leads" in pair.tell(1, lead).without_standby
    assert pair.servers[1].replica.stands_by


def test_a_standby_does_not_take_over_with_a_server_that_has_another_state(pair):
    pair.stand_down(0)
    pair.servers[0].replica.lineage += 1
    assert "it has another state" in pair.lead(1, with_standby=True).without_standby


def test_a_leader_without_a_standby_does_not_stand_down(pair):
    pair.lead(0)
    with pytest.raises(tf.errors.FailedPreconditionError, match="has no standby to hand over to"):
        pair.stand_down(0)
    assert pair.servers[0].replica.role.state is State.LEADING


def test_a_leader_does_not_stand_down_when_its_standby_is_gone(pair):
    pair.servers[1].stop()
    with pytest.raises(tf.errors.UnavailableError, match="cannot reach its standby"):
        pair.stand_down(0)
    total = tf.Variable(np.int64(0))
    pair.lead(0)
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        assert int(sess.run(tf.assign_add(total, 1))) == 1


def test_a_standby_does_not_stand_down(pair):
    with pytest.raises(tf.errors.FailedPreconditionError, match="it does not lead"):
        pair.stand_down(1)


def test_another_task_does_not_stand_down(pair):
    with pytest.raises(tf.errors.InvalidArgumentError, match="not 'ps/7'"):
        pair.tell(0, messages.StandDown("ps/7", 9))


def test_a_leader_that_is_busy_with_a_step_says_so(pair, monkeypatch):
    monkeypatch.setattr("tensorfleet.cluster.durability.replica._BUSY_SECONDS", 0.05)
    with (
        pair.servers[0].replica.journal.lock,
        pytest.raises(tf.errors.UnavailableError, match=r"was busy with a step .* Try again later"),
    ):
        pair.stand_down(0)
    pair.hand_over(0)
