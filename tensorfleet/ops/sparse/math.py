"""Arithmetic with sparse tensors: sums, products with dense tensors, softmax."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor, is_sparse, to_sparse, with_static_shape
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.sparse import bracketed, check_sparse, invalid, places, positions, union_of_two
from tensorfleet.ops.array.gather import gather
from tensorfleet.ops.array.transpose import transpose
from tensorfleet.ops.common import shape_given_by, vector_of
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.samples import case
from tensorfleet.ops.sparse.arrange import Parts, rank_of, sparse_shapes

_A = (np.array([[0, 1], [1, 0], [2, 2]], np.int64), np.array([1.5, 2.5, 3.5]), np.array([3, 4], np.int64))
_B = (np.array([[0, 1], [1, 1]], np.int64), np.array([-1.25, 5.5]), np.array([3, 4], np.int64))
_NONE = (np.zeros((0, 2), np.int64), np.zeros(0, np.float32), np.array([3, 4], np.int64))


def _same_place(a: Parts, b: Parts) -> tuple[Array, Array, Array]:
    """The places of either of two sparse tensors, in order; and where each element of both goes."""
    for parts in (a, b):
        check_sparse(*parts)
    if a[0].shape[1] != b[0].shape[1]:
        raise invalid(
            f"Input indices must have the same dimension, got {a[0].shape[1]} and {b[0].shape[1]}. Operands do not "
            f"have the same ranks; got shapes: {bracketed(a[2])} and {bracketed(b[2])}"
        )
    for d, (m, n) in enumerate(zip(a[2], b[2], strict=True)):
        if m != n:
            raise invalid(f"Operands' shapes do not match: got {m} and {n} for dimension {d}")
    return union_of_two(positions(a[0], a[2]), positions(b[0], b[2]))


def _aligned(values: Array, where: Array, count: int) -> Array:
    """Values at their places in the union, zero elsewhere."""
    result = np.zeros(count, values.dtype)
    result[where] = values
    return result


# -- sparse + sparse, sparse + dense -----------------------------------------------------------------


@op(
    "SparseAdd",
    "a_indices: int64, a_values: T, a_shape: int64[1], b_indices: int64, b_values: T, b_shape: int64, "
    "thresh: Treal -> sum_indices: int64, sum_values: T, sum_shape: int64",
    "T: number; Treal: real",
    shape=lambda op: sparse_shapes(rank_of(op, 0, 2)),
    host=True,
    examples=[
        case(*_A, *_B, np.array(0.0)),
        case(*_A, *_B, np.array(2.0)),
        case(*_NONE, *_NONE, np.float32(0)),
    ],
)
def _sparse_add(
    ctx: HostContext, ai: Array, av: Array, sa: Array, bi: Array, bv: Array, sb: Array, thresh: Array
) -> tuple[Array, Array, Array]:
    if np.ndim(thresh):
        raise invalid(f"The magnitude threshold must be a scalar: got shape {bracketed(np.shape(thresh))}")
    union, at_a, at_b = _same_place((ai, av, sa), (bi, bv, sb))
    total = _aligned(av, at_a, len(union)) + _aligned(bv, at_b, len(union))
    kept = np.abs(total) >= thresh
    return places(union[kept], sa), total[kept], np.array(sa)


@op(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64[2], b_indices: int64[2], sum_indices: int64 -> a_val_grad: T, b_val_grad: T",
    "T: number",
    shape=lambda op: [vector_of(op._inputs[i].shape.with_rank(2).as_list()[0]) for i in (1, 2)],
    host=True,
    examples=[case(np.array([1.5, 2.5]), _A[0], _B[0], np.array([[0, 1], [1, 1]], np.int64))],
)
def _sparse_add_grad(ctx: HostContext, grad: Array, a: Array, b: Array, total: Array) -> tuple[Array, Array]:
    where = {tuple(place): i for i, place in enumerate(total.tolist())}
    rows = [[where.get(tuple(place), -1) for place in part.tolist()] for part in (a, b)]
    padded = np.append(grad, np.zeros(1, grad.dtype))  # what fell under the threshold has no gradient
    first, second = (padded[np.array(r, np.int64)] for r in rows)
    return first, second


@gradient("SparseAdd")
def _sparse_add_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    a, b = apply_list("SparseAddGrad", grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    a.set_shape(op.inputs[1].shape)
    b.set_shape(op.inputs[4].shape)
    return [None, a, None, None, b, None, None]


not_differentiable("SparseAddGrad")


@op(
    "SparseTensorDenseAdd",
    "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
    "T: number; Tindices: index",
    shape=lambda op: op._inputs[3].shape,
    host=True,
    examples=[case(*_A, np.arange(12.0).reshape(3, 4)), case(*_NONE, np.ones((3, 4), np.float32))],
)
def _dense_add(ctx: HostContext, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    check_sparse(indices, values, shape)
    if len(shape) != dense.ndim:
        raise invalid(f"Two operands have different ranks; received: {len(shape)} and {dense.ndim}")
    for d, (a, b) in enumerate(zip(shape, dense.shape, strict=True)):
        if a != b:
            raise invalid(
                f"Dimension {d} does not equal (no broadcasting is supported): sparse side {a} vs dense side {b}"
            )
    outside = (indices < 0) | (indices >= np.array(dense.shape, np.int64))
    if outside.any():
        n, d = np.argwhere(outside)[0]
        raise invalid(
            f"Sparse tensor has an invalid index on dimension {d}: a_indices({n},{d}) = {indices[n, d]}, dense tensor "
            f"shape: {' '.join(map(str, dense.shape))}"
        )
    result = np.array(dense, order="C")
    np.add.at(
        result.reshape(-1), positions(indices, shape), values
    )  # np.add.at is many times faster in one dimension
    return result


@gradient("SparseTensorDenseAdd")
def _dense_add_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    return [None, apply("GatherNd", dy, op.inputs[0]), None, dy]


@export("sparse.add", "sparse_add")
def sparse_add(a: TensorLike, b: TensorLike, threshold: TensorLike = None, thresh: TensorLike = None) -> Any:
    """The sum of two tensors of which one at least is sparse; sparse when both are.

    Elements of a sparse sum that are smaller than `threshold` are left out.
    """
    threshold = thresh if threshold is None else threshold
    threshold = 0 if threshold is None else threshold
    if not (is_sparse(a) or is_sparse(b)):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if is_sparse(a) and is_sparse(b):
        a, b = to_sparse(a), to_sparse(b)
        limit = to_tensor(threshold, a.dtype.real_dtype.base_dtype, name="thresh")
        indices, values, dense = apply_list(
            "SparseAdd", a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, limit
        )
        a.shape.assert_is_compatible_with(b.shape)
        return with_static_shape(indices, values, dense, a.shape.merge_with(b.shape))
    if is_sparse(b):
        a, b = b, a
    a = to_sparse(a)
    return apply("SparseTensorDenseAdd", a.indices, a.values, a.dense_shape, b)


# -- larger and smaller ------------------------------------------------------------------------------

_UNION = (
    "a_indices: int64[2], a_values: T[1], a_shape: int64[1], b_indices: int64[2], b_values: T[1], b_shape: int64[1] -> "
    "output_indices: int64, output_values: T"
)


def _declare_extreme(name: str, kind: str, larger_or_smaller: np.ufunc) -> None:
    """Declares an op on two sparse tensors whose result has the places of either."""

    def kernel(
        ctx: HostContext, ai: Array, av: Array, sa: Array, bi: Array, bv: Array, sb: Array
    ) -> tuple[Array, Array]:
        union, at_a, at_b = _same_place((ai, av, sa), (bi, bv, sb))
        values = larger_or_smaller(_aligned(av, at_a, len(union)), _aligned(bv, at_b, len(union)))
        return places(union, sa), values

    op(
        name,
        _UNION,
        f"T: {kind}",
        shape=lambda op: sparse_shapes(rank_of(op, 0, 2))[:2],
        host=True,
        examples=[case(*_A, *_B, grad=False), case(*_NONE, *_NONE, grad=False)],
    )(kernel)


_declare_extreme("SparseSparseMaximum", "real", np.maximum)
_declare_extreme("SparseSparseMinimum", "number", np.minimum)


@gradient("SparseSparseMaximum", "SparseSparseMinimum")
def _no_extreme_gradient(op: Operation, *grads: Tensor) -> NoReturn:
    raise NotImplementedError(f"Gradient for {op.type} is currently not implemented yet.")


def _extreme(op_type: str, sp_a: SparseTensor, sp_b: SparseTensor, name: str | None) -> SparseTensor:
    a, b = to_sparse(sp_a), to_sparse(sp_b)
    with name_scope(name, op_type, [a, b]) as scope:
        indices, values = apply_list(
            op_type, a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=scope
        )
    return SparseTensor(indices, values, a.dense_shape)


@export("sparse.maximum", "sparse_maximum")
def sparse_maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The larger of two sparse tensors, element by element, at the places of either."""
    return _extreme("SparseSparseMaximum", sp_a, sp_b, name)


