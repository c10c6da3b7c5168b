"""Measure clusters of both libraries, of the same shape, in turns, and print the ratio of their times.

    make bench
    .venv-peers/bin/python benchmarks/cluster.py --rounds 3 null sync

Every task is a process of its own on this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cluster_works import WORKS, Work
from run import ENVIRONMENT, Row, conditions, draw, losses, parsed, parser_of, progress, table
from works import LIBRARIES

HERE = Path(__file__).resolve().parent
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


def measure(library: str, work: Work) -> float:
    """Seconds per step, the mean over the workers of one new cluster."""
    cluster = {"ps": addresses(work.ps), "worker": addresses(work.workers)}
    if work.outside:
        del cluster["worker"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:

        def start(job: str, index: int) -> subprocess.Popen:
            script = [HERE / "cluster_works.py", library, job, str(index), work.name]
            return started([*script, json.dumps(cluster), folder], running)

        for i in range(work.ps):
            start("ps", i)
        workers = [start("worker", i) for i in range(work.workers)]
        seconds = []
        for worker in workers:
            try:
                out, error = worker.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"not done after {_LONGEST:.0f} s") from None
            lines = [line for line in out.splitlines() if line.startswith("{")]
            if not lines:
                raise RuntimeError(error.strip() or f"exit status {worker.returncode}")
            seconds.append(json.loads(lines[-1])["seconds"])
        return statistics.mean(seconds)


def idle_memory(library: str) -> float:
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
        return 1024.0 * int(text.partition("VmRSS:")[2].split()[0])
    finally:
        process.kill()
        process.wait()


def measure_all(names: list[str], rounds: int) -> list[Row]:
    rows = {name: Row(name, WORKS[name].about, floor=WORKS[name].floor) for name in names if name != IDLE}
    if IDLE in names:
        rows[IDLE] = Row(IDLE, "memory of a ps that has nothing to do", ceiling=0.6)
    for turn in range(rounds):
        for name in names:
            for library in list(LIBRARIES)[:: -1 if turn % 2 else 1]:
                progress(f"round {turn + 1} of {rounds}: {name} on {library}")
                try:
                    found = idle_memory(library) if name == IDLE else measure(library, WORKS[name])
                    rows[name].seen[library].append(found)
                except RuntimeError as error:
                    progress("")
                    print(f"{name} failed on {library}:\n{error}", file=sys.stderr)
    progress("")
    return list(rows.values())


def write_between(marker: str, text: str) -> None:
    """Puts a table between its markers in the page of benchmarks."""
    path, begin, end = HERE / "README.md", f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")
    draw()


def main() -> int:
    about = "Measure clusters of TensorFleet against clusters of TensorFlow."
    parser = parser_of(about, {work.name: work.about for work in WORKS.values()})
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    known = [*WORKS, IDLE]
    flags = parsed(parser, known)
    rows = measure_all(flags.works or known, flags.rounds)
    where = conditions(flags.rounds)
    print(f"{table(rows, False)}\n\n{where}\n{losses(rows)}")
    if flags.write and not flags.works:
        write_between("cluster table", f"{table(rows, True)}\n\n{where}")
    return int(flags.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
