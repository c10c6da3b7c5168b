"""What outlives a step: variables, random streams and other resources, by container and name."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.kernels.packed_strings import Strings, together
from tensorfleet.runtime.devices import load_jax
from tensorfleet.runtime.shared_memory import shared_variables
from tensorfleet.runtime.variable_packs import WriterLocks, release
from tensorfleet.runtime.variable_use import VariableUses

if TYPE_CHECKING:
    from tensorfleet.base.types import Array
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.variable_packs import VariablePack
    from tensorfleet.state.recording import ChangeRecorder

_order = itertools.count()
_MAX_UPDATES_BETWEEN_READS = 4  # of a variable that counts as read again and again


class VariableStore:
    """A variable's memory: an immutable value, a version that counts its updates, a lock for writers.

    A reader takes the reference: a consistent snapshot, no copy. A writer holds the lock, computes and swaps. Updates in
    place are the exception: a writer may change the array while nobody else holds it, which the reference count tells;
    otherwise it changes a copy and makes that current. The gate is held while the array is changed or handed out, and
    nothing waits for anything else inside it.

    A small variable may share the array and the lock of a pack (runtime/variable_packs.py). So a writer takes locks with
    `WriterLocks`, which looks again whether a lock is still the variable's.

    A writer also copies the new value to the variable's boards (runtime/shared_memory/server_reads.py).
    """

    __slots__ = (
        "_handed_out",
        "_value",
        "boards",
        "dtype",
        "gate",
        "lock",
        "name",
        "order",
        "pack",
        "packable",
        "place",
        "read_bytes",
        "reads",
        "recorder",
        "row_update_bytes",
        "row_updates",
        "version",
        "waits",
    )

    def __init__(self, name: str, dtype: DType) -> None:
        self.name = name
        self.dtype = dtype
        self._value: Any = None  # out of date while it is in a pack
        self.pack: VariablePack | None = None
        self.place = 0  # in the pack
        self.packable = True  # whether nothing has been seen that a pack cannot express
        self.version = 0
        self._handed_out = -1  # the version that was
        self.boards: tuple[tuple[Any, int], ...] = ()  # with its place on each
        #: who keeps a copy of it, on a durable server; it is told where boards are
        self.recorder: ChangeRecorder | None = None
        self.lock = threading.RLock()
        self.gate = threading.Lock()
        #: how often it was read and how many bytes of it, for statistics: `VariableUses.settle` brings them up to date
        self.reads = self.read_bytes = 0
        #: of its updates those of rows alone, and the bytes of these rows
        self.row_updates = self.row_update_bytes = 0
        self.waits = 0  # how often a reader came while the gate was closed
        self.order = next(_order)  # locks are taken in this order, so writers cannot deadlock

    @property
    def value(self) -> Any:
        """The current value. A writer that changes it holds the lock."""
        pack = self.pack
        return self._value if pack is None else pack.value_of(self.place)

    @value.setter
    def value(self, value: Any) -> None:
        pack = self.pack
        if pack is None:
            self._value = value
        else:
            pack.assign(self.place, value)

    @property
    def updates(self) -> int:
        """How often it was updated. Steps that update a pack do not count for each of its variables."""
        pack = self.pack
        return self.version if pack is None else self.version + pack.updates

    def count_reads(self, count: int, size: int) -> None:
        """Adds to its reads, and to the bytes read."""
        self.reads += count
        self.read_bytes += size

    def leave_pack(self, lock: threading.RLock) -> None:
        """Has its value for itself again, under a new lock. The caller holds that and the pack's."""
        if self.pack is not None:  # after an interrupt this is done once more
            self.version += self.pack.updates
        # A reader that has no lock finds either: the value in the pack, or the same as its own.
        self._value = self.value
        self.pack, self.lock = None, lock

    def read(self) -> Any:
        """The current value, or None before initialization."""
        # Counted without a lock: it only decides whether changes in place pay (decision 16).
        if self.gate.locked():
            self.waits += 1
        with self.gate:
            pack = self.pack
            return self._value if pack is None else pack.value_of(self.place)

    def hand_out(self) -> Any:
        """The current value as an array (or `Strings`), for a reader that may be in another process; None before initialization.

        A large value that is read again, unchanged or after a few updates, moves to shared memory: one copy serves all
        readers (decision 9).
        """
        value = self.read()
        if type(value) is not np.ndarray:
            if value is None or type(value) is Strings:
                return value
            value = np.asarray(value)
        if (
            value.nbytes < shared_variables.MIN_BYTES
            or not shared_variables.is_lendable(value)
            or shared_variables.block_of(value) is not None
        ):
            return value
        again = 0 <= self._handed_out >= self.version - _MAX_UPDATES_BETWEEN_READS
        self._handed_out = self.version
        # A writer has the lock for a whole step: the value moves another time then.
        if again and shared_variables.has_room() and self.lock.acquire(blocking=False):
            try:
                with self.gate:
                    if self.value is not None:  # it may have been cleared meanwhile
                        value = self.value = shared_variables.copied(self.value)
            finally:
                self.lock.release()
        return value

    def swap(self, value: Any) -> None:
        """Makes `value` current. The caller holds the lock.

        Many strings are packed once here, so that readers share the forms they work on (decision 10).
        """
        if type(value) is np.ndarray and value.dtype.hasobject and self.dtype.name == "string":
            value = together(value) or value
        if self.pack is None:
            self._value = value
        else:
            self.value = value
        self.version += 1
        if self.boards:
            self.show()

    def writable(self) -> np.ndarray:
        """The array to change in place. The caller holds the lock and the gate, and calls `touched`."""
        block = shared_variables.block_of(self.value)
        free = block.settle() if block is not None else not self._is_wanted()
        shared = self.references() > _OWN_REFERENCES
        value: Array = self.value
        is_own = (
            type(value) is np.ndarray and value.flags.carray and (value.flags.owndata or block is not None)
        )
        if shared or not is_own or not free:
            value = self.value = shared_variables.copied(value)
        return value

    def _is_wanted(self) -> bool:
        """Whether the value was handed out, and should be in shared memory the next time."""
        wanted, self._handed_out = self._handed_out >= 0, -1
        return wanted and shared_variables.has_room()

    def consumable(self, kept: bool = False) -> Any:
        """The array for a program that reuses its memory, or a copy if somebody holds it or it must be `kept`.

        The caller holds the lock and the gate, and swaps.
        """
        shared = self.references() > _OWN_REFERENCES
        value = self.value
        if shared or kept or isinstance(value, np.ndarray):
            _, jnp = load_jax()
            value = jnp.array(value, copy=True)
        return value

    def references(self) -> int:
        """How many references the value has, counted in one place: how many are our own depends on the interpreter."""
        return sys.getrefcount(self.value)

    def take_rows(self, indices: np.ndarray) -> np.ndarray:
        """A copy of some rows, without handing out the whole."""
        with self.gate:
            value: Array = self.value
            if not isinstance(value, np.ndarray):
                value = np.asarray(value)
            rows = value.take(indices, axis=0)
            self.count_reads(1, rows.nbytes)
            return rows

    def take_rows_into(self, indices: np.ndarray, last: int, out: np.ndarray) -> bool:
        """Copies rows up to `last`, the largest index, into an array; False if there is no such row or it does not fit."""
        with self.gate:
            value: Array = self.value
            if type(value) is not np.ndarray or value.shape[1:] != out.shape[1:] or value.dtype != out.dtype:
                return False
            if last >= len(value):
                return False
            value.take(indices, axis=0, out=out, mode="clip")  # any other mode copies once more
            self.count_reads(1, out.nbytes)
            return True

    def touched(self) -> None:
        """Counts an update, which is over. The caller holds the lock."""
        self.version += 1
        if self.boards:
            self.show()

    def rows_touched(self, indices: np.ndarray, size: int) -> None:
        """Counts an update of rows of so many bytes."""
        self.row_updates += 1
        self.row_update_bytes += size
        if self.recorder is not None:
            self.version += 1
            self.recorder.rows_changed(self, indices)
        else:
            self.touched()

    def show(self) -> None:
        """Copies the new value to the variable's boards. The caller holds the lock.

        On a durable server its recorder does so, when the change cannot be lost any more.
        """
        if self.recorder is not None:
            self.recorder.changed(self)
            return
        for board, place in self.boards:
            board.post(place, self.value)

    def clear(self) -> None:
        """Back to uninitialized."""
        held: list[Any] = []
        try:
            WriterLocks([self]).acquire(held)
            self.value = None
            self.show()
        finally:
            release(held)


