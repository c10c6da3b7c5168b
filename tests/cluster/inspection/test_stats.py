"""The load that a task tells is what the program did, to the byte."""

import json
import os
import sys
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base import counters
from tensorfleet.cluster.inspection import stats_schema, topics
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background, until

TARGET = ("ps", 0)


@pytest.fixture(scope="module")
def cluster():
    with ProcessCluster(ps=1) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(cluster, graph):
    yield
    tf.Session.reset(cluster.target(*TARGET))


@pytest.fixture(autouse=True)
def from_zero():
    counters.forget()


def told(cluster):
    return tf.fleet.stats(cluster.target(*TARGET), "ps/0")


def mine():
    return tf.fleet.stats("", "main/0")


def named(entries, name):
    (entry,) = [e for e in entries if e["name"] == name]
    return entry


def test_reads_and_updates_of_a_variable_are_counted_to_the_byte(cluster):
    before = mine()["peers"]
    v = tf.get_variable("v", [100, 10], initializer=tf.zeros_initializer())
    more = v.assign_add(tf.ones([100, 10])).op
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run(v.initializer)
        for _ in range(20):
            sess.run(v)
        for _ in range(20):
            sess.run(more)
        ours, theirs = mine(), told(cluster)
    entry = named(theirs["variables"], "v")
    assert (entry["shape"], entry["bytes"], entry["dtype"]) == ([100, 10], 4000, "float32")
    assert entry["version"] == entry["updates"] == 21  # with the initializer
    assert entry["update_bytes"] == 21 * 4000
    peer = next(p for p in ours["peers"] if p["task"] == "ps/0")
    known = next((p for p in before if p["task"] == "ps/0"), {"shared_reads": 0})
    # On one machine a small variable is read from shared memory from the fourth time on: together it is 20 reads.
    assert entry["reads"] + peer["shared_reads"] - known["shared_reads"] == 20
    assert entry["read_bytes"] == entry["reads"] * 4000
    assert peer["shared_bytes"] - known.get("shared_bytes", 0) == (20 - entry["reads"]) * 4000
    earlier = known.get("shared_variables", {}).get("v", (0, 0))
    shared = [now - then for now, then in zip(peer["shared_variables"]["v"], earlier, strict=True)]
    assert shared == [20 - entry["reads"], (20 - entry["reads"]) * 4000]
    assert theirs["server"]["updates"] == 21
    assert (theirs["variable_count"], theirs["variable_bytes"]) == (1, 4000)


def test_variables_that_are_read_together_from_shared_memory_are_counted_each(cluster):
    with tf.device("/job:ps/task:0"):
        one = tf.get_variable("read_together/one", [10], initializer=tf.zeros_initializer())
        two = tf.get_variable(
            "read_together/two", [5], tf.float64, initializer=tf.zeros_initializer(), use_resource=True
        )
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run([one.initializer, two.initializer])
        for _ in range(20):
            sess.run([one, two])
        ours, theirs = mine(), told(cluster)
    (peer,) = [p for p in ours["peers"] if p["task"] == "ps/0"]
    for name in ("read_together/one", "read_together/two"):
        asked, (shared, size) = named(theirs["variables"], name)["reads"], peer["shared_variables"][name]
        assert shared > 0 and asked + shared == 20 and size == shared * 40
    assert peer["shared_bytes"] >= sum(size for _, size in peer["shared_variables"].values())


def test_steps_and_their_parts_add_up(cluster):
    v = tf.get_variable("v", [1000], initializer=tf.zeros_initializer())
    more = v.assign_add(tf.ones([1000])).op
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run(v.initializer)
        for _ in range(200):
            sess.run(more)
    steps = mine()["steps"]
    assert (steps["count"], steps["failed"]) == (201, 0)
    assert steps["parts"]["push"] > 0
    # What passed since the last measured step is not divided yet.
    assert 0 <= steps["seconds"] - sum(steps["parts"].values()) < steps["seconds"]
    assert told(cluster)["steps"]["count"] == 0


