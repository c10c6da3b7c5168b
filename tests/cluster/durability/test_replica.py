"""What a standby has when it takes over: everything that clients were told of, once."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.formats.checkpoint_writer import BundleWriter
from tensorfleet.cluster import messages
from tensorfleet.cluster.durability.results import RequestName
from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.transport import moved_addresses, wire
from tensorfleet.state.queues import PutAttempt

PS = "/job:ps/task:0"
SECONDS = 20


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made, tf.device(PS):
        yield made


def after_failover(pair):
    """A session that finds the server that leads now."""
    pair.fail_over()
    moved_addresses.learn({pair.places[0]: pair.places[1]})
    return pair.session()


def test_updates_of_variables_are_kept(pair):
    v = tf.Variable(np.zeros(4, np.float32))
    whole = tf.get_variable("large", [300, 200], initializer=tf.zeros_initializer())
    text = tf.Variable(["a", "bc"])
    flag = tf.Variable(False)
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run([tf.assign_add(v, tf.ones(4)).op, tf.assign_add(whole, tf.ones([300, 200])).op])
        sess.run([tf.assign(text, ["d", "ef"]).op, tf.assign(flag, True).op])
    with after_failover(pair) as sess:
        values = sess.run([v, whole, text, flag])
    np.testing.assert_array_equal(values[0], np.full(4, 5, np.float32))
    np.testing.assert_array_equal(values[1], np.full((300, 200), 5, np.float32))
    assert values[2].tolist() == [b"d", b"ef"]
    assert values[3]


def test_updates_of_rows_are_sent_as_rows(pair):
    table = tf.Variable(np.zeros((50_000, 8), np.float32))
    add = tf.scatter_add(table, [3, 7, 3], np.ones((3, 8), np.float32))
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        before = pair.servers[0].replica._link.sent_bytes
        for _ in range(10):
            sess.run(add.op)
        sent = pair.servers[0].replica._link.sent_bytes - before
    assert sent < 20_000
    with after_failover(pair) as sess:
        rows = sess.run(table)
    assert rows[3].tolist() == [20.0] * 8
    assert rows[7].tolist() == [10.0] * 8
    assert rows.sum() == 30 * 8


@pytest.mark.parametrize("optimizer", ["adam", "momentum", "adagrad", "ftrl"])
def test_slots_of_optimizers_and_their_rows_are_kept(pair, optimizer):
    made = {
        "adam": tf.train.AdamOptimizer(0.1),
        "momentum": tf.train.MomentumOptimizer(0.1, 0.9),
        "adagrad": tf.train.AdagradOptimizer(0.1),
        "ftrl": tf.train.FtrlOptimizer(0.1),
    }[optimizer]
    w = tf.Variable(np.ones((40_000, 2), np.float32))
    b = tf.Variable(np.ones(3, np.float32))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, [1, 5, 5]))) + tf.reduce_sum(tf.square(b))
    train = made.minimize(loss)
    everything = tf.global_variables()
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            sess.run(train)
        before = sess.run(everything)
    with after_failover(pair) as sess:
        after = sess.run(everything)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("kind", ["fifo", "shuffle", "priority", "padding"])
def test_queues_keep_what_was_put_in_and_not_taken_out(pair, kind):
    queue = {
        "fifo": lambda: tf.FIFOQueue(20, tf.int64, [()], shared_name="q"),
        "shuffle": lambda: tf.RandomShuffleQueue(20, 0, tf.int64, [()], shared_name="q"),
        "priority": lambda: tf.PriorityQueue(20, [tf.int64], [()], shared_name="q"),
        "padding": lambda: tf.PaddingFIFOQueue(20, tf.int64, [()], shared_name="q"),
    }[kind]()
    given = tf.placeholder(tf.int64, [None])
    put = queue.enqueue_many([given, given] if kind == "priority" else given)
    take = queue.dequeue()[0] if kind == "priority" else queue.dequeue()
    with pair.session() as sess:
        sess.run(put, {given: [5, 3, 9, 1]})
        taken = [int(sess.run(take)) for _ in range(2)]
        sess.run(put, {given: [4]})
    with after_failover(pair) as sess:
        taken += [int(sess.run(take)) for _ in range(3)]
        sess.run(queue.close())
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(take)
    assert sorted(taken) == [1, 3, 4, 5, 9]
    if kind == "priority":
        assert taken == [1, 3, 4, 5, 9]
    elif kind != "shuffle":
        assert taken == [5, 3, 9, 1, 4]


def test_a_closed_queue_stays_closed(pair):
    queue = tf.FIFOQueue(5, tf.int32, shared_name="q")
    with pair.session() as sess:
        sess.run(queue.enqueue(1))
        sess.run(queue.close())
    with after_failover(pair) as sess:
        assert sess.run(queue.dequeue()) == 1
        with pytest.raises(tf.errors.CancelledError):
            sess.run(queue.enqueue(2))


def test_sums_of_accumulators_are_kept(pair):
    dense = tf.ConditionalAccumulator(tf.float32, [2], shared_name="dense")
    sparse = tf.SparseConditionalAccumulator(tf.float32, [10, 2], shared_name="sparse")
    with pair.session() as sess:
        sess.run(dense.apply_grad([1.0, 2.0]))
        sess.run(sparse.apply_grad([1, 3], np.ones((2, 2), np.float32)))
        sess.run(sparse.apply_grad([3], np.ones((1, 2), np.float32)))
    with after_failover(pair) as sess:
        sess.run(dense.apply_grad([3.0, 4.0]))
        assert sess.run(dense.take_grad(2)).tolist() == [2.0, 3.0]
        assert sess.run(sparse.num_accumulated()) == 2
        indices, values, _ = sess.run(sparse.take_grad(2))
    assert indices.tolist() == [1, 3]
    assert values.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_entries_of_tables_are_kept(pair):
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    dense = tf.contrib.lookup.MutableDenseHashTable(
        tf.int64, tf.float32, 0.0, empty_key=-1, deleted_key=-2, initial_num_buckets=4
    )
    with pair.session() as sess:
        for i in range(5):
            sess.run(table.insert([f"key{i}"], tf.constant([i], tf.int64)))
        sess.run(table.remove(["key1"]))
        sess.run(dense.insert(tf.constant([1, 2, 3], tf.int64), [1.0, 2.0, 3.0]))
    with after_failover(pair) as sess:
        assert sess.run(table.lookup(["key0", "key1", "key4"])).tolist() == [0, -1, 4]
        assert sess.run(dense.lookup(tf.constant([2, 4], tf.int64))).tolist() == [2.0, 0.0]


def test_a_reset_container_stays_reset(pair):
    v = tf.Variable(1.0)
    with tf.container("other"):
        u = tf.Variable(2.0)
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
    tf.Session.reset(f"grpc://{pair.places[0]}", ["other"])
    with after_failover(pair) as sess:
        assert sess.run(v) == 1.0
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(u)


def test_a_second_standby_gets_what_the_first_one_left(pair):
    v, u = tf.Variable(1.0), tf.Variable(2.0)
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(v.assign_add(1.0))
    pair.fail_over()  # nobody asks for u here
    pair.start(0, State.STANDING_BY)
    pair.lead(1, with_standby=True)
    pair.servers[1].stop()
    pair.lead(0)
    with pair.session() as sess:
        assert sess.run([v, u]) == [2.0, 2.0]


def last_request(pair, sess):
    """The last request of a session for something that changes state, as the server knows it."""
    handle = sess._engine.handle
    results = pair.servers[0].replica.journal.results._of[handle]
    step = max(results)
    return RequestName(handle, step, next(stage for stage, _ in results[step]))


def test_a_request_that_comes_again_changes_nothing_and_has_the_same_result(pair):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        sess.run(add)
        request = last_request(pair, sess)
        again = pair.servers[0].worker.run(*request, 1, 0, [])
        assert [int(a) for a in again] == [1]
        assert sess.run(v) == 1
        pair.fail_over()
        assert [int(a) for a in pair.servers[1].replica.known_values(request)] == [1]


def test_results_are_forgotten_when_their_steps_are_over(pair):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        for _ in range(50):
            sess.run(add)
        assert len(pair.servers[0].replica.journal.results) <= 2
        assert len(pair.servers[1].replica.kept.results) <= 2


def test_a_server_that_was_given_up_commits_nothing(pair):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        sess.run(add.op)
        pair.lead(1)  # the first server does not know yet
        worker, handle = pair.servers[0].worker, sess._engine.handle
        stage = next(i for i, s in worker.session(handle).stages.items() if s.changes and i > 1)
        with pytest.raises(tf.errors.AbortedError, match=messages.GIVEN_UP):
            worker.run(handle, 1 << 20, stage, 1, 0, [])
        assert pair.servers[0].replica.role.state is State.GIVEN_UP
    moved_addresses.learn({pair.places[0]: pair.places[1]})
    with pair.session() as sess:
        assert sess.run(v) == 1


def test_a_server_without_its_standby_waits_for_the_guard(pair):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        pair.servers[1].stop()
        thread = threading.Thread(target=sess.run, args=(add.op,))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        pair.lead(0)
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert sess.run(v) == 1


def test_a_connection_to_the_standby_that_was_cut_is_opened_again(pair):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        for i in range(10):
            pair.servers[0].replica._link._channel.shut()
            assert sess.run(add) == i + 1
        pair.fail_over()
        assert sess.run(add) == 11


def test_a_commit_whose_answer_cannot_be_sent_is_taken(pair, monkeypatch):
    v = tf.Variable(0)
    add = v.assign_add(1)
    with pair.session() as sess:
        sess.run(v.initializer)
        assert sess.run(add) == 1
        standby, say = pair.servers[1].replica, wire.Channel.say
        failed = []

        def fail_once(channel, message, *rest):
            if channel in standby._feeding and not failed:
                failed.append(message)
                channel.shut()
            say(channel, message, *rest)

        monkeypatch.setattr(wire.Channel, "say", fail_once)
        pair.servers[0].replica._link._channel.shut()  # the next commit is sent again, and wants an answer
        assert sess.run(add) == 2
        assert failed
        pair.fail_over()
        assert sess.run(add) == 3


def test_a_standby_that_lacks_commits_gets_all_of_the_state_again(pair):
    v, u = tf.Variable(0), tf.Variable(5)
    queue = tf.FIFOQueue(9, tf.int32, [()], shared_name="q")
    add, put = v.assign_add(1), queue.enqueue(7)
    with pair.session() as sess:
        sess.run([v.initializer, u.initializer])
        sess.run(put)
        standby = pair.servers[1].replica
        take, lost = standby.take, []

        def lose(channel, message, arrays):
            lost.append(message)
            channel.shut()

        standby.take = lose
        assert sess.run(add) == 1  # within one machine nobody waits for the standby
        while not lost:
            pass
        standby.take = take
        assert sess.run(add) == 2
        assert sess.run(add) == 3
        pair.fail_over()
        assert sess.run(add) == 4
        assert sess.run([u, queue.size()]) == [5, 1]
        assert sess.run(queue.dequeue()) == 7


def test_an_element_that_no_stage_puts_in_wakes_those_that_wait(pair):
    queue = tf.FIFOQueue(5, tf.int64, [()], shared_name="q")
    with pair.session() as sess:
        thread, results = in_background(sess.run, queue.dequeue())
        thread.join(0.2)
        kept = next(r for _, r in pair.servers[0].replica.journal._resources.values() if r.name == "q")
        kept.submit(
            PutAttempt([kept.element([np.int64(7)])])
        )  # as the end of a replica does, from another thread
        thread.join(SECONDS)
        assert [int(r) for r in results] == [7]


def test_state_is_copied_to_a_new_standby_while_steps_go_on(pair):
    v = tf.Variable(0)
    tables = [tf.Variable(np.full((200, 100), i, np.float32)) for i in range(20)]
    add = v.assign_add(1)
    bumps = tf.group(*[t.assign_add(tf.ones([200, 100])) for t in tables])
    done = threading.Event()
    counts = [0, 0]
    with pair.session() as sess:
        sess.run(tf.global_variables_initializer())
        pair.servers[1].stop()
        pair.lead(0)

        def update():
            while not done.is_set():
                sess.run(add.op)
                counts[0] += 1
                sess.run(bumps)
                counts[1] += 1

        thread = threading.Thread(target=update)
        thread.start()
        for _ in range(3):
            pair.start(1, State.STANDING_BY)
            pair.lead(0, with_standby=True)
            pair.servers[1].stop()
            pair.lead(0)
        pair.start(1, State.STANDING_BY)
        assert pair.lead(0, with_standby=True).copied_bytes > 20 * 200 * 100 * 4
        done.set()
        thread.join(SECONDS)
    with after_failover(pair) as sess:
        assert sess.run(v) == counts[0]
        for i, value in enumerate(sess.run(tables)):
            assert (value == i + counts[1]).all()


def test_seeded_random_numbers_go_on_where_they_were(pair):
    drawn = tf.random_uniform([3], seed=5)
    with tf.Graph().as_default(), tf.Session() as sess:  # in one process
        same = tf.random_uniform([3], seed=5)
        with tf.Graph().as_default():
            pass
        same.op._set_attr("seed", drawn.op.node_def.attr["seed"])
        same.op._set_attr("seed2", drawn.op.node_def.attr["seed2"])
        wanted = [sess.run(same).tolist() for _ in range(4)]
    with pair.session() as sess:
        numbers = [sess.run(drawn).tolist() for _ in range(2)]
        pair.fail_over()
        numbers += [sess.run(drawn).tolist() for _ in range(2)]
    assert numbers == wanted


# -- sessions that go on -----------------------------------------------------------------------------


def in_background(call, *args):
    """A thread that calls, and what it returns."""
    results = []

    def attempt():
        try:
            results.append(call(*args))
        except Exception as e:
            results.append(e)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    return thread, results


def test_a_session_goes_on_at_the_server_that_leads(pair):
    v = tf.Variable(0)
    add, read = v.assign_add(1), v.read_value()
    with pair.session() as sess:
        sess.run(v.initializer)
        for _ in range(20):
            sess.run([add, read])
        pair.fail_over()
        assert sess.run(add) == 21
        assert sess.run(read) == 21
        pair.start(0, State.STANDING_BY)
        pair.lead(1, with_standby=True)
        pair.servers[1].stop()
        pair.lead(0)
        assert sess.run(add) == 22


def test_a_blocked_dequeue_goes_on_at_the_server_that_leads(pair):
    queue = tf.FIFOQueue(5, tf.int32, [()], shared_name="q")
    put, take = queue.enqueue(7), queue.dequeue_many(2)
    with pair.session() as sess, pair.session() as other:
        other.run(put)
        thread, results = in_background(sess.run, take)
        thread.join(0.2)
        pair.fail_over()
        other.run(put)
        thread.join(SECONDS)
        assert results[0].tolist() == [7, 7]
        assert other.run(queue.size()) == 0


def test_a_blocked_enqueue_goes_on_where_it_was(pair):
    queue = tf.FIFOQueue(4, tf.int32, [()], shared_name="q")
    put, take = queue.enqueue_many([list(range(10))]), queue.dequeue()
    with pair.session() as sess, pair.session() as other:
        thread, results = in_background(sess.run, put)
        taken = [int(other.run(take)) for _ in range(3)]
        pair.fail_over()
        taken += [int(other.run(take)) for _ in range(7)]
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert results == [None]
        assert taken == list(range(10))
        assert other.run(queue.size()) == 0


def test_a_stage_that_changes_state_before_it_waits_changes_it_once(pair):
    v = tf.Variable(0)
    queue = tf.FIFOQueue(5, tf.int32, [()], shared_name="q")
    with tf.control_dependencies([v.assign_add(1)]):
        take = queue.dequeue()
    with pair.session() as sess, pair.session() as other:
        sess.run(v.initializer)
        thread, results = in_background(sess.run, take)
        while other.run(v) != 1:
            pass
        pair.fail_over()
        other.run(queue.enqueue(3))
        thread.join(SECONDS)
        assert [int(r) for r in results] == [3]
        assert other.run(v) == 1


def test_gradients_that_were_taken_are_neither_lost_nor_used_twice(pair):
    accumulator = tf.ConditionalAccumulator(tf.float32, [2], shared_name="sum")
    w = tf.Variable(np.zeros(2, np.float32))
    tokens = tf.FIFOQueue(5, tf.int64, [()], shared_name="tokens")
    update = w.assign_add(accumulator.take_grad(2))
    with tf.control_dependencies([update]):
        make = tf.group(tokens.enqueue(1), update)
    give = accumulator.apply_grad([2.0, 4.0], 10)
    with pair.session() as sess, pair.session() as other:
        sess.run(w.initializer)
        other.run(give)
        thread, _ = in_background(sess.run, make)
        thread.join(0.2)
        pair.fail_over()
        other.run(give)
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert other.run(tokens.dequeue()) == 1
        assert other.run(w).tolist() == [2.0, 4.0]
        assert other.run(accumulator.num_accumulated()) == 0


@pytest.mark.parametrize("incremental", [None, 3])
def test_steps_go_on_while_a_checkpoint_is_written_and_it_has_what_was_there_at_first(
    pair, monkeypatch, tmp_path, incremental
):
    v = tf.get_variable("v", [300, 200], initializer=tf.zeros_initializer())
    row, add = tf.scatter_add(v, [3], np.ones((1, 200), np.float32)).op, v.assign_add(tf.ones([300, 200])).op
    saver = tf.train.Saver(incremental=incremental)
    begun, go_on = threading.Event(), threading.Event()
    finish = BundleWriter.finish

    def finish_late(writer):
        begun.set()
        assert go_on.wait(SECONDS)
        finish(writer)

    monkeypatch.setattr(BundleWriter, "finish", finish_late)
    with pair.session() as sess, pair.session() as other:
        sess.run(v.initializer)
        for n in range(2):
            begun.clear()
            go_on.clear()
            thread, results = in_background(saver.save, other, str(tmp_path / "model"), n)
            assert begun.wait(SECONDS)
            sess.run(row)
            sess.run(add)
            go_on.set()
            thread.join(SECONDS)
            (path,) = results
            found = tf.train.load_variable(path, "v")
            assert found[3].tolist() == [2.0 * n] * 200
            assert (np.delete(found, 3, axis=0) == n).all()


def test_saves_at_the_same_time_do_not_wait_for_each_other(pair, monkeypatch, tmp_path):
    v = tf.get_variable("v", [300, 200], initializer=tf.zeros_initializer())
    saver = tf.train.Saver(incremental=3)
    both = threading.Barrier(2)
    finish = BundleWriter.finish

    def finish_together(writer):
        both.wait(SECONDS)
        finish(writer)

    monkeypatch.setattr(BundleWriter, "finish", finish_together)
    with pair.session() as sess:
        sess.run(v.initializer)
        paths = [str(tmp_path / name) for name in "ab"]
        saves = [in_background(saver.save, sess, path, None, None, "meta", False, False) for path in paths]
        for thread, _ in saves:
            thread.join(SECONDS)
        assert [results for _, results in saves] == [[path] for path in paths]
    for path in paths:
        assert tf.train.load_variable(path, "v").shape == (300, 200)
