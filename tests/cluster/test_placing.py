"""Which task an operation goes to that names none."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses


@pytest.fixture
def workers(serve):
    spec = free_addresses(worker=3)
    return [serve(spec, "worker", i) for i in range(3)]


def test_variables_that_name_no_task_are_the_same_for_the_sessions_of_all(workers):
    v = tf.Variable(3.0)
    with tf.device("/job:worker/cpu:0"):
        w = tf.get_variable("w", initializer=4.0, use_resource=True)
    with tf.Session(workers[0].target) as sess:
        sess.run(tf.global_variables_initializer())
    for server in workers[1:]:
        with tf.Session(server.target) as sess:
            assert not sess.run(tf.report_uninitialized_variables()).size
            assert sess.run([v, w]) == [3.0, 4.0]


def test_of_all_jobs_the_first_by_name_has_them(serve):
    spec = free_addresses(ps=1, worker=1)
    ps, worker = serve(spec, "ps", 0), serve(spec, "worker", 0)
    v = tf.Variable(3.0)
    with tf.device("/job:ps/task:0"):
        same = tf.Variable(0.0, name="Variable_at_ps")
    with tf.Session(worker.target) as sess:
        sess.run(v.initializer)
    with tf.Session(ps.target) as sess:
        assert sess.run(tf.is_variable_initialized(v)) and not sess.run(tf.is_variable_initialized(same))


def test_a_session_that_sees_its_own_task_only_has_them_there(workers):
    v = tf.Variable(3.0)
    alone = tf.ConfigProto(device_filters=["/job:worker/task:2"])
    with tf.Session(workers[2].target, config=alone) as sess:
        sess.run(v.initializer)
    with tf.Session(workers[0].target) as sess:
        assert not sess.run(tf.is_variable_initialized(v))


def test_queues_are_shared_by_name_only(workers):
    shared, own = (
        tf.FIFOQueue(2, tf.int32, shapes=[[]], shared_name="q"),
        tf.FIFOQueue(2, tf.int32, shapes=[[]]),
    )
    with tf.Session(workers[1].target) as sess:
        sess.run([shared.enqueue(1), own.enqueue(1)])
    with tf.Session(workers[2].target) as sess:
        assert sess.run([shared.size(), own.size()]) == [1, 0]


def test_what_has_no_state_stays_with_the_session(workers):
    x = tf.py_func(lambda: 5, [], tf.int64)
    with tf.Session(workers[1].target) as sess:
        assert sess.run(x + 1) == 6


def test_replicas_of_a_cluster_of_workers_alone_are_in_step(workers):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(0.0)
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 1, 1)
    train = opt.minimize(-w, global_step=step)
    hook = opt.make_session_run_hook(True)
    with tf.train.MonitoredTrainingSession(workers[0].target, hooks=[hook]) as sess:
        for _ in range(2):
            sess.run(train)
    with tf.Session(workers[2].target) as sess:
        assert sess.run(w) >= 1.0 and sess.run(step) >= 1
