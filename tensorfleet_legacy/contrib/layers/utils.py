"""`tf.contrib.layers.utils`: names of layers' outputs, conditions that may be known, sizes given once or several times.

Networks written with slim take these from `tensorflow.contrib.layers.python.layers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.base import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph import constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import get_collection, get_collection_ref
from tensorfleet.ops.control.cond import cond


def _utility(function: Callable) -> Callable:
    name = function.__name__
    return export(f"contrib.slim.utils.{name}", f"contrib.layers.utils.{name}")(function)


@_utility
def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> dict[str, Any]:
    """A collection's tensors by the scope of the layer that made each."""
    result = {alias: t for t in get_collection(collection) for alias in get_tensor_aliases(t)}
    if clear_collection:
        get_collection_ref(collection).clear()
    return result


@_utility
def get_tensor_aliases(tensor: Any) -> list[str]:
    """The scopes of the layers whose result a tensor is; its name when no layer said so."""
    return getattr(tensor, "aliases", None) or [tensor.name.removesuffix(":0")]


@_utility
def gather_tensors_aliases(tensors: Any) -> list[str]:
    """The aliases of several tensors, one after the other."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


@_utility
def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """The tensor, which has one more alias."""
    tensor.aliases = [*(getattr(tensor, "aliases", None) or []), alias.removesuffix("/")]
    return tensor


@_utility
def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """The outputs, which have an alias and are in the collections from now on."""
    if collections:
        append_tensor_alias(outputs, alias)
        find("add_to_collections")(collections, outputs)
    return outputs


@_utility
def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of a layer's variable, where those may be given for each variable by its name."""
    return (
        variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections
    )


@_utility
def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """A value that is known without running anything, else None: of variables it never is."""
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if not isinstance(value, (Tensor, Variable)):
        return value
    if dtype and value.dtype != dtypes.as_dtype(dtype):
        raise ValueError(f"It has the wrong type {value.dtype!r} instead of {dtype!r}")
    return None if isinstance(value, Variable) else constant.constant_value(value)


@_utility
def static_cond(pred: Any, fn1: Callable, fn2: Callable) -> Any:
    """The result of one of two functions, by a condition that is known."""
    for name, function in (("fn1", fn1), ("fn2", fn2)):
        if not callable(function):
            raise TypeError(f"{name} must be callable.")
    return fn1() if pred else fn2()


@_utility
def smart_cond(pred: Any, fn1: Callable, fn2: Callable, name: str | None = None) -> Any:
    """`static_cond` where the condition is known, else `tf.cond`."""
    known = constant_value(pred)
    return cond(pred, fn1, fn2, name=name) if known is None else static_cond(known, fn1, fn2)


def _dimension(shape: TensorShape, axis: int, min_rank: int) -> int:
    if shape.dims is None:
        raise ValueError("dims of shape must be known but is None")
    if len(shape.dims) < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {len(shape.dims)}")
    size = shape.dims[axis].value
    if size is None:
        raise ValueError(f"dimension {axis} of shape must be known but is None: {shape}")
    return size


@_utility
def channel_dimension(shape: TensorShape, data_format: str, min_rank: int = 1) -> int:
    """How many channels a shape has; `data_format` is `channels_first` or `channels_last`."""
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


@_utility
def last_dimension(shape: TensorShape, min_rank: int = 1) -> int:
    """The size of a shape's last axis."""
    return _dimension(shape, -1, min_rank)


@_utility
def two_element_tuple(int_or_tuple: Any) -> tuple[Any, Any]:
    """Height and width, where one number may stand for both."""
    if isinstance(int_or_tuple, (list, tuple)):
        if len(int_or_tuple) != 2:
            raise ValueError(f"Must be a list with 2 elements: {int_or_tuple}")
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    if isinstance(int_or_tuple, int):
        return int(int_or_tuple), int(int_or_tuple)
    if isinstance(int_or_tuple, TensorShape) and len(int_or_tuple) == 2:
        return int_or_tuple[0], int_or_tuple[1]
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


@_utility
def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """A number as often as asked for, or that many numbers; a shape's sizes count too."""
    count = int(n)
    if count < 1 or count != n:
        raise ValueError("n must be a positive integer")
    try:
        numbers = (int(value),) * count
    except (TypeError, ValueError):
        numbers = _integers(value)
    if len(numbers) != count:
        raise ValueError(f"Expected sequence of {n} positive integers, but received {value!r}")
    for number in numbers:
        if number < 1:
            raise ValueError(f"expected positive integer, but received {number}")
    return numbers


def _integers(value: Any) -> tuple[int, ...]:
    """The integers of a sequence; none where one is not known."""
    try:
        return tuple(int(size) for size in value)
    except (TypeError, ValueError):
        return ()
