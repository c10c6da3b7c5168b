"""How soon things are noticed when something dies, stalls or is closed: median and worst of some tries.

    .venv/bin/python benchmarks/faults.py
    .venv/bin/python benchmarks/faults.py --tries 20 killed silent

Real processes on this machine; what is timed begins with the fault and ends with the error or the answer. Only TensorFleet
is measured: for most of these TensorFlow gives no error at all.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import tensorfleet as tf
from tensorfleet.testing.cluster import ProcessCluster
from tensorfleet.testing.malformed_graphs import MALFORMED

ABOUT = {
    "killed": ("a step's task is killed: until UnavailableError", 1.0),
    "silent": ("a step's task is stopped (SIGSTOP): until UnavailableError", 5.0),
    "pause": ("longest pause between steps of another pair while a ps or worker is killed and started", 2.0),
    "again": ("a ps was killed and started: until a fresh session has its first answer", None),
    "queue": ("a hundred blocked dequeues on a ps: until all are awake after close", 1.0),
    "session": ("the same when their session is closed", 1.0),
    "deadline": ("a dequeue with timeout_in_ms=300: how late DeadlineExceededError comes", None),
    "function": ("a py_func that does not return, the same", None),
    "malformed": ("a graph of testing.malformed_graphs: processor time until it is refused (each once)", 1.0),
}
_LONGEST = 60.0


def raised(kind: type[Exception], run: Callable[[], object]) -> float:
    """When a call raised what it should have."""
    try:
        run()
    except kind:
        return time.monotonic()
    raise AssertionError(f"no {kind.__name__}")


def waiting_on_ps() -> tuple[tf.Tensor, tf.Tensor]:
    """A step that waits on the ps for ever, and one that says that it is there."""
    with tf.device("/job:ps/task:0"):
        q = tf.FIFOQueue(1, tf.int32, shapes=[[]], shared_name="empty")
        return q.dequeue(), q.size()


def lost(tries: int, fault: str) -> Iterator[float]:
    """Seconds from a fault of the ps to the error of a step that waits there."""
    take, size = waiting_on_ps()
    for _ in range(tries):
        with ProcessCluster(ps=1, worker=1) as cluster, tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(size)
            began: list[float] = []

            def strike(cluster: ProcessCluster = cluster, began: list[float] = began) -> None:
                began.append(time.monotonic())
                getattr(cluster, fault)("ps", 0)

            timer = threading.Timer(0.3, strike)
            timer.start()
            ended = raised(tf.errors.UnavailableError, lambda sess=sess: sess.run(take))
            timer.join(_LONGEST)
            yield ended - began[0]


def pause(tries: int) -> Iterator[float]:
    """The longest time between two steps of one pair of tasks, each time a task of the other is killed and started."""
    with tf.device("/job:ps/task:1"):
        counter = tf.Variable(0)
    with tf.device("/job:worker/task:1"):
        more = tf.identity(counter.assign_add(1)) + 0
    with ProcessCluster(ps=2, worker=2) as cluster, tf.Session(cluster.target("worker", 1)) as sess:
        sess.run(counter.initializer)
        times: list[float] = []
        over = threading.Event()

        def step() -> None:
            while not over.is_set():
                sess.run(more)
                times.append(time.monotonic())

        thread = threading.Thread(target=step)
        thread.start()
        for i in range(tries):
            time.sleep(0.3)
            first = len(times)
            job = ("ps", "worker")[i % 2]
            cluster.kill(job, 0)
            cluster.start(job, 0)
            time.sleep(0.3)
            yield max(b - a for a, b in itertools.pairwise(times[max(first - 1, 0) :]))
        over.set()
        thread.join(_LONGEST)


def again(tries: int) -> Iterator[float]:
    """Seconds from the start of a new ps to the answer of a fresh session."""
    _, size = waiting_on_ps()
    with ProcessCluster(ps=1, worker=1) as cluster:
        for _ in range(tries):
            with tf.Session(cluster.target("worker", 0)) as sess:
                sess.run(size)
            cluster.kill("ps", 0)
            cluster.start("ps", 0)
            began = time.monotonic()
            with tf.Session(cluster.target("worker", 0)) as sess:
                sess.run(size)
                yield time.monotonic() - began


def awake(tries: int, closed: str) -> Iterator[float]:
    """Seconds until a hundred blocked dequeues have raised."""
    with ProcessCluster(ps=1, worker=1) as cluster:
        for i in range(tries):
            with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0"):
                q = tf.FIFOQueue(1, tf.int32, shapes=[[]], shared_name=f"{closed} {i}")
                take, close, size = q.dequeue(), q.close(), q.size()
            waiting = tf.Session(cluster.target("worker", 0), graph=graph)
            other = tf.Session(cluster.target("worker", 0), graph=graph)
            for sess in (waiting, other):
                sess.run(size)

            def run(waiting: tf.Session = waiting, take: tf.Tensor = take) -> None:
                with contextlib.suppress(tf.errors.OutOfRangeError, tf.errors.CancelledError):
                    waiting.run(take)

            threads = [threading.Thread(target=run) for _ in range(100)]
            for thread in threads:
                thread.start()
            while len(waiting._engine.running) < 100:
                time.sleep(0.01)
            time.sleep(0.5)
            began = time.monotonic()
            if closed == "queue":
                other.run(close)
            else:
                waiting.close()
            for thread in threads:
                thread.join(_LONGEST)
            yield time.monotonic() - began
            waiting.close()
            other.close()


def late(tries: int, what: str) -> Iterator[float]:
    """Seconds after its deadline that a step raises."""
    never = threading.Event()
    with tf.Graph().as_default():
        take, size = waiting_on_ps()
        stuck = tf.py_func(lambda: never.wait(_LONGEST), [], tf.bool)
        fetch = take if what == "deadline" else stuck
        with ProcessCluster(ps=1, worker=1) as cluster:
            with tf.Session(cluster.target("worker", 0) if what == "deadline" else "") as sess:
                if what == "deadline":
                    sess.run(size)
                options = tf.RunOptions(timeout_in_ms=300)
                for _ in range(tries):
                    began = time.monotonic()
                    run = lambda: sess.run(fetch, options=options)  # noqa: E731
                    yield raised(tf.errors.DeadlineExceededError, run) - began - 0.3
    never.set()


def malformed(_: int) -> Iterator[float]:
    """Seconds of processor time until each malformed graph is refused."""
    for make in MALFORMED.values():
        data = make().SerializeToString()
        began = time.process_time()
        with tf.Graph().as_default(), contextlib.suppress(ValueError, TypeError, tf.errors.OpError):
            tf.import_graph_def(tf.GraphDef.FromString(data), name="")
        yield time.process_time() - began


MEASURES: dict[str, Callable[[int], Iterator[float]]] = {
    "killed": lambda n: lost(n, "kill"),
    "silent": lambda n: lost(n, "stop"),
    "pause": pause,
    "again": again,
    "queue": lambda n: awake(n, "queue"),
    "session": lambda n: awake(n, "session"),
    "deadline": lambda n: late(n, "deadline"),
    "function": lambda n: late(n, "function"),
    "malformed": malformed,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(ABOUT)}; all by default")
    parser.add_argument("--tries", type=int, default=10)
    given = parser.parse_args()
    print("| what | n | median | worst | promised |\n|---|---|---|---|---|", flush=True)
    for name in given.names or ABOUT:
        with tf.Graph().as_default(), open(os.devnull, "w") as quiet, contextlib.redirect_stdout(quiet):
            found = list(MEASURES[name](given.tries))
        about, promise = ABOUT[name]
        limit = f"{promise:g} s" if promise else ""
        median, worst = statistics.median(found), max(found)
        print(f"| {about} | {len(found)} | {median:.3f} s | {worst:.3f} s | {limit} |", flush=True)


if __name__ == "__main__":
    main()
