"""The operators of `tf.Tensor` and of variables: `a + b`, `-a`, `a @ b`, `a < b`, ..."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, is_sparse
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.math import binary as math_binary
from tensorfleet.ops.math import bitwise, compare
from tensorfleet.ops.math import unary as math_unary

#: A function of operands. It may decline, with NotImplemented, and gives sparse tensors for sparse ones.
_Operator: TypeAlias = Callable[..., Any]


def _forward(f: _Operator, scope_name: str) -> _Operator:
    def operate(x: Tensor, y: Any) -> Any:
        with name_scope(None, scope_name, [x, y]) as name:
            if not isinstance(y, Tensor):
                if is_sparse(y):
                    return _times_sparse(x, y, name) if scope_name == "mul" else NotImplemented
                try:
                    y = to_tensor(y, name="y", preferred=x.dtype.base_dtype)
                except (TypeError, ValueError):
                    # Something else's business, if that something knows the reflected operator.
                    if _reflects(y, scope_name):
                        return NotImplemented
                    raise
            return f(x, y, name=name)

    return operate


def _times_sparse(x: Tensor, y: SparseTensor, name: str) -> SparseTensor:
    values = apply("SparseDenseCwiseMul", y.indices, y.values, y.dense_shape, x, name=name)
    return type(y)(y.indices, values, y.dense_shape)


def _reflects(value: TensorLike, scope_name: str) -> bool:
    method = f"__r{scope_name}__"
    return hasattr(type(value), method) and type(value).__module__ not in ("builtins", "numpy")


def _reflected(f: _Operator, scope_name: str) -> _Operator:
    def operate(y: Tensor, x: TensorLike) -> Any:
        with name_scope(None, scope_name, [x, y]) as name:
            return f(to_tensor(x, dtype=y.dtype.base_dtype, name="x"), y, name=name)

    return operate


def _logic(logical: _Operator, bits: _Operator) -> _Operator:
    """Logic for bools, bits for integers."""

    def operate(x: Tensor, y: Tensor, name: str) -> Any:
        if x.dtype.is_bool:
            return logical(x, y, name)
        return bits(x, y)

    return operate


def _multiply(x: Tensor, y: Tensor, name: str) -> Tensor:
    return apply("Mul", x, y, name=name)


def _xor(x: Tensor, y: Tensor, name: str) -> Tensor:
    return compare.logical_xor(x, y, name)


def _matmul(x: Tensor, y: Tensor, name: str) -> Tensor:
    return matmul(x, y, name=name)


_BINARY: dict[str, _Operator] = {
    "add": math_binary.add_op,
    "sub": math_binary.subtract,
    "mul": _multiply,
    "div": math_binary.div,
    "truediv": math_binary.truediv,
    "floordiv": math_binary.floordiv,
    "mod": math_binary.floormod,
    "pow": math_binary.pow,
    "matmul": _matmul,
    "and": _logic(compare.logical_and, bitwise.bitwise_and),
    "or": _logic(compare.logical_or, bitwise.bitwise_or),
    "xor": _logic(_xor, bitwise.bitwise_xor),
}


def _invert(x: Tensor) -> Any:
    return compare.logical_not(x) if x.dtype.is_bool else bitwise.invert(x)


# `==` and `!=` stay those of Python objects, so that tensors can be keys: use tf.equal.
_UNARY_AND_COMPARISONS: dict[str, _Operator] = {
    "__neg__": lambda x: math_unary.negative(x),
    "__abs__": lambda x: math_unary.abs(x),
    "__invert__": _invert,
    "__lt__": lambda x, y: compare.less(x, y),
    "__le__": lambda x, y: compare.less_equal(x, y),
    "__gt__": lambda x, y: compare.greater(x, y),
    "__ge__": lambda x, y: compare.greater_equal(x, y),
}


def _table() -> dict[str, _Operator]:
    table = dict(_UNARY_AND_COMPARISONS)
    for name, f in _BINARY.items():
        table[f"__{name}__"] = _forward(f, name)
        table[f"__r{name}__"] = _reflected(f, name)
    for name, f in table.items():
        f.__name__ = name
    return table


_TABLE = _table()

#: every operator that variables hand on to their tensor
OVERLOADABLE_OPERATORS = frozenset(_TABLE)


def _override_operator(operator: str, func: _Operator) -> None:
    """Sets an operator of `tf.Tensor`."""
    setattr(Tensor, operator, func)


def install_operators(cls: type[Any]) -> None:
    """Gives a tensor class all operators."""
    for name, f in _TABLE.items():
        setattr(cls, name, f)
    # A set of its own: libraries take out of it what they do not want to hand on.
    cls.OVERLOADABLE_OPERATORS = {*OVERLOADABLE_OPERATORS, "__getitem__"}
    cls._override_operator = staticmethod(_override_operator)


def install_on_variable(cls: type[Any]) -> None:
    """Gives a class that converts to a tensor all operators, applied to that tensor."""

    def handing_on(name: str) -> _Operator:
        def operate(self: Any, *args: Any) -> Any:
            return getattr(to_tensor(self), name)(*args)

        return functools.wraps(getattr(Tensor, name))(operate)

    for name in OVERLOADABLE_OPERATORS:
        setattr(cls, name, handing_on(name))
    cls.__array_priority__ = Tensor.__array_priority__


install_operators(Tensor)
