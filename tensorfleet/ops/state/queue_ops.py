"""The operations on queues: making one, putting in, taking out, closing, asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR, static_value, vector_of
from tensorfleet.state.long_waits import Awaited, LongWait, maker_of
from tensorfleet.state.queue_members import Roster
from tensorfleet.state.queue_orders import HeapQueue, PaddingQueue, ShuffleQueue
from tensorfleet.state.queues import Attempt, CloseAttempt, PutAttempt, Queue, TakeAttempt, private_name

# -- making ------------------------------------------------------------------------------------------


def shared(ctx: Any, kind: str, container: bytes, shared_name: bytes, make: Callable[[str], Any]) -> Any:
    """The resource of an operation: its own, or the one that others with the same `shared_name` use."""

    def made(name: str) -> Any:
        resource = make(name)
        if isinstance(resource, Awaited):
            resource.maker = maker_of(ctx)
        return resource

    if shared_name:
        name = shared_name.decode()
        return ctx.resources.get(container.decode(), kind, name, lambda: made(name))
    op_name = ctx.op.name
    return ctx.private.get(container.decode(), kind, op_name, lambda: made(private_name(op_name)))


def _make(ctx: Any, container: bytes, shared_name: bytes, make: Callable[[str], Queue]) -> Queue:
    return agreed(ctx, "queue", container, shared_name, make)


def agreed(ctx: Any, kind: str, container: bytes, shared_name: bytes, make: Callable[[str], Any]) -> Any:
    """The shared queue of an operation, if it is what the operation asks for."""
    queue = shared(ctx, kind, container, shared_name, make)
    if shared_name and ctx.op not in queue.agreed:
        _check_same(ctx.op, queue, make)
        queue.agreed.add(ctx.op)
    return queue


def _check_same(op: Operation, queue: Queue, make: Callable[[str], Queue]) -> None:
    """Raises unless a queue found by its shared name is what this operation would have made."""
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


def _dims(queue: Queue) -> list:
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
# On what puts in their first tokens when a chief begins, and their last when it ends.
FIRST_AND_LAST = "_first_and_last"


def handle_shape(op: Operation) -> TensorShape:
    """A handle is one resource; before there were resources it was a container and a name."""
    return vector_of(2) if op._outputs[0].dtype._is_ref_dtype else SCALAR


_HANDLES = {"": "-> handle: Ref(string)", "V2": "-> handle: resource"}
_MAKES: dict[str, Any] = {"shape": handle_shape, "host": True, "stateful": True}


def _fifo(
    ctx: Any, *, component_types: list, shapes: list, capacity: int, container: bytes, shared_name: bytes
) -> Queue:
    queue = _make(ctx, container, shared_name, lambda name: Queue(name, capacity, component_types, shapes))
    replicas = ctx.op._attrs.get(REPLICAS)
    if replicas is not None:
        if queue.roster is None:
            queue.roster = Roster(queue)
        queue.roster.replicas = int(replicas)
        queue.roster.aggregate = int(ctx.op._attrs.get(AGGREGATE, replicas))
    return queue


def _padding(
    ctx: Any, *, component_types: list, shapes: list, capacity: int, container: bytes, shared_name: bytes
) -> Queue:
    make = lambda name: PaddingQueue(name, capacity, component_types, shapes)  # noqa: E731
    return _make(ctx, container, shared_name, make)


def _priority(
    ctx: Any, *, component_types: list, shapes: list, capacity: int, container: bytes, shared_name: bytes
) -> Queue:
    types, sizes = [dtypes.int64, *component_types], [SCALAR, *shapes]
    return _make(ctx, container, shared_name, lambda name: HeapQueue(name, capacity, types, sizes))


def _shuffle(
    ctx: Any,
    *,
    component_types: list,
    shapes: list,
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
    return _make(ctx, container, shared_name, make)


_SHUFFLING = "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; "
_PRIORITY = "component_types: list(type) = []; shapes: list(shape); capacity: int = -1; "
for _version, _handle in _HANDLES.items():
    op(f"FIFOQueue{_version}", _handle, _ATTRS + _PLACE, **_MAKES)(_fifo)
    op(f"PaddingFIFOQueue{_version}", _handle, _ATTRS + _PLACE, **_MAKES)(_padding)
    op(f"PriorityQueue{_version}", _handle, _PRIORITY + _PLACE, **_MAKES)(_priority)
    op(f"RandomShuffleQueue{_version}", _handle, _ATTRS + _SHUFFLING + _PLACE, **_MAKES)(_shuffle)


# -- using -------------------------------------------------------------------------------------------


def complete(ctx: Any, queue: Any, attempt: Attempt, what: str) -> None:
    """Brings an attempt to its end, waiting if need be; one that is cancelled leaves no trace."""
    asker = getattr(ctx.step, "asker", None) if isinstance(attempt, TakeAttempt) else None
    if asker is not None and asker.wants[0] is ctx.op:
        attempt.answer = lambda: asker.answer_with(queue, attempt)
    if not queue.submit(attempt):
        try:
            ctx.step.wait(attempt.event, what, LongWait(queue, attempt.verb, what))
        except BaseException as e:
            if queue.withdraw(attempt):
                if isinstance(e, errors.CancelledError):
                    text = f"{attempt.verb} operation was cancelled: {e.message}"
                    raise errors.CancelledError(None, None, text) from e
                raise
    if attempt.error is not None:
        raise attempt.error
    if asker is not None and not asker.is_answered_by(ctx.op) and asker.is_gone():
        queue.take_back(attempt)
        raise errors.CancelledError(
            None, None, f"{attempt.verb} operation was cancelled: its client has gone"
        )


def _handed_out(ctx: Any, queue: Queue, attempt: TakeAttempt) -> None:
    """Notes what was taken for another process, which may end before it gets there."""
    asker = getattr(ctx.step, "asker", None)
    if asker is not None and not asker.is_answered_by(ctx.op):
        asker.taken.append((queue, attempt))


def _check_types(queue: Queue, given: list[DType], verb: str) -> None:
    if given != queue.types:
        if len(given) != len(queue.types):
            text = f"Wrong number of components in tuple. Expected {len(queue.types)}, got {len(given)}"
        else:
            names = ", ".join(t.name for t in given)
            text = f"{verb} types [{names}]: queue '{queue.name}' holds [{_types(queue)}]."
        raise errors.invalid(text)


def _enqueue(ctx: Any, queue: Queue, components: list, *, Tcomponents: list) -> None:
    _check_types(queue, Tcomponents, "Cannot enqueue")
    attempt = PutAttempt([queue.element(components)])
    complete(ctx, queue, attempt, f"for room in queue '{queue.name}'")


def _enqueue_many(ctx: Any, queue: Queue, components: list, *, Tcomponents: list) -> None:
    _check_types(queue, Tcomponents, "Cannot enqueue")
    rows = queue.rows(components)
    marked = FIRST_AND_LAST in ctx.op._attrs
    if queue.roster is not None and marked:
        queue.roster.begins_or_ends(ctx.private)
    if rows:
        if queue.roster is not None:
            queue.roster.put(rows, of_update=not marked)
        complete(ctx, queue, PutAttempt(rows), f"for room in queue '{queue.name}'")


def _dequeue(ctx: Any, queue: Queue, *, component_types: list) -> tuple:
    _check_types(queue, component_types, "Cannot dequeue")
    attempt = TakeAttempt(1)
    end = lambda: complete(ctx, queue, attempt, f"for an element of queue '{queue.name}'")  # noqa: E731
    if queue.roster is None:
        end()
    else:
        queue.roster.complete(ctx, attempt, end)
    _handed_out(ctx, queue, attempt)
    return queue.single(attempt.taken)


def _dequeue_batch(ctx: Any, queue: Queue, n: Any, types: list, up_to: bool) -> tuple:
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


def _dequeue_many(ctx: Any, queue: Queue, n: Any, *, component_types: list) -> tuple:
    return _dequeue_batch(ctx, queue, n, component_types, False)


def _dequeue_up_to(ctx: Any, queue: Queue, n: Any, *, component_types: list) -> tuple:
    return _dequeue_batch(ctx, queue, n, component_types, True)


def _close(ctx: Any, queue: Queue, *, cancel_pending_enqueues: bool) -> None:
    if cancel_pending_enqueues:
        queue.close_now()
    else:
        complete(
            ctx, queue, CloseAttempt(), f"for pending enqueues of queue '{queue.name}' before closing it"
        )


def _size(ctx: Any, queue: Queue) -> Any:
    return np.int32(queue.look()[0])


def _is_closed(ctx: Any, queue: Queue) -> Any:
    return np.bool_(queue.look()[1])


# -- shapes ------------------------------------------------------------------------------------------


def known_shapes(op: Operation) -> list[TensorShape] | None:
    """The shapes of the components of the queue an operation uses, when the graph tells."""
    source = op._inputs[0]._op
    if source.type.removesuffix("V2") not in (
        "FIFOQueue",
        "PaddingFIFOQueue",
        "PriorityQueue",
        "RandomShuffleQueue",
    ):
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
_WAITS: dict[str, Any] = {"host": True, "blocks": True, "stateful": True}
_ASKS: dict[str, Any] = {"host": True, "stateful": True, "shape": lambda op: SCALAR}

for _v, _h in (("", "handle: Ref(string)"), ("V2", "handle: resource")):
    op(f"QueueEnqueue{_v}", f"{_h}, components: list(Tcomponents) ->", _PUT, **_WAITS)(_enqueue)
    op(f"QueueEnqueueMany{_v}", f"{_h}, components: list(Tcomponents) ->", _PUT, **_WAITS)(_enqueue_many)
    op(
        f"QueueDequeue{_v}",
        f"{_h} -> components: list(component_types)",
        _TAKE,
        shape=_element_shapes,
        **_WAITS,
    )(_dequeue)
    op(
        f"QueueDequeueMany{_v}",
        f"{_h}, n: int32 -> components: list(component_types)",
        _TAKE,
        shape=_batch_shapes,
        **_WAITS,
    )(_dequeue_many)
    op(
        f"QueueDequeueUpTo{_v}",
        f"{_h}, n: int32 -> components: list(component_types)",
        _TAKE,
        shape=_batch_shapes,
        **_WAITS,
    )(_dequeue_up_to)
    op(f"QueueClose{_v}", f"{_h} ->", "cancel_pending_enqueues: bool = false", **_WAITS)(_close)
    op(f"QueueIsClosed{_v}", f"{_h} -> is_closed: bool", **_ASKS)(_is_closed)
    op(f"QueueSize{_v}", f"{_h} -> size: int32", **_ASKS)(_size)
    not_differentiable(
        f"QueueEnqueue{_v}",
        f"QueueEnqueueMany{_v}",
        f"QueueDequeue{_v}",
        f"QueueDequeueMany{_v}",
        f"QueueDequeueUpTo{_v}",
        f"QueueClose{_v}",
        f"QueueIsClosed{_v}",
        f"QueueSize{_v}",
    )
