"""`StagingArea`: values put aside by one step for the next, so that moving data overlaps with computing."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import colocate_with, get_default_graph, name_scope
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.state.queue_ops import complete, shared
from tensorfleet.ops.state.queues import type_list
from tensorfleet.state.queues import COMPLETE, STUCK, Attempt, Element, PutAttempt, Queue, TakeAttempt

# -- the memory --------------------------------------------------------------------------------------


class Peek(Attempt):
    """Looks at an element without taking it."""

    __slots__ = ("index", "result")
    verb = "Peek"

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self.result: Any = None

    def advance(self, queue: Queue) -> int:
        """Looks at the element once there are enough."""
        if self.index >= queue.size():
            return STUCK
        self.result = queue.elements[self.index]
        return COMPLETE


class StagingQueue(Queue):
    """First in, first out, bounded by a number of elements and by their bytes."""

    kind = "StagingArea"

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        self.used = 0
        self.limit = memory_limit
        self._peeking: deque[Attempt] = deque()
        super().__init__(name, capacity or -1, [], [])

    def room(self, element: Element) -> int:
        """How many elements like this one fit, none if it would exceed the memory limit."""
        if self.limit and self.used + _bytes(element) > self.limit:
            return 0
        return super().room(element)

    def check(self, element: Element) -> None:
        """Raises when an element will never fit."""
        if self.limit and _bytes(element) > self.limit:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"Attempted to insert tensors with combined size of '{_bytes(element)}' bytes into Staging Area "
                f"with a memory limit of '{self.limit}'.",
            )

    def push(self, element: Element) -> None:
        """Adds an element, and counts its bytes."""
        self.used += _bytes(element)
        super().push(element)

    def pop(self) -> Any:
        """Takes an element, and its bytes off the count."""
        element = super().pop()
        self.used -= _bytes(element)
        return element

    def _line(self, attempt: Attempt) -> deque[Attempt]:
        return self._peeking if isinstance(attempt, Peek) else super()._line(attempt)

    def _waited_for(self) -> bool:
        return super()._waited_for() or bool(self._peeking)

    def _serve(self) -> None:
        super()._serve()
        for attempt in list(self._peeking):  # in any order: a peek takes nothing away
            if attempt.advance(self) == COMPLETE:
                self._peeking.remove(attempt)
                attempt.finish()

    def drop_all(self) -> None:
        """Removes all elements."""
        with self._lock:
            self.elements = self._storage()
            self.used = 0
            self._serve()


def _bytes(element: Element) -> int:
    return sum(a.nbytes for a in element[0])


# -- operations --------------------------------------------------------------------------------------

_ATTRS = (
    "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = ''; "
    "shared_name: string = ''"
)
_WAITS: dict[str, Any] = {"host": True, "stateful": True, "blocks": True}


def _area(ctx: HostContext) -> StagingQueue:
    attrs = ctx.op._attrs
    make = lambda name: StagingQueue(name, attrs["capacity"], attrs["memory_limit"])  # noqa: E731
    return shared(ctx, "staging area", attrs["container"], attrs["shared_name"], make)


def unknown_shapes(op: Operation) -> list[TensorShape]:
    """Nothing is known of the outputs."""
    return [TensorShape(None)] * len(op._outputs)


@op("Stage", "values: list(dtypes) ->", _ATTRS, **_WAITS)
def _stage(ctx: HostContext, values: list[Array]) -> None:
    area = _area(ctx)
    element = area.element(values)
    area.check(element)
    complete(ctx, area, PutAttempt([element]), f"for room in staging area '{area.name}'")


@op("Unstage", "-> values: list(dtypes)", _ATTRS, shape=unknown_shapes, **_WAITS)
def _unstage(ctx: HostContext) -> tuple[Array, ...]:
    area, attempt = _area(ctx), TakeAttempt(1)
    complete(ctx, area, attempt, f"for values in staging area '{area.name}'")
    return area.single(attempt.taken)


@op("StagePeek", "index: int32 -> values: list(dtypes)", _ATTRS, shape=unknown_shapes, **_WAITS)
def _stage_peek(ctx: HostContext, index: Array) -> tuple[Array, ...]:
    area, attempt = _area(ctx), Peek(int(index))
    complete(ctx, area, attempt, f"for element {attempt.index} of staging area '{area.name}'")
    return area.single([attempt.result])


@op("StageSize", "-> size: int32", _ATTRS, shape=lambda op: SCALAR, host=True, stateful=True)
def _stage_size(ctx: HostContext) -> np.int32:
    return np.int32(_area(ctx).look()[0])


@op("StageClear", "->", _ATTRS, host=True, stateful=True)
def _stage_clear(ctx: HostContext) -> None:
    _area(ctx).drop_all()


not_differentiable("Stage", "Unstage", "StagePeek", "StageSize", "StageClear")

# -- what users see ----------------------------------------------------------------------------------


@export("contrib.staging.StagingArea", "python.ops.data_flow_ops.StagingArea")
class StagingArea:
    """A first-in, first-out store on one device: `put` values in one step and `get` them in a later one.

    `capacity` bounds the number of elements and `memory_limit` their bytes; 0 means no bound. With `names`, an
    element is a dictionary.
    """

    def __init__(
        self,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: Sequence[ShapeLike] | None = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        if shared_name is not None and not isinstance(shared_name, str):
            raise ValueError("shared_name must be a string")
        self._name = shared_name or get_default_graph().unique_name(type(self).__name__)
        self._dtypes = type_list(dtypes)
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        self._shapes = [as_shape(s) for s in shapes] if shapes else [TensorShape(None) for _ in self._dtypes]
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._names = names or None
        if capacity < 0 or memory_limit < 0:
            raise ValueError("capacity and memory_limit must be >= 0")
        self._capacity = capacity
        self._memory_limit = memory_limit
        with name_scope(f"{self._name}_root"):
            self._root = apply_op("NoOp", name="NoOp")

    name = readonly("_name", "The name under which it is shared.")
    dtypes = readonly("_dtypes", "The type of each component.")
    shapes = readonly("_shapes", "The shape of each component, as far as it is known.")
    names = readonly("_names", "The names of the components, if they have any.")
    capacity = readonly("_capacity", "The most elements it holds; 0 for no bound.")
    memory_limit = readonly("_memory_limit", "The most bytes it holds; 0 for no bound.")

    def _components(self, values: Any) -> list[Tensor]:
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if set(values) != set(self._names):
                raise ValueError(
                    f"Keys in dictionary to put do not match names of staging area. Dictionary: {sorted(values)}, "
                    f"Staging area: {sorted(self._names)}"
                )
            values = [values[n] for n in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif not isinstance(values, (list, tuple)):
            values = [values]
        if len(values) != len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs {len(values)} vs {len(self._dtypes)}")
        return [self._component(*each) for each in zip(values, self._dtypes, self._shapes, strict=True)]

    def _component(self, value: Any, dtype: DType, shape: TensorShape) -> Tensor:
        if hasattr(value, "dtype") and value.dtype.base_dtype != dtype:
            raise ValueError(f"Datatypes do not match. Received val.dtype {value.dtype} and dtype {dtype}")
        tensor = to_tensor(value, dtype)
        tensor.shape.assert_is_compatible_with(shape)
        return tensor

    def _attrs(self) -> dict[str, Any]:
        return {
            "dtypes": self._dtypes,
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
        }

    def put(self, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds an element; it waits while the area is full."""
        flat = list(values.values()) if isinstance(values, dict) else values
        flat = flat if isinstance(flat, (list, tuple)) else [flat]
        with name_scope(name, f"{self._name}_put", flat) as scope:
            components = self._components(values)
            with colocate_with(self._root):
                return apply_op("Stage", components, name=scope, **self._attrs())

    def get(self, name: str | None = None) -> Any:
        """Takes the oldest element; the operation waits until there is one."""
        with colocate_with(self._root):
            op = apply_op("Unstage", name=name or f"{self._name}_get", **self._attrs())
        return self._results(op)

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """The element at `index`, which stays where it is; the operation waits until there is one."""
        with colocate_with(self._root):
            op = apply_op("StagePeek", index, name=name or f"{self._name}_peek", **self._attrs())
        return self._results(op)

    def _results(self, get: Operation) -> Any:
        tensors = list(get._outputs)
        for t, shape in zip(tensors, self._shapes, strict=True):
            t.set_shape(shape)
        tensors = self._brought(tensors)
        return dict(zip(self._names, tensors, strict=True)) if self._names else tensors

    def _brought(self, tensors: list[Tensor]) -> list[Tensor]:
        """Copies tensors to the current device, if that is not the area's."""
        here = apply_op("NoOp", name="NoOp").device
        if here == self._root.device:
            return tensors
        return [apply("Identity", t, name="Identity") for t in tensors]

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        return apply("StageSize", name=name or f"{self._name}_size", **self._attrs())

    def clear(self, name: str | None = None) -> Operation:
        """An operation that removes all elements."""
        return apply_op("StageClear", name=name or f"{self._name}_clear", **self._attrs())
