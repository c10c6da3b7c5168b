"""Checks of the parameters of distributions and of values given to them: values that are there once they have passed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.distributions.distribution import number, tensors

_LAST = np.array([-1], np.int32)


def after(checks: list, value: Tensor, name: str | None = None) -> Tensor:
    """A value that is there once operations have run."""
    with find("control_dependencies")([c for c in checks if c is not None]):
        return apply("Identity", value, name=name)


def assert_integer_form(
    x: Any,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    int_dtype: Any = None,
    name: str = "assert_integer_form",
) -> Any:
    """The operation that fails unless all elements are whole numbers; they are cast to `int_dtype` and back."""
    with name_scope(name, values=[x, data]):
        x = to_tensor(x, name="x")
        if x.dtype.base_dtype.is_integer:
            return find("no_op")()
        text = f"{x.name} has non-integer components" if message is None else message
        ints = {dtypes.float16: dtypes.int16, dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}
        kind = int_dtype or ints.get(x.dtype.base_dtype)
        if kind is None:
            raise TypeError(f"Unrecognized type {x.dtype.name}")
        there = cast(cast(x, kind), x.dtype.base_dtype)
        return find("assert_equal")(x, there, data=data, summarize=summarize, message=text, name=name)


def assert_close(
    x: Any,
    y: Any,
    data: Any = None,
    summarize: Any = None,
    message: str | None = None,
    name: str = "assert_close",
) -> Any:
    """The operation that fails unless the numbers are as near to each other as rounding allows; integers are equal."""
    x, y = to_tensor(x), to_tensor(y)
    words = "Condition x ~= y did not hold element-wise: x = "
    data = [message or "", words, x.name, x, "y = ", y.name, y] if data is None else data
    if x.dtype.base_dtype.is_integer:
        return find("assert_equal")(x, y, data=data, summarize=summarize, message=message, name=name)
    with name_scope(name, values=[x, y, *data]):
        nearest = number(np.finfo(x.dtype.as_numpy_dtype).eps, x)
        near = find("reduce_all")(apply("LessEqual", apply("Abs", x - y), nearest))
        return find("Assert")(near, data, summarize=summarize)


def assert_symmetric(matrix: Any) -> Tensor:
    """A matrix, or several, that must equal what they are transposed."""
    turned = find("matrix_transpose")(matrix)
    return after([find("assert_equal")(matrix, turned)], to_tensor(matrix))


def embed_check_nonnegative_integer_form(
    x: Any, name: str = "embed_check_nonnegative_integer_form"
) -> Tensor:
    """The values, which must be whole numbers and not negative."""
    with name_scope(name, values=[x]):
        x = to_tensor(x, name="x")
        checks = [find("assert_non_negative")(x, message=f"'{x.op.name}' must be non-negative.")]
        if not x.dtype.base_dtype.is_integer:
            text = f"'{x.op.name}' cannot contain fractional components."
            checks.append(assert_integer_form(x, message=text))
        return after(checks, x)


# -- weights of classes ----------------------------------------------------------------------------------


def get_logits_and_probs(
    logits: Any = None,
    probs: Any = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: Any = None,
) -> tuple[Tensor, Tensor]:
    """(logits, probs) from the one that is given: of coins, or of classes along the last axis."""
    with name_scope(name, values=[probs, logits]):
        if (logits is None) == (probs is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            return _from_logits(logits, multidimensional, validate_args, dtype)
        (probs,) = tensors(dtype, probs=probs)
        if not probs.dtype.base_dtype.is_floating:
            raise TypeError("probs must having floating type.")
        if validate_args:
            probs = _checked_probs(probs, multidimensional)
        log = apply("Log", probs)
        return (log if multidimensional else log - apply("Log1p", apply("Neg", probs))), probs


def _from_logits(logits: Any, many: bool, validate: bool, dtype: Any) -> tuple[Tensor, Tensor]:
    (logits,) = tensors(dtype, logits=logits)
    if not logits.dtype.base_dtype.is_floating:
        raise TypeError("logits must having floating type.")
    if not many:
        return logits, apply("Sigmoid", logits, name="probs")
    if validate:
        logits = embed_check_categorical_event_shape(logits)
    return logits, find("nn.softmax")(logits, name="probs")


def _checked_probs(probs: Tensor, many: bool) -> Tensor:
    one = number(1, probs)
    checks = [find("assert_non_negative")(probs)]
    if many:
        probs = embed_check_categorical_event_shape(probs)
        total = apply("Sum", probs, _LAST)
        checks.append(find("assert_near")(total, one, message="probs does not sum to 1."))
    else:
        text = "probs has components greater than 1."
        checks.append(find("assert_less_equal")(probs, one, message=text))
    return after(checks, probs)


def _most_classes(kind: Any) -> int:
    """How many classes the numbers of a type can tell apart."""
    if kind.is_floating:
        return int(2 ** (np.finfo(kind.as_numpy_dtype).nmant + 1))
    if kind.is_integer and not kind.is_quantized:
        return int(np.iinfo(kind.as_numpy_dtype).max)
    raise TypeError(
        f"Unable to validate size of unrecognized dtype ({kind.name}). Use a floating or an integer type."
    )


def embed_check_categorical_event_shape(
    categorical_param: Any, name: str = "embed_check_categorical_event_shape"
) -> Tensor:
    """The parameter of classes: at least two of them, and no more than its type can number."""
    with name_scope(name, values=[categorical_param]):
        x = to_tensor(categorical_param, name="categorical_param")
        most = _most_classes(x.dtype.base_dtype)
        few = "A categorical-distribution parameter must have at least 2 events."
        many = f"Number of classes exceeds `dtype` precision, i.e., {x.dtype.base_dtype.name} implies shape ({most})"
        rank = x.shape.rank
        if rank is not None and rank < 1:
            raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
        size = None if rank is None else x.shape[-1].value
        if size is not None:
            if size < 2:
                raise ValueError(few)
            if size > most:
                raise ValueError(f"{many} cannot exceed {size}.")
            return x
        count = shape_of(x, out_type=dtypes.int64)[-1]
        checks = [
            find("assert_rank_at_least")(x, 1, message=few),
            find("assert_greater_equal")(count, np.int64(2), message=few),
            find("assert_less_equal")(count, np.int64(most), message=many),
        ]
        return after(checks, x)


# -- numbers that another type can hold ------------------------------------------------------------------


def _limits(kind: Any) -> tuple[int, int]:
    """The smallest and the largest of a run of whole numbers that a type holds without a gap."""
    if kind.is_floating:
        most = int(2 ** (np.finfo(kind.as_numpy_dtype).nmant + 1))
        return -most, most
    if kind == dtypes.bool_:
        return 0, 1
    if kind.is_integer and not kind.is_quantized:
        info = np.iinfo(kind.as_numpy_dtype)
        return int(info.min), int(info.max)
    raise TypeError(f"Unrecognized dtype: {kind.name}")


def _like_integers(kind: Any) -> bool:
    return kind.is_integer or kind == dtypes.bool_


def embed_check_integer_casting_closed(
    x: Any,
    target_dtype: Any,
    assert_nonnegative: bool = True,
    name: str = "embed_check_casting_closed",
) -> Tensor:
    """The values, which must stay what they are when they are cast to a type and back."""
    with name_scope(name, values=[x]):
        x = to_tensor(x, name="x")
        here, there = x.dtype.base_dtype, dtypes.as_dtype(target_dtype).base_dtype
        if not _like_integers(here) and not here.is_floating:
            raise TypeError(f"{x.name}.dtype must be floating- or integer-type.")
        if not _like_integers(there) and not there.is_floating:
            raise TypeError(f"target_dtype ({there.name}) must be floating- or integer-type.")
        if not _like_integers(here) and not _like_integers(there):
            raise TypeError(
                f"At least one of {x.op.name}.dtype ({here.name}) and target_dtype ({there.name}) must be integer-type."
            )
        checks = []
        if assert_nonnegative:
            checks.append(find("assert_non_negative")(x, message="Elements must be non-negative."))
        if here.is_floating:
            text = f"Elements must be {there.name}-equivalent."
            checks.append(assert_integer_form(x, int_dtype=there, message=text))
        else:
            checks += _within(x, *_limits(there), skip_low=assert_nonnegative)
        return after(checks, x)


def _within(x: Tensor, low: int, high: int, skip_low: bool) -> list:
    """The checks that whole numbers lie between two, where their own type allows others."""
    least, most = _limits(x.dtype.base_dtype)
    checks = []
    if most > high:
        text = f"Elements cannot exceed {high}."
        checks.append(find("assert_less_equal")(x, number(high, x), message=text))
    if least < low and not skip_low:
        text = f"Elements cannot be smaller than {low}."
        checks.append(find("assert_greater_equal")(x, number(low, x), message=text))
    return checks
