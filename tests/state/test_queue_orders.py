"""The order of priority queues, the padding of padding queues, and queues on a server, under random programs."""

import heapq
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape
from tensorfleet.state.queue_orders import HeapQueue, PaddingQueue
from tensorfleet.state.queues import PutAttempt, TakeAttempt

PATIENCE = 60


def taken_of(queue, attempt):
    return [int(arrays[0][row]) for arrays, row in queue.elements_of(attempt.taken)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.lists(st.integers(-5, 5), min_size=1, max_size=4), st.integers(1, 4)), max_size=30)
)
def test_a_priority_queue_gives_the_smallest_of_those_inside(events):
    """A list is put in; a number is how many are taken, if there are so many."""
    queue = HeapQueue("q", -1, [dtypes.int64], [TensorShape(())])
    model: list[int] = []
    for event in events:
        if isinstance(event, list):
            assert queue.submit(PutAttempt(queue.rows([np.array(event)])))
            for value in event:
                heapq.heappush(model, value)
        elif event <= len(model):
            attempt = TakeAttempt(event)
            assert queue.submit(attempt)
            assert taken_of(queue, attempt) == [heapq.heappop(model) for _ in range(event)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8), st.integers(1, 5))
def test_what_a_withdrawn_batch_gives_back_has_its_priority_still(values, more):
    queue = HeapQueue("q", -1, [dtypes.int64], [TensorShape(())])
    queue.submit(PutAttempt(queue.rows([np.array(values)])))
    waiting = TakeAttempt(len(values) + more)
    assert not queue.submit(waiting) and queue.withdraw(waiting)
    everything = TakeAttempt(len(values))
    assert queue.submit(everything) and taken_of(queue, everything) == sorted(values)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6), st.integers(0, 5))
def test_a_padding_queue_pads_to_the_largest_and_changes_nothing_else(shapes, first):
    queue = PaddingQueue("q", -1, [dtypes.int64], [TensorShape([None, None])])
    whole = [np.arange(1, a * b + 1).reshape(a, b) for a, b in shapes]
    for value in whole:
        assert queue.submit(PutAttempt([queue.element([value])]))
    for count in filter(None, (min(first, len(whole)), len(whole) - min(first, len(whole)))):
        attempt = TakeAttempt(count)
        assert queue.submit(attempt)
        (batch,) = queue.batch(attempt.taken)
        here, whole = whole[:count], whole[count:]
        assert list(batch.shape) == [count, *np.max([v.shape for v in here], axis=0).tolist()]
        for row, value in zip(batch, here, strict=True):
            padded = np.zeros_like(row)
            padded[: value.shape[0], : value.shape[1]] = value
            assert row.tolist() == padded.tolist()


# -- on a server -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    result = tf.train.Server.create_local_server()
    yield result
    result.stop()


KINDS = {
    "fifo": lambda: tf.FIFOQueue(4, [tf.int64], [[]], shared_name="q"),
    "padding": lambda: tf.PaddingFIFOQueue(4, [tf.int64], [[]], shared_name="q"),
    "shuffle": lambda: tf.RandomShuffleQueue(4, 1, [tf.int64], [[]], seed=3, shared_name="q"),
    "priority": lambda: tf.PriorityQueue(4, [tf.int64], [[]], shared_name="q"),
}
EVENTS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["take", "up_to", "give up"]), st.integers(1, 4)),
)


class Client(threading.Thread):
    """One client of the server who does one thing, and perhaps is stopped while it waits."""

    def __init__(self, server, graph, op, feed):
        super().__init__(daemon=True)
        self.session = tf.Session(server.target, graph=graph)
        self._op, self._feed = op, feed
        self.found = self.error = None
        self.start()

    def run(self):
        try:
            self.found = self.session.run(self._op, self._feed)
        except tf.errors.OpError as e:
            self.error = e


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=3, max_size=12))
def test_clients_of_a_server_lose_nothing_and_double_nothing(server, kind, events):
    """Takers are stopped by the end of their session; at the end the queue is closed, and everybody has ended."""
    tf.Session.reset(server.target)
    with tf.Graph().as_default() as graph:
        queue = KINDS[kind]()
        numbers, count = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [])
        put = queue.enqueue_many([numbers] * len(queue.dtypes))
        ops = {"take": queue.dequeue_many(count), "up_to": queue.dequeue_up_to(count)}
        close, size, rest = queue.close(), queue.size(), queue.dequeue_up_to(count)
    clients, entered, gone = [], 0, []
    for what, n in events:
        if what == "put":
            feed = {numbers: np.arange(entered, entered + n)}
            clients.append(Client(server, graph, put, feed))
            entered += n
        elif what == "give up":
            waiting = [c for c in clients if c.is_alive() and c not in gone and c._op is not put]
            for client in waiting[:1]:
                gone.append(client)
                client.session.close()
        else:
            clients.append(Client(server, graph, ops[what], {count: n}))
    with tf.Session(server.target, graph=graph) as session:
        patient = tf.RunOptions(timeout_in_ms=PATIENCE * 1000)
        closing = Client(server, graph, close, {})
        left = []
        try:
            while True:
                result = session.run(rest, {count: 1}, options=patient)
                left += np.ravel(result[0] if isinstance(result, list) else result).tolist()
        except tf.errors.OutOfRangeError:
            pass
        for client in [*clients, closing]:
            client.join(PATIENCE)
            assert not client.is_alive()
        assert session.run(size) == 0
    taken = [c.found[0] if isinstance(c.found, list) else c.found for c in clients if c._op is not put]
    seen = [int(v) for t in taken if t is not None for v in t] + left
    refused = [v for c in clients if c._op is put and c.error for v in c._feed[numbers].tolist()]
    assert len(seen) == len(set(seen)) and set(seen) <= set(range(entered))
    assert set(range(entered)) - set(seen) <= set(refused)
    for client in clients:
        if client not in gone:
            client.session.close()
