"""What a run shows: every task's lines with its name before them, a status line below, a log file each."""

from __future__ import annotations

import re
import shutil
from collections import deque
from pathlib import Path
from typing import TextIO

from tensorfleet.platform.status import told

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_KEPT = 400  # lines of each task to look for the reason of a failure in
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
        self.tails: dict[str, deque[str]] = {label: deque(maxlen=_KEPT) for label in labels}
        self._logs: dict[str, TextIO] = {}
        if log_dir is not None:
            log_dir.mkdir(parents=True, exist_ok=True)
            for label in labels:
                self._logs[label] = log_path(log_dir, label).open("w", buffering=1)
        self._status = ""

    def line(self, label: str, text: str) -> None:
        """One line of a task."""
        self.tails[label].append(text)
        if label in self._logs:
            self._logs[label].write(text + "\n")
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
            log.close()

    def _print(self, text: str) -> None:
        self._clear()
        self._stream.write(text + "\n")
        self._draw()
        self._stream.flush()

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


class Progress:
    """Reads from tasks' lines how far they are and how fast."""

    def __init__(self, start: float, statuses: dict[str, Path] | None = None) -> None:
        self._start = start
        self._statuses = statuses or {}  # where tasks tell the loss among their summaries
        self._steps: dict[str, deque[tuple[float, int]]] = {}
        self._rates: dict[str, float] = {}

    def line(self, label: str, text: str, now: float) -> None:
        """Takes note of the step that a line tells."""
        if rate := _RATE.search(text):
            self._rates[label] = float(rate[1])
        elif step := _GLOBAL_STEP.search(text) or _STEP.search(text):
            self._steps.setdefault(label, deque(maxlen=20)).append((now, int(step[1])))

    def text(self, now: float, running: int, total: int) -> str:
        """The status line."""
        seconds = int(now - self._start)
        tellings = [found for path in self._statuses.values() if (found := told(path)) is not None]
        parts = [f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", f"{running}/{total} tasks"]
        steps = [seen[-1][1] for seen in self._steps.values()] + [step for step, _ in tellings]
        if steps:
            parts.append(f"step {max(steps)}")
        if tellings:
            parts.append(f"loss {max(tellings)[1]:.4g}")
        for label in sorted({*self._steps, *self._rates}):
            rate = self._rates.get(label, self._rate(label))
            if rate is not None:
                parts.append(f"{label} {rate:.3g}/s")
        return " " + "  |  ".join(parts) + " "

    def _rate(self, label: str) -> float | None:
        if label not in self._steps:
            return None
        (first, a), (last, b) = self._steps[label][0], self._steps[label][-1]
        return (b - a) / (last - first) if last > first and b > a else None
