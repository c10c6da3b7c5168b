"""How values become tensors, as TensorFlow's own modules call it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export, find, publish
from tensorfleet.base.shapes import as_shape
from tensorfleet.graph.apply import constant as filled_constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor

publish(
    errors.OperatorNotAllowedInGraphError,
    *(f"python.framework.{m}.OperatorNotAllowedInGraphError" for m in ("errors", "errors_impl")),
)


@export("python.framework.constant_op.constant")
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor that always has this value; with `shape`, a single value is repeated, and others must be as many."""
    if shape is None:
        return filled_constant(value, dtype, name=name)
    dims = as_shape(shape)
    total, given = dims.num_elements(), np.asarray(value)
    if total is not None and given.size not in (1, total):
        raise TypeError(
            f"Expected Tensor's shape: {tuple(dims.as_list())}, got {given.shape}. Give as many values, or one."
        )
    return filled_constant(value, dtype, dims, name)


@export("python.framework.ops.convert_to_tensor_v2")
def convert_to_tensor_v2(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """A value as a tensor; of the type hinted at, where that is possible."""
    return find("convert_to_tensor")(value, dtype, name=name, preferred_dtype=dtype_hint)


@export("python.framework.ops.convert_to_tensor_or_composite")
def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A value as a tensor; a composite tensor stays as it is."""
    if not isinstance(value, CompositeTensor):
        return find("convert_to_tensor")(value, dtype, name=name)
    has: Any = getattr(value, "dtype", None)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(has):
        wanted = dtypes.as_dtype(dtype).name
        raise ValueError(f"Tensor conversion dtype mismatch. Requested dtype is {wanted}, Tensor has {has}.")
    return value


@export("python.framework.ops.internal_convert_n_to_tensor")
def internal_convert_n_to_tensor(
    values: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    **_: Any,
) -> list[Tensor]:
    """Each of several values as a tensor; with `as_ref`, variables as their references."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    names = itertools.repeat(None) if name is None else (f"{name}_{i}" for i in itertools.count())
    return [to_tensor(v, wanted, n, preferred_dtype, as_ref) for v, n in zip(values, names, strict=False)]


@export("python.framework.ops.internal_convert_to_tensor_or_indexed_slices")
def internal_convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    """A value as a tensor; IndexedSlices stay as they are."""
    return find("convert_to_tensor_or_indexed_slices")(value, dtype, name)


@export("python.framework.sparse_tensor.convert_n_to_tensor_or_sparse_tensor")
def convert_n_to_tensor_or_sparse_tensor(values: Any, dtype: Any = None, name: str | None = None) -> list:
    """Each of several values as a tensor; sparse tensors stay sparse."""
    convert = find("convert_to_tensor_or_sparse_tensor")
    return [convert(v, dtype, None if name is None else f"{name}_{i}") for i, v in enumerate(values)]


@export("python.framework.tensor_util.is_tensor_like")
def is_tensor_like(x: Any) -> bool:
    """Whether something is a tensor, of whatever kind, or a variable."""
    return bool(find("is_tensor")(x))


@export("python.framework.ops.tensor_id")
def tensor_id(tensor: Tensor) -> int:
    """A number that no other tensor has."""
    return id(tensor)


@export("python.framework.ops._as_graph_element")
def as_graph_element(obj: Any) -> Tensor | Operation | None:
    """The tensor or operation that an object stands for in its graph; None when it stands for none."""
    convert = getattr(obj, "_as_graph_element", None)
    return convert() if convert else None
