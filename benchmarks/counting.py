"""Measure what counting costs: blocks of steps with the counters of `tf.fleet.stats` and blocks without, in turns.

    .venv-peers/bin/python benchmarks/counting.py --rounds 60 null async

The two tasks stay the same processes, so that a block without counters differs from its neighbours in nothing else: the
functions on the way of a step are compiled once more, without the statements that only count.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import contextlib
import inspect
import json
import os
import random
import signal
import statistics
import subprocess
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cluster import addresses, started
from cluster_works import WORKS, Work
from measuring import processor_seconds
from report import HERE, OURS, conditions, duration, grid, write_between
from works import load

NAMES = ("null", "async")
LIMIT = 0.01

BLOCK_SECONDS = 0.25  # of a measured block: two of the steps that are measured in parts come in it
_LONGEST = 1200.0
_SAMPLES = 2000  # of the rounds, to tell how sure the median is
HEAD = [
    "work",
    "without, fastest",
    "with, fastest",
    "cost",
    "cost, median",
    "95 % range",
    "limit",
    "what one step is",
]
_COUNTERS = {
    *("count", "seconds", "runs", "sent_bytes", "received_bytes", "busy_seconds"),
    *("reads", "read_bytes", "row_updates", "row_update_bytes"),
}


class _Uncounted(ast.NodeTransformer):
    """Drops the statements that only count."""

    dropped = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                kept = [statement for statement in body if not _counts(statement)]
                self.dropped += len(body) - len(kept)
                setattr(node, name, kept or ([ast.Pass()] if name == "body" else []))
        return node


def _counts(statement: ast.stmt) -> bool:
    """Whether a statement only counts: adds to a counter, looks at a clock for it, or measures a step in parts."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Attribute) and statement.target.attr in _COUNTERS
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        return isinstance(target, ast.Name) and target.id in ("began", "took")
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "steps.seconds >= steps.due"


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without the statements that only count. Raises ValueError if it has none."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    transformer = _Uncounted()
    tree = ast.fix_missing_locations(transformer.visit(tree))
    if not transformer.dropped:
        raise ValueError(f"{function.__qualname__} counts nothing: is it still on the way of a step?")
    code = compile(tree, inspect.getfile(function), "exec", __future__.annotations.compiler_flag)
    found: dict[str, Any] = {}
    exec(code, function.__globals__, found)
    return found[function.__name__]


def counting_places() -> list[tuple[type, str]]:
    """The methods on the way of a step that count."""
    from tensorfleet.cluster.master.shared_memory_reads import SharedMemoryRead
    from tensorfleet.cluster.transport.wire import Channel
    from tensorfleet.cluster.worker.short_requests import ShortRequests
    from tensorfleet.runtime.resources import VariableStore
    from tensorfleet.runtime.scheduling.program import Program
    from tensorfleet.session.session import BaseSession

    return [
        (BaseSession, "run"),
        (SharedMemoryRead, "read"),
        *((Channel, name) for name in ("_bare", "_pieces", "_lend", "receive", "_borrowed")),
        (ShortRequests, "_run"),
        (VariableStore, "rows_touched"),
        (Program, "run"),
    ]


class Switch:
    """Turns the counting of this process off and on."""

    def __init__(self) -> None:
        self._places = [(owner, name, owner.__dict__[name]) for owner, name in counting_places()]
        self._without = [uncounted(function) for _, _, function in self._places]

    def turn(self, on: bool) -> None:
        """Makes the steps that follow count, or not."""
        for (owner, name, counting), without in zip(self._places, self._without, strict=True):
            setattr(owner, name, counting if on else without)


def server(tf: Any, cluster: dict[str, list[str]]) -> None:
    """The parameter server: SIGUSR2 turns its counting on, SIGHUP off."""
    switch = Switch()
    signal.signal(signal.SIGUSR2, lambda *_: switch.turn(True))
    signal.signal(signal.SIGHUP, lambda *_: switch.turn(False))
    tf.train.Server(cluster, job_name="ps", task_index=0).join()


