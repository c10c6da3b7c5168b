"""Checks that are part of the graph: `tf.Assert` and the `tf.assert_*` functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_any, apply_op
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.basic import no_op, with_dependencies
from tensorfleet.ops.array.shape import rank as rank_of
from tensorfleet.ops.array.shape import shape
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.control.host_ops import summarized
from tensorfleet.ops.elementwise import bracketed
from tensorfleet.ops.math.reduce_functions import reduce_all
from tensorfleet.ops.samples import case


@op(
    "Assert",
    "condition: bool, data: list(T) ->",
    "T: list(type); summarize: int = 3",
    stateful=True,
    examples=[case(np.True_, [np.array([1.5, 2.5], np.float32), np.int32(3)])],
)
def _assert(xp: ArrayModule, condition: Array, data: list[Array], *, summarize: int, check: Check) -> None:
    if np.ndim(condition):
        raise errors.invalid(f"In[0] should be a scalar: {bracketed(condition.shape)}")
    check(condition, lambda: "assertion failed: " + " ".join(f"[{summarized(d, summarize)}]" for d in data))


not_differentiable("Assert")


@export("Assert", "debugging.Assert")
def Assert(
    condition: TensorLike, data: Sequence[TensorLike], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails with the values of `data` when `condition` is false.

    It takes part in a run only as a fetch or through `tf.control_dependencies`.
    """
    with name_scope(name, "Assert", [condition, *data]):
        kinds = {to_tensor(item).dtype.base_dtype.name for item in data}

        def fail() -> Operation:
            return apply_op("Assert", condition, list(data), summarize=summarize, name="Assert")

        if kinds <= {"string", "int32"}:  # these are at hand: there is nothing to guard against fetching them
            return fail()
        guard: Operation = cond(condition, no_op, fail, name="AssertGuard").op
        return guard


def _static(tensor: Tensor) -> Array | None:
    return constant_value(tensor)


def _fail_now(data: Sequence[TensorLike]) -> None:
    lines = []
    for item in data:
        value = _static(item) if isinstance(item, Tensor) else item
        lines.append(str(item if value is None else value))
    raise errors.invalid("\n".join(lines))


