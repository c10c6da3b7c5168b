"""Jobs that give a run its nodes: the one that the command is in, or those that it asks for by `salloc`."""

from __future__ import annotations

import contextlib
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from tensorfleet.cli.engines.base import EngineError, RunOptions, Wanted
from tensorfleet.cli.engines.slurm_batch import request_options
from tensorfleet.cli.engines.slurm_commands import NodeShare, answer, explained, no_command, shares_of

_GRANTED: Final = "@tensorfleet-granted "
_END_SECONDS = 10.0
# Runs salloc, and ends it with the launcher, also while it waits in the queue. A job that was granted ends by itself, when
# the shell in it does; salloc may hang if a signal comes just then.
_HOLDER = """
import os, signal, subprocess, sys, threading
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
held = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, restore_signals=True,
    preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
threading.Thread(target=lambda: os._exit(held.wait() & 255), daemon=True).start()
while os.read(0, 4096):
    pass
held.stdin.close()
for end, seconds in ((None, 1), (held.terminate, 5), (held.kill, 8)):
    if end:
        end()
    try:
        os._exit(held.wait(seconds) & 255)
    except subprocess.TimeoutExpired:
        pass
"""
# What salloc runs on this machine: it tells the job's variables, and holds the job until its input ends.
_HELD = f'env | sed -n "s/^SLURM/{_GRANTED}SLURM/p"; echo "{_GRANTED}."; exec cat >/dev/null'


def is_inside(environment: Mapping[str, str]) -> bool:
    """Whether this process is in an allocation."""
    return bool(environment.get("SLURM_JOB_ID"))


def options_of_another_job(options: RunOptions, job: str) -> str | None:
    """A note on options that ask Slurm for a job, in a run that uses the one that the command is in."""
    time_limit = [f"--time {options.time_limit}"] if options.time_limit else []
    given = [*time_limit, *(f"--engine-arg {word}" for word in options.engine_arguments)]
    if not given:
        return None
    return (
        f"Ignoring {' and '.join(given)}: this run uses Slurm job {job}, which it is in. Give such options to the salloc or "
        "sbatch that asks for the job."
    )


def shares_in(environment: Mapping[str, str]) -> list[NodeShare]:
    """What the job of these variables has been given on each node, in all parts of a heterogeneous job."""
    leader = environment["SLURM_JOB_ID"]
    parts = int(environment.get("SLURM_HET_SIZE", "0"))
    if not parts:
        return shares_of(leader)
    jobs = [environment.get(f"SLURM_JOB_ID_HET_GROUP_{n}", str(int(leader) + n)) for n in range(parts)]
    first = jobs[0]
    return [share for n, job in enumerate(jobs) for share in shares_of(job, leader=first, component=n)]


class Allocation:
    """A job of the run's own. It ends with this object, or with the launcher."""

    def __init__(self, wanted: Sequence[Wanted], options: RunOptions) -> None:
        """Asks for it, and returns at once."""
        command = salloc_command(wanted, options)
        if shutil.which(command[0]) is None:
            raise EngineError(no_command(command[0]))
        self._told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._words: list[str] = []
        self._variables: dict[str, str] = {}
        self.job: str | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _HOLDER, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._read, name="salloc", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits until it has been granted. Raises `EngineError` with Slurm's own words if it never will."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                line = self._told.get(timeout=left)
                if line is None:
                    raise EngineError(explained("Slurm has refused the request", self._words))
                if self._take(line):
                    return True
        return False

    def shares(self) -> list[NodeShare]:
        """What it has been given on each node."""
        return shares_in(self._variables)

    def reason(self) -> str | None:
        """Why it is still in the queue, in Slurm's words. None if that is not known."""
        if self.job is None:
            return None
        with contextlib.suppress(EngineError):
            return answer(["squeue", "--noheader", f"--jobs={self.job}", "--format=%r"]).strip() or None
        return None

    def hang_up(self) -> None:
        """Gives it back, without waiting for that."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def close(self) -> None:
        """Gives it back."""
        self.hang_up()
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait(_END_SECONDS)
        # What salloc has not ended well may still be there. It is no error if it is not.
        if code != 0 and self.job is not None:
            with contextlib.suppress(EngineError):
                answer(["scancel", self.job])

    def _take(self, line: str) -> bool:
        """Takes a line of salloc's. True for the last that the granted job says."""
        if line == f"{_GRANTED}.":
            self.job = self._variables["SLURM_JOB_ID"]
            return True
        if line.startswith(_GRANTED):
            key, _, value = line.removeprefix(_GRANTED).partition("=")
            self._variables[key] = value
        else:
            self._words.append(line)
            if match := re.search(r"[Pp]ending job allocation (\d+)|job (\d+) queued", line):
                self.job = match[1] or match[2]
        return False

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._told.put(line.decode(errors="replace").rstrip())
        self._told.put(None)
        self._process.stdout.close()


def salloc_command(wanted: Sequence[Wanted], options: RunOptions) -> list[str]:
    """The command that gets a job for these tasks."""
    parts = [["--no-kill", *part] for part in request_options(wanted, options)]
    joined = [word for part in parts for word in (*part, ":")][:-1]
    return ["salloc", *joined, "sh", "-c", _HELD]


def launched_by_a_step(environment: Mapping[str, str]) -> bool:
    """Whether this process is in a step that has the job's processors for itself, as under a plain `srun`."""
    number = environment.get("SLURM_STEP_ID", "")
    return number.isdecimal() and int(number) < 0xFFFF0000  # above are the batch script's, and the like
