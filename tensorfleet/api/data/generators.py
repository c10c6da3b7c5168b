"""Datasets of the elements that Python generators yield."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.functions import traced
from tensorfleet.api.data.structure import Nested, Structure, flatten, pack_like
from tensorfleet.base import dtypes, errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.convert import make_array
from tensorfleet.graph.operation import Tensor
from tensorfleet.kernels.interruptible_calls import Background, Call, Interrupted
from tensorfleet.ops.control.host_ops import py_func, waiting_func

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class _Iterator:
    """An iterator whose next element outlives the step that asked for it: the step after gets it then."""

    def __init__(self, made: Iterator[Any]) -> None:
        self._made = made
        self._call: Call | None = None
        self._coming: Background | None = None

    def next(self, step: ExecutionContext) -> Any:
        """The next element, within the deadline of the step."""
        try:
            if self._coming is None:
                # In the step's own thread: a thread per element would cost more than most elements.
                if step.deadline is None:
                    self._call = Call(next, [self._made])
                    return self._call.run()
                self._coming = Background(next, [self._made], "generator")
            step.wait(self._coming.done, "for a generator, which has not returned in time")
            come, self._coming = self._coming, None
            return come.outcome()
        except Interrupted:
            raise errors.CancelledError(None, None, "The iterator was destroyed.") from None

    def close(self) -> None:
        """Stops a generator, whatever it does."""
        if self._call is not None:
            self._call.set()
        if self._coming is not None:
            self._coming.stop()
        # Iterators of other kinds than generators need not have one.
        close = getattr(self._made, "close", None)
        # One that is still running ends by itself.
        if close is not None and not getattr(self._made, "gi_running", False):
            close()


class _Generators:
    """The iterators of a generator function that are running, by number."""

    def __init__(self, generator: Callable[..., Any]) -> None:
        self._generator = generator
        self._numbers = itertools.count()
        self._running: dict[int, _Iterator] = {}
        self._lock = threading.Lock()

    def start(self, *args: Any) -> np.int64:
        """Calls the generator function; the number of the iterator it gave."""
        number = next(self._numbers)
        iterator = iter(self._generator(*args))
        with self._lock:
            self._running[number] = _Iterator(iterator)
        return np.int64(number)

    def next(self, step: ExecutionContext, number: Array) -> Any:
        """The next element of an iterator; StopIteration at its end."""
        return self._running[int(number)].next(step)

    def finish(self, step: ExecutionContext, number: Array) -> np.int64:
        """Lets an iterator go, also after the deadline of the step that began it."""
        with self._lock:
            gone = self._running.pop(int(number), None)
        if gone is not None:
            gone.close()
        return np.int64(0)


def from_generator(
    generator: Callable[..., Any],
    output_types: Nested,
    output_shapes: Nested,
    args: Iterable[TensorLike] | None,
) -> Dataset:
    """See `tf.data.Dataset.from_generator`."""
    from tensorfleet.api.data.dataset import Dataset

    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    structure = structures.from_legacy(output_types, output_shapes)
    leaves = flatten(structure)
    given = structures.converted(tuple(args)) if args is not None else ()
    running = _Generators(generator)

    def after(number: Tensor) -> Any:
        def pull(step: ExecutionContext, which: Array) -> list[Array]:
            return _components(running.next(step, which), structure, output_types)

        tensors = waiting_func(pull, [number], [leaf.dtype for leaf in leaves])
        for tensor, leaf in zip(tensors, leaves, strict=True):
            tensor.set_shape(leaf.shape)
        return pack_like(structure, tensors) if structures.is_structure(structure) else tensors[0]

    state = structures.Leaf(dtypes.int64, TensorShape([]))
    begin = traced(lambda: py_func(running.start, list(given), dtypes.int64), "from_generator")
    step = traced(after, "from_generator", state)
    finish = traced(lambda n: waiting_func(running.finish, [n], dtypes.int64), "from_generator", state)
    return Dataset._make(
        "GeneratorDataset",
        structure,
        begin.captured,
        step.captured,
        finish.captured,
        init_func=begin.name,
        next_func=step.name,
        finalize_func=finish.name,
    )


def _components(value: Nested, structure: Structure, types: Nested) -> list[Array]:
    """The yielded element of a generator, as arrays of the right types and shapes."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        flat = structures.match(structure, value, lambda v: False, "")
    except (TypeError, ValueError):
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. The expected structure was "
            f"{types}, but the yielded element was {value}."
        ) from None
    result = []
    for item, leaf in zip(flat, flatten(structure), strict=True):
        try:
            array = make_array(item, leaf.dtype)
        except (TypeError, ValueError):
            raise TypeError(
                "`generator` yielded an element that could not be converted to the expected type. The expected type "
                f"was {leaf.dtype.name}, but the yielded element was {item}."
            ) from None
        if not leaf.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape {leaf.shape} was "
                "expected."
            )
        result.append(array)
    return result
