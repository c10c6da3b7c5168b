"""Products of matrices, one pair or a batch of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.base.types import Array, ArrayModule, TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels.aligned_memory import stored
from tensorfleet.kernels.arrays import is_numpy, total
from tensorfleet.kernels.openblas import product
from tensorfleet.ops.elementwise import COMPLEX, INTS, REAL, bracketed, conj, conjugate, wide
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

_A, _B = REAL.astype(np.float64), np.arange(6.0).reshape(3, 2) / 4 - 0.5
_C = COMPLEX.reshape(1, 3)
_MAX_TINY_SIZE = 4  # rows and columns of matrices that are multiplied number by number
_ALIASED_BYTES = (
    1 << 10
)  # bytes; of columns whose numbers lie a multiple of this apart, few fit into the cache


def _product(xp: ArrayModule, a: Array, b: Array) -> Array:
    if is_numpy(xp):
        return product(wide(a), wide(b)).astype(a.dtype, copy=False)
    inner = a.shape[-1]
    if (
        a.ndim > 2
        and max(a.shape[-2], b.shape[-1], inner) <= _MAX_TINY_SIZE
        and inner
        and a.dtype.itemsize > 2
    ):
        # XLA would call its product for each of them; this is one loop over all.
        return total(a[..., :, k, None] * b[..., k, None, :] for k in range(inner))
    return xp.matmul(a, b)


def _product_by_columns(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The product of the transposed `a` and `b`, traced: XLA takes long to gather columns of its left factor."""
    inner, rows = a.shape[-2:]
    left, columns = xp.swapaxes(a, -1, -2), b.shape[-1]
    if a.dtype.kind != "f" or a.dtype.itemsize < 4 or a.shape[:-2] != b.shape[:-2]:
        return _product(xp, left, b)
    if columns <= max(min(inner, rows) // 4, min(inner // 2, rows // 8)):  # as measured
        return xp.swapaxes(stored(xp, _product(xp, xp.swapaxes(b, -1, -2), a)), -1, -2)
    return _product(xp, stored(xp, left) if rows * a.dtype.itemsize % _ALIASED_BYTES == 0 else left, b)


def _matmul_shape(op: Operation) -> TensorShape:
    a, b = (_rank_two(t.shape) for t in op._inputs)
    rows, inner = reversed(a) if op._attrs["transpose_a"] else a
    other, columns = reversed(b) if op._attrs["transpose_b"] else b
    if inner is not None and other is not None and inner != other:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {other}")
    return TensorShape._of((rows, columns))


def _rank_two(shape: TensorShape) -> tuple[int | None, int | None]:
    if shape.rank not in (None, 2):
        raise ValueError(f"Shape must be rank 2 but is rank {shape.rank}")
    rows, columns = shape._d if shape._d is not None else (None, None)
    return rows, columns


@op(
    "MatMul",
    "a: T, b: T -> product: T",
    "transpose_a: bool = false; transpose_b: bool = false; "
    "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
    "grad_a: bool = false; grad_b: bool = false",
    shape=_matmul_shape,
    examples=[
        case(_A, _B),
        case(REAL, REAL, transpose_b=True),
        case(_A, _A, transpose_a=True),
        case(_A, _B, transpose_a=True, transpose_b=True),
        case(INTS, INTS, transpose_b=True),
        case(_C, _C, transpose_a=True),
        case(_A[:0], _B),
    ],
)
def _matmul(xp: ArrayModule, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    for name, x in (("a", a), ("b", b)):
        if x.ndim != 2:
            text = f"In[{'ab'.index(name)}] is not a matrix. Instead it has shape {bracketed(x.shape)}"
            raise errors.invalid(text)
    left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
    if left.shape[1] != right.shape[0]:
        text = f"Matrix size-incompatible: In[0]: {bracketed(a.shape)}, In[1]: {bracketed(b.shape)}"
        raise errors.invalid(text)
    if transpose_a and not transpose_b and not is_numpy(xp):
        return _product_by_columns(xp, a, b)
    return _product(xp, left, right)


@gradient("MatMul")
def _matmul_grad(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    a, b = (conj(t) for t in op.inputs)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    if not ta and not tb:
        return _mm(dy, b, False, True, grad_b=True), _mm(a, dy, True, False, grad_a=True)
    if not ta and tb:
        return _mm(dy, b, False, False, grad_b=True), _mm(dy, a, True, False, grad_b=True)
    if ta and not tb:
        return _mm(b, dy, False, True, grad_a=True), _mm(a, dy, False, False, grad_a=True)
    return _mm(b, dy, True, True, grad_a=True), _mm(dy, a, True, True, grad_b=True)


def _mm(a: Tensor, b: Tensor, ta: bool, tb: bool, **which: Any) -> Tensor:
    return apply("MatMul", a, b, transpose_a=ta, transpose_b=tb, **which)


# -- batches -----------------------------------------------------------------------------------------


def _batch_shape(op: Operation) -> TensorShape:
    x, y = op._inputs[0].shape, op._inputs[1].shape
    for shape in (x, y):
        if shape.rank is not None and shape.rank < 2:
            raise ValueError(f"Shape must be at least rank 2 but is rank {shape.rank}")
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    *xb, x0, x1 = x.as_list()
    *yb, y0, y1 = y.as_list()
    rows, inner = (x1, x0) if op._attrs["adj_x"] else (x0, x1)
    other, columns = (y1, y0) if op._attrs["adj_y"] else (y0, y1)
    if inner is not None and other is not None and inner != other:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {other}")
    if op.type == "BatchMatMul":
        batch = TensorShape(xb).merge_with(TensorShape(yb))
    else:
        batch = broadcast_shape(TensorShape(xb), TensorShape(yb))
    return batch.concatenate(TensorShape._of((rows, columns)))


def _batched(name: str, types: str, examples: Sequence[case]) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "x: T, y: T -> output: T",
        f"T: {types}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
        shape=_batch_shape,
        examples=examples,
    )


def _adjoint(xp: ArrayModule, x: Array) -> Array:
    return conjugate(xp, xp.swapaxes(x, -1, -2))


def _batch_product(xp: ArrayModule, x: Array, y: Array, adj_x: bool, adj_y: bool) -> Array:
    for i, each in enumerate((x, y)):
        if each.ndim < 2:
            raise errors.InvalidArgumentError(None, None, f"In[{i}] ndims must be >= 2: {each.ndim}")
    left = _adjoint(xp, x) if adj_x else x
    right = _adjoint(xp, y) if adj_y else y
    if left.shape[-1] != right.shape[-2]:
        text = f"Matrix size-incompatible: In[0]: {bracketed(x.shape)}, In[1]: {bracketed(y.shape)}"
        raise errors.invalid(text)
    try:
        np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        shapes = f"{bracketed(x.shape)} vs. {bracketed(y.shape)}"
        raise errors.invalid(f"In[0] and In[1] must have compatible batch dimensions: {shapes}") from None
    return _product(xp, left, right)


_BATCH = [
    case(np.stack([_A, -_A]), np.stack([_B, _B + 1])),
    case(np.stack([_C, _C + 1]), np.stack([_C, _C]), adj_y=True),
    case(np.stack([_A, _A]), np.stack([_A, -_A]), adj_x=True),
]


@_batched("BatchMatMul", "{bfloat16, half, float, double, int32, int64, complex64, complex128}", _BATCH)
def _batch_matmul(xp: ArrayModule, x: Array, y: Array, *, adj_x: bool, adj_y: bool) -> Array:
    if x.shape[:-2] != y.shape[:-2]:
        text = f"In[0] and In[1] must have the same batch: {bracketed(x.shape)} vs. {bracketed(y.shape)}"
        raise errors.invalid(text)
    return _batch_product(xp, x, y, adj_x, adj_y)


@_batched(
    "BatchMatMulV2",
    "{bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128}",
    [*_BATCH, case(np.stack([_A, -_A]), _B), case(_A[None], np.stack([_B, _B, _B]))],
)
def _batch_matmul_v2(xp: ArrayModule, x: Array, y: Array, *, adj_x: bool, adj_y: bool) -> Array:
    return _batch_product(xp, x, y, adj_x, adj_y)


@gradient("BatchMatMul", "BatchMatMulV2")
def _batch_grad(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = op.inputs
    adj_x, adj_y = op.get_attr("adj_x"), op.get_attr("adj_y")

    def mm(a: Tensor, b: Tensor, left: bool, right: bool, **which: bool) -> Tensor:
        return apply(op.type, a, b, adj_x=left, adj_y=right, name="MatMul", **which)

    gx = mm(y, dy, adj_y, True, grad_x=True) if adj_x else mm(dy, y, False, not adj_y, grad_y=True)
    gy = mm(dy, x, True, adj_x, grad_y=True) if adj_y else mm(x, dy, not adj_x, False, grad_x=True)
    if op.type == "BatchMatMul":
        return gx, gy
    return unbatch(x, y, gx, gy)


def unbatch(x: Tensor, y: Tensor, gx: Tensor, gy: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of two batches of matrices, summed over the batch axes that were repeated."""
    a, b = x.shape, y.shape
    if a.rank is not None and b.rank is not None:
        if a.is_fully_defined() and b.is_fully_defined() and a.as_list()[:-2] == b.as_list()[:-2]:
            return gx, gy
        if a.rank == 2 and b.rank == 2:
            return gx, gy
    sx, sy = apply("Shape", x), apply("Shape", y)
    rx, ry = apply_list("BroadcastGradientArgs", _leading(sx), _leading(sy))
    gx = apply("Reshape", apply("Sum", gx, rx), sx)
    return gx, apply("Reshape", apply("Sum", gy, ry), sy)


def _leading(shape: Tensor) -> Tensor:
    """All of a shape but its last two dimensions."""
    ends = [np.array([n], np.int32) for n in (0, -2, 1)]
    return apply("StridedSlice", shape, *ends, begin_mask=1, name="strided_slice")


@op(
    "SparseMatMul",
    "a: Ta, b: Tb -> product: float",
    "transpose_a: bool = false; transpose_b: bool = false; a_is_sparse: bool = false; "
    "b_is_sparse: bool = false; Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float",
    shape=_matmul_shape,
    examples=[case(REAL, REAL, transpose_b=True, a_is_sparse=True)],
)
def _sparse_matmul(xp: ArrayModule, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    a, b = a.astype(np.float32), b.astype(np.float32)
    return _matmul(xp, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@gradient("SparseMatMul")
def _sparse_matmul_grad(op: Operation, dy: Tensor) -> tuple[Tensor, Tensor]:
    a, b = op.inputs
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    sparse = {id(a): op.get_attr("a_is_sparse"), id(b): op.get_attr("b_is_sparse")}

    def mm(x: Any, y: Any, tx: bool, ty: bool, kind: dtypes.DType) -> Tensor:
        flags = {"a_is_sparse": sparse.get(id(x), False), "b_is_sparse": sparse.get(id(y), False)}
        product = apply("SparseMatMul", x, y, transpose_a=tx, transpose_b=ty, **flags)
        return product if kind == dtypes.float32 else apply("Cast", product, DstT=kind)

    ka, kb = a.dtype.base_dtype, b.dtype.base_dtype
    ga = mm(b, dy, tb, True, ka) if ta else mm(dy, b, False, not tb, ka)
    gb = mm(dy, a, True, ta, kb) if tb else mm(a, dy, not ta, False, kb)
    return ga, gb


# -- what users call ---------------------------------------------------------------------------------


@export("linalg.matmul", "matmul")
def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product of the last two dimensions; the dimensions before them are a batch."""
    with name_scope(name, "MatMul", [a, b]) as scope:
        if transpose_a and adjoint_a:
            raise ValueError("Only one of transpose_a and adjoint_a can be True.")
        if transpose_b and adjoint_b:
            raise ValueError("Only one of transpose_b and adjoint_b can be True.")
        a = to_tensor(a, name="a")
        b = to_tensor(b, name="b", dtype=None if isinstance(b, Tensor) else a.dtype.base_dtype)
        kinds = {a.dtype.base_dtype, b.dtype.base_dtype}
        # Only the product of matrices with zeros takes factors of two types.
        sparse = kinds <= {dtypes.float32, dtypes.bfloat16} and (
            a_is_sparse or b_is_sparse or len(kinds) == 2
        )
        flat = (a.shape.rank is not None and a.shape.rank <= 2) and (
            b.shape.rank is not None and b.shape.rank <= 2
        )
        if not flat and not sparse:
            return _batch_call(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, scope)
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        if sparse:
            product = apply(
                "SparseMatMul", a, b, **flags, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=scope
            )
            return apply("Cast", product, DstT=dtypes.bfloat16) if kinds == {dtypes.bfloat16} else product
        return apply("MatMul", a, b, **flags, name=scope)


def _batch_call(a: Tensor, b: Tensor, ta: bool, tb: bool, aa: bool, ab: bool, scope: str) -> Tensor:
    if ta:
        a, aa = conj(a), True
    if tb:
        b, ab = conj(b), True
    return apply("BatchMatMulV2", a, b, adj_x=aa, adj_y=ab, name=scope)


@export("linalg.matvec")
def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a matrix, or a batch of them, and a vector."""
    with name_scope(name, "MatVec", [a, b]):
        a = to_tensor(a, name="a")
        column = apply("ExpandDims", to_tensor(b, name="b"), -1)
        flags: dict[str, Any] = {"a_is_sparse": a_is_sparse, "b_is_sparse": b_is_sparse}
        product = matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, **flags)
        return apply("Squeeze", product, squeeze_dims=[-1])


sparse_matmul = op_function(
    "SparseMatMul",
    "a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False, name=None",
    "sparse_matmul",
    "The product of matrices of which one or both hold many zeros.",
)
