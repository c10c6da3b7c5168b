"""What changes on a server that leads a durable task: noted while a stage runs, copied to the standby at its end."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.cluster.durability.changes import (
    CALL,
    DROP,
    OVER,
    PUT,
    ROWS,
    TOOK,
    WHOLE,
    Changes,
    Key,
    can_be_sent,
    decode,
)
from tensorfleet.cluster.durability.contents import Content, Contents, QueueContent
from tensorfleet.cluster.durability.results import RequestName, Result, Results
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.state.accumulators import Accumulator
from tensorfleet.state.agreement import Agreement
from tensorfleet.state.gradient_tallies import GATE_KIND, GATE_MEMBER_KIND
from tensorfleet.state.keyed_rows import KeyedRows
from tensorfleet.state.queues import Queue
from tensorfleet.state.shard_deals import ShardDealer
from tensorfleet.state.tables import Table

if TYPE_CHECKING:
    from tensorfleet.cluster.durability.stage_run import StageRun
    from tensorfleet.runtime.engine import LocalEngine
    from tensorfleet.state.queues import Attempt, Element

_STREAM = "random stream"
# The resources that a standby has a copy of.
_COPIED = (VariableStore, Queue, Accumulator, Table, ShardDealer, KeyedRows, Agreement)
# A table is copied anew when the calls since the last copy have brought so many entries, or as many as it has.
_MIN_CALLED_ENTRIES = 1024

# Kinds of resources that the workers make anew, each with its next step: nothing of them is lost.
_MADE_ANEW = ("replica", "collective", "saved values", GATE_KIND, GATE_MEMBER_KIND)


class _AlwaysShown:
    """Stands among the boards of a variable, so that each of its changes is told."""

    def post(self, place: int, value: object) -> None:
        """Shows nothing."""


_ALWAYS = (_AlwaysShown(), 0)


class Journal:
    """The changes of one server's resources. Its lock is held by the one stage that may change them."""

    def __init__(self, send: Callable[[int, Changes], None]) -> None:
        """`send` copies changes, with the number of their commit, and returns when they cannot be lost."""
        self.lock = threading.Lock()
        self.number = 0
        self.results = Results()
        #: what a server that led before has left, of resources that nobody has asked for since
        self.contents = Contents()
        #: who runs now; what is noted is its doing
        self.current: StageRun | None = None
        #: how many changes were noted: of any kind, and those that an attempt can go on behind
        self.noted = self.resumable = 0
        self._send = send
        self._resources: dict[int, tuple[Key, Any]] = {}
        self._by_key: dict[Key, Any] = {}
        self._numbers: dict[int, dict[int, tuple[int, Element]]] = {}
        self._next_number = itertools.count(1)
        self._pending = Changes()
        self._dirty: dict[int, Any] = {}
        self._rows: dict[int, list[Any]] = {}
        self._called: dict[int, int] = {}
        self._streams: dict[Key, Any] = {}
        self._warned: set[str] = set()

    # -- the resources --------------------------------------------------------------------------------

    def adopter(self, scope: str = "") -> Callable[[str, str, str, Any], None]:
        """What a resource manager tells of the resources that it makes; `scope` is the session that has it alone."""

        def adopt(container: str, kind: str, name: str, resource: Any) -> None:
            self._adopt(Key(scope, container, kind, name), resource)

        return adopt

    def _adopt(self, key: Key, resource: Any) -> None:
        if not isinstance(resource, _COPIED) or type(resource).__name__ == "Mutex":
            if key.kind not in _MADE_ANEW and key.kind not in self._warned:
                self._warned.add(key.kind)
                logging.warning(
                    "The %s '%s' is on a durable parameter server, but has no copy on the standby: it is lost with the "
                    "server. docs/durability.md lists what is kept.",
                    key.kind,
                    key.name,
                )
            return
        self._resources[id(resource)] = key, resource
        self._by_key[key] = resource
        content = self.contents.of.pop(key, None)
        if isinstance(resource, Queue):
            self._restore_queue(resource, content)
        elif isinstance(content, Content):
            _restore(resource, content)
        if isinstance(resource, VariableStore):
            resource.boards = (*resource.boards, _ALWAYS)
        resource.recorder = self
        if content is None and not isinstance(resource, VariableStore):
            self._dirty[id(resource)] = (
                resource  # the standby has to know of it before elements and calls come
            )

    def _restore_queue(self, queue: Queue, content: Any) -> None:
        numbers = self._numbers[id(queue)] = {}
        if not isinstance(content, QueueContent):
            return
        for number, arrays in content.elements.items():
            element: Element = (arrays, -1)
            queue.push(element)
            numbers[id(element)] = number, element
        queue.closed = bool(content.details.get("closed"))
        first = max(content.elements, default=0) + 1
        self._next_number = itertools.count(max(first, next(self._next_number)))

    def watch_session(self, session: str, engine: LocalEngine) -> None:
        """Has the resources that belong to one session alone, and its random streams, copied too."""
        engine.private.adopt = self.adopter(session)
        for key, content in list(self.contents.of.items()):
            if key.scope == session and key.kind == _STREAM and isinstance(content, Content):
                self._streams[key] = content.arrays[0]
                del self.contents.of[key]
        engine.streams.begin_at(
            {key.name: state for key, state in self._streams.items() if key.scope == session}
        )

    def set_aside(self, session: str) -> None:
        """Keeps what belongs to a session whose client was lost: it may come back. The caller holds the lock."""
        for i, (key, _) in list(self._resources.items()):
            if key.scope == session:
                changes = self.content(key)
                for change in decode(changes.described(), changes.arrays):
                    self.contents.take(change)
                del self._resources[i], self._by_key[key]

    def forget_session(self, session: str) -> None:
        """Forgets what belongs to a session that is closed. The caller holds the lock."""
        self._forget(lambda key: key.scope == session)
        self._streams = {key: state for key, state in self._streams.items() if key.scope != session}
        self.contents.drop_session(session)
        self.results.forget_session(session)
        self._pending.add(DROP, ["session"], {"session": session})

    def forget_containers(self, containers: Sequence[str] | None) -> None:
        """Notes that containers were dropped, or all. The caller holds the lock."""
        self._forget(lambda key: not key.scope and (containers is None or key.container in containers))
        self.contents.drop(containers)
        self._pending.add(DROP, ["containers"], {"containers": containers})

    def _forget(self, is_gone: Callable[[Key], bool]) -> None:
        for i, (key, resource) in list(self._resources.items()):
            if is_gone(key):
                del self._resources[i]
                if self._by_key.get(key) is resource:
                    del self._by_key[key]

    # -- what resources tell --------------------------------------------------------------------------

    def changed(self, resource: Any) -> None:
        """A resource has another value, and the whole of it is to be copied."""
        self._dirty[id(resource)] = resource
        self.noted += 1

    def rows_changed(self, resource: Any, indices: Any) -> None:
        """Some rows of a variable have other values."""
        self._rows.setdefault(id(resource), []).append(np.asarray(indices).ravel())
        self.noted += 1

    def put(self, queue: Queue, element: Element) -> None:
        """An element was added to a queue."""
        known = self._resources.get(id(queue))
        if known is None:
            return
        number = next(self._next_number)
        self._numbers[id(queue)][id(element)] = number, element
        self._flush(queue)
        self._pending.add(PUT, known[0], {"number": number}, _components(element))
        self.noted += 1
        self.resumable += 1

    def attempted(self, queue: Any, attempt: Attempt) -> None:
        """A stage begins an attempt on a queue."""
        if self.current is not None:
            self.current.attempted(queue, attempt)

    def took(self, queue: Queue, taken: Sequence[Any]) -> None:
        """Elements were taken from a queue for good."""
        known = self._resources.get(id(queue))
        if known is None or not taken:
            return
        numbers = self._numbers[id(queue)]
        gone = [numbers.pop(id(element), (0, element))[0] for element in queue.elements_of(taken)]
        self._flush(queue)
        self._pending.add(TOOK, known[0], {"numbers": gone})
        self.noted += 1

    def called(self, table: Table | KeyedRows, method: str, arrays: Sequence[Any]) -> None:
        """A method that changes a table was called."""
        known = self._resources.get(id(table))
        if known is None:
            return
        self.noted += 1
        entries = self._called.get(id(table), 0) + np.size(arrays[0])
        if entries > max(_MIN_CALLED_ENTRIES, table.size()):
            self.changed(table)
        if id(table) in self._dirty:  # its whole content is sent at the end, with this
            self._called[id(table)] = 0
            return
        self._called[id(table)] = entries
        self._pending.add(CALL, known[0], {"method": method}, arrays)

    def _flush(self, queue: Queue) -> None:
        """Has the standby know of a queue before it hears of its elements."""
        if self._dirty.pop(id(queue), None) is not None:
            self._pending.add(WHOLE, self._resources[id(queue)][0], {"closed": queue.closed})

    # -- commits --------------------------------------------------------------------------------------

    def commit(
        self,
        results: Sequence[tuple[RequestName, int, Result]] = (),
        engine: LocalEngine | None = None,
        session: str = "",
        oldest: int = 0,
    ) -> None:
        """Copies what has changed, with the results of who changed it. The caller holds the lock."""
        changes = self._collect(engine, session)
        for request, item, result in results:
            self.results.note(request, item, result)
            result.add_to(changes, request, item)
        if oldest:
            self.results.over(session, oldest)
        if not changes:
            return
        if oldest:
            changes.add(OVER, [session, oldest])
        self.number += 1
        shown = [self._resources[i][1] for i in {**self._dirty, **self._rows} if i in self._resources]
        self._dirty, self._rows = {}, {}
        self._send(self.number, changes)
        for resource in shown:
            if isinstance(resource, VariableStore):
                for board, place in resource.boards:
                    board.post(place, resource.value)

    def has_changes(self) -> bool:
        """Whether anything was noted since the last commit."""
        return bool(self._pending or self._dirty or self._rows)

    def _collect(self, engine: LocalEngine | None, session: str) -> Changes:
        changes, self._pending = self._pending, Changes()
        for i, resource in self._dirty.items():
            known = self._resources.get(i)
            if known is not None:
                _add_whole(changes, known[0], resource, {})
        for i, parts in self._rows.items():
            known = self._resources.get(i)
            if known is not None and i not in self._dirty:
                indices = parts[0] if len(parts) == 1 else np.concatenate(parts)
                changes.add(ROWS, known[0], {}, [indices, np.asarray(known[1].value)[indices]])
        if engine is not None:
            for op, state in engine.streams.states():
                key = Key(session, "", _STREAM, op.name)
                if self._streams.get(key) is not state:
                    self._streams[key] = state
                    changes.add(WHOLE, key, {}, [state])
        return changes

    # -- a new standby --------------------------------------------------------------------------------

    def all_keys(self) -> list[Key]:
        """The names of all that there is to copy. The caller holds the lock."""
        return [*self._by_key, *self._streams, *self.contents.of]

    def as_contents(self, variables: Sequence[tuple[str, str]] | None = None) -> Contents:
        """All that there is, or some variables by container and name, as a standby keeps it.

        The caller holds the lock, and has committed everything.
        """
        result = Contents()
        for key in (
            self.all_keys() if variables is None else [Key("", c, "variable", n) for c, n in variables]
        ):
            changes = self.content(key)
            for change in decode(changes.described(), changes.arrays):
                result.take(change)
        return result

    def content(self, key: Key) -> Changes:
        """What makes the current state of one resource elsewhere, nothing if it is gone. The caller holds the lock."""
        changes = Changes()
        if key in self._streams:
            changes.add(WHOLE, key, {}, [self._streams[key]])
        elif key in self.contents.of:
            self.contents.of[key].send(key, changes)
        elif key in self._by_key:
            resource = self._by_key[key]
            _add_whole(changes, key, resource, self._numbers.get(id(resource), {}))
        return changes


def _add_whole(changes: Changes, key: Key, resource: Any, numbers: dict[int, tuple[int, Element]]) -> None:
    """Adds the state of a resource; with the elements of a queue whose `numbers` are given."""
    if isinstance(resource, VariableStore):
        value = resource.value
        if value is not None and not can_be_sent(value):
            return
        changes.add(WHOLE, key, {}, [] if value is None else [value])
    elif isinstance(resource, Queue):
        changes.add(WHOLE, key, {"closed": resource.closed, "is_new": bool(numbers)})
        for number, element in numbers.values():
            changes.add(PUT, key, {"number": number}, _components(element))
    else:
        details, arrays = resource.content()
        changes.add(WHOLE, key, details, arrays)


def _components(element: Element) -> list[Any]:
    arrays, row = element
    return list(arrays) if row < 0 else [np.asarray(a[row, ...]) for a in arrays]


def _restore(resource: Any, content: Content) -> None:
    if isinstance(resource, VariableStore):
        resource.value = content.arrays[0] if content.arrays else None
        return
    resource.restore(content.details, content.arrays)
    for method, arrays in content.calls:
        getattr(resource, method if method in ("insert", "remove") else "insert")(*arrays)
