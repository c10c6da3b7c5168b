"""The state of resources as a standby keeps it: arrays and numbers, without the resources themselves.

A standby that takes over makes a resource when a session first asks for it, and puts the content in then. Contents
that nobody has asked for yet are copied to the next standby as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.cluster.durability.changes import CALL, PUT, ROWS, TOOK, WHOLE, Change, Changes, Key
from tensorfleet.cluster.transport.tensor_bytes import malformed


class Content:
    """The state of one resource: some numbers and some arrays, then calls that came later."""

    def __init__(self, details: dict[str, Any], arrays: Sequence[Any]) -> None:
        self.details, self.arrays = details, list(arrays)
        self._is_own = False  # whether nobody else holds the array of a variable
        self.calls: list[tuple[str, Sequence[Any]]] = []

    def take(self, change: Change) -> None:
        """Applies a change to it."""
        if change.what == ROWS and len(self.arrays) == 1 and len(change.arrays) == 2:
            if not self._is_own:
                self.arrays[0], self._is_own = np.array(self.arrays[0]), True
            indices, rows = change.arrays
            self.arrays[0][indices] = rows
        elif change.what == CALL:
            self.calls.append((str(change.details.get("method")), change.arrays))
        else:
            raise malformed(f"'{change.what}' is no change of this resource")

    def send(self, key: Key, changes: Changes) -> None:
        """Adds what makes the same content elsewhere."""
        changes.add(WHOLE, key, self.details, self.arrays)
        for method, arrays in self.calls:
            changes.add(CALL, key, {"method": method}, arrays)


class QueueContent:
    """The state of a queue: its elements, by the number that each was given when it was put in."""

    def __init__(self, details: dict[str, Any], arrays: Sequence[Any]) -> None:
        self.details = details
        self.elements: dict[int, list[Any]] = {}

    def take(self, change: Change) -> None:
        """Applies a change to it."""
        if change.what == PUT:
            self.elements[int(change.details["number"])] = list(change.arrays)
        elif change.what == TOOK:
            for number in change.details["numbers"]:
                self.elements.pop(number, None)
        else:
            raise malformed(f"'{change.what}' is no change of a queue")

    def send(self, key: Key, changes: Changes) -> None:
        """Adds what makes the same content elsewhere."""
        changes.add(WHOLE, key, self.details)
        for number, arrays in self.elements.items():
            changes.add(PUT, key, {"number": number}, arrays)


AnyContent = Content | QueueContent


class Contents:
    """The contents of many resources."""

    def __init__(self) -> None:
        self.of: dict[Key, AnyContent] = {}

    def take(self, change: Change) -> None:
        """Applies a change to the resource that it is about."""
        key = Key(*change.about)
        if change.what == WHOLE:
            self._take_whole(key, change)
            return
        content = self.of.get(key)
        if content is None:
            raise malformed(f"a change of '{key.name}', which is not here")
        content.take(change)

    def _take_whole(self, key: Key, change: Change) -> None:
        known = self.of.get(key)
        if key.kind != "queue":
            self.of[key] = Content(change.details, change.arrays)
        elif isinstance(known, QueueContent) and not change.details.get("is_new"):
            known.details = change.details  # it was closed; its elements stay
        else:
            self.of[key] = QueueContent(change.details, change.arrays)

    def drop(self, containers: Sequence[str] | None) -> None:
        """Forgets the resources of some containers that belong to no session, or of all."""
        self._keep(
            lambda key: bool(key.scope) or (containers is not None and key.container not in containers)
        )

    def drop_session(self, session: str) -> None:
        """Forgets the resources of a session."""
        self._keep(lambda key: key.scope != session)

    def _keep(self, wanted: Any) -> None:
        self.of = {key: content for key, content in self.of.items() if wanted(key)}