def _pairwise(
    kind: str,
    scope: str,
    symbol: str,
    x: TensorLike,
    y: TensorLike,
    data: Sequence[TensorLike] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with name_scope(name, scope, [x, y]):
        if kind == "Equal" and x is y:
            return no_op()
        a = to_tensor(x, name="x")
        b = to_tensor(y, name="y", preferred=a.dtype.base_dtype)
        if data is None:
            said = f"Condition x {symbol} y did not hold element-wise:"
            data = [said, f"x ({a.name}) = ", a, f"y ({b.name}) = ", b]
        if message:
            data = [message, *data]
        holds = reduce_all(apply_any(kind, a, b))
        known = _static(a), _static(b)
        if known[0] is not None and known[1] is not None and not np.all(_COMPARE[kind](*known)):
            _fail_now(data)
        return Assert(holds, data, summarize=summarize)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


def _declare_pairwise(public: str, kind: str, symbol: str) -> Callable[..., Operation]:
    def check(
        x: TensorLike,
        y: TensorLike,
        data: Sequence[TensorLike] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        return _pairwise(kind, public, symbol, x, y, data, summarize, message, name)

    check.__name__ = check.__qualname__ = public
    check.__doc__ = f"An operation that fails unless `x {symbol} y` for all elements."
    return export(public, f"debugging.{public}")(check)


assert_equal = _declare_pairwise("assert_equal", "Equal", "==")
assert_none_equal = _declare_pairwise("assert_none_equal", "NotEqual", "!=")
assert_less = _declare_pairwise("assert_less", "Less", "<")
assert_less_equal = _declare_pairwise("assert_less_equal", "LessEqual", "<=")
assert_greater = _declare_pairwise("assert_greater", "Greater", ">")
assert_greater_equal = _declare_pairwise("assert_greater_equal", "GreaterEqual", ">=")


def _declare_sign(public: str, symbol: str, build: Callable[..., Operation]) -> Callable[..., Operation]:
    def check(
        x: TensorLike,
        data: Sequence[TensorLike] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, public, [x]):
            a = to_tensor(x, name="x")
            if data is None:
                said = f"Condition x {symbol} 0 did not hold element-wise:"
                data = [message or "", said, f"x ({a.name}) = ", a]
            return build(a, to_tensor(0, a.dtype.base_dtype), data, summarize)

    check.__name__ = check.__qualname__ = public
    check.__doc__ = f"An operation that fails unless `x {symbol} 0` for all elements."
    return export(public, f"debugging.{public}")(check)


assert_positive = _declare_sign("assert_positive", ">", lambda x, zero, *rest: assert_less(zero, x, *rest))
assert_negative = _declare_sign("assert_negative", "<", lambda x, zero, *rest: assert_less(x, zero, *rest))
assert_non_negative = _declare_sign(
    "assert_non_negative", ">=", lambda x, zero, *rest: assert_less_equal(zero, x, *rest)
)
assert_non_positive = _declare_sign(
    "assert_non_positive", "<=", lambda x, zero, *rest: assert_less_equal(x, zero, *rest)
)


@export("assert_near", "debugging.assert_near")
def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike = None,
    atol: TensorLike = None,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails unless `abs(x - y) <= atol + rtol * abs(y)` for all elements."""
    with name_scope(name, "assert_near", [x, y]):
        a = to_tensor(x, name="x")
        b = to_tensor(y, name="y", dtype=a.dtype.base_dtype)
        kind = a.dtype.base_dtype
        narrow = kind in (dtypes.bfloat16, dtypes.float16)
        eps = 10 * float(np.finfo(np.float32 if kind == dtypes.bfloat16 else kind.np_dtype).eps)
        eps = 10 * 2.0**-7 if narrow and kind == dtypes.bfloat16 else eps
        relative = to_tensor(eps if rtol is None else rtol, kind.real_dtype, name="rtol")
        absolute = to_tensor(eps if atol is None else atol, kind.real_dtype, name="atol")
        if data is None:
            said = f"x and y not equal to tolerance rtol = {relative}, atol = {absolute}"
            data = [message or "", said, f"x ({a.name}) = ", a, f"y ({b.name}) = ", b]
        allowed = absolute + relative * abs(b)
        return Assert(reduce_all(apply("Less", abs(a - b), allowed)), data, summarize=summarize)


# -- ranks, types, shapes ----------------------------------------------------------------------------


def _check_rank(
    scope: str,
    words: str,
    x: TensorLike,
    ranks: list[TensorLike],
    holds: Callable[[int, int], bool],
    built: Callable[[TensorLike, TensorLike], Tensor],
    options: tuple[Sequence[TensorLike] | None, int | None, str | None, str | None],
) -> Operation:
    """The common part of the rank checks; `holds` compares numbers and `built` makes the op for tensors."""
    data, summarize, message, name = options
    with name_scope(name, scope, [x]):
        a = to_tensor(x, name="x")
        wanted = [to_tensor(r, name="rank") for r in ranks]
        if data is None:
            data = [
                message or "",
                f"Tensor {a.name} must have {words}",
                *wanted,
                "Received shape: ",
                shape(a),
            ]
        for r in wanted:
            assert_type(r, dtypes.int32)
        known = [_static(r) for r in wanted]
        if any(k is not None and k.ndim for k in known):
            raise ValueError("Rank must be a scalar.")
        if a.shape.rank is not None and all(k is not None for k in known):
            numbers = [int(k) for k in known if k is not None]
            if not any(holds(a.shape.rank, n) for n in numbers):
                said = tuple(numbers) if scope == "assert_rank_in" else numbers[0]
                raise ValueError(
                    f"{f'{message}.  ' if message else ''}Tensor {a.name} must have {words} {said}.  "
                    f"Received rank {a.shape.rank}, shape {a.shape}"
                )
            return no_op(name="static_checks_determined_all_ok")
        actual = rank_of(a)
        condition = built(actual, wanted[0])
        for r in wanted[1:]:
            condition = apply("LogicalOr", condition, built(actual, r))
        # A vector where one number is meant would be compared with each of its elements.
        asked = [r for r, k in zip(wanted, known, strict=True) if k is None]
        scalars = [assert_rank(r, 0, data=["Rank must be a scalar. Received rank: ", r]) for r in asked]
        return Assert(
            with_dependencies(scalars, condition) if scalars else condition, data, summarize=summarize
        )


@export("assert_rank", "debugging.assert_rank")
def assert_rank(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks that `x` has that rank: now if it is known, else when the returned operation runs."""
    options = (data, summarize, message, name)
    return _check_rank("assert_rank", "rank", x, [rank], int.__eq__, _built("Equal"), options)


@export("assert_rank_at_least", "debugging.assert_rank_at_least")
def assert_rank_at_least(
    x: TensorLike,
    rank: TensorLike,
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks that `x` has at least that rank: now if it is known, else when the returned operation runs."""
    options = (data, summarize, message, name)
    words, built = "rank at least", _built("GreaterEqual")
    return _check_rank("assert_rank_at_least", words, x, [rank], int.__ge__, built, options)


@export("assert_rank_in", "debugging.assert_rank_in")
def assert_rank_in(
    x: TensorLike,
    ranks: Iterable[TensorLike],
    data: Sequence[TensorLike] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Checks that `x` has one of the ranks: now if they are known, else when the returned operation runs."""
    options = (data, summarize, message, name)
    return _check_rank("assert_rank_in", "rank in", x, list(ranks), int.__eq__, _built("Equal"), options)


def _built(kind: str) -> Callable[[TensorLike, TensorLike], Tensor]:
    return lambda a, b: apply_any(kind, a, b)


@export("assert_type", "debugging.assert_type")
def assert_type(
    tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> Operation:
    """Raises TypeError at once unless the tensor has that type."""
    with name_scope(name, "assert_type", [tensor]):
        converted, kind = to_tensor(tensor, name="tensor"), dtypes.as_dtype(tf_type)
        if converted.dtype.base_dtype != kind:
            raise TypeError(
                f"{f'{message}  ' if message else ''}{converted.name} must be of type {kind}; got {converted.dtype}"
            )
        return no_op("statically_determined_correct_type")


@export("assert_integer", "debugging.assert_integer")
def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError at once unless `x` has an integer type."""
    with name_scope(name, "assert_integer", [x]):
        tensor = to_tensor(x, name="x")
        if not tensor.dtype.is_integer:
            raise TypeError(
                f'{f"{message}  " if message else ""}Expected "x" to be integer type.  Found: {tensor.name} of '
                f"dtype {tensor.dtype!r}"
            )
        return no_op("statically_determined_was_integer")


@export("assert_scalar", "debugging.assert_scalar")
def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor, if it may be a scalar; ValueError otherwise."""
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        result = to_tensor(tensor, name=scope)
        if result.shape.rank not in (None, 0):
            raise ValueError(
                f"{message or ''}Expected scalar shape for {result.name}, saw shape: {result.shape}."
            )
        return result


@export("assert_proper_iterable", "debugging.assert_proper_iterable")
def assert_proper_iterable(values: TensorLike) -> None:
    """Raises TypeError unless `values` is a collection, and neither a tensor, an array nor text."""
    refused = (Tensor, SparseTensor, np.ndarray, bytes, str)
    if isinstance(values, refused):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


@export("assert_same_float_dtype", "debugging.assert_same_float_dtype")
def assert_same_float_dtype(
    tensors: Iterable[Any] | None = None, dtype: DTypeLike | None = None
) -> dtypes.DType:
    """The floating-point type that all `tensors` share (and `dtype`, if given); ValueError otherwise."""
    result = None if dtype is None else dtypes.as_dtype(dtype)
    first = None
    for t in filter(lambda t: t is not None, tensors or ()):
        if result is not None and t.dtype.base_dtype != result:
            like = f" as {_name_of(first)}" if first is not None else ""
            raise ValueError(f"{_name_of(t)}, type={t.dtype!r}, must be of the same type ({result!r}){like}.")
        result, first = t.dtype.base_dtype, first if first is not None else t
    result = result or dtypes.float32
    if not result.is_floating:
        raise ValueError(f"Expected floating point type, got {result}.")
    return result


def _name_of(tensor: Tensor) -> str:
    return getattr(tensor, "name", None) or repr(tensor)


@export("is_numeric_tensor", "debugging.is_numeric_tensor")
def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether the argument is a tensor of numbers."""
    if not isinstance(tensor, Tensor):
        return False
    kind = tensor.dtype.base_dtype
    return kind.is_floating or kind.is_integer or kind.is_complex or kind.is_quantized


@export("is_non_decreasing", "debugging.is_non_decreasing", "math.is_non_decreasing")
def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element of `x`, read in order, is smaller than the one before."""
    with name_scope(name, "is_non_decreasing", [x]):
        return _ordered("GreaterEqual", x)


@export("is_strictly_increasing", "debugging.is_strictly_increasing", "math.is_strictly_increasing")
def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether every element of `x`, read in order, is larger than the one before."""
    with name_scope(name, "is_strictly_increasing", [x]):
        return _ordered("Greater", x)


def _ordered(kind: str, x: TensorLike) -> Tensor:
    a = to_tensor(x, name="x")
    if not is_numeric_tensor(a):
        raise TypeError(f"Expected x to be numeric, instead found: {a}")
    flat = apply("Reshape", a, [-1])
    return reduce_all(apply(kind, flat[1:], flat[:-1]))


@export("verify_tensor_all_finite", "debugging.assert_all_finite")
def verify_tensor_all_finite(
    t: TensorLike = None,
    msg: TensorLike = None,
    name: str | None = None,
    x: TensorLike = None,
    message: str | None = None,
) -> Tensor:
    """The tensor; a run that computes it fails, with `msg`, when it holds a NaN or an infinity."""
    value, text = t if x is None else x, msg if message is None else message
    with name_scope(name, "VerifyFinite", [value]):
        tensor = to_tensor(value, name="t")
        checked = apply("CheckNumerics", tensor, message=text)
        after: Tensor = with_dependencies([checked], tensor)
        return after
