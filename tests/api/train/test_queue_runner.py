"""Threads that keep queues filled."""

import pytest

import tensorfleet as tf


def counting(limit, name="queue"):
    """A queue and a runner whose input ends after `limit` elements."""
    queue = tf.FIFOQueue(limit + 10, tf.int64, shapes=[[]], name=name)
    counter = tf.Variable(0, dtype=tf.int64, collections=[])
    step = tf.count_up_to(counter, limit)
    return queue, tf.train.QueueRunner(queue, [queue.enqueue(step)]), counter.initializer


def test_input_that_ends_closes_the_queue(session):
    queue, runner, init = counting(3)
    session.run(init)
    for t in runner.create_threads(session, start=True):
        t.join()
    assert runner.exceptions_raised == []
    assert session.run(queue.is_closed())
    assert session.run(queue.dequeue_up_to(10)).tolist() == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        session.run(queue.dequeue())


def test_threads_have_names_and_are_made_once_while_they_run(session):
    queue = tf.FIFOQueue(1, tf.float32, name="q")
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    tf.train.add_queue_runner(runner)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord=coord)
    assert [t.name for t in threads] == [
        "QueueRunnerThread-q-q_enqueue",
        "QueueRunnerThread-q-close_on_stop",
    ]
    assert all(t.daemon for t in threads)
    assert runner.create_threads(session, coord) == []
    assert session.run(queue.dequeue()) == 1.0
    coord.request_stop()
    coord.join(threads)
    assert runner.exceptions_raised == []
    assert len(runner.create_threads(session, tf.train.Coordinator())) == 2


def test_without_a_coordinator_exceptions_are_kept(session):
    queue = tf.FIFOQueue(10, tf.float32)
    missing = tf.placeholder(tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(missing)] * 2)
    for t in runner.create_threads(session, start=True):
        t.join()
    assert [type(e) for e in runner.exceptions_raised] == [tf.errors.InvalidArgumentError] * 2
    assert not session.run(queue.is_closed())


def test_a_failure_stops_the_coordinator(session):
    queue = tf.FIFOQueue(10, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.placeholder(tf.float32))])
    coord = tf.train.Coordinator()
    threads = runner.create_threads(session, coord, start=True)
    with pytest.raises(tf.errors.InvalidArgumentError):
        coord.join(threads)
    assert session.run(queue.is_closed())


def test_stopping_wakes_a_runner_that_waits_for_room(session):
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(
        queue, [queue.enqueue(1.0)], queue_closed_exception_types=(tf.errors.CancelledError,)
    )
    coord = tf.train.Coordinator()
    threads = runner.create_threads(session, coord, start=True)
    assert session.run(queue.dequeue()) == 1.0
    coord.request_stop()
    coord.join(threads)


def test_a_session_that_is_closed_stops_its_runners_without_an_error():
    queue = tf.FIFOQueue(1, tf.float32, shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    coord = tf.train.Coordinator()
    with tf.Session(tf.train.Server.create_local_server().target) as sess:
        threads = runner.create_threads(sess, coord, start=True)
        assert sess.run(queue.dequeue()) == 1.0
    assert coord.wait_for_stop(30)
    coord.join(threads)


def test_a_runner_of_several_operations_closes_the_queue_with_the_last(session):
    queue = tf.FIFOQueue(100, tf.int64, shapes=[[]])
    counters = [tf.Variable(0, dtype=tf.int64) for _ in range(3)]
    ends = [5, 1, 9]
    ops = [queue.enqueue(tf.count_up_to(c, n)) for c, n in zip(counters, ends, strict=True)]
    runner = tf.train.QueueRunner(queue, ops)
    session.run(tf.global_variables_initializer())
    for t in runner.create_threads(session, start=True):
        t.join()
    assert session.run(queue.size()) == 15
    assert session.run(queue.is_closed())


def test_arguments_are_checked():
    queue = tf.FIFOQueue(10, tf.float32)
    op = queue.enqueue(1.0)
    for args in ((), (queue,), (queue, []), (None, [op])):
        with pytest.raises(ValueError, match="Must provide queue and enqueue_ops"):
            tf.train.QueueRunner(*args)
    runner = tf.train.QueueRunner(queue, [op])
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.train.QueueRunner(queue, [op], queue_runner_def=runner.to_proto())
    with pytest.raises(TypeError, match="must be a tuple of tf.error types"):
        tf.train.QueueRunner(queue, [op], queue_closed_exception_types=tf.errors.OutOfRangeError)
    with pytest.raises(ValueError, match="No default session"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match="must be a `tf.Session` object"):
        tf.train.start_queue_runners(sess=1)
    with tf.Session() as sess:
        assert tf.train.start_queue_runners(sess) == []


def test_proto_and_back():
    queue = tf.FIFOQueue(10, tf.float32, name="queue")
    runner = tf.train.QueueRunner(
        queue,
        [queue.enqueue(1.0, name="add")],
        queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError),
    )
    proto = runner.to_proto()
    assert proto.queue_name == "queue"
    assert list(proto.enqueue_op_name) == ["add"]
    assert (proto.close_op_name, proto.cancel_op_name) == ("queue_Close", "queue_Close_1")
    assert list(proto.queue_closed_exception_types) == [tf.errors.OUT_OF_RANGE, tf.errors.CANCELLED]
    again = tf.train.QueueRunner.from_proto(proto)
    assert again.name == "queue"
    assert again.enqueue_ops == runner.enqueue_ops
    assert again.close_op is runner.close_op
    assert again.cancel_op is runner.cancel_op
    assert again.queue_closed_exception_types == runner.queue_closed_exception_types
    assert runner.to_proto("elsewhere") is None


def test_runners_travel_with_metagraphs_into_scopes():
    queue, runner, init = counting(3, "numbers")
    tf.train.add_queue_runner(runner)
    tf.add_to_collection("out", queue.dequeue())
    tf.add_to_collection("start", init)
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(meta, import_scope="inner")
        (again,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert again.name == "inner/numbers"
        sess.run(tf.get_collection("start"))
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        (out,) = tf.get_collection("out")
        assert [sess.run(out) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(out)
        coord.request_stop()
        coord.join(threads)


def test_an_operation_given_by_name_that_is_not_there_is_reported_by_its_thread(session):
    runner = tf.train.QueueRunner(tf.FIFOQueue(2, tf.float32), ["not there"])
    (thread,) = runner.create_threads(session, start=True)
    assert thread.name.endswith("-not there")
    thread.join()
    assert "Operation not in the graph" in str(runner.exceptions_raised[0])
