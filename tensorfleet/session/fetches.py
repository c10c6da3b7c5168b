"""Reading the first argument of `sess.run`: any nesting of tensors, operations, names and variables."""

from __future__ import annotations

import collections
import functools
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices, IndexedSlicesValue
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.kernels.aligned_memory import copied
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue
from tensorfleet.ops.state.session_tensors import TensorHandle
from tensorfleet.session.conversions import conversion_of
from tensorfleet.session.feeds import COMPOSITES
from tensorfleet.session.handles import described, is_handle

#: Builds the value of a fetch from the values of all fetched tensors.
Build: TypeAlias = Callable[[list[Any]], Any]
_HANDLE = "GetSessionHandle"


# How the values of a composite fetch are put together again.
REBUILD: dict[type, Callable[[Any, list[Any]], Any]] = {
    IndexedSlices: lambda key, values: IndexedSlicesValue(
        values[0], values[1], values[2] if key.dense_shape is not None else None
    ),
    SparseTensor: lambda key, values: SparseTensorValue(*values),
    RaggedTensor: lambda key, values: _ragged(values),
}


def _ragged(values: list[Any]) -> RaggedTensorValue:
    """Rows of rows, from the innermost values and the splits of each dimension."""
    flat, *outer, innermost = values
    rows = RaggedTensorValue(flat, innermost)
    for splits in reversed(outer):
        rows = RaggedTensorValue(rows, splits)
    return rows


def fetch_plan(
    graph: Graph, fetches: object, feeds: list[Tensor], session: object = None
) -> tuple[list[Tensor], list[Operation], Build]:
    """The tensors and operations to run, and a function that arranges the tensors' values as asked."""
    collected = _Collected(graph, set(feeds), session)
    build = collected.visit(fetches)
    tensors = collected.tensors

    # The most frequent fetch, one tensor, skips the functions that arrange a structure.
    if len(tensors) == 1 and isinstance(fetches, Tensor) and fetches.op.type != _HANDLE:
        return tensors, collected.targets, lambda values: as_result(values, 0)

    def arrange(values: list[Any]) -> Any:
        return build([as_result(values, i) for i in range(len(values))])

    return tensors, collected.targets, arrange


class _Collected:
    """Gathers the distinct tensors and operations of a nested structure."""

    def __init__(self, graph: Graph, fed: set[Tensor], session: object) -> None:
        self.graph = graph
        # Weak: the session caches the plan that holds this object, and must still be freed when the user drops it.
        self.session = session if session is None else weakref.ref(session)
        self.fed = fed
        self.tensors: list[Tensor] = []
        self.targets: list[Operation] = []
        self._index: dict[Tensor, int] = {}

    def visit(self, fetch: Any) -> Build:
        """Adds a fetch; returns how to build its value from the values of all tensors."""
        if fetch is None:
            raise TypeError("Fetch argument None has invalid type <class 'NoneType'>")
        if isinstance(fetch, (list, tuple)):
            return self._sequence(fetch)
        if isinstance(fetch, dict) or hasattr(fetch, "keys"):
            keys = list(fetch.keys())
            parts = [self.visit(fetch[k]) for k in keys]
            build: Callable[..., Any] = type(fetch)
            if isinstance(fetch, collections.defaultdict):
                build = functools.partial(build, fetch.default_factory)
            return lambda values: build((k, p(values)) for k, p in zip(keys, parts, strict=True))
        for kind in COMPOSITES:
            if isinstance(fetch, kind):
                parts = [self._element(t) for t in COMPOSITES[kind][0](fetch)]
                rebuild = REBUILD[kind]
                return lambda values: rebuild(fetch, [p(values) for p in parts])
        conversion = conversion_of(fetch)
        if conversion is not None:
            tensors, make = conversion.fetch(fetch)
            parts = [self._element(t) for t in tensors]
            return lambda values: make([p(values) for p in parts])
        if type(fetch).__module__ != "builtins" and hasattr(fetch, "__attrs_attrs__"):
            names = [a.name for a in fetch.__attrs_attrs__]
            parts = [self.visit(getattr(fetch, n)) for n in names]
            return lambda values: type(fetch)(*[p(values) for p in parts])
        return self._element(fetch)

    def _sequence(self, fetch: Iterable[object]) -> Build:
        parts = [self.visit(f) for f in fetch]
        if hasattr(fetch, "_fields"):
            return lambda values: type(fetch)(*[p(values) for p in parts])
        if isinstance(fetch, list):
            return lambda values: [p(values) for p in parts]
        return lambda values: tuple(p(values) for p in parts)

    def _element(self, fetch: object) -> Build:
        try:
            element = self.graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as e:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch)}, must be a string or Tensor. ({e})"
            ) from None
        except ValueError as e:
            raise ValueError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({e})") from None
        except KeyError as e:
            raise ValueError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({e})") from None
        if not self.graph.is_fetchable(element):
            name = element.name
            raise ValueError(
                f"Operation {name!r} has been marked as not fetchable. It belongs to the inside of a control-flow "
                "construct or a function; fetch what comes out of it."
            )
        if isinstance(element, Operation):
            if element not in self.targets:
                self.targets.append(element)
            return lambda values: None
        return self._tensor(element)

    def _tensor(self, tensor: Tensor) -> Build:
        # A queue or table has no value to fetch. Running its operation creates it.
        if is_handle(tensor) and tensor not in self.fed:
            self._element(tensor.op)
            return lambda values: described(tensor)
        index = self._index.get(tensor)
        if index is None:
            index = self._index[tensor] = len(self.tensors)
            self.tensors.append(tensor)
        if tensor.op.type == _HANDLE:
            dtype = tensor.op._inputs[0].dtype.base_dtype
            return lambda values: TensorHandle(values[index], dtype, self.session and self.session())
        return lambda values: values[index]


