"""`tf.keras.utils.Progbar`: how far a long piece of work is, on one line."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np


class Progbar:
    """A bar of `target` steps with the means of values; `verbose` 1 redraws it, 2 writes one line at the end."""

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.stateful_metrics = set(stateful_metrics or ())
        self.unit_name = unit_name
        self._redraws = hasattr(sys.stdout, "isatty") and sys.stdout.isatty()
        self._length = 0
        self._seen = 0
        self._values: dict[str, list] = {}
        self._start = time.time()
        self._last = 0.0

    def update(self, current: int, values: Any = None) -> None:
        """Goes to a step, with (name, value) pairs of it."""
        grown = current - self._seen
        for name, value in values or ():
            if name in self.stateful_metrics:
                self._values[name] = [value, 1]
            elif name not in self._values:
                self._values[name] = [value * max(grown, 1), max(grown, 1)]
            else:
                self._values[name][0] += value * max(grown, 1)
                self._values[name][1] += max(grown, 1)
        self._seen = current
        done = self.target is not None and current >= self.target
        if self.verbose == 1:
            now = time.time()
            if now - self._last < self.interval and not done:
                return
            self._draw(current, now, done)
            self._last = now
        elif self.verbose == 2 and done:
            count = f"{current}/{self.target}"
            sys.stdout.write(f"{count} - {time.time() - self._start:.0f}s{self._written()}\n")
            sys.stdout.flush()

    def add(self, n: int, values: Any = None) -> None:
        """Goes on by some steps."""
        self.update(self._seen + n, values)

    def _written(self) -> str:
        results = []
        for name, kept in self._values.items():
            mean = float(np.mean(kept[0] / max(1, kept[1])))
            results.append(f" - {name}: {mean:.4f}" if abs(mean) > 1e-3 else f" - {name}: {mean:.4e}")
        return "".join(results)

    def _draw(self, current: int, now: float, done: bool) -> None:
        spent = now - self._start
        line = self._bar(current)
        per_step = spent / current if current else 0.0
        if self.target is not None and not done:
            line += f" - ETA: {_remaining(per_step * (self.target - current))}"
        else:
            line += f" - {spent:.0f}s {_pace(per_step)}/{self.unit_name}"
        line += self._written()
        padding = " " * (self._length - len(line))
        self._length = len(line)
        start = "\b" * 0 + "\r" if self._redraws or self._last else ""
        sys.stdout.write(start + line + padding + ("\n" if done else ""))
        sys.stdout.flush()

    def _bar(self, current: int) -> str:
        if self.target is None:
            return f"{current:7d}/Unknown"
        width = len(str(self.target))
        filled = int(self.width * min(current / self.target, 1.0)) if self.target else self.width
        bar = ""
        if filled > 0:
            bar = "=" * (filled - 1) + (">" if current < self.target else "=")
        return f"{current:{width}d}/{self.target} [{bar}{'.' * (self.width - filled)}]"


def _remaining(seconds: float) -> str:
    whole = int(seconds)
    if seconds > 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}" if seconds > 60 else f"{whole}s"


def _pace(seconds: float) -> str:
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"
