"""Queues and accumulators that live on one task and are used from others."""

import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tests.support.waiting import together, until


@pytest.fixture
def servers(serve):
    spec = free_addresses(ps=1, worker=2)
    return [serve(spec, job, i) for job, n in (("ps", 1), ("worker", 2)) for i in range(n)]


def test_a_parameter_server_ends_when_all_workers_are_done(servers):
    """The usual form: each worker puts one token into a queue on the ps, which waits for all of them."""
    ps, *workers = servers
    tokens = []

    def done_queue():
        with tf.device("/job:ps/task:0"):
            return tf.FIFOQueue(2, tf.int32, shared_name="done_queue0")

    def worker(i):
        with tf.Graph().as_default():
            done = done_queue().enqueue(i)
            with tf.Session(workers[i].target) as sess:
                sess.run(done)

    def serve():
        with tf.Graph().as_default():
            token = done_queue().dequeue()
            with tf.Session(ps.target) as sess:
                tokens.extend(sess.run(token) for _ in workers)

    together(serve, lambda: worker(0), lambda: worker(1))
    assert sorted(tokens) == [0, 1]


def test_a_queue_that_asks_for_no_device_is_where_its_first_user_asks_to_be(servers):
    """So that the sessions of several workers mean the same queue, each with its own task as the default."""
    q = tf.FIFOQueue(2, tf.int32, shapes=[[]], shared_name="q")
    enqueue = q.enqueue(7)
    with tf.device("/job:worker/task:1"):
        token = q.dequeue()
    ask = tf.ConfigProto(operation_timeout_in_ms=60_000)
    with (
        tf.Session(servers[1].target, config=ask) as first,
        tf.Session(servers[2].target, config=ask) as second,
    ):
        first.run(enqueue)
        assert second.run(q.size()) == 1
        assert first.run(token) == 7


def test_a_batch_cancelled_on_another_task_gives_its_elements_back(servers):
    with tf.device("/job:ps/task:0"):
        q = tf.FIFOQueue(9, tf.int32, shapes=[[]], shared_name="q")
    enqueue, five, three, size = (
        q.enqueue_many([[1, 2, 3]]),
        q.dequeue_many(5),
        q.dequeue_many(3),
        q.size(),
    )
    first, second = tf.Session(servers[1].target), tf.Session(servers[2].target)
    second.run(enqueue)
    raised = []

    def take():
        try:
            first.run(five)
        except tf.errors.CancelledError as e:
            raised.append(e)

    def close():
        until(lambda: second.run(size) == 0)
        first.close()

    together(take, close)
    assert len(raised) == 1
    until(lambda: second.run(size) == 3)
    assert second.run(three).tolist() == [1, 2, 3]
    second.close()


def test_gradients_of_several_workers_meet_in_an_accumulator(servers):
    got = []

    def worker(i, value):
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                acc = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="acc")
            with tf.device(f"/job:worker/task:{i}"):
                add = acc.apply_grad(tf.constant(value))
            take = acc.take_grad(2)
            with tf.Session(servers[1 + i].target) as sess:
                sess.run(add)
                if i == 0:
                    got.append(sess.run(take))

    together(lambda: worker(0, 1.0), lambda: worker(1, 3.0))
    assert got == [2.0]


def test_running_the_operation_of_a_queue_makes_it_on_its_task(servers):
    def queue(kind):
        with tf.device("/job:ps/task:0"):
            return tf.FIFOQueue(2, kind, shapes=[[]], shared_name="made")

    with tf.Session(servers[1].target) as sess:
        assert sess.run(queue(tf.float32).queue_ref.op) is None
    with tf.Session(servers[2].target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="has component types float"):
            sess.run(queue(tf.int32).size())
