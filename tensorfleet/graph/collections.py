"""The collections of a graph: lists of anything, by name."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Iterable
from typing import Any


class Collections:
    """The methods of `tf.Graph` about collections."""

    _lock: threading.RLock
    _collections: dict[Hashable, list[Any]]

    def _check_not_finalized(self) -> None:
        raise AssertionError("given by the graph")

    @property
    def collections(self) -> list[Hashable]:
        """The names of all collections."""
        return list(self._collections)

    def add_to_collection(self, name: Hashable, value: object) -> None:
        """Appends `value` to a collection."""
        self._check_not_finalized()
        with self._lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: str | Iterable[Hashable], value: object) -> None:
        """Appends `value` to several collections, once each."""
        names = (names,) if isinstance(names, str) else names
        for name in dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Hashable) -> list[Any]:
        """The collection itself: changing the list changes the collection."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_collection(self, name: Hashable, scope: str | None = None) -> list[Any]:
        """A copy of a collection, or of its items whose name matches `scope` at the start."""
        with self._lock:
            items = self._collections.get(name, [])
            if scope is None:
                return list(items)
            matches = re.compile(scope).match
            return [item for item in items if hasattr(item, "name") and matches(item.name)]

    def get_all_collection_keys(self) -> list[str]:
        """The names of the collections that are strings."""
        with self._lock:
            return [name for name in self._collections if isinstance(name, str)]

    def clear_collection(self, name: Hashable) -> None:
        """Empties a collection."""
        self._check_not_finalized()
        with self._lock:
            self._collections.pop(name, None)
