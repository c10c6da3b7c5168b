"""`Barrier`: a store of elements whose components arrive one by one, each under the element's key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, apply_op
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, UNKNOWN, static_value, vector_of
from tensorfleet.ops.state.queue_ops import agreed, complete
from tensorfleet.ops.state.queues import Shapes, shape_list, type_list
from tensorfleet.state.queue_orders import HeapQueue
from tensorfleet.state.queues import TakeAttempt, own

# The lowest int64: elements are numbered from it on, as in TensorFlow.
_FIRST_INDEX = -(2**63)


class BarrierQueue(HeapQueue):
    """The complete elements, in the order in which their keys first appeared, and the incomplete ones."""

    kind = "Barrier"
    counted = "total"

    def __init__(self, name: str, types: list[DType], shapes: list[TensorShape]) -> None:
        self._components = len(types)
        sizes = shapes or [TensorShape(None)] * len(types)
        full = [SCALAR, SCALAR, *sizes]
        super().__init__(name, -1, [dtypes.int64, dtypes.string, *types], full)
        #: by key: the element's index, and its components so far
        self._waiting: dict[bytes, tuple[int, list[Array | None]]] = {}
        self._inserted = 0
        self._shut = False
        self._cancelled = False

    @property
    def incomplete(self) -> int:
        """How many elements lack a component."""
        return len(self._waiting)

    def fullness(self) -> str:
        """How many elements there are, in words."""
        return f"{self.size()} complete elements, {self.incomplete} that lack a component"

    def insert(self, component: int, keys: Array, values: Array) -> None:
        """Adds one component to the elements named by `keys`; all or none."""
        if not 0 <= component < self._components:
            raise errors.invalid(
                f"The component ID is out of range {component} > num components {self._components}"
            )
        if values.ndim == 0 or values.shape[0] != len(keys):
            raise errors.invalid(
                f"Expected {len(keys)} values, got {values.shape[0] if values.ndim else 'a scalar'}"
            )
        if len(keys) and not values.size:
            raise errors.invalid(
                f"Tensors with no elements are not supported, but the values of component {component} of barrier "
                f"'{self.name}' have shape {list(values.shape)}"
            )
        shape = self.shapes[component + 2]
        if not shape.is_compatible_with(values.shape[1:]):
            want = str([len(keys), *shape.as_list()]).replace(" ", "").replace("None", "?")
            got = str(list(values.shape)).replace(" ", "")
            raise errors.invalid(f"Shape mismatch in tuple component {component}. Expected {want}, got {got}")
        with self._lock:
            self._check_open(keys.tolist(), component)  # before the first value is put: all or none
            begins = any(key not in self._waiting for key in keys.tolist())
            for i, key in enumerate(keys.tolist()):
                self._put(key, component, values[i, ...])
            self._inserted += begins  # elements that began together have the same index
            if self._shut and not self._waiting:
                self.closed = True
            self._serve()

    def _check_open(self, keys: list[bytes], component: int) -> None:
        fresh = [k for k in keys if k not in self._waiting]
        if self._cancelled:
            text = (
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: 1.  Number of new insertions: "
                f"{len(fresh)}.  Number of incomplete keys: {len(self._waiting)}."
            )
            raise errors.CancelledError(None, None, text)
        for key in keys:
            if key in self._waiting and self._waiting[key][1][component] is not None:
                text = (
                    f"Key {key.decode()} already has a value for component {component} in barrier {self.name}"
                )
                raise errors.invalid(text)
        if self._shut and fresh:
            text = (
                f"Barrier {self.name} is closed, but attempted to insert a brand new key: {fresh[0].decode()}.  "
                f"Pending enqueues cancelled: 0.  Insertion index: {component}.  Number of incomplete keys: "
                f"{len(self._waiting)}."
            )
            raise errors.CancelledError(None, None, text)

    def _put(self, key: bytes, component: int, value: Array) -> None:
        index, values = self._waiting.setdefault(
            key, (_FIRST_INDEX + self._inserted, [None] * self._components)
        )
        values[component] = value
        if all(v is not None for v in values):
            del self._waiting[key]
            name = np.empty((), object)
            name[()] = key
            components = [v for v in values if v is not None]
            self.push(([np.asarray(index, np.int64), name, *components], -1))

    def at_hand(self, count: int) -> int:
        """How many of `count` elements a closed barrier has for a take that accepts fewer."""
        with self._lock:
            available = min(count, self.size()) if self._shut else count
        if not available:
            text = f"Barrier '{self.name}' is closed and has insufficient elements (requested {count}, total size 0)"
            raise errors.OutOfRangeError(None, None, text)
        return available

    def shut(self, cancel: bool) -> None:
        """Takes no new keys from now on; with `cancel`, forgets the incomplete elements."""
        with self._lock:
            if self._shut and not cancel:
                raise errors.CancelledError(None, None, f"Barrier '{self.name}' is already closed.")
            self._shut = True
            self._cancelled = self._cancelled or cancel
            if cancel:
                self._waiting.clear()
            self.closed = not self._waiting
            self._serve()


# -- operations --------------------------------------------------------------------------------------

_USES: dict[str, Any] = {"host": True, "stateful": True}


@op(
    "Barrier",
    "-> handle: Ref(string)",
    "component_types: list(type); shapes: list(shape) = []; capacity: int = -1; container: string = ''; "
    "shared_name: string = ''",
    shape=lambda op: vector_of(2),
    **_USES,
)
def _barrier(
    ctx: HostContext,
    *,
    component_types: list[DType],
    shapes: list[TensorShape],
    container: bytes,
    shared_name: bytes,
) -> BarrierQueue:
    make = lambda name: BarrierQueue(name, component_types, shapes)  # noqa: E731
    return agreed(ctx, "barrier", container, shared_name, make)


def _check_insert(op: Operation) -> list[TensorShape]:
    keys, values = op._inputs[1].shape.with_rank(1), op._inputs[2].shape.with_rank_at_least(1)
    keys.merge_with(values[:1])
    return []


@op(
    "BarrierInsertMany",
    "handle: Ref(string), keys: string, values: T ->",
    "T: type; component_index: int",
    shape=_check_insert,
    **_USES,
)
def _insert_many(
    ctx: HostContext, handle: BarrierQueue, keys: Array, values: Array, *, component_index: int
) -> None:
    handle.insert(component_index, np.asarray(keys), own(values))


def _taken_shapes(op: Operation) -> list[TensorShape]:
    n = None if op._attrs["allow_small_batch"] else static_value(op, 1)
    count = None if n is None else int(n)
    source = op._inputs[0]._op
    shapes = list(source._attrs["shapes"]) if source.type == "Barrier" else []
    rows = vector_of(count)
    values = [rows.concatenate(s) for s in shapes] or [UNKNOWN] * (len(op._outputs) - 2)
    return [rows, rows, *values]


@op(
    "BarrierTakeMany",
    "handle: Ref(string), num_elements: int32 -> indices: int64, keys: string, values: list(component_types)",
    "component_types: list(type); allow_small_batch: bool = false; wait_for_incomplete: bool = false; "
    "timeout_ms: int = -1",
    shape=_taken_shapes,
    host=True,
    stateful=True,
    blocks=True,
)
def _take_many(
    ctx: HostContext, handle: BarrierQueue, num_elements: Array, *, allow_small_batch: bool
) -> tuple[Array, ...]:
    count = int(num_elements)
    if count < 0:
        raise errors.invalid(f"Cannot take {count} < 0 elements.")
    if allow_small_batch and count:
        count = handle.at_hand(count)
    attempt = TakeAttempt(count, allow_small_batch)
    if count:
        complete(ctx, handle, attempt, f"for {count} complete elements of barrier '{handle.name}'")
    return handle.batch(attempt.taken)


@op("BarrierClose", "handle: Ref(string) ->", "cancel_pending_enqueues: bool = false", **_USES)
def _close(ctx: HostContext, handle: BarrierQueue, *, cancel_pending_enqueues: bool) -> None:
    handle.shut(cancel_pending_enqueues)


@op("BarrierReadySize", "handle: Ref(string) -> size: int32", shape=lambda op: SCALAR, **_USES)
def _ready_size(ctx: HostContext, handle: BarrierQueue) -> np.int32:
    return np.int32(handle.look()[0])


@op("BarrierIncompleteSize", "handle: Ref(string) -> size: int32", shape=lambda op: SCALAR, **_USES)
def _incomplete_size(ctx: HostContext, handle: BarrierQueue) -> np.int32:
    return np.int32(handle.incomplete)


not_differentiable("Barrier", "BarrierInsertMany", "BarrierTakeMany", "BarrierClose")
not_differentiable("BarrierReadySize", "BarrierIncompleteSize")


class BarrierTakeMany(NamedTuple):
    """Complete elements, as `take_many` gives them."""

    indices: Tensor
    keys: Tensor
    values: list[Tensor]


@export("python.ops.data_flow_ops.Barrier")
class Barrier:
    """Collects the components of elements by key; `take_many` gives elements that have all of theirs."""

    def __init__(
        self,
        types: DTypeLike | Sequence[DTypeLike],
        shapes: Shapes = None,
        shared_name: str | None = None,
        name: str = "barrier",
    ) -> None:
        self._types = type_list(types)
        self._shapes: list[TensorShape] = []
        if shapes is not None:
            self._shapes = shape_list(shapes, self._types)
            for i, shape in enumerate(self._shapes):
                if shape.num_elements() == 0:
                    dims = tuple(shape.as_list())
                    raise ValueError(
                        f"Empty tensors are not supported, but received shape '{dims}' at index {i}"
                    )
        self._barrier_ref = apply(
            "Barrier", component_types=self._types, shapes=self._shapes, shared_name=shared_name, name=name
        )
        self._name = self._barrier_ref.op.name.rpartition("/")[2]

    barrier_ref = readonly("_barrier_ref", "The handle.")
    name = readonly("_barrier_ref.op.name", "The name of the operation that makes the barrier.")

    def insert_many(
        self, component_index: int, keys: TensorLike, values: TensorLike, name: str | None = None
    ) -> Operation:
        """An operation that adds one component to each of the elements `keys`."""
        return apply_op(
            "BarrierInsertMany",
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            T=self._types[component_index] if 0 <= component_index < len(self._types) else None,
            name=name or f"{self._name}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: TensorLike,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> BarrierTakeMany:
        """Indices, keys and components of complete elements; waits until there are `num_elements`.

        With `allow_small_batch`, fewer are given once the barrier is closed and no more can come.
        """
        indices, keys, *values = apply_list(
            "BarrierTakeMany",
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else timeout,
            name=name or f"{self._name}_BarrierTakeMany",
        )
        return BarrierTakeMany(indices, keys, values)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation after which no new keys are taken; incomplete elements may still be completed."""
        return apply_op(
            "BarrierClose",
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete."""
        return apply("BarrierReadySize", self._barrier_ref, name=name or f"{self._name}_BarrierReadySize")

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack a component."""
        name = name or f"{self._name}_BarrierIncompleteSize"
        return apply("BarrierIncompleteSize", self._barrier_ref, name=name)
