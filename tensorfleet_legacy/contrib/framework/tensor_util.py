"""`tf.contrib.framework`: tensors whose shapes are checked, and sums of several tensors."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.nn import ranks
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


@export("contrib.framework.reduce_sum_n")
def reduce_sum_n(tensors: Any, name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors."""
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [find("reduce_sum")(t, name=f"{t.op.name}/sum") for t in tensors]
        return sums[0] if len(sums) == 1 else find("add_n")(sums, name=scope)


@export("contrib.framework.assert_scalar_int")
def assert_scalar_int(tensor: Any, name: str | None = None) -> Tensor:
    """The tensor, if it is an integer that may be a scalar; ValueError otherwise."""
    with name_scope(name, "assert_scalar_int", [tensor]):
        result = to_tensor(tensor)
        if not result.dtype.base_dtype.is_integer:
            raise ValueError(f"Expected integer type for {result.name}, received type: {result.dtype}.")
        return find("assert_scalar")(result)


@export("contrib.framework.remove_squeezable_dimensions")
def remove_squeezable_dimensions(
    predictions: Any, labels: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Predictions and labels, of which one may have lost a last dimension of size 1 that the other lacks."""
    labels, predictions = ranks.remove_squeezable_dimensions(labels, predictions, name=name)
    return predictions, labels


@export("contrib.framework.with_same_shape")
def with_same_shape(expected_tensor: Any, tensor: Any) -> Tensor:
    """The tensor, if its shape is that of another; an error otherwise, at the latest when it is run."""
    with name_scope(f"{tensor.op.name}/", values=[expected_tensor, tensor]):
        known = expected_tensor.shape
        expected = (
            known if known.is_fully_defined() else find("shape")(expected_tensor, name="expected_shape")
        )
        return with_shape(expected, tensor)


@export("contrib.framework.with_shape")
def with_shape(expected_shape: Any, tensor: Any) -> Tensor:
    """The tensor, if it has a shape, given as numbers or as a tensor; an error otherwise, at the latest when run."""
    if isinstance(expected_shape, TensorShape) and not expected_shape.is_fully_defined():
        tensor.shape.assert_is_compatible_with(expected_shape)
        return tensor
    given = expected_shape.as_list() if isinstance(expected_shape, TensorShape) else expected_shape
    with name_scope(f"{tensor.op.name}/", values=[tensor]):
        wanted = to_tensor(given, dtypes.int32 if isinstance(given, list) and not given else None)
        if not wanted.dtype.is_integer:
            raise ValueError(
                f"Invalid dtype {wanted.dtype} for shape {wanted} expected of tensor {tensor.name}."
            )
        if wanted.shape.rank not in (None, 1):
            raise ValueError(f"Invalid rank {wanted.shape.rank} for shape expected of tensor {tensor.name}.")
        if isinstance(given, Tensor):
            return _checked(wanted, tensor)
        if not tensor.shape.is_fully_defined():
            result = _checked(wanted, tensor)
            result.set_shape(given)
            return result
        if tensor.shape.as_list() != list(given):
            raise ValueError(f"Wrong shape for {tensor.name}, expected {list(given)}, got {tensor.shape}.")
        return tensor


def _checked(wanted: Tensor, tensor: Tensor) -> Tensor:
    """The tensor after its shape was compared, when it is run."""
    actual = find("cast")(find("shape")(tensor), wanted.dtype)
    alike = find("cond")(
        find("equal")(find("size")(wanted), find("rank")(tensor)),
        lambda: find("reduce_all")(find("equal")(wanted, actual)),
        lambda: find("constant")(False),
    )
    check = find("Assert")(alike, [f"Wrong shape for {tensor.name} [expected] [actual].", wanted, actual])
    with find("control_dependencies")([check]):
        return find("identity")(tensor)