def test_gathers_and_updates_of_rows_count_their_rows_only(cluster):
    table = tf.get_variable("table", [10_000, 8], initializer=tf.zeros_initializer())
    rows = tf.gather(table, [1, 2, 3])
    change = tf.scatter_add(table, [5, 6], tf.ones([2, 8])).op
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run(table.initializer)
        before = named(told(cluster)["variables"], "table")
        for _ in range(4):
            sess.run(rows)
        for _ in range(3):
            sess.run(change)
        after = named(told(cluster)["variables"], "table")
    assert after["reads"] - before["reads"] == 4
    assert after["read_bytes"] - before["read_bytes"] == 4 * 3 * 32
    assert after["updates"] - before["updates"] == 3
    assert after["update_bytes"] - before["update_bytes"] == 3 * 2 * 32


def test_a_queue_tells_its_fill_and_its_traffic(cluster):
    queue = tf.FIFOQueue(7, [tf.float32], [[]], shared_name="q")
    put, take = queue.enqueue(1.0), queue.dequeue()
    with tf.Session(cluster.target(*TARGET)) as sess:
        for _ in range(5):
            sess.run(put)
        sess.run([take.op])
        entry = named(told(cluster)["queues"], "q")
    assert (entry["kind"], entry["size"], entry["capacity"]) == ("FIFOQueue", 4, 7)
    assert (entry["enqueued"], entry["dequeued"]) == (5, 1)


def test_a_wait_for_a_queue_is_counted_and_a_task_answers_while_a_step_waits(cluster):
    queue = tf.FIFOQueue(7, [tf.float32], [[]], shared_name="slow")
    put, take = queue.enqueue(1.0), queue.dequeue()
    with tf.Session(cluster.target(*TARGET)) as sess:
        waiting = in_background(sess.run, take)
        until(lambda: told(cluster)["under_way"], "the step's arrival")
        (there,), here = told(cluster)["under_way"], mine()["under_way"]
        assert "slow" in there["waits_for"] and there["seconds"] > 0
        assert any("'slow'" in (step["waits_for"] or "") and "ps/0" in step["waits_for"] for step in here)
        sess.run(put)
        assert waiting.result(60) == 1.0
        entry = named(told(cluster)["queues"], "slow")
        assert entry["dequeue_wait_seconds"] > 0 and entry["enqueue_wait_seconds"] == 0
        assert not told(cluster)["under_way"]


def test_a_failed_step_counts_once_and_its_error_is_told(cluster):
    with tf.device("/job:ps/task:0"):
        wrong = tf.Assert(False, ["this is wrong"])
    with tf.Session(cluster.target(*TARGET)) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(wrong)
        ours, theirs = mine(), told(cluster)
    assert (ours["steps"]["count"], ours["steps"]["failed"]) == (1, 1)
    assert "this is wrong" in ours["last_error"]["text"]
    assert "InvalidArgumentError" in theirs["last_error"]["text"]


def test_the_end_of_the_input_is_no_failure():
    item = tf.data.Dataset.range(1).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        sess.run(item)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(item)
    steps = mine()["steps"]
    assert (steps["count"], steps["failed"], mine()["last_error"]) == (2, 0, None)


def test_nothing_is_lost_when_many_threads_count():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
        with tf.Session() as sess:
            sess.run(v.initializer)
            sess.run(v)

            def work():
                for _ in range(500):
                    sess.run(v)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            entry = named(mine()["variables"], "v")
    finally:
        sys.setswitchinterval(before)
    assert mine()["steps"]["count"] == 2002
    assert (entry["reads"], entry["read_bytes"]) == (2001, 2001 * 12)


def test_who_looks_does_not_change_the_load_of_a_server(cluster):
    first = told(cluster)["server"]
    for _ in range(5):
        tf.fleet.stats(cluster.target(*TARGET))
    assert told(cluster)["server"] == first


def test_a_server_with_ten_thousand_variables_tells_those_with_the_most_traffic():
    from tensorfleet.cluster.inspection import stats
    from tensorfleet.runtime.resources import VariableStore

    stores = []
    for i in range(10_000):
        store = VariableStore(f"v{i}", tf.float32)
        store.swap(np.zeros(4, np.float32))
        stores.append(store)
    stores[777].count_reads(5, 500)
    listed, count, size, updates = stats.variable_loads(stores)
    assert (len(listed), listed[0].name) == (stats_schema.MAX_VARIABLES, "v777")
    assert (count, size, updates) == (10_000, 160_000, 10_000)


