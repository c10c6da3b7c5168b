"""`tf.FIFOQueue` and its relatives: hand elements from one part of a program to another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

from tensorfleet.base import dtypes as types
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.common import static_value
from tensorfleet.ops.random.ops import get_seed
from tensorfleet.ops.state import queue_ops  # noqa: F401  (the operations these classes build)

#: The shapes of the components of an element, or the shape of its only one.
Shapes: TypeAlias = "ShapeLike | Sequence[ShapeLike]"


def type_list(dtypes: DTypeLike | Sequence[DTypeLike]) -> list[DType]:
    """One type or several, as a list."""
    several: Sequence[Any] = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
    return [types.as_dtype(d).base_dtype for d in several]


def shape_list(shapes: Shapes, dtypes: Sequence[DType], partial: bool = False) -> list[TensorShape]:
    """One shape per component; an empty list when none is known."""
    if shapes is None:
        if partial:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        return []
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (tuple, list)):
        raise TypeError(
            f"Shapes must be a TensorShape or a list or tuple of TensorShapes, got {type(shapes)} instead."
        )
    if all(isinstance(d, int) for d in shapes):  # one shape, for a single component
        shapes = [shapes]
    listed = [as_shape(s) for s in shapes]
    if not partial and any(not s.is_fully_defined() for s in listed):
        raise ValueError(f"All shapes must be fully defined: {listed}")
    if partial and any(s.rank is None for s in listed):
        raise ValueError(f"All shapes must have a defined rank: {listed}")
    return listed


def name_list(names: Any, dtypes: Sequence[DType]) -> list[str] | None:
    """One name per component, or None."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        names = [names]
    if len(names) != len(dtypes):
        raise ValueError(
            "List of names must have the same length as the list of dtypes, received "
            f"len(names)={len(names)},len(dtypes)={len(dtypes)}"
        )
    return list(names)


