"""Steps that a task repeats by itself: a queue runner whose queue and input live there asks it once in a while."""

import pytest

import tensorfleet as tf
from tensorfleet.cluster.worker.worker import Worker
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import in_background, until


@pytest.fixture
def servers(serve):
    spec = free_addresses(ps=1, worker=1)
    return [serve(spec, job, 0) for job in ("ps", "worker")]


@pytest.fixture
def asked(monkeypatch):
    """Which stages a task was asked to repeat."""
    found = []
    run_again = Worker.run_again

    def noting(self, handle, number, stage, *args):
        found.append(stage)
        return run_again(self, handle, number, stage, *args)

    monkeypatch.setattr(Worker, "run_again", noting)
    return found


def counted(limit, capacity):
    """A queue on the ps of the numbers below a limit, and its runner."""
    with tf.device("/job:ps/task:0"):
        count = tf.Variable(0, name="count")
        queue = tf.FIFOQueue(capacity, tf.int32, shapes=[[]])
        runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.count_up_to(count, limit))])
    tf.train.add_queue_runner(runner)
    return queue


def test_all_elements_come_once_and_then_the_end(servers, asked):
    queue = counted(50, capacity=4)
    taken = queue.dequeue()
    with tf.Session(servers[1].target) as sess:
        sess.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners(sess)
        assert [sess.run(taken) for _ in range(50)] == list(range(50))
        with pytest.raises(tf.errors.OutOfRangeError, match="closed"):
            sess.run(taken)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert 1 <= len(asked) < 50


def test_a_coordinator_that_stops_ends_the_repeating(servers, asked):
    queue = counted(1 << 30, capacity=2)
    taken = queue.dequeue()
    coord = tf.train.Coordinator()
    with tf.Session(servers[1].target) as sess:
        sess.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners(sess, coord)
        assert [sess.run(taken) for _ in range(3)] == [0, 1, 2]
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=60)
        assert asked


def test_the_end_of_a_session_ends_the_repeating(servers, asked):
    queue = counted(1 << 30, capacity=2)
    full = tf.equal(queue.size(), 2)
    with tf.Session(servers[1].target) as sess:
        sess.run(tf.global_variables_initializer())
        (thread,) = tf.train.start_queue_runners(sess)
        until(lambda: sess.run(full))
    thread.join(60)
    assert not thread.is_alive()
    assert asked


def test_a_failure_while_repeating_is_the_failure_of_the_call(servers, asked):
    with tf.device("/job:ps/task:0"):
        left = tf.Variable(3, name="left")
        queue = tf.FIFOQueue(100, tf.int32, shapes=[[]])
        with tf.control_dependencies([tf.assign_sub(left, 1)]):
            quotient = tf.div(6, left.read_value(), name="quotient")
        put = queue.enqueue(quotient)
    with tf.Session(servers[1].target) as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)division by zero.*quotient"):
            sess._make_repeater(put)()
        assert sess.run(queue.size()) == 2
    assert len(asked) == 1


def test_what_does_not_wait_runs_once_for_each_call(servers, asked):
    with tf.device("/job:ps/task:0"):
        count = tf.Variable(0)
    more = tf.assign_add(count, 1)
    with tf.Session(servers[1].target) as sess:
        sess.run(tf.global_variables_initializer())
        again = sess._make_repeater(more.op)
        for _ in range(3):
            again()
        assert sess.run(count) == 3


def test_a_step_with_a_time_limit_is_not_repeated(servers, asked):
    queue = counted(1 << 30, capacity=1)
    with tf.Session(servers[1].target, config=tf.ConfigProto(operation_timeout_in_ms=300)) as sess:
        sess.run(tf.global_variables_initializer())
        put = sess._make_repeater(queue.enqueue(1))
        put()
        with pytest.raises(tf.errors.DeadlineExceededError):
            put()
    assert not asked


def test_a_client_that_goes_ends_the_repeating(servers, asked):
    """As its process does when it is killed: the connections close, nothing is said."""
    queue = counted(1 << 30, capacity=2)
    sess = tf.Session(servers[1].target)
    sess.run(tf.global_variables_initializer())
    again = sess._make_repeater(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0].enqueue_ops[0])
    filling = in_background(again)
    until(lambda: sess.run(queue.size()) == 2)
    clients = {s.client for s in servers[0].worker._sessions.values()}
    for client in clients:
        servers[0].worker.client_gone(client)
    with pytest.raises(tf.errors.OpError):
        filling.result(60)
    assert asked
