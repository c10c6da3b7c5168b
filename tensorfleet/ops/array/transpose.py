"""Reordering dimensions: transposes and permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import bracketed, dense_gradient, invalid, known_rank
from tensorfleet.ops.common import UNKNOWN, ints, static_value
from tensorfleet.ops.samples import case

_SOME = np.arange(6, dtype=np.float32).reshape(2, 3)


def _transpose_shape(op: Operation) -> TensorShape:
    source, perm = op._inputs[0].shape, static_value(op, 1)
    rank = source.rank if source.rank is not None else known_rank(op, 1)
    if rank is None:
        return UNKNOWN
    if known_rank(op, 1) not in (None, rank):
        raise ValueError(f"Dimension must be {rank} but is {known_rank(op, 1)}")
    dims = source._d if source._d is not None else (None,) * rank
    if perm is None:
        return source if rank <= 1 and source._d is not None else unknown_shape(rank)
    for p in ints(perm):
        if not -rank <= p < rank:
            raise ValueError(f"perm dim {p} is out of range of input rank {rank}")
    return TensorShape._of(tuple(dims[p] for p in ints(perm)))


_TRANSPOSE_CASES = [
    case(_SOME, np.array([1, 0], np.int32)),
    case(np.arange(24.0).reshape(2, 3, 4), np.array([2, 0, 1], np.int64)),
    case(np.float32(2.0), np.array([], np.int32)),
    case(np.array([[1 + 2j, 3 - 1j]], np.complex64), np.array([1, 0], np.int32)),
]


@op(
    "Transpose",
    "x: T, perm: Tperm[1] -> y: T",
    "T: type; Tperm: index = int32",
    shape=_transpose_shape,
    moves="x",
    static=["perm"],
    examples=[*_TRANSPOSE_CASES, case(np.array([[b"a", b"b"]], object), np.array([1, 0], np.int32))],
)
def _transpose(xp: ArrayModule, x: Array, perm: Array) -> Array:
    rank = len(x.shape)
    axes = ints(perm)
    if len(axes) != rank:
        raise invalid(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)}"
        )
    if any(not -rank <= a < rank for a in axes):
        bad = next(a for a in axes if not -rank <= a < rank)
        raise invalid(f"{bad} is out of range [0 .. {rank})")
    axes = tuple(a % rank for a in axes)
    if len(set(axes)) != rank:
        missing = next(i for i in range(rank) if i not in axes)
        raise invalid(f"{missing} is missing from {{{bracketed(axes)[1:-1]}}}.")
    return xp.transpose(x, axes)


@op(
    "ConjugateTranspose",
    "x: T, perm: Tperm[1] -> y: T",
    "T: type; Tperm: index = int32",
    shape=_transpose_shape,
    static=["perm"],
    examples=_TRANSPOSE_CASES,
)
def _conjugate_transpose(xp: ArrayModule, x: Array, perm: Array) -> Array:
    y = _transpose(xp, x, perm)
    return xp.conj(y) if np.issubdtype(y.dtype, np.complexfloating) else y


@gradient("Transpose", "ConjugateTranspose")
def _transpose_grad(op: Operation, dy: Tensor) -> tuple[Tensor, None]:
    return apply_any(op.type, dense_gradient(dy), apply("InvertPermutation", op._inputs[1])), None


@export("transpose")
def transpose(
    a: TensorLike, perm: TensorLike = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """Reorders the dimensions by `perm`; without it, reverses them."""
    with name_scope(name, "transpose", [a]) as scope:
        a = to_tensor(a, name="a")
        op_type = "ConjugateTranspose" if conjugate and a.dtype.is_complex else "Transpose"
        if perm is None and a.shape.rank is not None:
            perm = np.arange(a.shape.rank - 1, -1, -1, dtype=np.int32)
        elif perm is None:
            perm = apply("Range", apply("Rank", a) - 1, -1, -1)
        return apply(op_type, a, perm, name=scope)


@export("linalg.matrix_transpose", "linalg.transpose", "matrix_transpose")
def matrix_transpose(a: TensorLike, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Swaps the last two dimensions: transposes each matrix of a batch."""
    with name_scope(name, values=[a]):
        a = to_tensor(a, name="a")
        n = a.shape.rank
        if n is None:
            count = apply("Rank", a)
            perm: Any = apply(
                "ConcatV2", [apply("Range", 0, count - 2, 1), [count - 1, count - 2]], 0, name="concat"
            )
        elif n < 2:
            raise ValueError(f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {a.shape}")
        else:
            perm = [*range(n - 2), n - 1, n - 2]
        return transpose(a, perm, conjugate=conjugate)


@op(
    "InvertPermutation",
    "x: T[1] -> y: T",
    "T: index = int32",
    shape=lambda op: op._inputs[0].shape.with_rank(1),
    examples=[
        case(np.array([2, 0, 1], np.int32)),
        case(np.array([0], np.int64)),
        case(np.array([], np.int32)),
    ],
)
def _invert_permutation(xp: ArrayModule, x: Array, *, check: Check) -> Array:
    n = x.shape[0]
    check((x >= 0) & (x < n), lambda: _not_below(x, n))
    order = xp.argsort(x).astype(x.dtype)
    check(xp.sort(x) == xp.arange(n, dtype=x.dtype), lambda: f"{_repeated(x)} is duplicated in the input.")
    return order


def _not_below(x: Array, n: int) -> str:
    return f"{next(int(v) for v in x if not 0 <= v < n)} is not between 0 and {n}"


def _repeated(x: Array) -> int:
    values, counts = np.unique(x, return_counts=True)
    return int(values[counts > 1][0])


not_differentiable("InvertPermutation")


@export("math.invert_permutation", "invert_permutation")
def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`, a 1-D tensor that holds 0 to n-1 once each."""
    return apply("InvertPermutation", x, name=name)