def _references_of_one_holder() -> int:
    """The count when only its store holds a value. Interpreters differ, so it is measured."""
    store = VariableStore("", DType(1))
    store.value = object()
    return store.references()


_OWN_REFERENCES = _references_of_one_holder()


class ResourceManager:
    """All resources of one session or server, in named containers."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner  # the task (or else the process) whose session it belongs to
        self.finished = False  # that session was closed in good order
        self._lock = threading.Lock()
        self._containers: dict[str, dict[tuple[str, str], Any]] = {}
        self.uses = VariableUses()
        self.epoch = 0  # how often resources were dropped: what was looked up before may be gone
        #: on a durable server, is told container, kind and name of each resource that is made, and the resource
        self.adopt: Callable[[str, str, str, Any], None] | None = None

    def get(self, container: str, kind: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that kind and name, made at the first call."""
        with self._lock:
            shelf = self._containers.setdefault(container, {})
            resource = shelf.get((kind, name))
            # Made under the lock: two steps must not make two queues of one name.
            if resource is None:
                resource = shelf[(kind, name)] = make()
                if self.adopt is not None:
                    self.adopt(container, kind, name, resource)
            return resource

    def of_kind(self, *kinds: str) -> list[Any]:
        """All resources of some kinds."""
        with self._lock:
            return [
                r for shelf in self._containers.values() for (kind, _), r in shelf.items() if kind in kinds
            ]

    def variable(self, op: Operation) -> VariableStore:
        """The store of the variable that a VariableV2 or VarHandleOp stands for."""
        attrs, name = op._attrs, variable_name(op)
        container = (attrs.get("container") or b"").decode()
        dtype = attrs["dtype"]
        store: VariableStore = self.get(container, "variable", name, lambda: _new_store(op, name, dtype))
        if store.dtype != dtype:
            raise _of_another_type(op, name, store.dtype, dtype)
        return store

    def clear(self, containers: Iterable[str] | None = None) -> None:
        """Drops the named containers, or all of them."""
        with self._lock:
            names = list(self._containers) if not containers else list(containers)
            dropped = [self._containers.pop(n, {}) for n in names]
            self.epoch += 1
        # Outside the lock: a cleared queue wakes steps, and these may look up resources.
        for shelf in dropped:
            for resource in shelf.values():
                close = getattr(resource, "clear", None)
                if close is not None:
                    close()


