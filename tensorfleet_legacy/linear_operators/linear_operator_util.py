"""Helpers of all kinds of operators: batches brought to one shape, sizes as numbers or as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.broadcast import broadcast_dynamic_shape, broadcast_static_shape
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.elementwise import conj
from tensorfleet.ops.linalg.solve import matrix_triangular_solve
from tensorfleet.ops.math.reduce_functions import reduce_prod, reduce_sum


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transposed matrix."""
    return matrix_transpose(x, conjugate=x.dtype.is_complex)


def column(x: Tensor) -> Tensor:
    """A vector as a matrix of one column."""
    return apply("ExpandDims", x, -1)


def without_column(x: Tensor) -> Tensor:
    """The only column of a matrix."""
    return apply("Squeeze", x, squeeze_dims=[-1])


def total(x: Tensor) -> Tensor:
    """The sum along the last axis."""
    return reduce_sum(x, [-1])


def product(x: Tensor) -> Tensor:
    """The product along the last axis."""
    return reduce_prod(x, [-1])


def batch_of(x: Tensor) -> TensorShape:
    """The shape of a batch of matrices without the last two dimensions."""
    return x.shape[:-2]


def size_tensor(static: TensorShape, dynamic: Any) -> Tensor:
    """A shape as a tensor: a constant when it is known, else what `dynamic()` gives."""
    if static.is_fully_defined():
        return to_tensor(np.array(static.as_list(), np.int32))
    return dynamic()


def shape_of(x: Tensor) -> Tensor:
    """The shape of a tensor as a tensor."""
    return size_tensor(x.shape, lambda: apply("Shape", x))


def joined(*parts: Tensor) -> Tensor:
    """Vectors of sizes one behind the other."""
    return apply("ConcatV2", list(parts), 0)


def same_batch(*matrices: Tensor) -> list[Tensor]:
    """The matrices, repeated so that all have the same batch of them."""
    batches = [batch_of(m) for m in matrices]
    if all(b.is_fully_defined() for b in batches):
        if all(b == batches[0] for b in batches):
            return list(matrices)
        known = batches[0]
        for b in batches[1:]:
            known = broadcast_static_shape(known, b)
        wanted: Tensor = to_tensor(np.array(known.as_list(), np.int32))
    else:
        wanted = shape_of(matrices[0])[:-2]
        for m in matrices[1:]:
            wanted = broadcast_dynamic_shape(wanted, shape_of(m)[:-2])
    return [apply("BroadcastTo", m, joined(wanted, shape_of(m)[-2:])) for m in matrices]


def broadcast_batches(shapes: Sequence[TensorShape]) -> TensorShape:
    """The shape that several batch shapes broadcast to."""
    known = shapes[0]
    for s in shapes[1:]:
        known = broadcast_static_shape(known, s)
    return known


def broadcast_batch_tensors(shapes: Sequence[Tensor]) -> Tensor:
    """The same of shapes that are tensors."""
    result = shapes[0]
    for s in shapes[1:]:
        result = broadcast_dynamic_shape(result, s)
    return result


def solved(matrix: Tensor, rhs: Tensor, turned: bool = False) -> Tensor:
    """The solution of general systems; batches broadcast."""
    matrix, rhs = same_batch(matrix, rhs)
    return apply("MatrixSolve", matrix, rhs, adjoint=turned)


def solved_lower(tril: Tensor, rhs: Tensor, turned: bool = False) -> Tensor:
    """The solution of systems with lower triangular matrices; batches broadcast."""
    tril, rhs = same_batch(tril, rhs)
    return matrix_triangular_solve(tril, rhs, lower=True, adjoint=turned)


def solved_by_factor(factor: Tensor, rhs: Tensor) -> Tensor:
    """The solution of systems whose matrices have these Cholesky factors; batches broadcast."""
    return solved_lower(factor, solved_lower(factor, rhs), turned=True)


def magnitude(x: Tensor) -> Tensor:
    """The absolute value, real for complex numbers too."""
    return apply("ComplexAbs", x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else apply("Abs", x)


def log_magnitude(x: Tensor) -> Tensor:
    """The logarithm of the absolute value, in the type of `x`."""
    return as_type(apply("Log", magnitude(x)), x.dtype)


def as_type(x: Tensor, dtype: Any) -> Tensor:
    """The tensor in another type; of complex numbers the real part when that is real."""
    kind = dtypes.as_dtype(dtype).base_dtype
    if x.dtype.base_dtype == kind:
        return x
    if x.dtype.is_complex and not kind.is_complex:
        x = apply("Real", x, Tout=x.dtype.real_dtype)
    return x if x.dtype.base_dtype == kind else apply("Cast", x, DstT=kind)


def conjugated(x: Tensor) -> Tensor:
    """The conjugate of complex numbers, real ones as they are."""
    return conj(x) if x.dtype.is_complex else x


def variables_of(tensors: Sequence[Any]) -> tuple:
    """The variables of a graph that tensors are computed from, in the order they were made."""
    seen: set[Any] = set()
    waiting = [t._as_graph_element().op if hasattr(t, "_as_graph_element") else t.op for t in tensors]
    while waiting:
        op = waiting.pop()
        if op not in seen:
            seen.add(op)
            waiting += [t.op for t in op.inputs]
    known = tensors[0].graph.get_collection("variables") if tensors else []
    return tuple(v for v in known if v.op in seen)
