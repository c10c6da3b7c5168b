"""Workers that add up their gradients, each with a graph and a session of its own."""

import threading
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.control import collectives
from tensorfleet.testing.cluster import free_addresses
from tests.support.tasks import Tasks, output

PROGRAM = Path(__file__).parent / "programs" / "worker.py"

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


@pytest.fixture
def cluster(serve):
    """Two workers: their servers' targets, and a strategy for each."""
    spec = free_addresses(worker=2)
    targets = [serve(spec, "worker", i).target for i in range(2)]
    strategies = []
    for i in range(2):
        strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
        strategy.configure(cluster_spec=spec, task_type="worker", task_id=i)
        strategies.append(strategy)
    return targets, strategies


def each(work):
    """Calls `work(0)` and `work(1)` at once; gives what they return."""
    result, failures = [None, None], []

    def call(i):
        try:
            result[i] = work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]
    return result


def test_workers_start_alike_and_train_as_one(cluster):
    targets, strategies = cluster
    x = np.linspace(-1, 1, 16).reshape(8, 2).astype(np.float32)

    def loss(batch, w, table):
        rows = tf.gather(table, tf.cast(tf.abs(batch[:, 0]) * 2.9, tf.int32))
        return tf.reduce_sum(tf.square(tf.matmul(batch, w) + rows - 0.2))

    def work(i):
        strategy = strategies[i]
        with tf.Graph().as_default():
            with strategy.scope():
                w = tf.get_variable("w", initializer=tf.random_normal([2, 1], seed=i))
                table = tf.get_variable("table", initializer=np.ones([3, 1], np.float32))
                step = tf.train.get_or_create_global_step()
                batches = strategy.make_dataset_iterator(
                    tf.data.Dataset.from_tensor_slices(x).repeat().batch(8)
                )
            assert strategy.num_replicas_in_sync == 2
            first = tf.identity(w)
            optimizer = tf.train.AdamOptimizer(0.1)
            op = strategy.run(
                lambda b: optimizer.minimize(loss(b, w, table), global_step=step), args=(batches.get_next(),)
            )
            with tf.Session(targets[i]) as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(batches.initialize())
                start = sess.run(first)
                for _ in range(3):
                    sess.run(op)
                return start, *sess.run([w, table, step])

    one, two = each(work)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    with tf.Graph().as_default(), tf.Session() as sess:
        w, table = tf.Variable(one[0]), tf.Variable(np.ones([3, 1], np.float32))
        op = tf.train.AdamOptimizer(0.1).minimize(loss(tf.constant(x), w, table))
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(op)
        np.testing.assert_allclose(sess.run(w), one[1], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(sess.run(table), one[2], rtol=1e-5, atol=1e-6)
    assert one[3] == 3


def test_values_are_reduced_over_all_workers(cluster):
    targets, strategies = cluster

    def work(i):
        strategy = strategies[i]
        with tf.Graph().as_default(), strategy.scope():
            number = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
            mine = strategy.run(lambda: tf.constant([1.0, 5.0]) * (i + 1))
            wanted = [
                strategy.reduce(SUM, mine),
                strategy.reduce(MEAN, mine),
                strategy.reduce(MEAN, mine, axis=0),
            ]
            with tf.Session(targets[i]) as sess:
                return int(sess.run(number)), *[sess.run(v).tolist() for v in wanted]

    one, two = each(work)
    assert (one[0], two[0]) == (0, 1)
    assert one[1:] == two[1:] == ([3.0, 15.0], [1.5, 7.5], 4.5)


def test_a_worker_that_has_ended_is_an_error_for_the_other(cluster, monkeypatch):
    targets, strategies = cluster
    first_waits = threading.Event()
    arrive = collectives.Meeting.arrive
    came = []

    def noted(meeting, arrival, combine):
        arrive(meeting, arrival, combine)
        came.append(arrival.rank)
        if came.count(0) == 2:
            first_waits.set()

    monkeypatch.setattr(collectives.Meeting, "arrive", noted)

    def work(i):
        with tf.Graph().as_default(), strategies[i].scope():
            total = strategies[i].reduce(SUM, strategies[i].run(lambda: tf.constant(1.0)))
            with tf.Session(targets[i]) as sess:
                assert sess.run(total) == 2.0
                if i == 1:
                    assert first_waits.wait(60)
                    return
                with pytest.raises(
                    tf.errors.UnavailableError, match="Worker 1 of 2 .* has ended or was lost"
                ):
                    sess.run(total)

    each(work)


def test_a_worker_that_does_not_come_is_not_waited_for_without_end(cluster, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_COLLECTIVE_SECONDS", "0.5")
    targets, strategies = cluster
    with strategies[1].scope():
        total = strategies[1].reduce(SUM, strategies[1].run(lambda: tf.constant(1.0)))
    with (
        tf.Session(targets[1]) as sess,
        pytest.raises(tf.errors.DeadlineExceededError, match="Worker 1 has waited .* for worker 0 of 2"),
    ):
        sess.run(total)


def test_values_of_different_shapes_are_refused(cluster):
    targets, strategies = cluster

    def work(i):
        with tf.Graph().as_default(), strategies[i].scope():
            total = strategies[i].reduce(SUM, strategies[i].run(lambda: tf.ones([i + 1])))
            with (
                tf.Session(targets[i]) as sess,
                pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"),
            ):
                sess.run(total)

    each(work)


def test_without_a_cluster_it_is_a_mirrored_strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    wanted = tf.distribute.experimental.CollectiveCommunication.RING
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(wanted)
    assert strategy.num_replicas_in_sync == 1 and strategy.extended.should_checkpoint
    with strategy.scope():
        v = tf.get_variable("v", initializer=1.0)
    op = strategy.run(lambda: tf.train.GradientDescentOptimizer(0.5).minimize(v * 2.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(op)
        assert sess.run(v) == 0.0


def test_the_first_worker_saves_and_sessions_see_it_and_themselves(cluster):
    _, strategies = cluster
    assert [s.extended.should_checkpoint for s in strategies] == [True, False]
    assert all(s.extended.experimental_should_init for s in strategies)
    config = strategies[1].update_config_proto(tf.ConfigProto(device_filters=["/job:ps"]))
    assert list(config.device_filters) == ["/job:worker/task:0", "/job:worker/task:1"]


def test_parameter_servers_have_no_place_in_it(monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG", '{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "ps", "index": 0}}'
    )
    with pytest.raises(ValueError, match="use ParameterServerStrategy"):
        tf.distribute.experimental.MultiWorkerMirroredStrategy()


@pytest.mark.parametrize("dies", [0, 1])
def test_a_worker_that_is_killed_is_an_error_for_the_other(dies, tmp_path):
    spec = free_addresses(worker=2)
    with Tasks() as tasks:
        started = [tasks.start(PROGRAM, dies, tmp_path, task=(spec, "worker", i)) for i in range(2)]
        assert "told" in output(started[1 - dies])


def test_monitored_sessions_of_all_workers_initialize_their_own_copies(cluster, tmp_path):
    targets, strategies = cluster

    def work(i):
        strategy = strategies[i]
        with tf.Graph().as_default():
            with strategy.scope():
                v = tf.get_variable("v", initializer=tf.random_normal([], seed=i))
                step = tf.train.get_or_create_global_step()
            op = strategy.run(
                lambda: tf.train.GradientDescentOptimizer(0.5).minimize(v * 1.0, global_step=step)
            )
            hooks = [tf.train.StopAtStepHook(last_step=3)]
            with tf.train.MonitoredTrainingSession(
                targets[i], i == 0, str(tmp_path), hooks=hooks, log_step_count_steps=None
            ) as sess:
                while not sess.should_stop():
                    _, value = sess.run([op, v])
                return float(value)

    each(work)
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("global_step") == 3
