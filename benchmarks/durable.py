"""Measure what a standby costs: steps of clusters whose parameter servers have one, and of the same without, in turns.

    make bench
    .venv-peers/bin/python benchmarks/durable.py --rounds 3 null push

Every task is a process of its own on this machine; so are the standbys and the guard. TensorFlow has no standbys: its
steps are measured beside.
"""

from __future__ import annotations

import contextlib
import functools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import cluster
from cluster import addresses, started, told_by_worker
from cluster_works import WORKS, Work
from measuring import ENVIRONMENT, Job, take_turns
from report import HERE, LEAST_ROUNDS, OURS, Row, conditions, duration, grid, save, write_between
from run import parser_of

STANDBY, PEER = "standby", "tensorflow"
NAMES = ("null", "sparse", "async", "async_2w", "async1024", "sync", "push")
#: how long a step with a standby may take, as a multiple of one without
LIMITS = {"async1024": 1.6, "push": 1.6}
LIMIT = 1.3


@contextlib.contextmanager
def guarded(tasks: dict[str, list[str]], standbys: list[str]) -> Iterator[None]:
    """Standbys for the parameter servers of a cluster, and their guard."""
    spec = json.dumps(tasks)
    command = [sys.executable, "-m", "tensorfleet"]
    commands = [
        [*command, "standby", "--task", f"ps/{i}", "--listen", at, "--cluster", spec]
        for i, at in enumerate(standbys)
    ]
    pairs = [f"--task=ps/{i}={ps},{at}" for i, (ps, at) in enumerate(zip(tasks["ps"], standbys, strict=True))]
    commands.append([*command, "guard", "--cluster", spec, *pairs])
    quiet = subprocess.DEVNULL
    running = [subprocess.Popen(c, env=ENVIRONMENT, stdout=quiet, stderr=quiet) for c in commands]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(work: Work, variant: str) -> dict[str, float]:
    """Seconds per step, the mean over the workers of one new cluster."""
    if variant != STANDBY:
        return cluster.measure(work, variant)
    tasks = {"ps": addresses(work.ps), "worker": addresses(work.workers)}
    standbys = addresses(work.ps)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        script = [HERE / "cluster_works.py", OURS]
        more = [work.name, json.dumps(tasks), folder]
        for i, (ps, standby) in enumerate(zip(tasks["ps"], standbys, strict=True)):
            with mock.patch.dict(ENVIRONMENT, TENSORFLEET_PLACES=json.dumps([ps, standby])):
                started([*script, "ps", str(i), *more], running)
        running.enter_context(guarded(tasks, standbys))
        workers = [started([*script, "worker", str(i), *more], running) for i in range(work.workers)]
        ended: list[float] = []
        with ThreadPoolExecutor(work.workers) as pool:
            seconds = list(pool.map(lambda worker: told_by_worker(worker, ended), workers))
        return {"seconds": statistics.mean(seconds)}


def cells(row: Row) -> list[str]:
    """A line of the table."""
    with_standby, without = row.seen[STANDBY], row.seen[OURS]
    cost = statistics.median(a / b for a, b in zip(with_standby, without, strict=True))
    theirs = row.seen.get(PEER)
    ratio = (
        ""
        if not theirs
        else f"{statistics.median(a / b for a, b in zip(theirs, with_standby, strict=True)):.2f}"
    )
    limit = LIMITS.get(row.name, LIMIT)
    shown = [duration(statistics.median(v)) if v else "" for v in (without, with_standby, theirs)]
    return [row.name, *shown[:2], f"{cost:.2f}", f"<= {limit}", shown[2], ratio, row.about]


def main() -> int:
    about = "Measure what a standby of each parameter server costs."
    parser = parser_of(about, {name: WORKS[name].about for name in NAMES})
    flags = parser.parse_args()
    unknown = set(flags.works) - set(NAMES)
    if unknown:
        parser.error(f"There is no {', '.join(sorted(unknown))}. Known: {', '.join(NAMES)}.")
    if flags.write and flags.rounds < LEAST_ROUNDS:
        parser.error(f"--write needs {LEAST_ROUNDS} rounds or more.")
    jobs = []
    for name in flags.works or NAMES:
        work = WORKS[name]
        row = Row(name, work.about)
        jobs.append(Job(name, [OURS, STANDBY, PEER], {"seconds": row}, functools.partial(measure, work)))
    take_turns("durable", jobs, flags.rounds)
    rows = [row for job in jobs for row in job.rows.values() if row.seen.get(STANDBY)]
    where = conditions(flags.rounds)
    save("durable", rows, where)
    head = [
        "work",
        "no standby",
        "with a standby",
        "cost",
        "limit",
        "TensorFlow",
        "TensorFlow / with a standby",
    ]
    lines = [cells(row) for row in rows]
    print(f"{grid([*head, 'what one step is'], lines, False)}\n\n{where}")
    if flags.write:
        write_between("durable table", f"{grid([*head, 'what one step is'], lines, True)}\n\n{where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
