"""Datasets of what Python generators yield."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.data import structure as structures
from tensorfleet.data.functions import traced
from tensorfleet.data.structure import flatten, pack_like
from tensorfleet.graph.convert import make_array
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.host_ops import py_func
from tensorfleet.shapes import TensorShape


class _Generators:
    """The iterators of a generator function that are running, by number."""

    def __init__(self, generator: Callable) -> None:
        self._generator = generator
        self._numbers = itertools.count()
        self._running: dict[int, Any] = {}
        self._lock = threading.Lock()

    def start(self, *args: Any) -> np.int64:
        """Calls the generator function; the number of the iterator it gave."""
        number = next(self._numbers)
        made = iter(self._generator(*args))
        with self._lock:
            self._running[number] = made
        return np.int64(number)

    def next(self, number: Any) -> Any:
        """What an iterator gives next; StopIteration at its end."""
        return next(self._running[int(number)])

    def finish(self, number: Any) -> np.int64:
        """Lets an iterator go."""
        with self._lock:
            gone = self._running.pop(int(number), None)
        close = getattr(gone, "close", None)
        # One that a step at its deadline has left behind ends by itself.
        if close is not None and not getattr(gone, "gi_running", False):
            close()
        return np.int64(0)


def from_generator(generator: Callable, output_types: Any, output_shapes: Any, args: Any) -> Any:
    """See `tf.data.Dataset.from_generator`."""
    from tensorfleet.data.dataset import Dataset

    if not callable(generator):
        raise TypeError("`generator` must be callable.")
    structure = structures.from_legacy(output_types, output_shapes)
    leaves = flatten(structure)
    given = structures.converted(tuple(args)) if args is not None else ()
    running = _Generators(generator)

    def after(number: Tensor) -> Any:
        def pull(which: Any) -> list:
            return _components(running.next(which), structure, output_types)

        found = py_func(pull, [number], [leaf.dtype for leaf in leaves], stateful=True)
        for tensor, leaf in zip(found, leaves, strict=True):
            tensor.set_shape(leaf.shape)
        return pack_like(structure, found) if structures.is_structure(structure) else found[0]

    state = structures.Leaf(dtypes.int64, TensorShape([]))
    begin = traced(lambda: py_func(running.start, list(given), dtypes.int64), "from_generator")
    step = traced(after, "from_generator", state)
    finish = traced(lambda n: py_func(running.finish, [n], dtypes.int64), "from_generator", state)
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


def _components(value: Any, structure: Any, types: Any) -> list[np.ndarray]:
    """What a generator yielded as arrays, checked."""
    if isinstance(value, list):
        value = tuple(value)
    try:
        flat = structures.match(structure, value, lambda v: False, "")
    except ValueError:
        raise TypeError(
            "`generator` yielded an element that did not match the expected structure. The expected structure was "
            f"{types}, but the yielded element was {value}."
        ) from None
    found = []
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
        found.append(array)
    return found
