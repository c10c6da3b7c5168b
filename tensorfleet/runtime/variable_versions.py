"""The versions of variables that one step has read, and those that it has updated: how stale its gradients are.

The items of a program note them in a step that is measured, and in no other. They do so for a few variables of a session
that it both reads and updates: to note thousands takes longer than many a step. A variable is known by its number
(`VariableStore.order`), so that a server can tell a client the versions without names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorfleet.runtime.resources import VariableStore
    from tensorfleet.runtime.variable_packs import VariablePack

_MAX_WATCHED = 16
#: pairs of a variable's number and its version
Pairs = Iterable[tuple[int, int]]


class WatchedVariables:
    """Some variables that programs of a session read and others of its programs, or parts of them, update."""

    __slots__ = ("_read", "_updated", "stores")

    def __init__(self) -> None:
        self.stores: frozenset[VariableStore] = frozenset()
        self._read: set[VariableStore] = set()
        self._updated: set[VariableStore] = set()

    def add(self, read: Iterable[VariableStore], updated: Iterable[VariableStore]) -> None:
        """Adds what a new program does. Variables that are watched already go on being so."""
        self._read.update(read)
        self._updated.update(updated)
        room = _MAX_WATCHED - len(self.stores)
        if room > 0:
            fresh = sorted((self._read & self._updated) - self.stores, key=lambda store: store.order)
            self.stores |= frozenset(fresh[:: -(-len(fresh) // room) or 1])

    def numbers(self) -> set[int]:
        """The numbers of the variables."""
        return {store.order for store in self.stores}


class VariableVersions:
    """What a step has seen of the variables of one task. Several threads may note at the same time."""

    __slots__ = ("read", "updated", "watched")

    def __init__(self) -> None:
        #: the variables to note: the session knows them
        self.watched: frozenset[VariableStore] = frozenset()
        #: by the number of the variable, the version that was read first
        self.read: dict[int, int] = {}
        #: the version that the first update of this step has changed
        self.updated: dict[int, int] = {}

    def note_read(self, stores: Set[VariableStore]) -> None:
        """Notes variables whose values were just read."""
        for store in self.watched & stores:
            self.read.setdefault(store.order, store.updates)

    def note_update(self, stores: Set[VariableStore], packs: Collection[VariablePack] = ()) -> None:
        """Notes variables that are about to be updated. The caller holds their locks.

        An update of a pack counts for each variable in it: they are noted before a later update of the step finds it.
        """
        for store in self.watched:
            if store in stores or (packs and store.pack in packs):
                self.updated.setdefault(store.order, store.updates)

    def add(self, read: Pairs, updated: Pairs = ()) -> None:
        """Adds what another part of the step has seen in the same task."""
        for known, pairs in ((self.read, read), (self.updated, updated)):
            for number, version in pairs:
                known[number] = min(version, known.get(number, version))

    def staleness(self) -> int | None:
        """The most updates that others made of a variable between the read and the update of it; None without both.

        A variable that was only read after the update does not count.
        """
        read = self.read
        ages = [version - read[number] for number, version in self.updated.items() if number in read]
        return max((age for age in ages if age >= 0), default=None)
