"""Measure the pause when a parameter server with a standby is killed: from the kill to the next finished step.

    .venv/bin/python benchmarks/failover.py
    .venv/bin/python benchmarks/failover.py --kills 100 --write async

A real `tensorfleet run --replicas 1` with one parameter server and two workers. The server that leads is killed with SIGKILL,
or stopped with SIGSTOP, again and again, each time when there are two servers again. TensorFlow has nothing like it: its
workers get an error.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from report import HERE, conditions, grid, write_between

WORKERS = 2
#: from a fault to a step that was not on its way already
LEAST_SECONDS = 0.005
LONGEST_SECONDS = 120.0
#: processes that have just begun load modules and compile for a while
SETTLE_SECONDS = 3.0
MEDIAN_LIMIT, LATE_LIMIT = 0.8, 2.0
WORKS = {
    "async": ("two workers, asynchronous SGD; the server that leads is killed", "", signal.SIGKILL),
    "sync": ("two workers averaged; the server that leads is killed", "1", signal.SIGKILL),
    "stopped": ("two workers, asynchronous SGD; the server that leads is stopped", "", signal.SIGSTOP),
}
_PAIRED = re.compile(r"(ps(?:-standby)?/0) leads with \S+ as its standby")


class Run:
    """A run in which steps go on, and what its launcher says."""

    def __init__(self, folder: Path, sync: str) -> None:
        self._folder = folder
        self.leader = ""
        self._pairs = 0
        self._changed = threading.Condition()
        (folder / "state").mkdir()
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "TENSORFLEET_STATE": str(folder / "state"),
            "FAILOVER_FOLDER": str(folder),
            "FAILOVER_SYNC": sync,
        }
        command = [
            sys.executable,
            "-m",
            "tensorfleet",
            "run",
            "--dashboard",
            "off",
            "--replicas",
            "1",
            "--ps",
            "1",
        ]
        command += [
            "--workers",
            str(WORKERS),
            "--log-dir",
            str(folder / "logs"),
            str(HERE / "failover_task.py"),
        ]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = _PAIRED.search(line)
            if found:
                with self._changed:
                    self.leader, self._pairs = found[1], self._pairs + 1
                    self._changed.notify_all()

    def wait_for_pair(self, number: int) -> None:
        """Waits until there are two servers for the `number`th time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._pairs >= number, LONGEST_SECONDS):
                raise SystemExit(f"There were not two servers again within {LONGEST_SECONDS:.0f} s.")

    def fail(self, number: int) -> float:
        """Sends a signal to the server that leads. Gives the moment."""
        (path,) = (self._folder / "state").glob("*.json")
        pid = json.loads(path.read_text())["tasks"][self.leader]["pid"]
        moment = time.monotonic()
        os.kill(pid, number)
        return moment

    def steps(self) -> list[list[float]]:
        """When each worker has finished its steps so far."""
        paths = [self._folder / f"steps{n}" for n in range(WORKERS)]
        texts = [path.read_text() if path.exists() else "" for path in paths]
        return [[float(line) for line in text.rpartition("\n")[0].split()] for text in texts]

    def wait_for_steps(self, after: float) -> list[float]:
        """The first step of each worker that was finished some time after a moment."""
        limit = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < limit:
            found = [times[bisect.bisect(times, after) :] for times in self.steps()]
            if all(found):
                return [times[0] for times in found]
            time.sleep(0.02)
        raise SystemExit(f"A worker has finished no step for {LONGEST_SECONDS:.0f} s.")

    def end(self) -> None:
        """Ends the run."""
        (self._folder / "end").touch()
        try:
            self.process.wait(LONGEST_SECONDS / 4)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(LONGEST_SECONDS)
        self._reader.join(LONGEST_SECONDS)


def pauses(name: str, kills: int) -> list[float]:
    """The pause of each worker after each fault."""
    _, sync, number = WORKS[name]
    chance, found = random.Random(name), []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), sync)
        try:
            run.wait_for_pair(1)
            run.wait_for_steps(time.monotonic() + SETTLE_SECONDS)
            for n in range(1, kills + 1):
                run.wait_for_pair(n)
                run.wait_for_steps(time.monotonic())
                time.sleep(chance.uniform(0.3, 0.6))  # a step may be anywhere
                moment = run.fail(number)
                found += [at - moment for at in run.wait_for_steps(moment + LEAST_SECONDS)]
        finally:
            run.end()
    return found


def cells(name: str, found: list[float]) -> list[str]:
    """A line of the table."""
    late = sorted(found)[min(len(found) * 99 // 100, len(found) - 1)]
    limits = f"{MEDIAN_LIMIT:g} s, {LATE_LIMIT:g} s" if WORKS[name][2] is signal.SIGKILL else ""
    shown = [f"{seconds:.2f} s" for seconds in (statistics.median(found), late, max(found))]
    return [name, str(len(found)), *shown, limits, WORKS[name][0]]


def main() -> None:
    listing = "\n".join(f"  {name:10} {about}" for name, (about, *_) in WORKS.items())
    parser = argparse.ArgumentParser(
        description="Measure the pause when a parameter server with a standby is killed.",
        epilog=f"works:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("works", nargs="*", metavar="work", help="what to measure (default: everything)")
    parser.add_argument("--kills", type=int, default=50, help="faults of each work (default: 50)")
    parser.add_argument("--write", action="store_true", help="put the table into the page of benchmarks")
    flags = parser.parse_args()
    unknown = set(flags.works) - set(WORKS)
    if unknown:
        parser.error(f"There is no {', '.join(sorted(unknown))}. Known: {', '.join(WORKS)}.")
    lines = []
    for name in flags.works or WORKS:
        lines.append(cells(name, pauses(name, flags.kills)))
        print(" ".join(lines[-1]), flush=True)
    head = ["work", "pauses", "median", "99th percentile", "longest", "limits", "what happens"]
    print(grid(head, lines, False))
    if flags.write:
        text = f"{grid(head, lines, True)}\n\n{conditions(1)}"
        write_between("failover table", text)


if __name__ == "__main__":
    main()
