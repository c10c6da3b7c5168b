"""`MapStagingArea`: values put aside under keys, whole or in parts, and taken out by key or in order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import colocate_with, name_scope
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.queue_ops import complete, shared
from tensorfleet.ops.state.staging import StagingArea, unknown_shapes
from tensorfleet.state.long_waits import Awaited

# -- the memory --------------------------------------------------------------------------------------


class _KeyAttempt:
    """An action on an area, which waits until it is possible: `advance` says whether it was done."""

    verb = ""

    def __init__(self, key: int | None, indices: list[int]) -> None:
        self.key = key
        self.indices = indices
        self.values: list[Array] = []
        self.done = False
        self.error: errors.OpError | None = None
        self.event: threading.Event | None = None

    def advance(self, area: MapStage) -> bool:
        """Does it, if that is possible now."""
        return False


class _Put(_KeyAttempt):
    verb = "Put"

    def advance(self, area: MapStage) -> bool:
        assert self.key is not None
        known = area.parts.get(self.key, {})
        taken = next((i for i in self.indices if i in known), None)
        if taken is not None or self.key in area.whole:
            index = self.indices[0] if taken is None else taken
            raise errors.invalid(f"Tensor at index '{index}' for key '{self.key}' was already initialized.")
        merged = {**known, **dict(zip(self.indices, self.values, strict=True))}
        fills = len(merged) == area.width
        if (fills and area.capacity and len(area.whole) >= area.capacity) or not area.has_room(self.values):
            return False
        area.used += _size(self.values)
        area.parts.pop(self.key, None)
        (area.whole if fills else area.parts)[self.key] = merged
        return True


class _Get(_KeyAttempt):
    verb = "Get"

    def advance(self, area: MapStage) -> bool:
        if self.key is None:
            if not area.whole:
                return False
            self.key = min(area.whole) if area.ordered else next(iter(area.whole))
        if self.key not in area.whole:
            return False
        self.values = area.chosen(self.key, self.indices)
        held = area.whole[self.key]
        for i in self.indices:
            del held[i]
        if not held:
            del area.whole[self.key]
        area.used -= _size(self.values)
        return True


class _Peek(_KeyAttempt):
    verb = "Peek"

    def advance(self, area: MapStage) -> bool:
        if self.key not in area.whole:
            return False
        self.values = area.chosen(self.key, self.indices)
        return True


class MapStage(Awaited):
    """The memory of an area: the values of keys that are complete, and of keys that are not."""

    def __init__(self, name: str, attrs: dict[str, Any], ordered: bool) -> None:
        super().__init__()
        self.name = name
        self.capacity = attrs["capacity"]
        self.limit = attrs["memory_limit"]
        self.width = len(attrs["dtypes"])
        self.ordered = ordered
        self.used = 0
        self.whole: dict[int, dict[int, Array]] = {}
        self.parts: dict[int, dict[int, Array]] = {}
        self._lock = threading.Lock()
        self._waiting: list[_KeyAttempt] = []

    def fullness(self) -> str:
        """How many elements there are, of how many, in words."""
        count = f"{len(self.whole)} of {self.capacity}" if self.capacity else str(len(self.whole))
        return f"{count} elements, {len(self.parts)} that lack a value"

    def has_room(self, values: list[Array]) -> bool:
        """Whether values fit in memory now; raises when they never will."""
        size = _size(values)
        if self.limit and size > self.limit:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area with a memory "
                f"limit of '{self.limit}'.",
            )
        return not self.limit or self.used + size <= self.limit

    def chosen(self, key: int, indices: list[int]) -> list[Array]:
        """Some of the values of a key; raises when one was taken already."""
        gone = next((i for i in indices if i not in self.whole[key]), None)
        if gone is not None:
            raise errors.invalid(f"Tensor at index '{gone}' for key '{key}' has already been removed.")
        return [self.whole[key][i] for i in indices]

    def submit(self, attempt: _KeyAttempt) -> bool:
        """Starts an attempt. True when it is complete at once; otherwise its event tells."""
        with self._lock:
            if attempt.advance(self):
                attempt.done = True
                self._serve()
                return True
            attempt.event = threading.Event()
            self._waiting.append(attempt)
            return False

    def withdraw(self, attempt: _KeyAttempt) -> bool:
        """Takes an attempt back; False when it is complete already."""
        with self._lock:
            if attempt.done:
                return False
            self._waiting.remove(attempt)
            return True

    def _serve(self) -> None:
        # One attempt that completes may let others complete that came before it.
        moved = True
        while moved:
            moved = False
            for attempt in list(self._waiting):
                try:
                    attempt.done = attempt.advance(self)
                except errors.OpError as e:
                    attempt.done, attempt.error = True, e
                if attempt.done and attempt.event is not None:
                    moved = True
                    self._waiting.remove(attempt)
                    attempt.event.set()

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self.whole, self.parts, self.used = {}, {}, 0
            self._serve()


def _size(values: list[Array]) -> int:
    return sum(np.asarray(v).nbytes for v in values)


# -- operations --------------------------------------------------------------------------------------

_ATTRS = "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type)"
_PLACE = "container: string = ''; shared_name: string = ''"
_WAITS: dict[str, Any] = {"host": True, "stateful": True, "blocks": True}
_ASKS: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: SCALAR}


def _area(ctx: HostContext) -> MapStage:
    attrs, ordered = ctx.op._attrs, ctx.op.type.startswith("Ordered")
    kind = "ordered map staging area" if ordered else "map staging area"
    return shared(
        ctx, kind, attrs["container"], attrs["shared_name"], lambda name: MapStage(name, attrs, ordered)
    )


def _with_key(op: Operation) -> list[TensorShape]:
    return [SCALAR, *unknown_shapes(op)[1:]]


def _run(ctx: HostContext, attempt: _KeyAttempt) -> _KeyAttempt:
    area = _area(ctx)
    complete(ctx, area, attempt, f"in staging area '{area.name}'")
    return attempt


def _indices(values: Array) -> list[int]:
    return [int(i) for i in np.ravel(values)]


for _prefix in ("", "Ordered"):

    @op(
        f"{_prefix}MapStage",
        "key: int64, indices: int32, values: list(fake_dtypes) ->",
        f"{_ATTRS}; fake_dtypes: list(type); {_PLACE}",
        **_WAITS,
    )
    def _stage(ctx: HostContext, key: Array, indices: Array, values: list[Array]) -> None:
        attempt = _Put(int(key), _indices(indices))
        attempt.values = list(values)
        _area(ctx).width = len(
            ctx.op._attrs["dtypes"]
        )  # an op that takes may have made the area, for some values only
        _run(ctx, attempt)

    @op(
        f"{_prefix}MapPeek",
        "key: int64, indices: int32 -> values: list(dtypes)",
        f"{_ATTRS}; {_PLACE}",
        shape=unknown_shapes,
        **_WAITS,
    )
    def _peek(ctx: HostContext, key: Array, indices: Array) -> tuple[Array, ...]:
        return tuple(_run(ctx, _Peek(int(key), _indices(indices))).values)

    @op(
        f"{_prefix}MapUnstage",
        "key: int64, indices: int32 -> values: list(dtypes)",
        f"{_ATTRS}; {_PLACE}",
        shape=unknown_shapes,
        **_WAITS,
    )
    def _unstage(ctx: HostContext, key: Array, indices: Array) -> tuple[Array, ...]:
        return tuple(_run(ctx, _Get(int(key), _indices(indices))).values)

    @op(
        f"{_prefix}MapUnstageNoKey",
        "indices: int32 -> key: int64, values: list(dtypes)",
        f"{_ATTRS}; {_PLACE}",
        shape=_with_key,
        **_WAITS,
    )
    def _unstage_next(ctx: HostContext, indices: Array) -> tuple[Array | np.int64, ...]:
        attempt = _run(ctx, _Get(None, _indices(indices)))
        assert attempt.key is not None  # the key that was next
        return (np.int64(attempt.key), *attempt.values)

    @op(f"{_prefix}MapSize", "-> size: int32", f"{_ATTRS}; {_PLACE}", **_ASKS)
    def _count(ctx: HostContext) -> np.int32:
        return np.int32(len(_area(ctx).whole))

    @op(f"{_prefix}MapIncompleteSize", "-> size: int32", f"{_ATTRS}; {_PLACE}", **_ASKS)
    def _count_incomplete(ctx: HostContext) -> np.int32:
        return np.int32(len(_area(ctx).parts))

    @op(f"{_prefix}MapClear", "->", f"{_ATTRS}; {_PLACE}", host=True, stateful=True)
    def _clear(ctx: HostContext) -> None:
        _area(ctx).clear()

    for _kind in ("Stage", "Peek", "Unstage", "UnstageNoKey", "Size", "IncompleteSize", "Clear"):
        not_differentiable(f"{_prefix}Map{_kind}")


# -- what users see ----------------------------------------------------------------------------------


@export("contrib.staging.MapStagingArea", "python.ops.data_flow_ops.MapStagingArea")
class MapStagingArea(StagingArea):
    """A store on one device in which elements have keys, and may be put and taken in parts.

    An element that has all its parts can be taken; with `ordered`, the smallest key comes first.
    """

    def __init__(
        self,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: Sequence[ShapeLike] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._ordered = ordered
        self._prefix = "OrderedMap" if ordered else "Map"

    def _parts(self, values: Any, indices: Sequence[int] | None) -> tuple[list[Tensor], list[int]]:
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(values) <= set(self._names):
                raise ValueError(
                    f"Keys in dictionary to put do not match names of staging area. Dictionary: ({sorted(values)}), "
                    f"Queue: ({sorted(self._names)})"
                )
            at = [i for i, n in enumerate(self._names) if n in values]
            values = [values[self._names[i]] for i in at]
        else:
            if self._names:
                raise ValueError("You must enqueue a dictionary in a staging area with names")
            if not isinstance(values, (list, tuple)):
                values, indices = [values], [0]
            if indices is None:
                raise ValueError("Indices must be supplied when inserting a list of tensors")
            at = list(indices)
            if len(at) != len(values):
                raise ValueError(
                    f"Number of indices '{len(at)}' doesn't match number of values '{len(values)}'"
                )
        parts = [
            self._component(v, self._dtypes[i], self._shapes[i]) for v, i in zip(values, at, strict=True)
        ]
        return parts, at

    def _wanted(self, indices: Any) -> list[int]:
        if indices is None:
            return list(range(len(self._dtypes)))
        if not isinstance(indices, (list, tuple)):
            raise TypeError(f"Invalid indices type '{type(indices)}'")
        if all(isinstance(i, str) for i in indices):
            if not self._names:
                raise ValueError(
                    f"String indices provided '{indices}' but this Staging Area was not created with names."
                )
            return [self._names.index(i) for i in indices]
        if all(isinstance(i, int) for i in indices):
            return list(indices)
        raise TypeError(f"Mixed types in indices '{indices}'. May only be str or int")

    def _options(self, indices: list[int]) -> dict[str, Any]:
        return {**self._attrs(), "dtypes": [self._dtypes[i] for i in indices]}

    def _values(self, tensors: list[Tensor], indices: list[int]) -> Any:
        for tensor, i in zip(tensors, indices, strict=True):
            tensor.set_shape(self._shapes[i])
        tensors = self._brought(tensors)
        if self._names:
            return {self._names[i]: t for t, i in zip(tensors, indices, strict=True)}
        return tensors

    def _called(self, name: str | None, what: str) -> str:
        return name or f"{self._name}_{what}"

    # A subclass in TensorFlow too, although its methods take a key first.
    def put(  # type: ignore[override]
        self, key: TensorLike, vals: TensorLike, indices: Sequence[int] | None = None, name: str | None = None
    ) -> Operation:
        """An operation that adds an element, or parts of one; it waits while the area is full."""
        with name_scope(name, f"{self._name}_put") as scope:
            values, at = self._parts(vals, indices)
            with colocate_with(self._root):
                return apply_op(f"{self._prefix}Stage", key, at, values, name=scope, **self._attrs())

    def get(  # type: ignore[override]
        self, key: TensorLike = None, indices: Sequence[int | str] | None = None, name: str | None = None
    ) -> tuple[Any, Any]:
        """Takes an element, or parts of it: `(key, values)`. Without a key, the next that is complete."""
        at = self._wanted(indices)
        with colocate_with(self._root):
            if key is None:
                name = self._called(name, "get_nokey")
                op = apply_op(f"{self._prefix}UnstageNoKey", at, name=name, **self._options(at))
            else:
                name = self._called(name, "get")
                op = apply_op(f"{self._prefix}Unstage", key, at, name=name, **self._options(at))
        if key is not None:
            return key, self._values(op.outputs, at)
        return self._brought(op.outputs[:1])[0], self._values(op.outputs[1:], at)

    def peek(  # type: ignore[override]
        self, key: TensorLike, indices: Sequence[int | str] | None = None, name: str | None = None
    ) -> Any:
        """The values of a key, or some of them, which stay where they are."""
        at = self._wanted(indices)
        with colocate_with(self._root):
            name = self._called(name, "pop")  # as TensorFlow calls it
            op = apply_op(f"{self._prefix}Peek", key, at, name=name, **self._options(at))
        return self._values(op.outputs, at)

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are complete."""
        return apply(f"{self._prefix}Size", name=self._called(name, "size"), **self._attrs())

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack a part."""
        return apply(
            f"{self._prefix}IncompleteSize", name=self._called(name, "incomplete_size"), **self._attrs()
        )

    def clear(self, name: str | None = None) -> Operation:
        """Removes all elements, staged in part or whole."""
        return apply_op(f"{self._prefix}Clear", name=self._called(name, "clear"), **self._attrs())
