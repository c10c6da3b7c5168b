"""Small parts of `tensorflow.python.ops` that its own tests and old libraries reach for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish, publish_module
from tensorfleet.base.shapes import as_shape
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope

_RAGGED = "python.ops.ragged.ragged_util."

publish(
    find("image.non_max_suppression_overlaps"), "python.ops.image_ops_impl.non_max_suppression_with_overlaps"
)


@export("python.ops.gradients_util.IsTrainable")
def is_trainable(tensor_or_dtype: Any) -> bool:
    """Whether gradients flow through tensors of a type."""
    kind = tensor_or_dtype.dtype if isinstance(tensor_or_dtype, Tensor) else dtypes.as_dtype(tensor_or_dtype)
    base = kind.base_dtype
    return base.is_floating or base.is_complex or base in (dtypes.resource, dtypes.variant)


@export("python.ops.resource_variable_ops.shape_safe_assign_variable_handle")
def shape_safe_assign_variable_handle(
    handle: Any, shape: Any, value: Any, name: str | None = None
) -> Operation:
    """The operation that gives a variable a value, which must fit its shape."""
    tensor = to_tensor(value)
    as_shape(shape).assert_is_compatible_with(tensor.shape)
    return apply_op("AssignVariableOp", handle, tensor, name=name)


# -- ragged tensors --------------------------------------------------------------------------------------


@export("python.ops.array_ops.convert_to_int_tensor", _RAGGED + "convert_to_int_tensor")
def convert_to_int_tensor(tensor: Any, name: str, dtype: Any = dtypes.int32) -> Tensor:
    """A tensor of whole numbers as one of a type."""
    result = to_tensor(tensor, name=name, preferred=dtype)
    if not result.dtype.base_dtype.is_integer:
        raise TypeError(f"{name} must be an integer tensor; dtype={result.dtype}")
    return find("cast")(result, dtype)


@export("python.ops.array_ops.get_positive_axis", _RAGGED + "get_positive_axis")
def get_positive_axis(axis: Any, ndims: int | None) -> int:
    """An axis counted from the front."""
    if not isinstance(axis, int):
        raise TypeError(f"axis must be an int; got {type(axis).__name__}")
    if ndims is None:
        if axis < 0:
            raise ValueError("axis may only be negative if ndims is statically known.")
        return axis
    if not -ndims <= axis < ndims:
        raise ValueError(f"axis={axis} out of bounds: expected {-ndims}<=axis<{ndims}")
    return axis % ndims


@export(_RAGGED + "assert_splits_match")
def assert_splits_match(nested_splits_lists: Any) -> list:
    """The operations that fail unless lists of splits are the same."""
    text = "Inputs must have identical ragged splits"
    first, *others = nested_splits_lists
    for splits in others:
        if len(splits) != len(first):
            raise ValueError(text)
    return [
        find("assert_equal")(a, b, message=text)
        for splits in others
        for a, b in zip(first, splits, strict=True)
    ]


@export(_RAGGED + "lengths_to_splits")
def lengths_to_splits(lengths: Any) -> Tensor:
    """Where rows of these lengths begin, and where the last one ends."""
    ends = find("cumsum")(lengths)
    return apply("ConcatV2", [to_tensor([0], ends.dtype), ends], 0)


@export(_RAGGED + "repeat_ranges")
def repeat_ranges(params: Any, splits: Any, repeats: Any) -> Tensor:
    """The ranges of values between splits, each as often as it is told."""
    with name_scope("repeat_ranges"):
        params, splits = to_tensor(params), to_tensor(splits)
        starts, sizes = splits[:-1], splits[1:] - splits[:-1]
        times = find("cast")(to_tensor(repeats), dtypes.int32)
        if times.shape.rank == 0:
            times = find("fill")(apply("Shape", starts), times)
        starts, sizes = (find("repeat")(t, times) for t in (starts, sizes))
        ranges = find("ragged.range")(starts, starts + sizes)
        return find("gather")(params, ranges.values)


# -- feature columns -------------------------------------------------------------------------------------

publish_module("python.feature_column.sequence_feature_column", "feature_column", "contrib.feature_column")
_COLUMNS = "python.feature_column.utils."


@export(_COLUMNS + "assert_key_is_string")
def assert_key_is_string(key: Any) -> None:
    """Raises unless a column's key is a text."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


