"""Threads that really wait for queues: who gets what, and what ends the waiting, as in TensorFlow."""

import threading
import time

import numpy as np
import pytest

import tensorfleet as tf

PATIENCE = 60


KINDS = {
    "fifo": lambda tf, n: tf.FIFOQueue(n, [tf.int64], [[]]),
    "padding": lambda tf, n: tf.PaddingFIFOQueue(n, [tf.int64], [[]]),
    "shuffle": lambda tf, n: tf.RandomShuffleQueue(n, 2, [tf.int64], [[]], seed=3),
    "priority": lambda tf, n: tf.PriorityQueue(n, [tf.int64], [[]]),
}


class Line:
    """A queue of numbers in one of the libraries, and a session in which several threads use it."""

    def __init__(self, module, kind="fifo", capacity=10):
        self.tf = module
        with module.Graph().as_default() as graph:
            queue = KINDS[kind](module, capacity)
            self.numbers, self.count = module.placeholder(module.int64), module.placeholder(module.int32)
            names = module.FIFOQueue(5, [module.string], [[]])
            self.name = module.placeholder(module.string)
            self.ops = {
                "put": queue.enqueue_many([self.numbers] * len(queue.dtypes)),
                "take": queue.dequeue(),
                "many": queue.dequeue_many(self.count),
                "up_to": queue.dequeue_up_to(self.count),
                "size": queue.size(),
                "close": queue.close(),
                "cancel": queue.close(cancel_pending_enqueues=True),
                "add name": names.enqueue([self.name]),
                "read": module.TextLineReader().read(names)[1],
            }
        self.session = module.Session(graph=graph)

    def __call__(self, what, value=None, timeout=None):
        feed = {}
        if value is not None:
            feed = {self.numbers if what == "put" else self.name if what == "add name" else self.count: value}
        options = self.tf.RunOptions(timeout_in_ms=timeout) if timeout else None
        try:
            result = self.session.run(self.ops[what], feed, options=options)
        except self.tf.errors.OpError as e:
            return type(e).__name__
        return None if result is None else np.asarray(result).tolist()

    def behind(self, *what, **options):
        """Does it in a thread; `.join()` gives what came of it."""
        return Behind(lambda: self(*what, **options))

    def until_size(self, size):
        """Waits until the others have brought the queue to this size."""
        end = time.monotonic() + PATIENCE
        while self("size") != size:
            assert time.monotonic() < end, f"the queue never had {size} elements"
            time.sleep(0.01)


class Behind(threading.Thread):
    def __init__(self, function):
        super().__init__(daemon=True)
        self._function = function
        self._found = None
        self.start()

    def run(self):
        self._found = self._function()

    def result(self):
        self.join(PATIENCE)
        assert not self.is_alive()
        return self._found


def closing_gives_back_what_a_batch_had(line):
    waiting = line.behind("many", 3)
    line("put", [1, 2])
    line.until_size(0)  # it has taken them
    line("close")
    return waiting.result(), line("up_to", 5), line("take")


def closing_ends_up_to_with_what_there_is(line):
    waiting = line.behind("up_to", 5)
    line("put", [1, 2])
    line.until_size(0)
    line("close")
    return waiting.result(), line("up_to", 1)


def the_first_that_waits_is_served_first(line):
    first = line.behind("many", 2)
    line("put", [1])
    line.until_size(0)  # so it waits, and for one more
    second = line.behind("take")
    line("put", [2])
    results = [first.result()]
    line("put", [3])
    return [*results, second.result()]


def who_puts_first_goes_in_first(line):
    line("put", [0])
    first = line.behind("put", [1, 2, 3])
    line.until_size(2)  # of its three, one is in
    second = line.behind("put", [4])
    items = [line("take") for _ in range(5)]
    return items, first.result(), second.result()


def cancelling_leaves_what_is_in(line):
    waiting = line.behind("put", [1, 2, 3, 4])
    line.until_size(2)
    line("cancel")
    return waiting.result(), line("take"), line("take"), line("take"), line("put", [9])


def closing_lets_pending_puts_finish(line):
    waiting = line.behind("put", [1, 2, 3, 4])
    line.until_size(2)
    closing = line.behind("close")
    items = [line("take") for _ in range(4)]
    return items, waiting.result(), closing.result(), line("take"), line("put", [5])


def a_batch_larger_than_the_queue_passes_through(line):
    waiting = line.behind("many", 5)
    line("put", [1, 2, 3, 4, 5])
    return waiting.result(), line("size")


def closing_the_session_ends_the_waiting(line):
    waiting = line.behind("many", 2)
    line("put", [1])
    line.until_size(0)
    line.session.close()
    return waiting.result()


def a_shuffling_queue_keeps_some(line):
    waiting = line.behind("many", 2)
    line("put", [1, 2])
    line("put", [3, 4])
    return sorted(waiting.result()), line("size"), line("close"), line("size"), line("many", 3)


def a_shuffling_queue_gives_the_rest_when_it_is_closed(line):
    waiting = line.behind("up_to", 5)
    line("put", [1, 2, 3])
    line.until_size(2)  # as many as stay
    line("close")
    return sorted(waiting.result()), line("size"), line("take")


def a_time_limit_ends_the_waiting(line):
    results = [line("take", timeout=100), line("put", [1, 2]), line("put", [3], timeout=100), line("size")]
    return [*results, line("up_to", 1) and None, line("size"), line("put", [4], timeout=10_000), line("size")]


def the_most_urgent_goes_first_whenever_it_comes(line):
    waiting = line.behind("many", 3)
    line("put", [5, 7])
    results = [line("size")]
    line("put", [1])
    return [*results, waiting.result(), line("size"), line("put", [9, 8]), line("many", 2)]


def a_reader_waits_for_a_name(line, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo\n")
    waiting = line.behind("read")
    line("add name", str(tmp_path / "lines"))
    return waiting.result(), line("read"), line("read", timeout=300)


IN_ORDER = ["fifo", "padding"]
SORTED = ["fifo", "padding", "priority"]
CASES = [
    *((closing_gives_back_what_a_batch_had, kind, 10) for kind in IN_ORDER),
    *((closing_ends_up_to_with_what_there_is, kind, 10) for kind in IN_ORDER),
    *((the_first_that_waits_is_served_first, kind, 10) for kind in IN_ORDER),
    *((who_puts_first_goes_in_first, kind, 2) for kind in SORTED),
    *((cancelling_leaves_what_is_in, kind, 2) for kind in SORTED),
    *((closing_lets_pending_puts_finish, kind, 2) for kind in SORTED),
    *((a_batch_larger_than_the_queue_passes_through, kind, 2) for kind in IN_ORDER),
    *((closing_the_session_ends_the_waiting, kind, 10) for kind in IN_ORDER),
    *((a_time_limit_ends_the_waiting, kind, 2) for kind in SORTED),
    (the_most_urgent_goes_first_whenever_it_comes, "priority", 10),
    (a_shuffling_queue_keeps_some, "shuffle", 10),
    (a_shuffling_queue_gives_the_rest_when_it_is_closed, "shuffle", 10),
    (a_reader_waits_for_a_name, "fifo", 10),
]


@pytest.mark.parametrize(("story", "kind", "capacity"), CASES, ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_waiting(tensorflow, tmp_path, story, kind, capacity):
    more = (tmp_path,) if story is a_reader_waits_for_a_name else ()
    ours = story(Line(tf, kind, capacity), *more)
    theirs = story(Line(tensorflow, kind, capacity), *more)
    assert ours == theirs
