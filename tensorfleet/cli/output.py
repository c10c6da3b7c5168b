"""What a run shows: every task's lines with its name before them, a status line below, a log file each."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections import deque
from io import FileIO
from pathlib import Path
from typing import TextIO

from tensorfleet.base.log_lines import as_json_line, plain_text
from tensorfleet.base.run_status import read_status

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_RATE_STEPS = 20  # that a rate is computed from
_TAIL_LINES = 400  # of each task, to find the traceback of a failure in
_GLOBAL_STEP = re.compile(r"global[_ ]?step\D{0,20}?(\d+)", re.IGNORECASE)
_STEP = re.compile(r"\bstep\D{0,12}?(\d+)", re.IGNORECASE)
_RATE = re.compile(r"global_step/sec\D{0,3}([\d.]+)", re.IGNORECASE)


class Output:
    """Prints lines of tasks as they come, and keeps the last of them."""

    def __init__(self, labels: list[str], stream: TextIO, log_dir: Path | None) -> None:
        self._stream = stream
        self._live = stream.isatty()
        width = max(len(label) for label in labels)
        self._prefixes = {
            label: self._coloured(f"[{label}]".ljust(width + 3), _COLOURS[i % len(_COLOURS)])
            for i, label in enumerate(labels)
        }
        if len(labels) == 1:
            self._prefixes = {labels[0]: ""}
        self.tails: dict[str, deque[str]] = {label: deque(maxlen=_TAIL_LINES) for label in labels}
        self._status = ""
        self._logs: dict[str, FileIO] = {}
        self._has_warned = False
        self._log_dir = log_dir
        if log_dir is not None:
            self._open_logs(log_dir, labels)

    def _open_logs(self, log_dir: Path, labels: list[str]) -> None:
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
            for label in labels:
                # Nothing is held back: a line that a full disk refuses must not come up again with the next.
                self._logs[label] = FileIO(log_path(log_dir, label), "w")
        except OSError as error:
            self._warn(log_dir, error)

    def line(self, label: str, text: str) -> None:
        """One line of a task."""
        self.tails[label].append(text)
        if label in self._logs:
            self._log(label, text)
        # What a progress bar draws over itself is worth its last state.
        self._print(self._prefixes[label] + text.rpartition("\r")[2])

    def note(self, text: str) -> None:
        """A line of the launcher's own."""
        self._print(self._coloured(f"tensorfleet: {text}", 2))

    def status(self, text: str) -> None:
        """The line below everything; shown on terminals only."""
        if self._live and text != self._status:
            self._clear()
            self._status = text
            self._draw()

    def close(self) -> None:
        """Takes the status line away and closes the logs."""
        self._clear()
        self._status = ""
        self._stream.flush()
        for log in self._logs.values():
            with contextlib.suppress(OSError):  # some file systems tell only here; the run is over
                log.close()

    def _log(self, label: str, text: str) -> None:
        log = self._logs[label]
        try:
            log.write(f"{text}\n".encode(errors="replace"))
        except OSError as error:
            self._warn(log.name, error)

    def _warn(self, path: object, error: OSError) -> None:
        """Says once that logs are not complete: the training is worth more than what is said about it."""
        if not self._has_warned:
            self._has_warned = True
            self.note(f"cannot write the log {path}: {error.strerror}. The run continues without it.")

    def _print(self, text: str) -> None:
        try:
            self._clear()
            self._stream.write(text + "\n")
            self._draw()
            self._stream.flush()
        except BrokenPipeError:
            raise  # nobody reads us any more
        except OSError as error:
            self._print_no_more(error)

    def _print_no_more(self, error: OSError) -> None:
        """Goes on where the output is a file on a full disk. Python would try again what it could not write."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        kept = f" The output is in {self._log_dir}." if self._logs else ""
        with contextlib.suppress(OSError):  # the same file, perhaps
            print(
                f"tensorfleet: cannot write the output: {error.strerror}. The run continues without it.{kept}",
                file=sys.stderr,
                flush=True,
            )

    def _clear(self) -> None:
        if self._status:
            self._stream.write("\r\x1b[2K")

    def _draw(self) -> None:
        if self._status:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\x1b[7m{self._status[:width]}\x1b[0m")
            self._stream.flush()

    def _coloured(self, text: str, colour: int) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._live else text


def log_path(log_dir: Path, label: str) -> Path:
    """Where a task's output is kept."""
    return log_dir / f"{label.replace('/', '-')}.log"


