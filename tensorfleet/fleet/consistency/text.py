"""The value `consistency=`: what may be written, and what it means.

consistency = part | part "dense," part "sparse" | part "after" NUMBER [part]
part        = "bsp" | "backup:" NUMBER | ("ssp:" NUMBER | "asp" | "auto") [stale]
stale       = "scale" | "drop:" NUMBER
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from tensorfleet.fleet.consistency.asp import Asynchronous
from tensorfleet.fleet.consistency.auto import Adaptive
from tensorfleet.fleet.consistency.backup import Backup
from tensorfleet.fleet.consistency.bsp import BulkSynchronous
from tensorfleet.fleet.consistency.scheme import WHOLE, Dropped, Scaled, Scheme, StaleRule
from tensorfleet.fleet.consistency.ssp import StaleSynchronous

#: values as they are shown to somebody who has written another one
EXAMPLES = (
    "bsp",
    "backup:2",
    "ssp:4",
    "ssp:4 scale",
    "ssp:4 drop:8",
    "asp",
    "asp scale",
    "asp drop:8",
    "auto",
    "bsp dense, asp sparse",
    "asp after 1000 bsp",
)
_MAX_LENGTH = 200
_BOUNDED: dict[str, Callable[[int, StaleRule], Scheme]] = {
    "backup": lambda spare, _: Backup(spare),
    "ssp": StaleSynchronous,
}
_UNBOUNDED: dict[str, Callable[[StaleRule], Scheme]] = {
    "bsp": lambda _: BulkSynchronous(),
    "asp": Asynchronous,
    "auto": Adaptive,
}
_SCHEMES = (*_UNBOUNDED, *_BOUNDED)
_LATE_ARE_DROPPED = ("bsp", "backup")
_DENSE_AND_SPARSE = re.compile(r"(.+?) dense ?, ?(.+) sparse")
_AFTER = re.compile(r"(.+?) after (\S+) (.+)")


@dataclass(frozen=True)
class Schedule:
    """One scheme for all steps, or another one for the first of them."""

    scheme: Scheme
    #: the scheme of the first `steps` updates
    first: Scheme | None = None
    steps: int = 0

    def at(self, step: int) -> Scheme:
        """The scheme when so many updates have been made."""
        return self.first if self.first is not None and step < self.steps else self.scheme

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """Every scheme of it, the last one first."""
        return (self.scheme,) if self.first is None else (self.scheme, self.first)

    @property
    def aggregates(self) -> bool:
        """Whether any update is made from the gradients of several workers."""
        return any(scheme.aggregates for scheme in self.schemes)

    @property
    def text(self) -> str:
        """The schedule as it is written."""
        if self.first is None:
            return self.scheme.text
        return f"{self.scheme.text} after {self.steps} {self.first.text}"


@dataclass(frozen=True)
class Consistency:
    """What `consistency=` means: a schedule for dense gradients, and one for sparse ones."""

    dense: Schedule
    sparse: Schedule

    @property
    def is_split(self) -> bool:
        """Whether dense and sparse gradients go different ways."""
        return self.dense != self.sparse

    @property
    def text(self) -> str:
        """The value as it is written."""
        return f"{self.dense.text} dense, {self.sparse.text} sparse" if self.is_split else self.dense.text


def parse(text: object, argument: str = "consistency") -> Consistency:
    """The meaning of a text. TypeError or ValueError, which name the argument, for anything that has none."""
    if not isinstance(text, str):
        raise TypeError(f"{argument} must be a text such as 'ssp:4', not {text!r}.")
    plain = " ".join(text.split()).lower()
    try:
        if len(plain) > _MAX_LENGTH:
            raise _Unknown(f"It has {len(plain)} characters, and no value has more than {_MAX_LENGTH}.")
        return _consistency(plain)
    except _Unknown as error:
        raise ValueError(f"{argument} is {text[:_MAX_LENGTH]!r}. {error}") from None


def parse_schedule(text: object, argument: str = "consistency") -> Schedule:
    """The meaning of a text where dense and sparse gradients go the same way."""
    consistency = parse(text, argument)
    if consistency.is_split:
        raise ValueError(f"{argument} is {text!r}. Dense and sparse gradients cannot differ here: write one.")
    return consistency.dense


class _Unknown(ValueError):
    """A text without a meaning."""


def _consistency(text: str) -> Consistency:
    halves = _DENSE_AND_SPARSE.fullmatch(text)
    if halves is not None:
        return Consistency(_schedule(halves[1]), _schedule(halves[2]))
    whole = _schedule(text)
    return Consistency(whole, whole)


def _schedule(text: str) -> Schedule:
    phases = _AFTER.fullmatch(text)
    if phases is None:
        return Schedule(_scheme(text))
    last, steps, first = phases.groups()
    if not steps.isdecimal():
        raise _Unknown(
            f"The number of steps in {text!r} is {steps!r}. Write for example 'asp after 1000 bsp'."
        )
    return Schedule(_scheme(last), _scheme(first), int(steps))


def _scheme(text: str) -> Scheme:
    word, _, rest = text.partition(" ")
    name, colon, number = word.partition(":")
    if name not in _SCHEMES:
        raise _Unknown(_nearest(text))
    if name in _LATE_ARE_DROPPED and rest:
        _rule(rest, word)
        raise _Unknown(
            f"{name} has no {rest!r}: it always drops late gradients. Write {word!r}, or 'ssp:4 {rest}'."
        )
    if name in _BOUNDED:
        return _BOUNDED[name](_bound(word, name, number if colon else None), _rule(rest, word))
    if colon:
        raise _Unknown(f"{name} has no number. Write {name!r}, or 'ssp:{number or 4}' for a bound.")
    return _UNBOUNDED[name](_rule(rest, word))


def _rule(text: str, scheme: str) -> StaleRule:
    if not text:
        return WHOLE
    if text == "scale":
        return Scaled()
    name, colon, number = text.partition(":")
    if name == "drop":
        return Dropped(_bound(text, "drop", number if colon else None))
    raise _Unknown(_nearest(f"{scheme} {text}"))


def _bound(text: str, name: str, number: str | None) -> int:
    example = {"backup": 2, "ssp": 4, "drop": 8}[name]
    if number is None:
        raise _Unknown(f"{name} needs a number. Write for example '{name}:{example}'.")
    if re.fullmatch(r"-\d+", number):
        raise _Unknown(
            f"The number in {text!r} must be 0 or more, not {number}. Write for example '{name}:{example}'."
        )
    if not number.isdecimal() or len(number) > 9:
        raise _Unknown(f"The number in {text!r} is {number!r}. Write for example '{name}:{example}'.")
    return int(number)


def _nearest(text: str) -> str:
    """A sentence with the valid text that is most like another one."""
    number = re.search(r"\d+", text)
    known = [re.sub(r"\d+", number[0], one, count=1) if number else one for one in EXAMPLES]
    near = difflib.get_close_matches(text, known, 1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return f"{hint}Write one of {', '.join(map(repr, EXAMPLES))}."
