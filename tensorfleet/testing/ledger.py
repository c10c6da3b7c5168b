"""A ledger of what a client tried and what was acknowledged, and a checker of that history against the final state.

A client writes a line before each attempt and one after its acknowledgement, so that a process that is killed at any
moment has said all that it knows:

    b 400                    a life of the client begins; its attempts have numbers from 400 on
    t rows 401               it tries to do 401 in a history that it calls "rows"
    a rows 401 12.5 [7]      that was acknowledged at the time 12.5, with the value 7
    e rows 402 AbortedError  it ended with an error: nobody knows whether it was done

The checks return sentences, one for each violation; an empty list is a history without any.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

_Value = TypeVar("_Value")
_MAX_SHOWN = 5


class LedgerWriter:
    """Writes a client's lines, each at once: a killed client leaves half a line at most."""

    def __init__(self, path: str | os.PathLike[str], life: int) -> None:
        _cut_half_line(path)
        self._file = open(path, "a", buffering=1)  # noqa: SIM115 - open as long as the client lives
        self._write(f"b {life}")

    def __enter__(self) -> LedgerWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def run(self, kind: str, number: int, act: Callable[[], _Value]) -> _Value:
        """Does something that is to be found once in the final state, and returns its value."""
        self._write(f"t {kind} {number}")
        try:
            value = act()
        except Exception as e:
            self._write(f"e {kind} {number} {json.dumps(f'{type(e).__name__}: {e}')}")
            raise
        self._write(f"a {kind} {number} {time.monotonic()} {json.dumps(value)}")
        return value

    def _write(self, line: str) -> None:
        self._file.write(f"{line}\n")