@export(_COLUMNS + "assert_string_or_int")
def assert_string_or_int(dtype: Any, prefix: str) -> None:
    """Raises unless a column holds texts or whole numbers."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")


@export(_COLUMNS + "sequence_length_from_sparse_tensor")
def sequence_length_from_sparse_tensor(sp_tensor: Any, num_elements: int = 1) -> Tensor:
    """How long the sequence of each example is, of which every step takes so many columns."""
    with name_scope(None, "sequence_length") as scope:
        rows, columns = sp_tensor.indices[:, 0], sp_tensor.indices[:, 1]
        steps = columns // np.int64(num_elements) + np.int64(1)
        count = sp_tensor.dense_shape[0]
        longest = find("unsorted_segment_max")(steps, rows, count)
        return apply("Maximum", longest, np.int64(0), name=scope)


@export("python.ops.signal.util_ops.gcd")
def gcd(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The greatest number that divides two integers: a constant if they are."""
    with name_scope(name, "gcd", [a, b]):
        a, b = to_tensor(a), to_tensor(b)
        for named, number in (("a", a), ("b", b)):
            number.shape.assert_has_rank(0)
            if not number.dtype.is_integer:
                raise ValueError(f"{named} must be an integer type. Got: {number.dtype}")
        known_a, known_b = constant_value(a), constant_value(b)
        if known_a is not None and known_b is not None:
            return to_tensor(np.gcd(known_a, known_b))
        more = lambda _, rest: rest > 0  # noqa: E731
        step = lambda whole, rest: (rest, find("mod")(whole, rest))  # noqa: E731
        return find("while_loop")(more, step, [a, b], back_prop=False)[0]


@export("python.ops.image_ops.extract_glimpse_v2", "python.ops.image_ops_impl.extract_glimpse_v2")
def extract_glimpse_v2(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """A window of `size` around a place of each image; outside it is `uniform`, `gaussian` or `zero` noise."""
    return apply(
        "ExtractGlimpse",
        input,
        size,
        offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=False,
        noise=noise,
        name=name,
    )


@export("python.ops.random_grad.add_leading_unit_dimensions")
def add_leading_unit_dimensions(x: Any, num_dimensions: Any) -> Tensor:
    """The same elements behind dimensions of size one."""
    tensor = to_tensor(x)
    ones = apply("Fill", apply("Reshape", num_dimensions, [1]), 1)
    return apply("Reshape", tensor, apply("ConcatV2", [ones, apply("Shape", tensor)], 0))


@export("python.ops.array_ops.batch_gather_nd")
def batch_gather_nd(params: Any, indices: Any, batch_dims: int, name: str | None = None) -> Tensor:
    """`tf.gather_nd` of each element of a batch of any number of dimensions."""
    return find("gather_nd")(params, indices, name=name, batch_dims=batch_dims)


@export("contrib.metrics.python.ops.metric_ops._next_array_size")
def next_array_size(required_size: Any, growth_factor: float = 1.5) -> Tensor:
    """The least power of a factor, rounded up, that is no less than a size: how far an array grows."""
    steps = find("ceil")(
        find("log")(find("cast")(required_size, "float32"))
        / find("log")(find("cast")(growth_factor, "float32"))
    )
    return find("cast")(find("ceil")(find("pow")(find("cast")(growth_factor, "float32"), steps)), "int32")


@export("contrib.metrics.python.ops.histogram_ops._strict_1d_cumsum")
def running_sum(tensor: Any, len_tensor: int) -> Tensor:
    """The sums of the first elements of a vector, for each of its first `len_tensor` ones."""
    with name_scope("strict_1d_cumsum", values=[tensor]):
        return find("cumsum")(tensor)[:len_tensor]
