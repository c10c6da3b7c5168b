"""What the ops on matrices share: their shapes, and the errors when these do not fit."""

from __future__ import annotations

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.operation import Operation

TYPES = "T: {double, float, half, complex64, complex128}"


def matrices(shape: TensorShape) -> tuple[list[int | None], int | None, int | None] | None:
    """(batch dimensions, rows, columns), or None when nothing is known."""
    if shape.rank is None:
        return None
    if shape.rank < 2:
        raise ValueError(f"Shape must be at least rank 2 but is rank {shape.rank}")
    *batch, rows, columns = shape.as_list()
    return batch, rows, columns


def same_size(m: int | None, n: int | None) -> int | None:
    """The common value of two dimensions."""
    if m is not None and n is not None and m != n:
        raise ValueError(f"Dimensions must be equal, but are {m} and {n}")
    return n if m is None else m


def square_like(op: Operation) -> TensorShape:
    """Square matrices give square matrices."""
    dims = matrices(op._inputs[0].shape)
    if dims is None:
        return TensorShape(None)
    batch, m, n = dims
    size = same_size(m, n)
    return TensorShape([*batch, size, size])


def number_per_matrix(op: Operation) -> TensorShape:
    """Square matrices give a number each."""
    dims = matrices(op._inputs[0].shape)
    if dims is None:
        return TensorShape(None)
    same_size(dims[2], dims[1])
    return TensorShape(dims[0])


def solution(op: Operation) -> TensorShape:
    """A square matrix and a right-hand side of as many rows give a solution like the latter."""
    a, b = (matrices(t.shape) for t in op._inputs[:2])
    if a is None and b is None:
        return TensorShape(None)
    if a is None or b is None:
        given = (a or b)[0]  # type: ignore[index]
        a, b = a or (given, None, None), b or (given, None, None)
    batch = TensorShape(a[0]).merge_with(TensorShape(b[0]))
    rows = same_size(same_size(a[1], a[2]), b[1])
    return batch.concatenate(TensorShape([rows, b[2]]))


def need_matrices(*arrays: Array) -> None:
    """InvalidArgumentError when an array is not a batch of matrices."""
    for i, x in enumerate(arrays):
        if x.ndim < 2:
            raise errors.invalid(f"Input tensor {i} must have rank >= 2, got {x.ndim}")


def need_square(a: Array) -> None:
    """InvalidArgumentError when matrices are not square."""
    need_matrices(a)
    if a.shape[-1] != a.shape[-2]:
        raise errors.invalid("Input matrix must be square.")


def need_rhs(a: Array, b: Array) -> None:
    """InvalidArgumentError when a right-hand side does not fit."""
    need_matrices(a, b)
    need_square(a)
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise errors.invalid("Input matrix and rhs are incompatible.")


def adjoint_of(xp: ArrayModule, a: Array) -> Array:
    """The conjugate transpose of each matrix."""
    swapped = xp.swapaxes(a, -1, -2)
    return xp.conj(swapped) if a.dtype.kind == "c" else swapped