def _cut_half_line(path: str | os.PathLike[str]) -> None:
    """Takes away what a client that was killed has left behind the last whole line."""
    if os.path.exists(path):
        with open(path, "rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An attempt that was acknowledged."""

    number: int
    #: `time.monotonic()` of this machine
    at: float
    value: object
    #: the number with which the life of its client began
    life: int


@dataclass
class History:
    """What a client, through all its lives, has tried and got acknowledged in one of its histories."""

    attempts: list[int] = field(default_factory=list)
    acknowledged: list[Acknowledgement] = field(default_factory=list)

    @property
    def done(self) -> set[int]:
        """The numbers that were acknowledged."""
        return {one.number for one in self.acknowledged}

    @property
    def uncertain(self) -> set[int]:
        """The numbers that were tried and not acknowledged."""
        return set(self.attempts) - self.done

    def by_life(self) -> dict[int, list[Acknowledgement]]:
        """The acknowledgements of each life."""
        result: dict[int, list[Acknowledgement]] = {}
        for one in self.acknowledged:
            result.setdefault(one.life, []).append(one)
        return result


class Ledger:
    """Reads what a client has written down so far."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.histories: dict[str, History] = {}
        #: the text of the errors that the client has seen
        self.failures: list[str] = []
        #: when an attempt was acknowledged, in order
        self.times: list[float] = []
        self._life = 0
        self._last = -1
        self._read = 0

    def of(self, kind: str) -> History:
        """One of the client's histories."""
        self.read()
        return self.histories.setdefault(kind, History())

    def acknowledged(self) -> int:
        """How many attempts were acknowledged so far."""
        self.read()
        return len(self.times)

    def next(self) -> int:
        """A number that is above all that were used."""
        self.read()
        return self._last + 1

    def read(self) -> None:
        """Takes in the lines that were added since. Half a line, of a client that was killed, is none."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        if whole:
            self._read += len(whole) + 1
            for line in whole.decode().split("\n"):
                self._take(line)

    def _take(self, line: str) -> None:
        what, _, rest = line.partition(" ")
        if what == "b":
            self._life = int(rest)
            self._last = max(self._last, self._life - 1)
            return
        kind, number, *more = rest.split(" ", 3)
        history = self.histories.setdefault(kind, History())
        if what == "t":
            history.attempts.append(int(number))
            self._last = max(self._last, int(number))
        elif what == "a":
            at, value = more
            self.times.append(float(at))
            history.acknowledged.append(
                Acknowledgement(int(number), float(at), json.loads(value), self._life)
            )
        else:
            self.failures.append(f"{kind} {number}: {' '.join(more)}")


# -- the checks ---------------------------------------------------------------------------------------


def check_marks(
    name: str, history: History, counts: Mapping[int, int], mark: Callable[[int], int] = int
) -> list[str]:
    """Each attempt adds one to its mark in the state: once if it was acknowledged, else at most once.

    `counts` are those of the marks in the state, `mark` gives the mark of a number.
    """
    least = Counter(mark(number) for number in history.done)
    most = Counter(mark(number) for number in set(history.attempts))
    return [
        *_violation(name, "in the state less than no time", [m for m in counts if counts[m] < 0]),
        *_violation(
            name, "acknowledged, but not in the state", [m for m in least if counts.get(m, 0) < least[m]]
        ),
        *_violation(name, "in the state too often", [m for m in counts if counts[m] > most[m] > 0]),
        *_violation(
            name, "in the state, but never tried", [m for m in counts if counts[m] > 0 and not most[m]]
        ),
    ]


def check_count(name: str, history: History, count: int) -> list[str]:
    """A counter that each attempt adds one to."""
    least, most = len(history.done), len(set(history.attempts))
    if least <= count <= most:
        return []
    return [f"{name}: it counts {count}, of {most} tried and {least} acknowledged"]


def check_transfer(name: str, puts: History, takes: History, rest: Iterable[int]) -> list[str]:
    """Numbers that one client puts into a first-in first-out queue and another one takes; `rest` is what it holds."""
    taken = [int(str(one.value)) for one in takes.acknowledged]
    out = Counter(taken) + Counter(rest)
    lost = puts.done - set(out)
    # A take without an acknowledgement may have taken one.
    found = (
        _violation(name, "acknowledged, but taken by nobody", lost)
        if len(lost) > len(takes.uncertain)
        else []
    )
    return [
        *found,
        *_violation(name, "taken more than once", [number for number, count in out.items() if count > 1]),
        *_violation(name, "taken, but never put in", set(out) - set(puts.attempts)),
        *check_order(name, taken),
    ]


def check_order(name: str, values: Sequence[float]) -> list[str]:
    """What one session reads of something that only grows."""
    pairs = itertools.pairwise(values)
    back = [f"{after} after {before}" for before, after in pairs if after < before]
    return _violation(name, "it went back", back)


def check_reads(name: str, history: History) -> list[str]:
    """The same for the reads of each life of a client."""
    lives = history.by_life().items()
    return [
        text
        for life, reads in lives
        for text in check_order(f"{name}, life {life}", [int(str(one.value)) for one in reads])
    ]


def check_replay(name: str, history: History, steps: Callable[[int], Iterator[object]]) -> list[str]:
    """The value after each step of a life is that of the same steps in one process: `steps(life)` gives these in turn."""
    result = []
    for life, done in history.by_life().items():
        for one, wanted in zip(done, steps(life), strict=False):
            if one.value != wanted:
                result.append(f"{name}, life {life}: {one.value!r} at {one.number} instead of {wanted!r}")
                break
    return result


def pause_after(ledger: Ledger, moment: float, least: float = 0.005) -> float:
    """From a fault to the next acknowledgement. One `least` seconds after it was on its way already."""
    ledger.read()
    return next((at - moment for at in ledger.times if at > moment + least), float("inf"))


def longest_pause(ledger: Ledger, moment: float) -> float:
    """The longest time between two acknowledgements since a moment."""
    ledger.read()
    since = [moment, *(at for at in ledger.times if at > moment)]
    return max((after - before for before, after in itertools.pairwise(since)), default=float("inf"))


def _violation(name: str, what: str, found: Iterable[object]) -> list[str]:
    items = sorted(found, key=str)
    if not items:
        return []
    shown = ", ".join(map(str, items[:_MAX_SHOWN]))
    return [f"{name}: {len(items)} {what}: {shown}{', ...' if len(items) > _MAX_SHOWN else ''}"]