def test_an_accumulator_tells_its_gradients_and_whose_it_dropped(cluster):
    with tf.device("/job:ps/task:0"):
        sums = tf.ConditionalAccumulator(tf.float32, [2], shared_name="sums")
    fresh, stale = (sums.apply_grad([1.0, 2.0], local_step=step) for step in (5, 1))
    advance, take = sums.set_global_step(5), sums.take_grad(2)
    with tf.Session(cluster.target(*TARGET)) as sess:
        for op in (advance, fresh, stale, stale, fresh, fresh):
            sess.run(op)
        sess.run(take)
        sess.run(fresh)  # for the step before, by now
        report = told(cluster)
    entry = named(report["queues"], "sums")
    assert (entry["kind"], entry["enqueued"], entry["dequeued"], entry["size"]) == ("Accumulator", 3, 1, 0)
    (staleness,) = report["staleness"]
    assert (staleness["worker"], staleness["dropped"]) == ("ps/0", 3)


def test_scalars_of_summaries_and_their_step_are_told(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    for step, loss in ((1, 2.0), (2, 1.5)):
        value = tf.Summary.Value(tag="loss", simple_value=loss)
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.close()
    ours = mine()
    assert ours["scalars"] == {"loss": [2, 1.5]}
    assert ours["steps"]["global_step"] == 2


def test_the_global_step_is_read_where_it_lives(cluster):
    step = tf.train.create_global_step()
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run(step.initializer)
        sess.run(step.assign_add(41).op)
        assert told(cluster)["steps"]["global_step"] == 41


def test_a_worker_knows_the_global_step_from_its_hooks(cluster):
    with tf.device("/job:ps/task:0"):
        step = tf.train.create_global_step()
    more = step.assign_add(1)
    hooks = [tf.train.StopAtStepHook(last_step=5)]
    with tf.train.MonitoredTrainingSession(cluster.target(*TARGET), hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(more)
    assert mine()["steps"]["global_step"] in (4, 5)  # read before or after the update of the same step


def test_gradients_that_a_worker_saw_are_told_by_their_staleness():
    for age in (0, 2, 2):
        counters.note_measured_staleness(age)
    (one,) = mine()["staleness"]
    assert one == {"worker": "main/0", "counts": {"0": 1, "2": 2}, "dropped": 0, "scaled": 0}


def test_a_gate_tells_what_became_of_the_gradients_of_each_worker(cluster):
    with tf.device("/job:ps/task:0"):
        step = tf.train.create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        others = tf.placeholder(tf.int64, [])
        opt = tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(0.1), "ssp:1 drop:2", num_workers=1)
        ((gradient, variable),) = opt.compute_gradients(tf.reduce_sum(w))
        with tf.control_dependencies([gradient, tf.assign_add(step, others)]):
            late = tf.identity(gradient)
        train = opt.apply_gradients([(late, variable)], global_step=step)
    with tf.Session(cluster.target(*TARGET)) as sess:
        sess.run(tf.global_variables_initializer())
        for passed in (0, 0, 5):
            sess.run(train, {others: passed})
        (one,) = told(cluster)["staleness"]
    assert sum(one["counts"].values()) + one["dropped"] == 3
    assert one["scaled"] == 0


def test_what_is_told_has_the_fields_of_the_schema_and_is_json(cluster):
    def check(kind, value):
        fields = {f.name for f in stats_schema.fields_of(kind)}
        assert set(value) == fields

    for report in (told(cluster), mine()):
        check(stats_schema.Stats, report)
        check(stats_schema.Steps, report["steps"])
        check(stats_schema.Parts, report["steps"]["parts"])
        check(stats_schema.ServerLoad, report["server"])
        assert json.loads(json.dumps(report, allow_nan=False)) == report
        assert report["version"] == 1 and report["process"]["memory_bytes"] > 0
    assert mine()["pid"] == os.getpid()


def test_the_topic_has_no_options():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown option 'deep'"):
        topics.answer(None, "somebody", "stats", '{"deep": 1}')
