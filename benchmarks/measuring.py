"""Run measurements, each in processes of its own and the libraries in turns, and tell how far they are.

Used by every script that measures: run.py, cluster.py, growth.py, input.py, training.py.
"""

from __future__ import annotations

import bisect
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from report import RESULTS, Row

LONGEST = 900.0  # seconds one process may take
# All libraries on the CPU, and nothing but the result on the output.
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
_USUAL_SECONDS = 10.0  # of a measurement that this machine has not made before
_SAMPLING_SECONDS = 0.01  # a sample takes a few microseconds


@dataclass(frozen=True)
class Job:
    """Something to measure on several libraries.

    `measure` runs it once on one of them and gives values by key; `rows` says which row takes which.
    The key "processors" is the processor time that belongs to "seconds".
    """

    name: str
    libraries: Sequence[str]
    rows: Mapping[str, Row]
    measure: Callable[[str], Mapping[str, float]]

    def add(self, library: str, found: Mapping[str, float]) -> None:
        for key, row in self.rows.items():
            row.seen[library].append(found[key])
        if "processors" in found:
            self.rows["seconds"].busy[library].append(found["processors"])

    def forget(self, library: str) -> None:
        for row in self.rows.values():
            row.seen[library].clear()
            row.busy[library].clear()


def take_turns(script: str, jobs: Sequence[Job], rounds: int) -> None:
    """Measures every job `rounds` times on each library; the order of the libraries turns with each round.

    A library that fails has no values for that job: rounds of a part of them could not be paired.
    """
    progress = Progress(script, [(job.name, library) for job in jobs for library in job.libraries] * rounds)
    failed: set[tuple[str, str]] = set()
    for turn in range(rounds):
        for job in jobs:
            for library in list(job.libraries)[:: -1 if turn % 2 else 1]:
                if (job.name, library) in failed:
                    progress.skip(job.name, library)
                    continue
                began = time.monotonic()
                progress.begin(job.name, library, f"round {turn + 1} of {rounds}")
                try:
                    job.add(library, job.measure(library))
                except RuntimeError as error:
                    failed.add((job.name, library))
                    job.forget(library)
                    tell("")
                    print(f"{job.name} failed on {library}:\n{error}", file=sys.stderr)
                progress.end(job.name, library, time.monotonic() - began)
    progress.save()


@dataclass
class Progress:
    """How far the measurements are, and how long the rest takes, judged by the last time they were made."""

    script: str
    left: list[tuple[str, str]]
    #: seconds of each measurement, of this run and of earlier ones
    past: dict[str, float] = field(default_factory=dict)
    #: seconds of those of this run, to judge the ones that were never made
    made: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = len(self.left)
        if self.path.exists():
            self.past = json.loads(self.path.read_text())
        print(f"{self.total} measurements, about {spoken(self.remaining())}.", file=sys.stderr)

    @property
    def path(self) -> Path:
        return RESULTS.parent / "bench-durations.json"

    def key(self, name: str, library: str) -> str:
        return f"{self.script} {name} {library}"

    def remaining(self) -> float:
        usual = sum(self.made) / len(self.made) if self.made else _USUAL_SECONDS
        return sum(self.past.get(self.key(*one), usual) for one in self.left)

    def begin(self, name: str, library: str, when: str) -> None:
        done = self.total - len(self.left)
        filled = round(20 * done / self.total)
        bar = "#" * filled + "." * (20 - filled)
        tell(f"[{bar}] {done + 1}/{self.total}, {spoken(self.remaining())} left; {when}: {name} on {library}")

    def skip(self, name: str, library: str) -> None:
        self.left.remove((name, library))

    def end(self, name: str, library: str, took: float) -> None:
        self.skip(name, library)
        self.past[self.key(name, library)] = round(took, 2)
        self.made.append(took)

    def save(self) -> None:
        tell("")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.past, indent=1))


def spoken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def tell(line: str) -> None:
    """One changing line on a terminal, a line each elsewhere; to stderr, so that the table is clean."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    elif line:
        print(line, file=sys.stderr, flush=True)


def told_by(script: Sequence[str | Path], longest: float = LONGEST) -> dict[str, float]:
    """The last line that a script prints, run in a new process."""
    command = [sys.executable, *map(str, script)]
    try:
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=longest)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done after {longest:.0f} s") from None
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def processor_seconds(pid: int) -> float:
    """The processor time that all threads of a running process have used, to the nanosecond (Linux only)."""
    # The clock of another process: the kernel's CPUCLOCK_SCHED (2) of ~pid, as clock_getcpuclockid() makes it.
    return time.clock_gettime((~pid << 3) | 2)


class ProcessorClock:
    """Follows the processor time of several processes, to tell later how much they used in a past stretch of time.

    A cluster tells how long its steps took when they are over; only then is it known which stretch to look at.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._seen: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> ProcessorClock:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                self._seen.append((time.monotonic(), sum(map(processor_seconds, self._pids))))
            except OSError:  # one of them has ended
                return
            self._over.wait(_SAMPLING_SECONDS)

    def used(self, begin: float, end: float) -> float | None:
        """Processors in use between two times of `time.monotonic`, on average; None if they were not followed then.

        Between two samples the use is taken to be even: the stretch may be as short as a few samples.
        """
        if not self._seen:
            return None
        end = min(end, self._seen[-1][0])  # a process may end before it is looked at again
        if begin < self._seen[0][0] or end - begin < _SAMPLING_SECONDS:
            return None
        return (self._at(end) - self._at(begin)) / (end - begin)

    def _at(self, when: float) -> float:
        """The processor time used until then, on the line between the two samples around it."""
        after = bisect.bisect_left(self._seen, (when,))
        (t0, used0), (t1, used1) = self._seen[max(after - 1, 0)], self._seen[after]
        return used1 if t1 == t0 else used0 + (used1 - used0) * (when - t0) / (t1 - t0)
