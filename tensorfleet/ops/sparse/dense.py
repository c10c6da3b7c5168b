"""Between sparse and dense: placeholders, `tf.sparse_to_dense`, indicators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import Array, ArrayModule, Dims, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, op
from tensorfleet.graph.sparse_tensor import SparseTensor, to_sparse
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.sparse import bracketed, check_places, invalid, positions
from tensorfleet.ops.array.basic import placeholder
from tensorfleet.ops.array.constructors import zeros, zeros_like
from tensorfleet.ops.common import shape_given_by
from tensorfleet.ops.math.reduce_functions import reduce_sum
from tensorfleet.ops.public_functions import op_function
from tensorfleet.ops.samples import case

# -- placeholders ------------------------------------------------------------------------------------


@export("sparse.placeholder", "sparse_placeholder")
def sparse_placeholder(
    dtype: DTypeLike, shape: Tensor | Iterable[int | None] | None = None, name: str | None = None
) -> SparseTensor:
    """A sparse tensor that is fed: a `SparseTensorValue`, or a tuple (indices, values, dense shape)."""
    names = {part: None if name is None else f"{name}/{part}" for part in ("shape", "values", "indices")}
    known = TensorShape(None)
    if shape is None:
        rank, dense = None, placeholder(dtypes.int64, [None], names["shape"])
    elif isinstance(shape, Tensor):
        rank = shape.shape.num_elements()
        known = constant_value_as_shape(shape)
        dense = to_tensor(shape, dtypes.int64)
    else:
        known = as_shape(tuple(shape))
        rank = known.rank
        if known.is_fully_defined():
            dense = to_tensor(np.array(known.as_list(), np.int64), name=names["shape"])
        else:
            dense = placeholder(dtypes.int64, [rank], names["shape"])
    values = placeholder(dtype, [None], names["values"])
    result = SparseTensor(placeholder(dtypes.int64, [None, rank], names["indices"]), values, dense)
    result._known = known
    return result


# -- sparse to dense ---------------------------------------------------------------------------------


def _dense_shape(op: Operation) -> TensorShape:
    if op._inputs[1].shape.rank not in (None, 1):
        raise ValueError(f"Shape must be rank 1 but is rank {op._inputs[1].shape.rank}")
    return shape_given_by(op, 1)


_PLACES = np.array([[0, 1], [1, 0]], np.int64)
_TWO = np.array([2, 3], np.int64)


@op(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
    "validate_indices: bool = true; T: type; Tindices: index",
    shape=_dense_shape,
    static=["output_shape"],
    examples=[
        case(_PLACES, _TWO, np.array([1.5, 2.5]), np.array(0.5)),
        case(
            np.array([0, 2], np.int32), np.array([4], np.int32), np.array(7, np.int64), np.array(0, np.int64)
        ),
        case(np.array(1, np.int32), np.array([3], np.int32), np.array(True), np.array(False)),
        case(
            np.array([1], np.int64), np.array([2], np.int64), np.array([b"x"], object), np.array(b"", object)
        ),
        case(np.zeros((0, 2), np.int64), _TWO, np.zeros(0, np.float32), np.array(1, np.float32)),
    ],
)
def _sparse_to_dense(
    xp: ArrayModule,
    indices: Array,
    shape: Array,
    values: Array,
    default: Array,
    *,
    validate_indices: bool,
    check: Check,
) -> Array:
    _check_parts(indices, shape, values, default)
    dims = tuple(int(d) for d in shape)
    rows = indices.reshape(-1, 1) if indices.ndim < 2 else indices
    if is_numpy(xp) and not len(rows):
        return np.full(dims, default, values.dtype)
    inside = ((rows >= 0) & (rows < np.array(dims, np.int64))).all(axis=1)
    if is_numpy(xp):
        if validate_indices:
            check_places(rows, dims)
        check(inside, lambda: f"Indices are not valid (out of bounds).  Shape: {bracketed(dims)}")
        result = np.full(dims, default, values.dtype)
        result[tuple(rows.T)] = values
        return result
    flat = rows.astype(np.int64) @ xp.asarray(_strides(dims))
    # Here a flag is enough: when it is set, the step runs again in numpy, which writes the exact message.
    ordered = (flat[1:] > flat[:-1]).all() if validate_indices else True
    check(inside.all() & ordered, "Indices are not valid")
    blank: Any = xp.full(dims, default, values.dtype).reshape(-1)  # of JAX, which has `at`
    filled: Array = blank.at[xp.where(inside, flat, blank.size)].set(values, mode="drop").reshape(dims)
    return filled


def _strides(dims: Dims) -> Array:
    return positions(np.eye(len(dims), dtype=np.int64), dims)


def _check_parts(indices: Array, shape: Array, values: Array, default: Array) -> None:
    if indices.ndim > 2:
        raise invalid(
            f"sparse_indices should be a scalar, vector, or matrix, got shape {bracketed(indices.shape)}"
        )
    count = indices.shape[0] if indices.ndim else 1
    rank = indices.shape[1] if indices.ndim == 2 else 1
    if np.ndim(shape) != 1:
        raise invalid(f"output_shape must be rank 1, got shape {bracketed(np.shape(shape))}")
    if len(shape) != rank:
        raise invalid(f"output_shape has incorrect number of elements: {len(shape)} should be: {rank}")
    if values.ndim and values.shape != (count,):
        raise invalid(
            f"sparse_values has incorrect shape {bracketed(values.shape)}, should be [] or [{count}]"
        )
    if default.ndim:
        raise invalid("default_value should be a scalar.")


@gradient("SparseToDense")
def _sparse_to_dense_grad(op: Operation, dy: Tensor) -> list[Tensor | None]:
    indices, shape, values, _ = op.inputs
    rows = indices if indices.shape.rank == 2 else apply("Reshape", indices, [-1, 1])
    taken = apply("GatherNd", dy, rows if indices.shape.rank is not None else _as_rows(indices, shape))
    default = reduce_sum(dy) - reduce_sum(taken)
    if values.shape.rank == 0:
        taken = reduce_sum(taken)
    return [zeros_like(indices), zeros_like(shape), taken, default]


def _as_rows(indices: Tensor, shape: Tensor) -> Tensor:
    """Places of unknown rank as a matrix."""
    return apply("Reshape", indices, apply("Pack", [-1, apply("Size", shape)]))


sparse_to_dense = op_function(
    "SparseToDense",
    "sparse_indices, output_shape, sparse_values, default_value=0, validate_indices=True, name=None",
    "sparse_to_dense",
    "A dense tensor with `sparse_values` (or one value) at `sparse_indices`, `default_value` elsewhere.",
)


@export("sparse.to_dense", "sparse_tensor_to_dense")
def sparse_tensor_to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A sparse tensor as a dense one, with `default_value` (zero, or no text) where nothing is.

    With `validate_indices`, the places must be in order and without repetition.
    """
    sp = to_sparse(sp_input)
    default = zeros((), sp.dtype) if default_value is None else default_value
    parts = sp.indices, sp.dense_shape, sp.values
    return apply("SparseToDense", *parts, default, validate_indices=validate_indices, name=name)