def variable_name(op: Operation) -> str:
    """The name of the store of a variable, which its server knows it by."""
    return (op._attrs.get("shared_name") or b"").decode() or op.name


def _new_store(op: Operation, name: str, dtype: DType) -> VariableStore:
    store = VariableStore(name, dtype)
    if op.type == "TemporaryVariable":  # it is memory, and may be read before it is assigned
        store.value = np.zeros(op._attrs["shape"].as_list(), dtype.as_numpy_dtype)
    return store


def _of_another_type(op: Operation, name: str, stored: DType, wanted: DType) -> errors.OpError:
    """The error for a variable that another program has left behind, in TensorFlow's words."""
    advice = f"'{name}' is there already, perhaps from another program: use another name or container, or tf.Session.reset."
    if op.type == "VarHandleOp":
        text = f"Trying to read variable with wrong dtype. Expected {wanted.name} got {stored.name}"
        return errors.InvalidArgumentError(None, op, f"{text}: {advice}")
    text = f"Output 0 of type {stored.name}_ref does not match declared output type {wanted.name}_ref for node {op.name}"
    return errors.InternalError(None, op, f"{text}: {advice}")


class _Stream:
    """The position of one random op. The holder of the lock may draw first and move it later."""

    __slots__ = ("lock", "order", "state")

    def __init__(self, state: Array) -> None:
        self.state, self.order = state, next(_order)
        self.lock = threading.RLock()


class RandomStreams:
    """The position of every random op in its stream of numbers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[Any, _Stream] = {}
        self._given: dict[str, Array] = {}

    def begin_at(self, states: dict[str, Array]) -> None:
        """Has the streams of some ops begin where those of a lost server were."""
        self._given.update(states)

    def states(self) -> list[tuple[Any, Array]]:
        """Every op that has drawn, with the state of its stream."""
        return [(op, stream.state) for op, stream in self._streams.items()] if self._streams else []

    def take(self, op: Operation, blocks: int) -> np.ndarray:
        """The op's current state; the next taker starts `blocks` later."""
        from tensorfleet.kernels import philox

        stream = self._streams.get(op) or self._begun(op)
        with stream.lock:
            state = stream.state
            if blocks:
                stream.state = philox.skip(state, blocks)
            return state

    @contextmanager
    def drawing(self, ops: Iterable[Any]) -> Iterator[None]:
        """Keeps the streams of some ops for a caller that reads their states now and moves them later."""
        streams = {self._streams.get(op) or self._begun(op) for op in ops}
        with ExitStack() as held:
            for stream in sorted(streams, key=lambda s: s.order):
                held.enter_context(stream.lock)
            yield

    def _begun(self, op: Operation) -> _Stream:
        from tensorfleet.kernels import philox

        with self._lock:
            if op not in self._streams:
                seed, seed2 = op._attrs["seed"], op._attrs["seed2"]
                state = self._given.pop(op.name, None)
                if state is None:
                    state = philox.initial_state(seed, seed2) if seed or seed2 else philox.random_state()
                self._streams[op] = _Stream(state)
            return self._streams[op]
