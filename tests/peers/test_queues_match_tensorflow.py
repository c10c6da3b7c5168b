"""Random programs on queues and accumulators give what TensorFlow gives, errors included."""

import random
import re

import numpy as np
import pytest

import tensorfleet as tf

KINDS = {
    "fifo": lambda tf, n: tf.FIFOQueue(n, [tf.int64, tf.string], [[], []], name="q"),
    "padding": lambda tf, n: tf.PaddingFIFOQueue(n, [tf.int64, tf.string], [[], []], name="q"),
    "shuffle": lambda tf, n: tf.RandomShuffleQueue(n, 1, [tf.int64, tf.string], [[], []], seed=5, name="q"),
    "priority": lambda tf, n: tf.PriorityQueue(n, [tf.string], [[]], name="q"),
}


class Machine:
    """A queue in one of the libraries, and operations on it."""

    def __init__(self, module, kind, capacity):
        self.tf = module
        with module.Graph().as_default() as graph:
            self.number = module.placeholder(module.int64)
            self.text = module.placeholder(module.string)
            self.count = module.placeholder(module.int32)
            q = KINDS[kind](module, capacity)
            element = [self.number, self.text]
            self.ops = {
                "enqueue": q.enqueue(element),
                "enqueue_many": q.enqueue_many(element),
                "dequeue": q.dequeue(),
                "dequeue_many": q.dequeue_many(self.count),
                "dequeue_up_to": q.dequeue_up_to(self.count),
                "size": q.size(),
                "is_closed": q.is_closed(),
                "close": q.close(),
                "cancel": q.close(cancel_pending_enqueues=True),
            }
        self.session = module.Session(graph=graph)

    def __call__(self, what, numbers=None, count=None):
        feed = {}
        if numbers is not None:
            texts = [str(n).encode() for n in np.atleast_1d(numbers)]
            feed = {self.number: numbers, self.text: texts if np.ndim(numbers) else texts[0]}
        if count is not None:
            feed[self.count] = count
        try:
            got = self.session.run(self.ops[what], feed)
        except (self.tf.errors.OpError, ValueError) as e:
            return type(e).__name__, phrase(str(e))
        return [np.asarray(v).tolist() for v in got] if isinstance(got, list) else np.asarray(got).tolist()


def phrase(text):
    """The line that says what is wrong, without the number in a queue's name."""
    lines = [line for line in text.splitlines() if "queue" in line.lower() and "'" in line]
    lines = [line for line in lines if "is closed" in line or "already closed" in line or "elements" in line]
    # TensorFlow's padding queue calls itself by the name of its parent in some messages.
    return re.sub(r"'_\d+_", "'_N_", lines[0]).replace("PaddingFIFOQueue", "FIFOQueue") if lines else text


def programs(seed):
    """Steps that never wait: there is room, there are elements, or the queue is closed."""
    choose = random.Random(seed)
    next_number = 0
    for _ in range(40):
        what = choose.choice(
            ["enqueue", "enqueue_many", "dequeue", "dequeue_many", "dequeue_up_to", "is_closed"]
        )
        if choose.random() < 0.02:
            what = choose.choice(["close", "cancel"])
        count = choose.randint(1, 3) if "many" in what or "up_to" in what else None
        yield what, count, next_number
        next_number += 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_same_program_gives_the_same_results(tensorflow, kind, seed):
    capacity = 6
    ours, theirs = Machine(tf, kind, capacity), Machine(tensorflow, kind, capacity)
    choose = random.Random(seed)
    for what, count, first in programs(seed):
        size, closed = theirs("size"), theirs("is_closed")
        assert (ours("size"), ours("is_closed")) == (size, closed)
        left = 1 if kind == "shuffle" else 0
        numbers = None
        if what.startswith("enqueue"):
            if size + (count or 1) > capacity and not closed:
                continue
            values = [choose.randint(0, 9) if kind == "priority" else first + i for i in range(count or 1)]
            if kind == "priority":  # which of two with equal priority goes first, TensorFlow does not say
                values = [v * 1000 + first + i for i, v in enumerate(values)]
            numbers = np.array(values) if count else values[0]
            count = None
        elif what.startswith("dequeue") and size - left < (count or 1) and not closed:
            continue
        assert ours(what, numbers, count) == theirs(what, numbers, count)


@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
@pytest.mark.parametrize("seed", range(3))
def test_accumulators_give_the_same(tensorflow, reduction, seed):
    results = []
    for module in (tf, tensorflow):
        choose = np.random.RandomState(seed)
        with module.Graph().as_default() as graph:
            dense = module.ConditionalAccumulator(module.float32, shape=[3], reduction_type=reduction)
            rows = module.SparseConditionalAccumulator(module.float32, shape=[5, 2], reduction_type=reduction)
            step = module.placeholder(module.int64, [])
            x, i, v = (module.placeholder(t) for t in (module.float32, module.int64, module.float32))
            add, add_rows = dense.apply_grad(x, step), rows.apply_grad(i, v, local_step=step)
            counts = [dense.num_accumulated(), rows.num_accumulated()]
            take, take_rows = dense.take_grad(1), rows.take_grad(1)
            seen = []
            with module.Session(graph=graph) as sess:
                for n in range(30):
                    local = n // 4 - choose.randint(0, 2)
                    sess.run(add, {x: choose.randn(3), step: local})
                    some = np.sort(choose.permutation(5)[: choose.randint(1, 4)])
                    sess.run(add_rows, {i: some, v: choose.randn(len(some), 2), step: local})
                    counted = sess.run(counts)
                    seen.append(np.array(counted, np.float32))
                    if n % 4 == 3 and all(counted):
                        seen += [sess.run(take), *map(np.asarray, sess.run(take_rows))]
        results.append(seen)
    ours, theirs = results
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
