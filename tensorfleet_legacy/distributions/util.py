"""Helpers in `tensorflow.python.ops.distributions.util`: shapes, triangles, sums of logarithms."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import ones_like, zeros_like
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.math.cast import cast
from tensorfleet_legacy.distributions import categorical as discrete
from tensorfleet_legacy.distributions.distribution import number
from tensorfleet_legacy.distributions.util_assertions import (  # noqa: F401
    assert_close,
    assert_integer_form,
    assert_symmetric,
    embed_check_categorical_event_shape,
    embed_check_integer_casting_closed,
    embed_check_nonnegative_integer_form,
    get_logits_and_probs,
)

# -- what is known while the graph is built --------------------------------------------------------------


def maybe_get_static_value(x: Any, dtype: Any = None) -> Any:
    """The value of something, of a type, when the graph alone tells it; else None."""
    if x is None:
        return None
    result = find("get_static_value")(x) if isinstance(x, Tensor) else np.asarray(x)
    if result is None or dtype is None:
        return result
    return np.array(result, dtypes.as_dtype(dtype).as_numpy_dtype)


def prefer_static_value(x: Any) -> Any:
    """The value of a tensor when the graph alone tells it; else the tensor."""
    result = find("get_static_value")(x)
    return x if result is None else np.asarray(result)


def prefer_static_rank(x: Any) -> Any:
    """How many dimensions a tensor has: a number if that is known."""
    return prefer_static_value(apply("Rank", x))


def prefer_static_shape(x: Any) -> Any:
    """The shape of a tensor: an array if it is known."""
    return prefer_static_value(shape_of(x))


def prefer_static_broadcast_shape(
    shape1: Any, shape2: Any, name: str = "prefer_static_broadcast_shape"
) -> Any:
    """The shape that two shapes broadcast to: a TensorShape if both are known, else a tensor."""
    with name_scope(name, values=[shape1, shape2]):
        known = [
            s if isinstance(s, TensorShape) else maybe_get_static_value(s, np.int32) for s in (shape1, shape2)
        ]
        if all(k is not None for k in known):
            first, second = (k if isinstance(k, TensorShape) else TensorShape(k.tolist()) for k in known)
            return broadcast_shape(first, second)
        return find("broadcast_dynamic_shape")(*(_as_shape_tensor(s) for s in (shape1, shape2)))


def _as_shape_tensor(shape: Any) -> Tensor:
    if isinstance(shape, TensorShape):
        if not shape.is_fully_defined():
            raise ValueError("Cannot broadcast from partially defined `TensorShape`.")
        shape = shape.as_list()
    return to_tensor(shape, dtypes.int32)


def same_dynamic_shape(a: Any, b: Any) -> Tensor:
    """Whether two tensors have the same shape, when the step runs."""
    a, b = to_tensor(a, name="a"), to_tensor(b, name="b")

    def equal_sizes() -> Tensor:
        both = apply("ConcatV2", [shape_of(a), shape_of(b)], 0)
        turned = apply("ConcatV2", [shape_of(b), shape_of(a)], 0)
        return find("reduce_all")(apply("Equal", both, turned))

    same_rank = apply("Equal", apply("Rank", a), apply("Rank", b))
    return find("cond")(same_rank, equal_sizes, lambda: to_tensor(False))


def dimension_size(x: Tensor, axis: int) -> Any:
    """The size of a dimension: a number if it is known."""
    size = x.shape.with_rank_at_least(abs(axis)).dims
    if size is not None and size[axis].value is not None:
        return size[axis].value
    return shape_of(x)[axis]


# -- rearranging -----------------------------------------------------------------------------------------


def rotate_transpose(x: Any, shift: Any, name: str = "rotate_transpose") -> Tensor:
    """The dimensions of a tensor moved round by `shift` places."""
    with name_scope(name, values=[x, shift]):
        x, shift = to_tensor(x, name="x"), to_tensor(shift, dtypes.int32, name="shift")
        turn, rank = maybe_get_static_value(shift), x.shape.rank
        if rank is not None and turn is not None:
            return find("transpose")(x, np.roll(np.arange(rank), int(turn)))
        count = apply("Rank", x)
        order = (find("range")(count) - shift) % count
        return find("transpose")(x, order)


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Any:
    """One of two vectors, which need not be of one length."""
    with name_scope(name, values=[cond, true_vector, false_vector]):
        cond = to_tensor(cond, name="cond")
        if cond.dtype.base_dtype != dtypes.bool_:
            raise TypeError(f"{cond.name}.dtype={cond.dtype} which is not {dtypes.bool_}")
        known = maybe_get_static_value(cond)
        if known is not None:
            return true_vector if known else false_vector
        yes, no = to_tensor(true_vector, name="true_vector"), to_tensor(false_vector, name="false_vector")
        if yes.dtype.base_dtype != no.dtype.base_dtype:
            raise TypeError(f"{yes.name}.dtype={yes.dtype} does not match {no.name}.dtype={no.dtype}")
        n = shape_of(yes)[0]
        zero, rest = np.int32(0), np.int32(-1)
        begin = apply("Select", cond, to_tensor(zero), n)
        size = apply("Select", cond, n, to_tensor(rest))
        return find("slice")(apply("ConcatV2", [yes, no], 0), apply("Pack", [begin]), apply("Pack", [size]))


def _side(x: Tensor) -> Any:
    """The side of the triangle that so many elements fill."""
    m = x.shape[-1].value if x.shape.rank else None
    if m is not None:
        n = np.sqrt(0.25 + 2.0 * m) - 0.5
        if n != np.floor(n):
            raise ValueError(f"Input right-most shape ({m}) does not correspond to a triangular matrix.")
        return int(n), m
    count = shape_of(x)[-1]
    root = apply(
        "Sqrt", number(0.25, to_tensor(0.0)) + number(2, to_tensor(0.0)) * cast(count, dtypes.float32)
    )
    return cast(root, dtypes.int32), count


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """The elements of the last dimension as the lower (or upper) triangle of a matrix, in a spiral."""
    with name_scope(name, "fill_triangular", [x]):
        x = to_tensor(x, name="x")
        n, m = _side(x)
        tail = x[..., m - (n * n - m) :]
        parts = [x, find("reverse")(tail, [-1])] if upper else [tail, find("reverse")(x, [-1])]
        sizes = apply("ConcatV2", [shape_of(x)[:-1], apply("Pack", [n, n])], 0)
        square = apply("Reshape", apply("ConcatV2", parts, -1), sizes)
        result = find("matrix_band_part")(square, 0 if upper else -1, -1 if upper else 0)
        if x.shape.rank is not None:
            side = n if isinstance(n, int) else None
            result.set_shape(x.shape[:-1].concatenate([side, side]))
        return result


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """The elements that `fill_triangular` makes a matrix of."""
    with name_scope(name, "fill_triangular_inverse", [x]):
        x = find("matrix_band_part")(to_tensor(x, name="x"), 0 if upper else -1, -1 if upper else 0)
        n = dimension_size(x, -1)
        half = n * (n - 1) // 2
        if upper:
            row, rest = x[..., 0, :], x[..., 1:, :]
        else:
            row, rest = find("reverse")(x[..., -1, :], [-1]), x[..., :-1, :]
        # The other rows hold each element twice, forwards and backwards; the triangle has kept one of the two.
        sizes = apply("ConcatV2", [shape_of(x)[:-2], apply("Pack", [n * (n - 1)])], 0)
        flat = apply("Reshape", rest, sizes)
        result = apply("ConcatV2", [row, flat[..., :half] + find("reverse")(flat[..., half:], [-1])], -1)
        if x.shape.rank is not None:
            result.set_shape(x.shape[:-2].concatenate([half + n if isinstance(n, int) else None]))
        return result


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: str | None = None) -> Tensor:
    """The matrix with these three diagonals; what is not given is 0."""
    with name_scope(name, "tridiag", [below, diag, above]):
        parts = []
        if below is not None:
            parts.append(find("matrix_diag")(pad(to_tensor(below), -1, back=True))[..., :-1, :])
            parts[-1] = pad(parts[-1], -2, front=True)
        if diag is not None:
            parts.append(find("matrix_diag")(to_tensor(diag)))
        if above is not None:
            parts.append(find("matrix_diag")(pad(to_tensor(above), -1, front=True))[..., 1:, :])
            parts[-1] = pad(parts[-1], -2, back=True)
        if not parts:
            raise ValueError("Must specify at least one of `below`, `diag`, `above`.")
        return find("add_n")(parts)


def pad(
    x: Any,
    axis: Any,
    front: bool = False,
    back: bool = False,
    value: Any = 0,
    count: Any = 1,
    name: Any = None,
) -> Tensor:
    """A tensor with `count` elements more at the ends of an axis."""
    with name_scope(name, "pad", [x, value, count]):
        x, count = to_tensor(x, name="x"), to_tensor(count, name="count")
        if not count.dtype.base_dtype.is_integer:
            raise TypeError(f"`count.dtype` (`{count.dtype.name}`) must be `int`-like.")
        if not front and not back:
            raise ValueError("At least one of `front`, `back` must be `True`.")
        rank = prefer_static_rank(x)
        place = find("one_hot")((axis + rank) % rank, rank, dtype=dtypes.int32)
        ends = apply("Pack", [place * int(front), place * int(back)], axis=1) * cast(count, dtypes.int32)
        return find("pad")(x, ends, constant_values=cast(value, x.dtype.base_dtype))


def matrix_diag_transform(matrix: Any, transform: Callable | None = None, name: str | None = None) -> Tensor:
    """A matrix whose diagonal is what a function makes of it."""
    with name_scope(name, "matrix_diag_transform", [matrix]):
        matrix = to_tensor(matrix, name="matrix")
        if transform is None:
            return matrix
        return find("matrix_set_diag")(matrix, transform(find("matrix_diag_part")(matrix)))


# -- numbers ---------------------------------------------------------------------------------------------


def log_combinations(n: Any, counts: Any, name: str = "log_combinations") -> Tensor:
    """The logarithm of the number of ways in which `n` draws give these counts."""
    with name_scope(name, values=[n, counts]):
        return discrete.log_combinations(to_tensor(n, name="n"), to_tensor(counts, name="counts"))


def reduce_weighted_logsumexp(
    logx: Any,
    w: Any = None,
    axis: Any = None,
    keep_dims: bool = False,
    return_sign: bool = False,
    name: str | None = None,
) -> Any:
    """`log(abs(sum(weight * exp(x))))` without leaving the range of the type, and the sign of the sum if asked for."""
    with name_scope(name, "reduce_weighted_logsumexp", [logx, w]):
        logx = to_tensor(logx, name="logx")
        if w is None:
            total = find("reduce_logsumexp")(logx, axis=axis, keepdims=keep_dims)
            return (total, ones_like(total)) if return_sign else total
        w = to_tensor(w, logx.dtype.base_dtype, name="w")
        signed = logx + apply("Log", apply("Abs", w))
        most = find("reduce_max")(signed, axis=axis, keepdims=True)
        finite = apply("Select", apply("IsInf", most), zeros_like(most), most)
        most = find("stop_gradient")(finite)
        summed = find("reduce_sum")(
            apply("Sign", w) * apply("Exp", signed - most), axis=axis, keepdims=keep_dims
        )
        sign = apply("Sign", summed)
        if not keep_dims:
            most = find("squeeze")(most, axis)
        result = most + apply("Log", sign * summed)
        return (result, sign) if return_sign else result


def softplus_inverse(x: Any, name: str | None = None) -> Tensor:
    """The number whose softplus is x."""
    with name_scope(name, "softplus_inverse", [x]):
        x = to_tensor(x, name="x")
        # Near 0 the softplus is the exponential, and far from it the number itself.
        kind = x.dtype.base_dtype.as_numpy_dtype
        near = np.log(np.finfo(kind).eps) + 2.0
        small = x < number(np.exp(near), x)
        large = x > number(-near, x)
        log, one = apply("Log", x), ones_like(x)
        middle = apply("Select", apply("LogicalOr", small, large), one, x)
        exact = middle + apply("Log", apply("Neg", apply("Expm1", apply("Neg", middle))))
        return apply("Select", small, log, apply("Select", large, x, exact))


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """Another seed for another use; None stays None."""
    if seed is None:
        return None
    text = (str(seed) + salt).encode()
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


# -- functions and their texts ---------------------------------------------------------------------------


def parent_frame_arguments() -> dict[str, Any]:
    """The arguments of the function that calls this, as they are now; what has only a place is left out."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    names, _, keywords, values = inspect.getargvalues(frame.f_back)
    by_name = {name: values[name] for name in names}
    return by_name | (values[keywords] if keywords else {})


class AppendDocstring:
    """Decorator: adds a note and a list of keyword arguments to the text of a function."""

    def __init__(self, additional_note: str = "", kwargs_dict: dict[str, str] | None = None) -> None:
        self._note = additional_note
        lines = []
        for key, text in sorted((kwargs_dict or {}).items()):
            if re.search(r"\s", key):
                raise ValueError(f'Parameter name "{key}" contains whitespace.')
            stripped = text.lstrip()
            if "\n" in stripped:
                raise ValueError(f'Parameter description for "{key}" contains newlines.')
            lines.append(f"*  `{key}`: {stripped}")
        if lines:
            self._note += "\n\n##### `kwargs`:\n\n" + "\n".join(lines)

    def __call__(self, fn: Callable) -> Callable:
        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        called.__doc__ = self._note if called.__doc__ is None else f"{called.__doc__}\n{self._note}"
        return called
