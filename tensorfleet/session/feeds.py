"""Reading a feed_dict: which tensors its keys name, and how their values become arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, nest
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import make_array
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.state.session_tensors import TensorHandle
from tensorfleet.session.conversions import conversion_of

#: Turns the value of one feed into an array, or into a list of them where the key stands for several tensors.
Converter: TypeAlias = Callable[[Any], Any]
# Types that stand for several tensors when fed or fetched: type -> (tensors, split a fed value).
Composite: TypeAlias = tuple[Callable[[Any], list[Any]], Callable[[Any], list[Any]]]
COMPOSITES: dict[type, Composite] = {
    IndexedSlices: (
        lambda s: [t for t in (s.values, s.indices, s.dense_shape) if t is not None],
        lambda v: (
            [x for x in (v.values, v.indices, v.dense_shape) if x is not None]
            if hasattr(v, "indices")
            else list(v)
        ),
    ),
    SparseTensor: (lambda s: [s.indices, s.values, s.dense_shape], list),
    RaggedTensor: (
        lambda r: [r.flat_values, *r.nested_row_splits],
        lambda v: [v.flat_values, *v.nested_row_splits],
    ),
}


def feed_plan(graph: Graph, keys: list[Any]) -> tuple[list[Tensor], list[Converter]]:
    """The fed tensors, and for each key a function from its value to an array (or several)."""
    tensors: list[Tensor] = []
    converters: list[Converter] = []
    for key in keys:
        composite = _composite(key)
        if composite is not None:
            parts = [_feedable(graph, t) for t in composite[0](key)]
            tensors += parts
            converters.append(_split(composite[1], [_converter(t) for t in parts]))
        else:
            tensor = _feedable(graph, key)
            tensors.append(tensor)
            converters.append(_converter(tensor))
    return tensors, converters


def _composite(key: object) -> Composite | None:
    """How a key that stands for several tensors is taken apart; None for one tensor."""
    if isinstance(key, SparseTensor):
        known = constant_value(key.dense_shape)  # what it is when only the rest is fed
        tail = [] if known is None else [known]
        return COMPOSITES[SparseTensor][0], lambda value: list(value) + (tail if len(value) == 2 else [])
    for kind, result in COMPOSITES.items():
        if isinstance(key, kind):
            return result
    if isinstance(key, (tuple, list)):
        return nest.flatten, lambda value: _like(key, value)
    conversion = conversion_of(key)
    if conversion is None:
        return None
    return conversion.tensors, functools.partial(conversion.values, key)


def _like(key: object, value: Any) -> list[Any]:
    """The parts of a value, taken apart as far as the key is."""
    if not isinstance(key, (tuple, list)):
        return [value]
    if len(key) != len(value):
        raise ValueError(f"A feed for {len(key)} tensors needs as many values, got {len(value)}.")
    return [part for k, v in zip(key, value, strict=True) for part in _like(k, v)]


def _split(split: Callable[[Any], list[Any]], converters: list[Converter]) -> Converter:
    def convert(value: object) -> list[Any]:
        parts = split(value)
        if len(parts) != len(converters):
            raise ValueError(f"This feed takes {len(converters)} values, got {len(parts)}.")
        return [c(p) for c, p in zip(converters, parts, strict=True)]

    return convert


def _feedable(graph: Graph, key: object) -> Tensor:
    try:
        tensor: Tensor = graph.as_graph_element(key, allow_tensor=True, allow_operation=False)
    except (KeyError, TypeError, ValueError) as e:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {e.args[0] if e.args else e}") from None
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor} may not be fed.")
    return tensor


def _handle(tensor: Tensor, value: object) -> object:
    if isinstance(value, np.ndarray) and value.dtype.names:
        raise TypeError(
            f"Cannot feed Tensor '{tensor.name}' with a handle that was fetched: the array only names what it is of. Use "
            "the operation that makes the handle in the graph."
        )
    return value


def _converter(tensor: Tensor) -> Converter:
    """A function that turns one fed value into an array of the tensor's type and shape."""
    dtype = tensor.dtype.base_dtype
    if dtype.name in ("resource", "variant"):
        return functools.partial(_handle, tensor)
    target = dtype.np_dtype
    dims = tensor.shape._d
    fixed = dims if dims is not None and None not in dims else None

    def convert(value: object) -> Any:
        # The usual feed is taken as it is, without a copy: `run` returns only when the step is over. Arrays of objects may
        # hold text, which must become bytes.
        if type(value) is np.ndarray and value.dtype == target and target is not _OBJECT:
            array = value
        else:
            array = _array(tensor, value, dtype)
        if array.shape != fixed and dims is not None and not _fits(array.shape, dims):
            raise ValueError(
                f"Cannot feed value of shape {array.shape} for Tensor '{tensor.name}', which has shape "
                f"'{tensor.shape}'. Reshape the value, or leave that dimension None in the placeholder."
            )
        return array

    return convert


_OBJECT = np.dtype(object)


def _fits(shape: tuple[int, ...], dims: tuple[int | None, ...]) -> bool:
    return len(shape) == len(dims) and all(d is None or s == d for s, d in zip(shape, dims, strict=True))


def _holds(kind: np.dtype, value: int) -> bool:
    """Whether a Python integer can be an element of that type."""
    if kind.kind in "iu" and not isinstance(value, bool):
        return np.iinfo(kind).min <= value <= np.iinfo(kind).max
    return kind != _OBJECT


def _array(tensor: Tensor, value: Any, dtype: dtypes.DType) -> Any:
    if isinstance(value, TensorHandle):
        reads = any(op.type in ("GetSessionTensor", "DeleteSessionTensor") for op in tensor.consumers())
        return value.to_numpy_array() if reads else value.eval()
    if isinstance(value, (Tensor, Operation)):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
            f"strings, lists, numpy ndarrays. For reference, the tensor object was {value} which was passed to "
            f"the feed with key {tensor}."
        )
    # An array of JAX stays where it is: asking NumPy for it would copy it from a GPU.
    if type(value).__module__.startswith("jax") and hasattr(value, "dtype") and value.dtype == dtype.np_dtype:
        return value
    # NumPy would raise OverflowError, or wrap; TensorFlow names both types.
    if isinstance(value, int) and not _holds(dtype.np_dtype, value):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
            f"{dtype.name}. Try explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
        )
    if dtype.np_dtype == _OBJECT:
        return make_array(value, dtypes.string)
    try:
        return np.asarray(value, dtype=dtype.np_dtype)
    except (TypeError, ValueError) as e:
        kind = TypeError if isinstance(e, TypeError) else ValueError
        raise kind(
            f"Cannot feed {type(value).__name__} for Tensor '{tensor.name}' of type {dtype.name}: {e}. Feed numbers "
            "that form one rectangular array."
        ) from e