def worker(tf: Any, cluster: dict[str, list[str]], work: Work, rounds: int, ps: int) -> None:
    """Prints, round by round, the seconds of a step and of both processors with counting and without."""
    spec, me, switch = tf.train.ClusterSpec(cluster), "/job:worker/task:0", Switch()
    target = tf.train.Server(spec, job_name="worker", task_index=0).target
    with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=spec)):
        tf.train.get_or_create_global_step()
        step, feed, hooks = work.build(tf, me, 0, 1)
    with tf.train.MonitoredTrainingSession(master=target, hooks=hooks) as session:
        for on in (False, True):  # both are known to the interpreter, and what is compiled is
            _turn(switch, ps, on)
            began = time.perf_counter()
            while time.perf_counter() - began < 2:
                session.run(step, feed)
        steps = _steps_in_a_block(lambda: session.run(step, feed))
        for i in range(rounds):
            found = {}
            for on in (True, False) if i % 2 else (False, True):
                _turn(switch, ps, on)
                session.run(step, feed)
                busy, began = processor_seconds(os.getpid()) + processor_seconds(ps), time.perf_counter()
                for _ in range(steps):
                    session.run(step, feed)
                seconds = time.perf_counter() - began
                busy = processor_seconds(os.getpid()) + processor_seconds(ps) - busy
                found["on" if on else "off"] = (seconds / steps, busy / steps)
            print(json.dumps(found), flush=True)
    os._exit(0)


def _turn(switch: Switch, ps: int, on: bool) -> None:
    switch.turn(on)
    os.kill(ps, signal.SIGUSR2 if on else signal.SIGHUP)


def _steps_in_a_block(step: Callable[[], Any]) -> int:
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < BLOCK_SECONDS:
        step()
        count += 1
    return max(count, 1)


def measured(work: Work, rounds: int) -> list[dict[str, list[float]]]:
    """The rounds of one new cluster."""
    cluster = json.dumps({"ps": addresses(1), "worker": addresses(1)})
    with contextlib.ExitStack() as running:
        tasks: list[subprocess.Popen] = []
        for job in ("ps", "worker"):
            command = [HERE / "counting.py", work.name, "--rounds", str(rounds), "--job", job]
            ps = str(tasks[0].pid if tasks else 0)
            tasks.append(started([*command, "--cluster", cluster, "--ps", ps], running))
        with _killed_after(_LONGEST, tasks[1]):
            lines = [line for line in tasks[1].stdout if line.startswith("{")]  # type: ignore[union-attr]
        if len(lines) < rounds:
            raise RuntimeError(tasks[1].stderr.read().strip() or "the worker ended early")  # type: ignore[union-attr]
        return [json.loads(line) for line in lines]


@contextlib.contextmanager
def _killed_after(seconds: float, process: subprocess.Popen) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def cost_of(rounds: list[dict[str, list[float]]], which: int) -> tuple[float, float, float]:
    """By how much a step takes longer with counting: the median of the rounds, and a range that has it in 95 % of cases."""
    ratios = [each["on"][which] / each["off"][which] - 1 for each in rounds]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_SAMPLES))
    return statistics.median(ratios), medians[int(0.025 * _SAMPLES)], medians[int(0.975 * _SAMPLES)]


def row_of(work: Work, rounds: list[dict[str, list[float]]]) -> list[str]:
    """A row of the table."""
    fastest = [min(each[how][1] for each in rounds) for how in ("off", "on")]
    middle, low, high = cost_of(rounds, 1)
    return [
        work.name,
        *map(duration, fastest),
        f"{100 * (fastest[1] / fastest[0] - 1):+.1f} %",
        f"{100 * middle:+.1f} %",
        f"{100 * low:+.1f} to {100 * high:+.1f} %",
        f"<= {100 * LIMIT:.0f} %",
        work.about,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what counting costs a step.")
    parser.add_argument(
        "works", nargs="*", metavar="work", help=f"what to measure (default: {' '.join(NAMES)})"
    )
    parser.add_argument(
        "--rounds", type=int, default=200, help="blocks with and without counting (default: 200)"
    )
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    for name in ("--job", "--cluster", "--ps"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    unknown = set(flags.works) - set(WORKS)
    if unknown:
        parser.error(f"There is no {', '.join(sorted(unknown))}. Known: {', '.join(WORKS)}.")
    if flags.job == "ps":
        server(load(OURS), json.loads(flags.cluster))
    elif flags.job == "worker":
        worker(load(OURS), json.loads(flags.cluster), WORKS[flags.works[0]], flags.rounds, int(flags.ps))
    else:
        report(flags.works or NAMES, flags.rounds, flags.write)


def report(names: Sequence[str], rounds: int, write: bool) -> None:
    """Measures, and prints the table or writes it into the page."""
    rows = [row_of(WORKS[name], measured(WORKS[name], rounds)) for name in names]
    where = conditions(rounds)
    print(f"{grid(HEAD, rows, False)}\n\n{where}")
    if write:
        write_between("counting table", f"{grid(HEAD, rows, True)}\n\n{where}")


if __name__ == "__main__":
    main()
