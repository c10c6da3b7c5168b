"""How often programs read which variables: from the list of each program and the number of its runs.

A run counts itself and no variable. The reads of variables are added up when somebody asks, or when the program is gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorfleet.runtime.resources import VariableStore

_MAX_UNSETTLED = 256  # programs; then those that are gone are taken out


class VariableUse:
    """The runs of one program, and the variables whose whole value a run takes."""

    __slots__ = ("__weakref__", "_settled", "owner", "reads", "runs")

    def __init__(self, owner: object, reads: Iterable[VariableStore]) -> None:
        self.owner = weakref.ref(owner)
        self.reads = list(reads)
        self.runs = 0
        self._settled = 0

    def settle(self) -> None:
        """Adds the reads since the last time to the counts of the variables."""
        runs = self.runs
        more = runs - self._settled
        if more:
            self._settled = runs
            for store in self.reads:
                store.count_reads(more, more * size_of(store.value))


class VariableUses:
    """The programs that use the variables of a server or session."""

    def __init__(self) -> None:
        self._uses: list[VariableUse] = []
        self._lock = threading.Lock()

    def add(self, owner: object, reads: Iterable[VariableStore]) -> VariableUse:
        """Notes a program, which counts its runs in the result."""
        use = VariableUse(owner, reads)
        if use.reads:
            with self._lock:
                self._uses.append(use)
                if len(self._uses) % _MAX_UNSETTLED == 0:
                    self._settle()
        return use

    def settle(self) -> None:
        """Brings the counts of all variables up to date."""
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        for use in self._uses:
            use.settle()
        self._uses = [use for use in self._uses if use.owner() is not None]


def size_of(value: Any) -> int:
    """The bytes of a variable's value; of strings those of the array that holds them."""
    return int(getattr(value, "nbytes", 0))
