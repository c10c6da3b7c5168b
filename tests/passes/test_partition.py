"""Stages of a step: what each waits for, and that nothing is done twice."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
LIMIT = tf.RunOptions(timeout_in_ms=60_000)


@pytest.fixture(scope="module")
def servers():
    spec = free_addresses(ps=1, worker=1)
    items = [tf.train.Server(spec, job, 0) for job in ("ps", "worker")]
    yield items
    for server in items:
        server.stop()


@pytest.fixture(params=[0, 1], ids=["session on the ps", "session on the worker"])
def session(servers, request):
    with tf.Session(servers[request.param].target) as result:
        yield result
    for server in servers:
        tf.Session.reset(server.target)


def updated(start=0.0):
    """A variable of the ps, and its update by what the worker makes."""
    with tf.device(WORKER):
        x = tf.random_uniform([3], 1.0, 1.0)
    with tf.device(PS):
        m = tf.get_variable("m", initializer=np.full(3, start, np.float32), use_resource=False)
        return m, m.assign_sub(x)


@pytest.mark.parametrize("kind", ["table", "queue", "accumulator"])
def test_a_handle_that_is_made_after_an_update_waits_for_it_without_doing_it_again(session, kind):
    m, up = updated()
    with tf.device(PS), tf.control_dependencies([up]):
        if kind == "table":
            size = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1).size()
        elif kind == "queue":
            size = tf.FIFOQueue(10, tf.float32, [3]).size()
        else:
            size = tf.ConditionalAccumulator(tf.float32, [3]).num_accumulated()
    with tf.device(WORKER):
        read = tf.identity(size) + 1
    session.run(m.initializer)
    assert session.run([size, read], options=LIMIT) == [0, 1]
    assert session.run(m).tolist() == [-1.0] * 3
    assert session.run([size, read, up], options=LIMIT)[1] == 1
    assert session.run(m).tolist() == [-2.0] * 3


def test_a_read_that_others_wait_for_does_not_repeat_what_it_waited_for(session):
    m, up = updated()
    with tf.device(PS):
        with tf.control_dependencies([up]):
            read = m.read_value()
    with tf.device(WORKER):
        far = tf.reduce_sum(read) * 2.0
    with tf.device(PS), tf.control_dependencies([read, far.op]):
        late = tf.identity(far) + 1.0
    session.run(m.initializer)
    assert session.run(late, options=LIMIT) == -5.0
    assert session.run(m).tolist() == [-1.0] * 3


def test_a_constant_may_be_used_by_one_operation_and_waited_for_by_another(session):
    with tf.device(PS):
        c = tf.constant([1.0, 2.0])
    with tf.device(WORKER):
        far = tf.placeholder_with_default([3.0, 4.0], [2]) * 2.0
    with tf.device(PS):
        with tf.control_dependencies([far]):
            used = c + 1.0
        with tf.control_dependencies([c, far]):
            waiting = tf.identity(far) + 1.0
    assert [v.tolist() for v in session.run([used, waiting], options=LIMIT)] == [[2, 3], [7, 9]]


@pytest.mark.parametrize("rows", [3, 1 << 15])
def test_an_update_of_what_an_update_gave_keeps_all_that_happened_between(session, rows):
    with tf.device(PS):
        v = tf.get_variable("v", initializer=np.zeros([rows, 1], np.float32), use_resource=False)
        first = tf.scatter_add(v, [0], [[1.0]])
    with tf.device(WORKER), tf.control_dependencies([first]):
        far = tf.placeholder_with_default([[10.0]], [1, 1]) + 0.0
    with tf.device(PS):
        with tf.control_dependencies([far]):
            between = tf.assign_add(v, tf.ones([rows, 1]))
        with tf.device(WORKER), tf.control_dependencies([between]):
            later = far * 2.0
        last = tf.scatter_sub(first, [1], later)
    session.run(v.initializer)
    session.run(last, options=LIMIT)
    assert session.run(v)[:3].tolist() == [[2.0], [-19.0], [1.0]]


def test_synchronous_training_runs_with_updates_of_batch_normalization(servers):
    x = np.random.RandomState(0).normal(size=[16, 4]).astype(np.float32)
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=WORKER)):
        step = tf.train.get_or_create_global_step()
        hidden = tf.layers.batch_normalization(tf.layers.dense(tf.constant(x), 8), training=True)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - x[:, :1]))
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1, total_num_replicas=1
        )
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.minimize(loss, global_step=step)
    hook = optimizer.make_session_run_hook(is_chief=True)
    with tf.train.MonitoredTrainingSession(servers[1].target, hooks=[hook]) as session:
        losses = [session.run([train, loss])[1] for _ in range(20)]
        mean = session.run("batch_normalization/moving_mean:0")
    for server in servers:
        tf.Session.reset(server.target)
    assert losses[-1] < losses[0] / 2
    assert np.abs(mean).max() > 0


@pytest.mark.parametrize("wanted", [True, False])
def test_a_branch_may_wait_for_a_queue(session, wanted):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.int32, shapes=[()], shared_name="in_branch")
        put = queue.enqueue(5)
        total = tf.Variable(0, name="total")
        choice = tf.placeholder(tf.bool, [])

        def take():
            with tf.control_dependencies([tf.assign_add(total, queue.dequeue())]):
                return tf.constant(1)

        result = tf.cond(choice, take, lambda: tf.constant(2))
    session.run(total.initializer)
    session.run(put)
    assert session.run([result, total], {choice: wanted}, options=LIMIT) == ([1, 5] if wanted else [2, 0])
    assert session.run(queue.size()) == (0 if wanted else 1)
