"""The operations on iterators: making one, starting it, taking the next element, passing it on by name."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Element, boxed, unboxed
from tensorfleet.api.data.cache_prefetch import PrefetchRun
from tensorfleet.api.data.calls import DatasetFunction
from tensorfleet.api.data.nodes import DatasetRun, Node
from tensorfleet.api.data.recorded_runs import begin as show_in_traces
from tensorfleet.api.data.saving import decoded, encoded
from tensorfleet.api.data.structure import ELEMENTS, declared_shapes
from tensorfleet.base import errors
from tensorfleet.base.dtypes import DType
from tensorfleet.base.formats.records import TFRecordWriter
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.functions import find_function
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.input.step_lock import StepLock
from tensorfleet.ops.state.queue_ops import shared

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext
    from tensorfleet.runtime.scheduling.step import ExecutionContext

show_in_traces()
_numbers = itertools.count()
# So many steps in a row that take this much longer than their input: then the next element is read while they run.
_STEADY_STEPS = 16
_STEP_TO_INPUT_RATIO = 4


class IteratorState:
    """Where a session is in a dataset."""

    def __init__(self, name: str, types: list[DType], shapes: list[TensorShape]) -> None:
        self.name = name
        self.types = types
        self.shapes = shapes
        self.handle = f"iterator_{next(_numbers)}_{name}".encode()
        # Two steps may come first at the same time: one of them makes the dataset.
        self.once = threading.Lock()
        self._turns = StepLock()
        self._node: Node | None = None
        self._run: DatasetRun | None = None
        self._ahead = False  # whether a thread reads the next element while a step runs
        self._steady = 0
        self._given = 0.0  # when the last element was
        self.started = False
        _by_handle[self.handle] = self

    def restart(self, node: Node, ctx: StepHostContext) -> None:
        """Begins a dataset, from its start."""
        self._turns.acquire(ctx)
        try:
            self._drop()
            self._run = node.start(ctx.step)
            self._node, self.started = node, True
        finally:
            self._turns.release()

    def save(self, ctx: StepHostContext) -> bytes:
        """Where it is."""
        self._turns.acquire(ctx)
        try:
            if not self.started:
                raise self._nothing()
            return encoded({"run": None if self._run is None else self._run.save(), "ahead": self._ahead})
        finally:
            self._turns.release()

    def restore(self, data: bytes, ctx: StepHostContext) -> None:
        """Goes where another iterator over the same dataset was when it was saved."""
        self._turns.acquire(ctx)
        try:
            if self._node is None:
                raise errors.FailedPreconditionError(
                    None,
                    None,
                    f"The iterator '{self.name}' was not initialized, so there is no dataset in which to find its "
                    "place. Run its initializer, then restore.",
                )
            self._drop()
            state = decoded(data)
            if state["run"] is not None:
                self._run = self._node.start(ctx.step)
                if state.get("ahead"):
                    self._read_ahead(ctx.step)
                self._run.restore(state["run"], ctx.step)
        finally:
            self._turns.release()

    def next(self, ctx: StepHostContext) -> Element:
        """The components of the next element."""
        self._turns.acquire(ctx)
        try:
            if self._run is None:
                raise self._nothing()
            asked = time.perf_counter()
            result = self._run.one(ctx.step)
            if result is None:
                self._drop()
                raise self._nothing()
            # Once a thread reads ahead, the time that an element takes says nothing any more.
            if not self._ahead:
                self._watch(asked, time.perf_counter(), ctx.step)
            return result
        finally:
            self._turns.release()

    def _watch(self, asked: float, now: float, step: ExecutionContext) -> None:
        """Reads ahead once the steps in between are seen to leave time for it, if nobody can tell."""
        between, self._given = asked - self._given, now
        self._steady = self._steady + 1 if between > _STEP_TO_INPUT_RATIO * (now - asked) else 0
        if self._steady == _STEADY_STEPS and self._run is not None and self._run.may_read_ahead():
            self._read_ahead(step)

    def _read_ahead(self, step: ExecutionContext) -> None:
        assert self._run is not None
        self._run, self._ahead = PrefetchRun(self._run, 1, step), True

    def _nothing(self) -> errors.OpError:
        if self.started:
            return errors.OutOfRangeError(None, None, "End of sequence")
        return errors.FailedPreconditionError(
            None,
            None,
            "GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer "
            "operation for this iterator before getting the next element.",
        )

    def _drop(self) -> None:
        run, self._run = self._run, None
        self._ahead, self._steady = False, 0
        if run is not None:
            run.close()

    def clear(self) -> None:
        """Ends the threads that work for it: its container is gone."""
        self._drop()


# Weak: a handle must not keep an iterator, its threads and its files alive after its session.
_by_handle: weakref.WeakValueDictionary[bytes, IteratorState] = weakref.WeakValueDictionary()

_MAKES: dict[str, Any] = {"shape": lambda op: SCALAR, "host": True, "stateful": True}
_WAITS: dict[str, Any] = {"host": True, "blocks": True, "stateful": True}


def _iterator(
    ctx: StepHostContext,
    *,
    shared_name: bytes,
    container: bytes,
    output_types: list[DType],
    output_shapes: list[TensorShape],
) -> IteratorState:
    return shared(
        ctx, "iterator", container, shared_name, lambda name: IteratorState(name, output_types, output_shapes)
    )


for _name in ("Iterator", "IteratorV2"):
    op(_name, "-> handle: resource", f"shared_name: string; container: string; {ELEMENTS}", **_MAKES)(
        _iterator
    )


@op(
    "OneShotIterator",
    "-> handle: resource",
    f"dataset_factory: func; {ELEMENTS}; container: string = ''; shared_name: string = ''",
    **{**_MAKES, "blocks": True},
)
def _one_shot(
    ctx: StepHostContext,
    *,
    dataset_factory: str,
    output_types: list[DType],
    output_shapes: list[TensorShape],
    container: bytes,
    shared_name: bytes,
) -> IteratorState:
    state = _iterator(
        ctx,
        shared_name=shared_name,
        container=container,
        output_types=output_types,
        output_shapes=output_shapes,
    )
    if not state.started:
        with state.once:
            if not state.started:
                (node,) = DatasetFunction(find_function(ctx.op.graph, dataset_factory), []).call([], ctx.step)
                state.restart(node, ctx)
    return state


@op("MakeIterator", "dataset: variant, iterator: resource ->", **_WAITS)
def _make_iterator(ctx: StepHostContext, node: Node, state: IteratorState) -> None:
    state.restart(node, ctx)


def _get_next(
    ctx: StepHostContext, state: IteratorState, *, output_types: list[DType], output_shapes: list[TensorShape]
) -> tuple[Any, ...]:
    values = state.next(ctx)
    if len(values) != len(output_types):
        text = f"The iterator gives {len(values)} components, but {len(output_types)} are expected."
        raise errors.invalid(text)
    for i, value in enumerate(values):
        if type(value) is np.ndarray or isinstance(value, np.generic):
            _check(i, value, output_types[i], output_shapes[i])
    return tuple(values)


def _check(i: int, value: Array | np.generic, dtype: DType, shape: TensorShape) -> None:
    if value.dtype != dtype.np_dtype:
        raise errors.invalid(
            f"Number {i} of the components has type {value.dtype}, but {dtype.name} is expected."
        )
    known, given = shape._d, value.shape
    if known is None or given == known:
        return
    # Before the general comparison, which takes longer: nearly all elements are batches.
    if len(known) == len(given) and known[0] is None and known[1:] == given[1:]:
        return  # a batch
    if len(known) != len(given) or any(d is not None and d != v for d, v in zip(known, given, strict=True)):
        dims = ",".join("?" if d is None else str(d) for d in known)
        got = ",".join(map(str, given))
        raise errors.invalid(f"Expected shape [{dims}] for component {i}, but the element has shape [{got}].")


for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    op(
        _name,
        "iterator: resource -> components: list(output_types)",
        ELEMENTS,
        shape=declared_shapes,
        **_WAITS,
    )(_get_next)


@op("IteratorToStringHandle", "resource_handle: resource -> string_handle: string", **_MAKES)
def _to_string(ctx: StepHostContext, state: IteratorState) -> Array:
    return boxed(state.handle)


def _from_string(
    ctx: StepHostContext, handle: Array, *, output_types: list[DType], output_shapes: list[TensorShape]
) -> IteratorState:
    name = unboxed(handle)
    state = _by_handle.get(name)
    if state is None:
        raise errors.invalid(
            f"Could not parse string_handle as a valid ResourceHandle: {name!r} names no iterator here."
        )
    if output_types and output_types != state.types:
        theirs, mine = ([t.name for t in types] for types in (state.types, output_types))
        raise errors.invalid(
            f"Number or types of components do not match: the iterator gives {theirs}, expected {mine}."
        )
    return state


_OPTIONAL = "output_types: list(type) = []; output_shapes: list(shape) = []"
for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    op(_name, "string_handle: string -> resource_handle: resource", _OPTIONAL, **_MAKES)(_from_string)


@op(
    "DatasetToSingleElement",
    "dataset: variant -> components: list(output_types)",
    f"{ELEMENTS}; metadata: string = ''",
    shape=declared_shapes,
    **_WAITS,
)
def _single_element(ctx: StepHostContext, node: Node) -> tuple[Any, ...]:
    run = node.start(ctx.step)
    try:
        block = run.next(1, ctx.step)
        if block is None:
            raise errors.invalid("Dataset was empty.")
        if run.next(1, ctx.step) is not None:
            raise errors.invalid("Dataset had more than one element.")
        return tuple(block.element(0))
    finally:
        run.close()


@op("DatasetToTFRecord", "input_dataset: variant, filename: string, compression_type: string ->", **_WAITS)
def _to_records(ctx: StepHostContext, node: Node, filename: Array, compression: Array) -> None:
    name, packing = (unboxed(v).decode() for v in (filename, compression))
    run = node.start(ctx.step)
    try:
        with TFRecordWriter(name, packing) as writer:
            while (block := run.next(256, ctx.step)) is not None:
                for record in block.columns[0]:
                    writer.write(record)
    finally:
        run.close()


@op(
    "SerializeIterator",
    "resource_handle: resource -> serialized: variant",
    "external_state_policy: int = 0",
    shape=lambda op: SCALAR,
    **_WAITS,
)
def _serialize(ctx: StepHostContext, state: IteratorState) -> Array:
    return boxed(state.save(ctx))


@op("DeserializeIterator", "resource_handle: resource, serialized: variant ->", **_WAITS)
def _deserialize(ctx: StepHostContext, state: IteratorState, serialized: Array) -> None:
    state.restore(unboxed(serialized), ctx)


not_differentiable("DatasetToTFRecord", "SerializeIterator", "DeserializeIterator")
not_differentiable("Iterator", "IteratorV2", "OneShotIterator", "MakeIterator", "IteratorGetNext")
not_differentiable("IteratorGetNextSync", "IteratorToStringHandle", "IteratorFromStringHandle")
not_differentiable("IteratorFromStringHandleV2", "DatasetToSingleElement")