@export("sparse.minimum", "sparse_minimum")
def sparse_minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The smaller of two sparse tensors, element by element, at the places of either."""
    return _extreme("SparseSparseMinimum", sp_a, sp_b, name)


# -- sparse matrix times dense matrix ----------------------------------------------------------------


def _product_shape(op: Operation) -> TensorShape:
    flip_a, flip_b = op._attrs["adjoint_a"], op._attrs["adjoint_b"]
    a = of_rank(shape_given_by(op, 2), 2).as_list()
    b = op._inputs[3].shape.with_rank(2).as_list()
    a, b = (a[::-1] if flip_a else a), (b[::-1] if flip_b else b)
    if None not in (a[1], b[0]) and a[1] != b[0]:
        raise ValueError(f"Dimensions must be equal, but are {a[1]} and {b[0]}")
    return TensorShape._of((a[0], b[1]))


@op(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices[2], a_values: T[1], a_shape: int64[1], b: T[2] -> product: T",
    "T: type; Tindices: index = int64; adjoint_a: bool = false; adjoint_b: bool = false",
    shape=_product_shape,
    static=["a_shape"],
    examples=[
        case(*_A, np.arange(8.0).reshape(4, 2)),
        case(*_A, np.arange(6.0).reshape(3, 2), adjoint_a=True),
        case(*_A, np.arange(8.0).reshape(2, 4), adjoint_b=True),
        case(*_A, np.arange(6.0).reshape(2, 3), adjoint_a=True, adjoint_b=True),
        case(_A[0], np.array([1j, 2, 3 - 1j]), _A[2], np.ones((3, 2), np.complex128) * 1j, adjoint_a=True),
        case(*_NONE, np.ones((4, 2), np.float32)),
    ],
)
def _product(
    xp: ArrayModule,
    indices: Array,
    values: Array,
    shape: Array,
    b: Array,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
    check: Check,
) -> Array:
    if len(shape) != 2:
        raise invalid("Tensor 'a_shape' must have 2 elements")
    if b.ndim != 2:
        raise invalid("Tensor 'b' is not a matrix")
    height, inner = (int(d) for d in (shape[::-1] if adjoint_a else shape))
    b = xp.conj(b).T if adjoint_b else b
    if inner != b.shape[0]:
        raise invalid(
            f"Cannot multiply A and B because inner dimension does not match: {inner} vs. {b.shape[0]}.  Did you "
            f"forget a transpose?  Dimensions of A: [{shape[0]}, {shape[1]}).  Dimensions of B: {bracketed(b.shape)}"
        )
    if not inner:
        return xp.zeros((height, b.shape[1]), b.dtype)
    row, column = (indices[:, 1], indices[:, 0]) if adjoint_a else (indices[:, 0], indices[:, 1])
    letters = ("m", height, row, int(adjoint_a)), ("k", inner, column, 1 - int(adjoint_a))
    for letter, limit, numbers, at in reversed(letters):
        ok = (numbers >= 0) & (numbers < limit)
        check(ok, functools.partial(_beyond, letter, limit, numbers, at, ok))
    # Constants of a traced step are numpy arrays, which a traced index cannot index.
    values = xp.asarray(xp.conj(values) if adjoint_a else values)
    parts = values[:, None] * xp.take(xp.asarray(b), xp.clip(column, 0, max(inner - 1, 0)), axis=0)
    if is_numpy(xp):
        return _summed_by_row(parts, row, height)
    blank: Any = xp.zeros((height, b.shape[1]), b.dtype)  # of JAX, which has `at`
    product: Array = blank.at[row].add(parts, mode="drop")
    return product


def _summed_by_row(parts: Array, row: Array, height: int) -> Array:
    result = np.zeros((height, parts.shape[1]), parts.dtype)
    if len(row):
        order = np.argsort(row, kind="stable")
        starts = np.flatnonzero(np.diff(row[order], prepend=-1))
        result[row[order][starts]] = np.add.reduceat(parts[order], starts, axis=0, dtype=parts.dtype)
    return result


def _beyond(letter: str, limit: int, numbers: Array, at: int, ok: Array) -> str:
    n = int(np.argmin(ok))
    return f"{letter} ({numbers[n]}) from index[{n},{at}] out of bounds (>={limit})"


@gradient("SparseTensorDenseMatMul")
def _product_gradient(op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices, values, dense, b = op.inputs
    flip_a, flip_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    matrix = transpose(b, conjugate=True) if flip_b else b
    b_grad = apply("SparseTensorDenseMatMul", indices, values, dense, dy, adjoint_a=not flip_a)
    if flip_b:
        b_grad = transpose(b_grad, conjugate=True)
    rows, columns = indices[:, 0], indices[:, 1]
    of_dy = gather(dy, columns if flip_a else rows)
    of_b = gather(matrix, rows if flip_a else columns)
    if values.dtype.is_complex:
        of_b = apply("Conj", of_b)
    grad = reduce_sum(of_dy * of_b, axis=1)
    if values.dtype.is_complex and flip_a:
        grad = apply("Conj", grad)
    return [None, grad, None, b_grad]


@export("sparse.sparse_dense_matmul", "sparse.matmul", "sparse_tensor_dense_matmul")
def sparse_tensor_dense_matmul(
    sp_a: SparseTensor | TensorLike,
    b: SparseTensor | TensorLike,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """A sparse matrix times a dense one, each of them transposed (and conjugated) if asked."""
    if is_sparse(b) and not is_sparse(sp_a):
        flipped = sparse_tensor_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a)
        return transpose(flipped)
    sp = to_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp.indices, sp.values, b]):
        parts = sp.indices, sp.values, sp.dense_shape, to_tensor(b, name="b")
        return apply("SparseTensorDenseMatMul", *parts, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