def as_result(values: list[Any], i: int) -> Any:
    """A fetched value as users get it: numpy scalars for scalars, arrays that are theirs to change.

    It is taken out of the list: an array that nobody else holds then need not be copied.
    """
    value = values[i]
    if isinstance(value, np.generic):
        return value
    if getattr(value, "nbytes", 0) >= _MIN_REUSED_BYTES:
        values[i] = None
        # Nobody else can see this array (no variable, no cache, no other fetch), so the caller may change it.
        if sys.getrefcount(value) == _SOLE_OWNER_REFS and (mine := _writable(value)) is not None:
            return mine
    array = np.asarray(value)
    if array.ndim == 0:
        return array[()]
    return copied(array)  # in C's order: a broadcast one would keep its own, which is slow to copy


def _references_to(values: list[object], i: int) -> int:
    value = values[i]
    values[i] = None
    return sys.getrefcount(value)


# Measured with the same steps as in `as_result`: Python versions differ in the references of a call.
_SOLE_OWNER_REFS = _references_to([object()], 0)
_MIN_REUSED_BYTES = 1 << 16  # bytes; to copy fewer takes no longer than to find out whether one must


def _writable(value: Any) -> np.ndarray | None:
    """An array that nobody else holds, to be changed in place; None where it lies in memory that is not its own."""
    if type(value) is np.ndarray:
        return value if value.flags.owndata and value.flags.writeable else None
    if not isinstance(getattr(value, "dtype", None), np.dtype) or value.dtype.kind not in "fiucb":
        return None
    pointer = getattr(value, "unsafe_buffer_pointer", None)
    if pointer is None or any(device.platform != "cpu" for device in value.devices()):
        return None
    return np.asarray(_Memory(value, pointer()))


class _Memory:
    """The memory of a result of XLA, for numpy: alive as long as numpy's array, which XLA's own would not let change."""

    def __init__(self, owner: Any, address: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, False),
            "shape": owner.shape,
            "typestr": owner.dtype.str,
            "version": 3,
        }


def key_of(fetches: Any) -> Any:
    """A nested structure of fetches as something that can be looked up."""
    kind = type(fetches)
    if kind is list or kind is tuple:
        return kind, tuple([key_of(f) for f in fetches])
    if isinstance(fetches, dict):
        return kind, tuple([(k, key_of(f)) for k, f in fetches.items()])
    if isinstance(fetches, tuple):
        return kind, tuple([key_of(f) for f in fetches])
    return fetches
