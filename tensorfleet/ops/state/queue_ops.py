"""The operations on queues: making one, putting in, taking out, closing, asking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, static_value, vector_of
from tensorfleet.state.long_waits import Awaited, LongWait, maker_of
from tensorfleet.state.queue_members import Roster
from tensorfleet.state.queue_orders import HeapQueue, PaddingQueue, ShuffleQueue
from tensorfleet.state.queues import CloseAttempt, Element, PutAttempt, Queue, TakeAttempt, private_name
from tensorfleet.state.recording import wait_in_turn

#: A resource that operations share by name.
R = TypeVar("R")
Q = TypeVar("Q", bound=Queue)


# -- making ------------------------------------------------------------------------------------------


def shared(ctx: HostContext, kind: str, container: bytes, shared_name: bytes, make: Callable[[str], R]) -> R:
    """The resource of an operation: its own, or the one that others with the same `shared_name` use."""

    def make_known(name: str) -> R:
        resource = make(name)
        if isinstance(resource, Awaited):
            resource.maker = maker_of(ctx)
        return resource

    resource: R
    if shared_name:
        name = shared_name.decode()
        resource = ctx.resources.get(container.decode(), kind, name, lambda: make_known(name))
    else:
        name = ctx.op.name
        resource = ctx.private.get(container.decode(), kind, name, lambda: make_known(private_name(name)))
    return resource


def agreed(ctx: HostContext, kind: str, container: bytes, shared_name: bytes, make: Callable[[str], Q]) -> Q:
    """The shared queue of an operation; raises unless it is like the queue that the operation would make."""
    queue = shared(ctx, kind, container, shared_name, make)
    # Checked once per operation: later runs of it find themselves in `agreed`.
    if shared_name and ctx.op not in queue.agreed:
        _check_same(ctx.op, queue, make)
        queue.agreed.add(ctx.op)
    return queue


def _check_same(op: Operation, queue: Queue, make: Callable[[str], Queue]) -> None:
    """Raises unless the queue of a shared name is like the queue that this operation would make."""
    asked = make(queue.name)
    known = f"Shared queue '{queue.name}' has"
    text = ""
    if type(asked) is not type(queue):
        text = f"{known} type '{queue.kind}'. Expected {queue.kind}, found {op.type}"
    elif asked.capacity != queue.capacity:
        text = f"{known} capacity {queue.capacity} but requested capacity was {asked.capacity}"
    elif asked.types != queue.types:
        text = f"{known} component types {_types(queue)} but requested component types were {_types(asked)}"
    elif _dims(asked) != _dims(queue):
        text = (
            f"{known} component shapes {_shapes(queue)} but requested component shapes were {_shapes(asked)}"
        )
    elif isinstance(asked, ShuffleQueue) and isinstance(queue, ShuffleQueue):
        if asked.min_after != queue.min_after:
            text = (
                f"{known} min_after_dequeue {queue.min_after} but requested min_after_dequeue was "
                f"{asked.min_after}."
            )
        elif asked.seeds not in (queue.seeds, (0, 0)):  # no seed asks for none in particular
            text = f"{known} random seeds {queue.seeds} but requested seeds are {asked.seeds}."
    if text:
        raise errors.invalid(text)


def _dims(queue: Queue) -> list[tuple[int | None, ...] | None]:
    return [s._d for s in queue.shapes]


def _types(queue: Queue) -> str:
    short = {"float32": "float", "float64": "double", "float16": "half"}
    return ", ".join(short.get(t.name, t.name) for t in queue.types)


def _shapes(queue: Queue) -> str:
    each = [str(s.as_list()) if s.rank is not None else "<unknown>" for s in queue.shapes]
    return f"[{','.join(each)}]".replace(" ", "").replace("None", "?")


_ATTRS = "component_types: list(type) >= 1; shapes: list(shape) = []; capacity: int = -1; "
_PLACE = "container: string = ''; shared_name: string = ''"
# On a queue of tokens for replicas that train together: how many they are, and how many gradients make an update.
REPLICAS = "_replicas"
AGGREGATE = "_replicas_to_aggregate"
# On such a queue: an update is made of the gradients of the replicas that are there.
FOLLOWS = "_follows_members"
# On what puts in their first tokens when a chief begins, and their last when it ends.
FIRST_AND_LAST = "_first_and_last"


def handle_shape(op: Operation) -> TensorShape:
    """A handle is one resource; before there were resources it was a container and a name."""
    return vector_of(2) if op._outputs[0].dtype._is_ref_dtype else SCALAR


_HANDLES = {"": "-> handle: Ref(string)", "V2": "-> handle: resource"}
_MAKES: dict[str, Any] = {"shape": handle_shape, "host": True, "stateful": True}


def _fifo(
    ctx: HostContext,
    *,
    component_types: list[DType],
    shapes: list[TensorShape],
    capacity: int,
    container: bytes,
    shared_name: bytes,
) -> Queue:
    queue = agreed(
        ctx, "queue", container, shared_name, lambda name: Queue(name, capacity, component_types, shapes)
    )
    replicas = ctx.op._attrs.get(REPLICAS)
    if replicas is not None:
        if queue.roster is None:
            queue.roster = Roster(queue)
        queue.roster.replicas = int(replicas)
        queue.roster.aggregate = int(ctx.op._attrs.get(AGGREGATE, replicas))
        queue.roster.follows = bool(ctx.op._attrs.get(FOLLOWS))
    return queue


def _padding(
    ctx: HostContext,
    *,
    component_types: list[DType],
    shapes: list[TensorShape],
    capacity: int,
    container: bytes,
    shared_name: bytes,
) -> Queue:
    make = lambda name: PaddingQueue(name, capacity, component_types, shapes)  # noqa: E731
    return agreed(ctx, "queue", container, shared_name, make)


def _priority(
    ctx: HostContext,
    *,
    component_types: list[DType],
    shapes: list[TensorShape],
    capacity: int,
    container: bytes,
    shared_name: bytes,
) -> Queue:
    types, sizes = [dtypes.int64, *component_types], [SCALAR, *shapes]
    return agreed(ctx, "queue", container, shared_name, lambda name: HeapQueue(name, capacity, types, sizes))


def _shuffle(
    ctx: HostContext,
    *,
    component_types: list[DType],
    shapes: list[TensorShape],
    capacity: int,
    min_after_dequeue: int,
    seed: int,
    seed2: int,
    container: bytes,
    shared_name: bytes,
) -> Queue:
    keep, seeds = min_after_dequeue, (seed, seed2)
    text = ""
    if keep < 0:
        text = f"min_after_dequeue {keep} must be >= 0"
    elif 0 <= capacity <= keep:
        text = f"min_after_dequeue {keep} must be < capacity {capacity}"
    if text:
        raise errors.invalid(text)
    make = lambda name: ShuffleQueue(name, capacity, component_types, shapes, keep, seeds)  # noqa: E731
    return agreed(ctx, "queue", container, shared_name, make)


_SHUFFLING = "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; "
_PRIORITY = "component_types: list(type) = []; shapes: list(shape); capacity: int = -1; "
for _version, _handle in _HANDLES.items():
    op(f"FIFOQueue{_version}", _handle, _ATTRS + _PLACE, **_MAKES)(_fifo)
    op(f"PaddingFIFOQueue{_version}", _handle, _ATTRS + _PLACE, **_MAKES)(_padding)
    op(f"PriorityQueue{_version}", _handle, _PRIORITY + _PLACE, **_MAKES)(_priority)
    op(f"RandomShuffleQueue{_version}", _handle, _ATTRS + _SHUFFLING + _PLACE, **_MAKES)(_shuffle)


# -- using -------------------------------------------------------------------------------------------


def complete(ctx: HostContext, queue: Any, attempt: Any, what: str) -> None:
    """Completes an attempt, waiting if need be; an attempt that is cancelled leaves no trace."""
    asker = getattr(ctx.step, "asker", None) if isinstance(attempt, TakeAttempt) else None
    if asker is not None and asker.wants[0] is ctx.op:
        attempt.answer = lambda: asker.answer_with(queue, attempt)

    def wait() -> None:
        ctx.step.wait(attempt.event, what, LongWait(queue, attempt.verb, what))

    def abandon(e: BaseException) -> None:
        # An attempt that was completed just before the cancellation stays: its elements would be lost.
        if queue.withdraw(attempt):
            if isinstance(e, errors.CancelledError):
                text = f"{attempt.verb} operation was cancelled: {e.message}"
                raise errors.CancelledError(None, None, text) from e
            raise e

    if queue.recorder is not None:
        wait_in_turn(queue, attempt, wait, abandon)
    elif not queue.submit(attempt):
        try:
            wait()
        except BaseException as e:
            abandon(e)
    if attempt.error is not None:
        raise attempt.error
    # The client ended while the attempt waited: its elements must not be lost with it.
    if asker is not None and not asker.is_answered_by(ctx.op) and asker.is_gone():
        queue.take_back(attempt)
        raise errors.CancelledError(
            None, None, f"{attempt.verb} operation was cancelled: its client has gone"
        )


def _handed_out(ctx: HostContext, queue: Queue, attempt: TakeAttempt) -> None:
    """Notes the elements taken for another process: they go back if it ends before it gets them."""
    asker = getattr(ctx.step, "asker", None)
    if asker is not None and not asker.is_answered_by(ctx.op):
        asker.taken.append((queue, attempt))


def _check_types(queue: Queue, types: list[DType], verb: str) -> None:
    if types != queue.types:
        if len(types) != len(queue.types):
            text = f"Wrong number of components in tuple. Expected {len(queue.types)}, got {len(types)}"
        else:
            names = ", ".join(t.name for t in types)
            text = f"{verb} types [{names}]: queue '{queue.name}' holds [{_types(queue)}]."
        raise errors.invalid(text)


def _enqueue(ctx: HostContext, queue: Queue, components: list[Array], *, Tcomponents: list[DType]) -> None:
    _check_types(queue, Tcomponents, "Cannot enqueue")
    attempt = PutAttempt([queue.element(components)])
    complete(ctx, queue, attempt, f"for room in queue '{queue.name}'")


def _enqueue_many(
    ctx: HostContext, queue: Queue, components: list[Array], *, Tcomponents: list[DType]
) -> None:
    _check_types(queue, Tcomponents, "Cannot enqueue")
    rows: Sequence[Element] = queue.rows(components)
    marked = FIRST_AND_LAST in ctx.op._attrs
    if queue.roster is not None and marked:
        queue.roster.begins_or_ends(ctx.private)
    if rows and queue.roster is not None:
        rows = queue.roster.put(rows, of_update=not marked)
    if rows:
        complete(ctx, queue, PutAttempt(rows), f"for room in queue '{queue.name}'")


def _dequeue(ctx: HostContext, queue: Queue, *, component_types: list[DType]) -> tuple[Array, ...]:
    _check_types(queue, component_types, "Cannot dequeue")
    attempt = TakeAttempt(1)

    def wait() -> None:
        complete(ctx, queue, attempt, f"for an element of queue '{queue.name}'")

    if queue.roster is None:
        wait()
    else:
        queue.roster.complete(ctx, attempt, wait)
    _handed_out(ctx, queue, attempt)
    return queue.single(attempt.taken)


def _dequeue_batch(
    ctx: HostContext, queue: Queue, n: Array, types: list[DType], up_to: bool
) -> tuple[Array, ...]:
    count = int(np.asarray(n).reshape(-1)[0])
    name = "DequeueUpToOp" if up_to else "DequeueManyOp"
    if count < 0:
        raise errors.invalid(f"{name} requested {count} < 0 elements")
    queue.check_batches()
    _check_types(queue, types, "Cannot dequeue")
    attempt = TakeAttempt(count, up_to)
    if count:
        complete(ctx, queue, attempt, f"for {count} elements of queue '{queue.name}'")
    _handed_out(ctx, queue, attempt)
    return queue.batch(attempt.taken)


def _dequeue_many(
    ctx: HostContext, queue: Queue, n: Array, *, component_types: list[DType]
) -> tuple[Array, ...]:
    return _dequeue_batch(ctx, queue, n, component_types, False)


def _dequeue_up_to(
    ctx: HostContext, queue: Queue, n: Array, *, component_types: list[DType]
) -> tuple[Array, ...]:
    return _dequeue_batch(ctx, queue, n, component_types, True)


def _close(ctx: HostContext, queue: Queue, *, cancel_pending_enqueues: bool) -> None:
    if cancel_pending_enqueues:
        queue.close_now()
    else:
        complete(
            ctx, queue, CloseAttempt(), f"for pending enqueues of queue '{queue.name}' before closing it"
        )


def _size(ctx: HostContext, queue: Queue) -> np.int32:
    return np.int32(queue.look()[0])


def _is_closed(ctx: HostContext, queue: Queue) -> np.bool_:
    return np.bool_(queue.look()[1])


# -- shapes ------------------------------------------------------------------------------------------


_MAKERS = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")


def known_shapes(op: Operation) -> list[TensorShape] | None:
    """The shapes of the components of the queue an operation uses, if the graph has them."""
    source = op._inputs[0]._op
    if source.type.removesuffix("V2") not in _MAKERS:
        return None
    shapes = list(source._attrs["shapes"])
    if source.type.startswith("PriorityQueue"):
        shapes = [SCALAR, *shapes]
    return shapes or None


def _element_shapes(op: Operation) -> list[TensorShape]:
    count = len(op._outputs)
    shapes = known_shapes(op)
    return shapes if shapes is not None and len(shapes) == count else [TensorShape(None)] * count


def _batch_shapes(op: Operation) -> list[TensorShape]:
    if op._inputs[1].shape.rank not in (None, 0):
        raise ValueError(f"Shape must be rank 0 but is rank {op._inputs[1].shape.rank}")
    count = None
    if op.type.startswith("QueueDequeueMany"):
        n = static_value(op, 1)
        count = None if n is None else int(n)
        if count is not None and count < 0:
            raise ValueError(f"Input 'n' must be >= 0, but is {count}")
    rows = TensorShape._of((count,))
    return [rows.concatenate(s) if s.rank is not None else s for s in _element_shapes(op)]


_PUT = "Tcomponents: list(type); timeout_ms: int = -1"
_TAKE = "component_types: list(type) >= 1; timeout_ms: int = -1"
_TAKEN = "components: list(component_types)"
_WAITS: dict[str, Any] = {"host": True, "blocks": True, "stateful": True}
_ASKS: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: SCALAR}

for _v, _h in (("", "handle: Ref(string)"), ("V2", "handle: resource")):
    op(f"QueueEnqueue{_v}", f"{_h}, components: list(Tcomponents) ->", _PUT, **_WAITS)(_enqueue)
    op(f"QueueEnqueueMany{_v}", f"{_h}, components: list(Tcomponents) ->", _PUT, **_WAITS)(_enqueue_many)
    op(f"QueueDequeue{_v}", f"{_h} -> {_TAKEN}", _TAKE, shape=_element_shapes, **_WAITS)(_dequeue)
    op(f"QueueDequeueMany{_v}", f"{_h}, n: int32 -> {_TAKEN}", _TAKE, shape=_batch_shapes, **_WAITS)(
        _dequeue_many
    )
    op(f"QueueDequeueUpTo{_v}", f"{_h}, n: int32 -> {_TAKEN}", _TAKE, shape=_batch_shapes, **_WAITS)(
        _dequeue_up_to
    )
    op(f"QueueClose{_v}", f"{_h} ->", "cancel_pending_enqueues: bool = false", **_WAITS)(_close)
    op(f"QueueIsClosed{_v}", f"{_h} -> is_closed: bool", **_ASKS)(_is_closed)
    op(f"QueueSize{_v}", f"{_h} -> size: int32", **_ASKS)(_size)
    for _kind in (
        "Enqueue",
        "EnqueueMany",
        "Dequeue",
        "DequeueMany",
        "DequeueUpTo",
        "Close",
        "IsClosed",
        "Size",
    ):
        not_differentiable(f"Queue{_kind}{_v}")
