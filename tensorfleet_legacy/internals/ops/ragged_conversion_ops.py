"""Small parts of `tensorflow.python.ops.ragged`."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

_TENSOR, _STRINGS = "python.ops.ragged.ragged_tensor.", "python.ops.ragged.ragged_string_ops."
publish(find("strings.bytes_split"), _STRINGS + "string_bytes_split")
publish(find("strings.split"), _STRINGS + "strings_split_v1")
# The functions that ragged tensors are given to, where TensorFlow has them.
for _name in ["sum", "prod", "min", "max", "mean", "sqrt_n"]:
    publish(find(f"unsorted_segment_{_name}"), f"python.ops.ragged.ragged_math_ops.segment_{_name}")
for _name in ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]:
    publish(find(f"bitwise.{_name}"), f"python.ops.gen_bitwise_ops.{_name}")
publish(find("strings.unicode_script"), "python.ops.string_ops.unicode_script")


@export(_STRINGS + "string_split_v2")
def string_split_v2(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> RaggedTensor:
    """The parts of each string, as a ragged tensor."""
    return find("strings.split")(input, sep, maxsplit, "RaggedTensor", name=name)


@export(_TENSOR + "is_ragged")
def is_ragged(value: Any) -> bool:
    """Whether something is a ragged tensor, or the value of one."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


@export(_TENSOR + "match_row_splits_dtypes")
def match_row_splits_dtypes(*tensors: Any, **kwargs: Any) -> Any:
    """Tensors of which all ragged ones count rows with one type; with `return_dtype`, that type first."""
    kinds = {t.row_splits.dtype for t in tensors if isinstance(t, RaggedTensor)}
    kind = dtypes.int64 if len(kinds) > 1 or not kinds else next(iter(kinds))
    result = tuple(t.with_row_splits_dtype(kind) if isinstance(t, RaggedTensor) else t for t in tensors)
    return (kind, result) if kwargs.get("return_dtype") else result


_CONVERSIONS = "python.ops.ragged.ragged_conversion_ops."


@export(_CONVERSIONS + "from_tensor")
def from_tensor(
    tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1, **options: Any
) -> Any:
    """A dense tensor as a ragged one; a ragged one stays as it is."""
    if isinstance(tensor, RaggedTensor):
        return tensor
    return RaggedTensor.from_tensor(tensor, lengths, padding, ragged_rank, **options)


@export(_CONVERSIONS + "to_tensor")
def to_tensor(rt_input: Any, default_value: Any = None, name: str | None = None) -> Any:
    """A ragged tensor as a dense one; a dense one stays as it is."""
    return rt_input.to_tensor(default_value, name) if isinstance(rt_input, RaggedTensor) else rt_input


@export(_CONVERSIONS + "to_sparse")
def to_sparse(rt_input: Any, name: str | None = None) -> Any:
    """A ragged tensor as a sparse one."""
    return rt_input.to_sparse(name)


@export(_CONVERSIONS + "from_sparse")
def from_sparse(st_input: Any, name: str | None = None) -> Any:
    """A sparse tensor as a ragged one."""
    return RaggedTensor.from_sparse(st_input, name)
