"""The public functions that take ragged tensors.

Every function below is wrapped when it is published. A wrapper looks at the types of the arguments; it imports the
ragged forms when the first ragged tensor arrives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tensorfleet.base.naming import wrap

#: A public function, of any arguments.
Function: TypeAlias = Callable[..., Any]

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
# Functions that ragged tensors have forms of their own for, in ops/ragged/forms.py.
OWN = """
    batch_gather boolean_mask concat expand_dims gather gather_nd rank reduce_all reduce_any reduce_max reduce_mean
    reduce_min reduce_prod reduce_sum size squeeze stack tile unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
    unsorted_segment_sqrt_n unsorted_segment_sum where where_v2
"""
# The ragged classes, once they are imported: before that no value can be ragged.
_ragged: tuple[type[Any], ...] = ()


def introduce(tensor: type[Any], value: type[Any], operators: Iterable[str]) -> None:
    """Tells the wrappers which classes are ragged, and gives the tensor class its operators."""
    global _ragged
    _ragged = (tensor, value)
    for name in operators:
        setattr(tensor, name, _operator(name))


def _among(value: object) -> bool:
    return isinstance(value, _ragged) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, _ragged) for v in value)
    )


def _on_elements(function: Function, count: int) -> Function:
    """`function`, whose first `count` arguments may be ragged."""
    names = function.__code__.co_varnames[:count]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        operands = (*args[:count], *(kwargs[n] for n in names[len(args) :] if n in kwargs))
        if not any(isinstance(g, _ragged) for g in operands):
            return function(*args, **kwargs)
        from tensorfleet.ops.ragged.forms import as_tensors, elementwise

        rest = args[count:]
        others = {k: v for k, v in kwargs.items() if k not in names}
        return elementwise(lambda *flat: function(*flat, *rest, **others), *map(as_tensors, operands))

    return call


def _on_list(function: Function) -> Function:
    """`function`, whose first argument is a list of which some may be ragged."""

    @functools.wraps(function)
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not _among(inputs):
            return function(inputs, *args, **kwargs)
        from tensorfleet.ops.ragged.forms import as_tensors, elementwise

        return elementwise(lambda *flat: function(list(flat), *args, **kwargs), *map(as_tensors, inputs))

    return call


def _with_own(function: Function, name: str) -> Function:
    """`function`, and the form for ragged tensors when one of the first arguments is ragged."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(map(_among, args[:2])) or any(map(_among, kwargs.values())):
            from tensorfleet.ops.ragged.forms import OWN, as_tensors

            return OWN[name](*map(as_tensors, args), **{k: as_tensors(v) for k, v in kwargs.items()})
        return function(*args, **kwargs)

    return call


def _operator(name: str) -> Function:
    def operate(x: Any, *others: Any) -> Any:
        from tensorfleet.ops.ragged.forms import elementwise, getitem

        if name == "__getitem__":
            return getitem(x, *others)
        return elementwise(lambda first, *rest: getattr(first, name)(*rest), x, *others)

    operate.__name__ = name
    return operate


wrap(functools.partial(_on_elements, count=1), *UNARY.split())
wrap(functools.partial(_on_elements, count=2), *BINARY.split())
wrap(_on_list, *LISTS.split())
for _name in OWN.split():
    wrap(functools.partial(_with_own, name=_name), _name)