class JsonOutput(Output):
    """Prints each line as a JSON object, and keeps it so in the logs. There is no status line."""

    def __init__(self, labels: list[str], stream: TextIO, log_dir: Path | None) -> None:
        super().__init__(labels, stream, log_dir)
        self._live = False

    def line(self, label: str, text: str) -> None:
        """One line of a task."""
        self.tails[label].append(plain_text(text))  # the report of a failure reads it
        line = as_json_line(label, text, time.time())
        if label in self._logs:
            self._log(label, line)
        self._print(line)

    def note(self, text: str) -> None:
        """A line of the launcher's own."""
        self._print(as_json_line("launcher", text, time.time(), "INFO"))


class Progress:
    """Reads from tasks' lines how far they are and how fast."""

    def __init__(self, start: float, statuses: dict[str, Path] | None = None) -> None:
        self._start = start
        self._statuses = statuses or {}  # where tasks tell the loss among their summaries
        self._global: deque[tuple[float, int]] = deque(maxlen=_RATE_STEPS)
        self._global_rate: float | None = None
        self._own: dict[str, deque[tuple[float, int]]] = {}  # each task's own count of steps

    def line(self, label: str, text: str, now: float) -> None:
        """Takes note of the steps that a line tells: the global one, and the task's own where that is another."""
        if rate := _RATE.search(text):
            self._global_rate = float(rate[1]) or None
            return
        if step := _GLOBAL_STEP.search(text):
            self._add_global(now, int(step[1]))
        if own := _STEP.search(_GLOBAL_STEP.sub("", text)):
            self._own.setdefault(label, deque(maxlen=_RATE_STEPS)).append((now, int(own[1])))
            if not step:
                self._add_global(now, int(own[1]))

    def _add_global(self, now: float, step: int) -> None:
        if not self._global or step >= self._global[-1][1]:  # lines of several tasks come out of order
            self._global.append((now, step))

    def text(self, now: float, running: int, total: int) -> str:
        """The status line: the global step and its rate, the loss, each worker's own steps per second."""
        seconds = int(now - self._start)
        tellings = {label: read_status(path) for label, path in self._statuses.items()}
        parts = [f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", f"{running}/{total} tasks"]
        losses = [(t.step, t.loss) for t in tellings.values() if t.step is not None and t.loss is not None]
        steps = [step for step, _ in losses] + [step for _, step in [*self._global][-1:]]
        if steps:
            rate = self._global_rate or _per_second(self._global)
            parts.append(f"step {max(steps)}" + (f" ({_rate(rate)})" if rate else ""))
        if losses:
            parts.append(f"loss {max(losses)[1]:.4g}")
        rates = {label: _per_second(seen) for label, seen in self._own.items()}
        rates |= {label: t.rate for label, t in tellings.items() if t.rate is not None}
        parts += [f"{label} {_rate(rate)}" for label, rate in sorted(rates.items()) if rate is not None]
        return " " + "  |  ".join(parts) + " "


def _per_second(seen: deque[tuple[float, int]]) -> float | None:
    if not seen:
        return None
    (first, a), (last, b) = seen[0], seen[-1]
    return (b - a) / (last - first) if last > first and b > a else None


def _rate(rate: float) -> str:
    """Steps per second with three digits: 0.125/s, 42.7/s, 1,030/s."""
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"
