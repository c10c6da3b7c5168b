"""A task as a step of a Slurm job: `srun` here, the task on its node."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tensorfleet.cli.engines.base import RunListener
from tensorfleet.cli.engines.slurm_commands import NodeShare, own_words, step_environment
from tensorfleet.cli.plan import TOKEN, Task
from tensorfleet.cli.scripts.bootstrap import LAUNCHER

_DRAIN_SECONDS = 1.0  # for the last output of a task that has ended
_MARK = "@tensorfleet-step "
_END = "@tensorfleet-end "
# Tells which step it is, and how the task has ended: srun may say 0 of a step whose node has gone. A trap makes the
# shell wait for the task after a signal, and is not inherited. What the shell itself says of signals is not the task's;
# dash says it to where the command's own errors go, unless that is a subshell.
_SHELL = (
    f'trap : HUP INT QUIT TERM USR1 USR2; echo "{_MARK}$SLURM_STEP_ID"; exec 3>&2 2>/dev/null; '
    f'(exec "$@" 2>&3 3>&-); code=$?; echo "{_END}$code"; exit $code'
)
# What srun says of a task's end, which the launcher says itself.
_NOISE = re.compile(
    r"srun: (error: \S+: task 0: |Force Terminated|Job step aborted|Terminating|Complete|error: Timed out waiting)"
    r"|slurmstepd\S*: error: \*\*\* STEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*$"
)
_REPORTED = re.compile(r"srun: error: \S+: task 0: ")
_SLURM_SAYS = re.compile(r"(srun|slurmstepd)(-\S+)?: ")
_TAKEN = re.compile(r"DUE TO [A-Z]|error: Node failure on|oom[-_ ]kill", re.I)


@dataclass(frozen=True)
class StepStart:
    """The `srun` command of a task. What must not be on it is the first line of its input."""

    command: list[str]
    environment: dict[str, str]
    first_line: str


class SlurmStep:
    """A task that has been started by `srun`, whose input stays open: the task ends with it.

    srun has a helper process in its group, which ends the step when srun dies. So only srun itself is ever killed.
    """

    pid = 0  # the task's, which is on another machine

    def __init__(
        self,
        label: str,
        share: NodeShare,
        start: StepStart,
        listener: RunListener,
        on_begin: Callable[[SlurmStep], None],
        on_end: Callable[[SlurmStep, int], None],
    ) -> None:
        """`on_begin` is called when the step has a number; `on_end` with the exit code, or -N for signal N."""
        self.label = label
        self.share = share
        #: why its place is gone, where that is known before its end
        self.lost: str | None = None
        self.number: str | None = None
        self._code: int | None = None
        self._killed = False
        self._listener = listener
        self._on_begin = on_begin
        self._on_end = on_end
        self._said: list[str] = []
        self._waiting: list[int] = []
        self._state = threading.Lock()
        self._process = subprocess.Popen(
            start.command,
            env=start.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # past the buffer, which would try again at its end
            os.write(self._process.stdin.fileno(), start.first_line.encode() + b"\n")
        self._reader = threading.Thread(target=self._read, name=f"output of {label}", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"end of {label}", daemon=True)
        self._reader.start()
        self._waiter.start()

    @property
    def name(self) -> str | None:
        """As Slurm calls it: 12.3. None as long as it has not begun."""
        return self.number and f"{self.share.job}.{self.number}"

    @property
    def where(self) -> str:
        """What Slurm calls it."""
        return f"step {self.name}" if self.name else f"job {self.share.job} on {self.share.node}"

    @property
    def slurm_said(self) -> str:
        """The errors that Slurm has printed."""
        return own_words(self._said)

    @property
    def vanished(self) -> bool:
        """Whether it ended without a report of how: what ran it on the node is gone."""
        reported = any(_REPORTED.match(line) for line in self._said)
        ended_here = self._killed or (self._process.returncode or 0) < 0
        return self.number is not None and self._code is None and not ended_here and not reported

    @property
    def was_taken(self) -> bool:
        """Whether Slurm has said that it ended the step, and why."""
        return any(_TAKEN.search(line) for line in self._said)

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether Slurm has ended it for its memory."""
        return any(re.search(r"oom[-_ ]kill", line, re.I) for line in self._said)

    def send(self, number: int) -> None:
        """By Slurm, to all processes of the step. SIGKILL ends srun too, also if the node does not answer."""
        if number == signal.SIGKILL:
            self._killed = True
            self.hang_up()
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            return
        with self._state:
            if self.number is None:
                self._waiting.append(number)
                return
        threading.Thread(
            target=self._signal, args=(number,), name=f"signal to {self.label}", daemon=True
        ).start()

    def hang_up(self) -> None:
        """Closes its input: the task and all that it has started end."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def end(self, seconds: float) -> None:
        """Waits until all has been said of its end, for so long."""
        self._waiter.join(seconds)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._take_line(line.decode(errors="replace").rstrip("\r\n"))

    def _wait(self) -> None:
        code = self._process.wait()
        self._reader.join(_DRAIN_SECONDS)
        self.hang_up()
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._on_end(self, self._code_of_task(code))

    def _code_of_task(self, code: int) -> int:
        """The task's own exit code if that is known, else srun's, as -N for signal N."""
        if self.vanished and code == 0:
            return -signal.SIGKILL
        code = code if self._code is None else self._code
        return 128 - code if 128 < code < 128 + signal.NSIG else code

    def _signal(self, number: int) -> None:
        assert self.name is not None
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["scancel", f"--signal={signal.Signals(number).name.removeprefix('SIG')}", self.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                check=False,
            )

    def _take_line(self, text: str) -> None:
        before, mark, code = text.rpartition(_END)
        if self.number is None and text.startswith(_MARK):
            self._begin(text.removeprefix(_MARK))
        elif mark and code.isdecimal():
            self._code = int(code)
            if before:  # the last line of the task had no end
                self._listener.on_line(self.label, before)
        elif _SLURM_SAYS.match(text):
            self._said.append(text)
            if not _NOISE.match(text):
                self._listener.on_line(self.label, text)
        else:
            self._listener.on_line(self.label, text)

    def _begin(self, number: str) -> None:
        with self._state:
            self.number = number
            waiting = list(self._waiting)
        self._on_begin(self)
        for signal_number in waiting:
            self._signal(signal_number)


def start_at(
    task: Task, share: NodeShare, room: list[str], folder: str, command: list[str], keep_devices: bool
) -> StepStart:
    """How to start a task in a step. `room` are the options of srun that say what it takes of its node."""
    environment = {k: v for k, v in task.environment.items() if k != TOKEN}
    # Slurm numbers the GPUs of a step that has some. The launcher's numbers are those of its own machine.
    if not keep_devices:
        environment.pop("CUDA_VISIBLE_DEVICES", None)
    # srun reads variables of these names, so they are set behind it.
    behind = {k: v for k, v in environment.items() if k.startswith(("SLURM", "SRUN_"))}
    ours = {"PYTHONUNBUFFERED": "1", LAUNCHER: "stdin"}
    visible = {k: v for k, v in environment.items() if k not in behind}
    pairs = [f"{key}={value}" for key, value in sorted(behind.items())]
    srun = [
        *(
            "srun",
            *share.step_options,
            *room,
            f"--chdir={folder}",
            f"--job-name=tensorfleet-{task.job}-{task.index}",
        ),
        *("--export=ALL", "--quiet", "sh", "-c", _SHELL, "sh", *(["env", *pairs] if pairs else []), *command),
    ]
    return StepStart(srun, step_environment({**visible, **ours}), task.environment.get(TOKEN, ""))
