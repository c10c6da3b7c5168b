"""Measure clusters of both libraries, of the same shape, in turns, and print the ratio of their times.

    make bench
    .venv-peers/bin/python benchmarks/cluster.py --rounds 3 null sync

Every task is a process of its own on this machine.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster_works import WORKS, Work
from measuring import ENVIRONMENT, Job, ProcessorClock, take_turns
from report import HERE, Row, conditions, losses, save, table, write_between
from run import parsed, parser_of
from works import LIBRARIES

IDLE = "idle"
_LONGEST = 300.0


def addresses(count: int) -> list[str]:
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    found = [f"localhost:{s.getsockname()[1]}" for s in held]
    for s in held:
        s.close()
    return found


def started(script: Sequence[str | Path], running: contextlib.ExitStack) -> subprocess.Popen:
    """A script in a new process, which ends with `running`."""
    process = subprocess.Popen(
        [sys.executable, *map(str, script)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running.callback(process.communicate)
    running.callback(process.kill)
    return process


def told_by_worker(worker: subprocess.Popen, ended: list[float]) -> float:
    """The seconds of a step that a worker prints; notes when it does."""
    assert worker.stdout is not None and worker.stderr is not None
    timer = threading.Timer(_LONGEST, worker.kill)
    timer.start()
    try:
        for line in worker.stdout:
            if line.startswith("{"):
                ended.append(time.monotonic())
                return json.loads(line)["seconds"]
    finally:
        timer.cancel()
    if timer.finished.is_set() and worker.wait() == -signal.SIGKILL:
        raise RuntimeError(f"not done after {_LONGEST:.0f} s")
    raise RuntimeError(worker.stderr.read().strip() or f"exit status {worker.wait()}")


def measure(work: Work, library: str) -> dict[str, float]:
    """Seconds per step, the mean over the workers of one new cluster, and processor seconds of all its processes."""
    cluster = {"ps": addresses(work.ps), "worker": addresses(work.workers)}
    if work.outside:
        del cluster["worker"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:

        def start(job: str, index: int) -> subprocess.Popen:
            script = [HERE / "cluster_works.py", library, job, str(index), work.name]
            return started([*script, json.dumps(cluster), folder], running)

        servers = [start("ps", i) for i in range(work.ps)]
        workers = [start("worker", i) for i in range(work.workers)]
        ended: list[float] = []
        with ProcessorClock(process.pid for process in (*servers, *workers)) as clock:
            with ThreadPoolExecutor(work.workers) as pool:
                seconds = list(pool.map(lambda worker: told_by_worker(worker, ended), workers))
        found = {"seconds": statistics.mean(seconds)}
        # The last two of the three blocks of the worker that is done first: then all are at work.
        end = min(ended)
        busy = clock.used(end - 2 * work.steps * found["seconds"], end)
        if busy is not None:
            # All workers make a step in these seconds; the share of one is what its step costs.
            found["processors"] = busy * found["seconds"] / work.workers
        return found


def idle_memory(library: str) -> dict[str, float]:
    """The bytes in memory of a parameter server that nobody has spoken to yet."""
    (address,) = addresses(1)
    command = [sys.executable, str(HERE / "cluster_works.py"), library, "ps", "0", "null"]
    process = subprocess.Popen(
        [*command, json.dumps({"ps": [address]}), os.devnull],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("localhost", int(address.rpartition(":")[2])), 1).close()
                break
            except OSError:
                if time.monotonic() > limit:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.1)
        time.sleep(1)
        text = Path(f"/proc/{process.pid}/status").read_text()
        return {"bytes": 1024.0 * int(text.partition("VmRSS:")[2].split()[0])}
    finally:
        process.kill()
        process.wait()


def jobs_for(names: list[str]) -> list[Job]:
    jobs = []
    for name in names:
        if name == IDLE:
            row = Row(IDLE, "memory of a ps that has nothing to do", floor=1.67, unit="bytes")
            jobs.append(Job(name, list(LIBRARIES), {"bytes": row}, idle_memory))
        else:
            work = WORKS[name]
            row = Row(name, work.about, floor=work.floor)
            jobs.append(Job(name, list(LIBRARIES), {"seconds": row}, functools.partial(measure, work)))
    return jobs


def main() -> int:
    about = "Measure clusters of TensorFleet against clusters of TensorFlow."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    known = [*WORKS, IDLE]
    flags = parsed(parser, known)
    jobs = jobs_for(flags.works or known)
    take_turns("cluster", jobs, flags.rounds)
    rows = [row for job in jobs for row in job.rows.values()]
    where = conditions(flags.rounds)
    save("cluster", rows, where)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write:
        write_between("cluster table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