@export("QueueBase", "queue.QueueBase", "io.QueueBase")
class QueueBase:
    """The base of all queues. An element is one tensor, or several, or a dictionary when they have names."""

    def __init__(
        self,
        dtypes: Sequence[DType],
        shapes: Sequence[ShapeLike] | None,
        names: Sequence[str] | None,
        queue_ref: Tensor,
    ) -> None:
        self._dtypes = list(dtypes)
        if shapes:
            if len(shapes) != len(self._dtypes):
                raise ValueError(
                    "Queue shapes must have the same length as dtypes, received "
                    f"len(shapes)={len(shapes)}, len(dtypes)={len(self._dtypes)}"
                )
            self._shapes = [as_shape(s) for s in shapes]
        else:
            self._shapes = [TensorShape(None) for _ in self._dtypes]
        if names and len(names) != len(self._dtypes):
            raise ValueError(
                f"Queue names must have the same length as dtypes,received len(names)={len(names)},"
                f"len {len(self._dtypes)}"
            )
        self._names = names or None
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: TensorLike, queues: list[QueueBase]) -> QueueBase:
        """The queue that the integer tensor `index` picks, during each run, from `queues`."""
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(q.dtypes != first.dtypes for q in queues[1:]):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(q.names != first.names for q in queues[1:]):
            raise TypeError("Queues do not have matching component names.")
        shapes = list(first.shapes)
        for q in queues[1:]:
            shapes = [a.most_specific_compatible_shape(b) for a, b in zip(shapes, q.shapes, strict=True)]
        chosen = gather(stack([q.queue_ref for q in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    queue_ref = readonly("_queue_ref", "The handle.")
    name = readonly("_queue_ref.op.name", "The name of the operation that makes the queue.")
    dtypes = readonly("_dtypes", "The type of each component.")
    shapes = readonly("_shapes", "The shape of each component, as far as it is known.")
    names = readonly("_names", "The names of the components, if they have any.")

    # -- putting in ----------------------------------------------------------------------------------

    def _components(self, vals: TensorLike) -> list[Tensor]:
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals.keys()):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  Dictionary: "
                    f"{sorted(vals.keys())},Queue: {sorted(self._names)}"
                )
            vals = [vals[n] for n in self._names]
        else:
            if self._names:
                raise ValueError("You must enqueue a dictionary in a Queue with names")
            if not isinstance(vals, (list, tuple)):
                vals = [vals]
        pairs = zip(vals, self._dtypes, strict=False)
        return [to_tensor(v, dtype, name=f"component_{i}") for i, (v, dtype) in enumerate(pairs)]

    def enqueue(self, vals: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds one element; it waits while the queue is full."""
        with name_scope(name, f"{self._name}_enqueue", _flat(vals)) as scope:
            components = self._components(vals)
            for c, shape in zip(components, self._shapes, strict=False):
                c.shape.assert_is_compatible_with(shape)
            return apply_op(self._op("QueueEnqueue"), self._queue_ref, components, name=scope)

    def enqueue_many(self, vals: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds one element per row of `vals`; it waits while the queue is full."""
        with name_scope(name, f"{self._name}_EnqueueMany", _flat(vals)) as scope:
            components = self._components(vals)
            rows = components[0].shape.with_rank_at_least(1)[0]
            for c, shape in zip(components, self._shapes, strict=False):
                rows = rows.merge_with(c.shape.with_rank_at_least(1)[0])
                c.shape[1:].assert_is_compatible_with(shape)
            return apply_op(self._op("QueueEnqueueMany"), self._queue_ref, components, name=scope)

    # -- taking out ----------------------------------------------------------------------------------

    def dequeue(self, name: str | None = None) -> Any:
        """The next element; the operation waits until there is one."""
        return self._taken(self._dequeue("Dequeue", name), ())

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Any:
        """`n` elements as one batch; the operation waits until there are so many."""
        op = self._dequeue("DequeueMany", name, n)
        count = static_value(op, 1)
        return self._taken(op, (None if count is None else int(count),))

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Any:
        """`n` elements as one batch, or as many as are left once the queue is closed."""
        return self._taken(self._dequeue("DequeueUpTo", name, n), (None,))

    def _dequeue(self, kind: str, name: str | None, *count: TensorLike) -> Operation:
        name = name or f"{self._name}_{kind}"
        op_type = self._op(f"Queue{kind}")
        return apply_op(op_type, self._queue_ref, *count, component_types=self._dtypes, name=name)

    def _taken(self, dequeue: Operation, rows: tuple[int | None, ...]) -> Any:
        tensors = list(dequeue._outputs)
        for t, shape in zip(tensors, self._shapes, strict=True):
            t.set_shape(TensorShape._of(rows).concatenate(shape))
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors

    # -- the rest ------------------------------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation after which nothing more can be added; the elements inside can still be taken.

        It waits for pending enqueues, unless `cancel_pending_enqueues`.
        """
        return apply_op(
            self._op("QueueClose"),
            self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return apply(self._op("QueueIsClosed"), self._queue_ref, name=name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """How many elements the queue holds."""
        return apply(self._op("QueueSize"), self._queue_ref, name=name or f"{self._name}_Size")

    def _op(self, base: str) -> str:
        return base if self._queue_ref.dtype._is_ref_dtype else f"{base}V2"


def _flat(vals: TensorLike) -> list[TensorLike]:
    if isinstance(vals, dict):
        return list(vals.values())
    return list(vals) if isinstance(vals, (list, tuple)) else [vals]


def _made(
    kind: str,
    types: list[DType],
    shapes: list[TensorShape],
    capacity: int,
    shared_name: str | None,
    name: str,
    **more: Any,
) -> Tensor:
    attrs = {"component_types": types, "shapes": shapes, "capacity": capacity, "shared_name": shared_name}
    return apply(kind, name=name, **attrs, **more)


@export("FIFOQueue", "queue.FIFOQueue")
class FIFOQueue(QueueBase):
    """A queue that gives elements in the order they were put in.

    `capacity` bounds the number of elements (negative: no bound); `shapes` are needed for batches; queues with
    the same `shared_name` on one server are one queue.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: Shapes = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        kinds = type_list(dtypes)
        sizes, labels = shape_list(shapes, kinds), name_list(names, kinds)
        with control_dependencies(None):
            ref = _made("FIFOQueueV2", kinds, sizes, capacity, shared_name, name)
        super().__init__(kinds, sizes, labels, ref)


@export("PaddingFIFOQueue", "queue.PaddingFIFOQueue", "io.PaddingFIFOQueue")
class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose elements may differ in size where `shapes` has None.

    The elements of a batch are padded with zeros (or empty strings) to the longest of each dimension.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: Shapes,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        kinds = type_list(dtypes)
        sizes, labels = shape_list(shapes, kinds, partial=True), name_list(names, kinds)
        if len(kinds) != len(sizes):
            raise ValueError(
                "Shapes must be provided for all components, but received "
                f"{len(kinds)} dtypes and {len(sizes)} shapes."
            )
        ref = _made("PaddingFIFOQueueV2", kinds, sizes, capacity, shared_name, name)
        super().__init__(kinds, sizes, labels, ref)


@export("RandomShuffleQueue", "queue.RandomShuffleQueue", "io.RandomShuffleQueue")
class RandomShuffleQueue(QueueBase):
    """A queue that gives elements in random order.

    Until it is closed, it keeps at least `min_after_dequeue` elements to choose from.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: DTypeLike | Sequence[DTypeLike],
        shapes: Shapes = None,
        names: str | Sequence[str] | None = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        kinds = type_list(dtypes)
        sizes, labels = shape_list(shapes, kinds), name_list(names, kinds)
        first, second = get_seed(seed)
        if first is not None and seed is None and shared_name is not None:
            # Graphs that share the queue must ask for the same seeds, whatever else is in them.
            digest = hashlib.md5(f"{first}{shared_name}".encode(), usedforsecurity=False).hexdigest()
            second = int(digest[:8], 16) & 0x7FFFFFFF
        more = {"min_after_dequeue": min_after_dequeue, "seed": first or 0, "seed2": second or 0}
        ref = _made("RandomShuffleQueueV2", kinds, sizes, capacity, shared_name, name, **more)
        super().__init__(kinds, sizes, labels, ref)


@export("PriorityQueue", "queue.PriorityQueue", "io.PriorityQueue")
class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest priority, an int64 put before its other components."""

    def __init__(
        self,
        capacity: int,
        types: DTypeLike | Sequence[DTypeLike],
        shapes: Shapes = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        kinds = type_list(types)
        sizes = shape_list(shapes, kinds)
        ref = _made("PriorityQueueV2", kinds, sizes, capacity, shared_name, name)
        super().__init__([_INT64, *kinds], [TensorShape(()), *sizes] if sizes else None, names, ref)


_INT64 = types.int64  # in `PriorityQueue.__init__`, `types` is an argument
