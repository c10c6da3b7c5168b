"""Which public functions take ragged tensors, and what they do with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find, replace
from tensorfleet.ops.operators import OVERLOADABLE_OPERATORS
from tensorfleet.ops.ragged import joining, masks, reducing, rows
from tensorfleet.ops.ragged.broadcasting import elementwise
from tensorfleet.ops.ragged.functions import convert_to_tensor_or_ragged_tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

# Functions of one tensor that work on each element by itself: their first argument may be ragged.
UNARY = """
    abs acos acosh angle as_string asin asinh atan atanh bitwise.invert cast ceil check_numerics clip_by_value conj cos cosh
    debugging.check_numerics decode_base64 io.decode_compressed digamma encode_base64 erf erfc exp expm1 floor identity imag
    is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not negative nn.relu nn.relu6 nn.elu nn.selu
    nn.leaky_relu nn.softplus nn.softsign ones_like one_hot real reciprocal regex_replace
    rint round rsqrt saturate_cast sigmoid sign sin sinh sqrt square string_strip string_to_hash_bucket
    string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number strings.length strings.lower
    strings.regex_full_match strings.substr strings.unicode_script strings.unicode_transcode strings.upper
    substr tan tanh to_double to_float to_int32 to_int64 verify_tensor_all_finite zeros_like
"""
# Functions of two tensors, element by element: either may be ragged.
BINARY = """
    add atan2 bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift
    bitwise.right_shift complex div div_no_nan divide equal floor_div floordiv floormod greater greater_equal less
    less_equal logical_and logical_or logical_xor maximum minimum multiply not_equal pow realdiv
    squared_difference subtract truediv truncatediv truncatemod
"""
# Functions of a list of tensors, element by element.
LISTS = "add_n string_join"
OWN: dict[str, Callable] = {
    "boolean_mask": lambda tensor, mask, name="boolean_mask", axis=None: masks.boolean_mask(tensor, mask),
    "concat": joining.concat,
    "expand_dims": rows.expand_dims,
    "batch_gather": rows.batch_gather,
    "gather": rows.gather,
    "gather_nd": rows.gather_nd,
    "rank": rows.rank,
    "reduce_all": reducing.reduce_all,
    "reduce_any": reducing.reduce_any,
    "reduce_max": reducing.reduce_max,
    "reduce_mean": reducing.reduce_mean,
    "reduce_min": reducing.reduce_min,
    "reduce_prod": reducing.reduce_prod,
    "reduce_sum": reducing.reduce_sum,
    "size": rows.size,
    "squeeze": rows.squeeze,
    "stack": joining.stack,
    "tile": joining.tile,
    "where": masks.where,
    "where_v2": masks.where,
    **reducing.SEGMENTS,
}


_RAGGED = (RaggedTensor, RaggedTensorValue)


def _among(value: Any) -> bool:
    return isinstance(value, _RAGGED) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, _RAGGED) for v in value)
    )


def _as_tensors(value: Any) -> Any:
    """Values of ragged tensors, alone or in a list, as ragged tensors; all else as it is."""
    if isinstance(value, RaggedTensorValue):
        return convert_to_tensor_or_ragged_tensor(value)
    if type(value) in (list, tuple) and any(isinstance(v, RaggedTensorValue) for v in value):
        return type(value)(map(_as_tensors, value))
    return value


def _on_elements(function: Callable, count: int) -> Callable:
    """`function`, whose first `count` arguments may be ragged."""
    names = function.__code__.co_varnames[:count]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args[:count], *(kwargs[n] for n in names[len(args) :] if n in kwargs))
        if not any(isinstance(g, _RAGGED) for g in given):
            return function(*args, **kwargs)
        rest = args[count:]
        others = {k: v for k, v in kwargs.items() if k not in names}
        return elementwise(lambda *flat: function(*flat, *rest, **others), *map(_as_tensors, given))

    return call


def _on_list(function: Callable) -> Callable:
    """`function`, whose first argument is a list of which some may be ragged."""

    @functools.wraps(function)
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _among(inputs):
            return function(inputs, *args, **kwargs)
        return elementwise(lambda *flat: function(list(flat), *args, **kwargs), *map(_as_tensors, inputs))

    return call


def _with_own(function: Callable, own: Callable) -> Callable:
    """`function`, and `own` when one of the first arguments is ragged."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(_among, args[:2])) or any(map(_among, kwargs.values())):
            return own(*map(_as_tensors, args), **{k: _as_tensors(v) for k, v in kwargs.items()})
        return function(*args, **kwargs)

    return call


def _operator(name: str) -> Callable:
    def operate(x: Any, *others: Any) -> Any:
        return elementwise(lambda first, *rest: getattr(first, name)(*rest), x, *others)

    operate.__name__ = name
    return operate


replace(
    {
        **{find(name): _on_elements(find(name), 1) for name in UNARY.split()},
        **{find(name): _on_elements(find(name), 2) for name in BINARY.split()},
        **{find(name): _on_list(find(name)) for name in LISTS.split()},
        **{find(name): _with_own(find(name), own) for name, own in OWN.items()},
    }
)
_METHODS = {name: _operator(name) for name in OVERLOADABLE_OPERATORS - {"__matmul__", "__rmatmul__"}}
_METHODS["__getitem__"] = rows.getitem
for _name, _method in _METHODS.items():
    setattr(RaggedTensor, _name, _method)
