"""The operator that makes everything zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.broadcast import broadcast_dynamic_shape
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_diag import checked_batch, checked_size


class LinearOperatorZeros(LinearOperator):
    """A matrix of zeros, square unless `num_columns` says otherwise."""

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if not is_self_adjoint and is_square:
            raise ValueError("A real diagonal operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zeros operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zeros operator is always not positive-definite.")
        super().__init__(
            dtype or dtypes.float32,
            None,
            False,
            is_self_adjoint if is_square else None,
            False,
            is_square,
            name,
        )
        self._rows = to_tensor(num_rows, name="num_rows")
        self._columns = self._rows if num_columns is None else to_tensor(num_columns, name="num_columns")
        self._known = [checked_size(self._rows, "num_rows"), checked_size(self._columns, "num_columns")]
        self._batch, self._known_batch = checked_batch(batch_shape)

    def _shape(self) -> TensorShape:
        return self._known_batch.concatenate(self._known)

    def _shape_tensor(self) -> Tensor:
        pair = apply("Pack", [tools.as_type(t, dtypes.int32) for t in (self._rows, self._columns)])
        return pair if self._batch is None else tools.joined(self._batch, pair)

    def _zeros(self, shape: Tensor) -> Tensor:
        return apply("Fill", shape, np.zeros((), self.dtype.as_numpy_dtype))

    def _batch_sizes(self) -> Tensor:
        return to_tensor(np.zeros(0, np.int32)) if self._batch is None else self._batch

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = tools.adjoint(x) if adjoint_arg else x
        given, own = tools.shape_of(x), self.shape_tensor()
        rows = own[-1:] if adjoint else own[-2:-1]
        batch = broadcast_dynamic_shape(given[:-2], own[:-2])
        return self._zeros(tools.joined(batch, rows, given[-1:]))

    def _determinant(self) -> Tensor:
        return self._zeros(self._batch_sizes())

    def _trace(self) -> Tensor:
        self._must_be_square("Trace")
        return self._zeros(self._batch_sizes())

    def _diag_part(self) -> Tensor:
        own = self.shape_tensor()
        least = apply("Minimum", own[-2:-1], own[-1:])
        return self._zeros(tools.joined(own[:-2], least))

    def _to_dense(self) -> Tensor:
        return self._zeros(self.shape_tensor())

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        with self._name_scope(name):
            return self._checked(mat, "x", -2, self.range_dimension) + self._to_dense()

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorZeros(
            self._columns, self._rows, self._batch, self.dtype, is_self_adjoint=None, is_square=self.is_square
        )

    def _assert_non_singular(self) -> Operation:
        raise ValueError("The zero operator is always singular; assert_non_singular cannot hold.")

    def _assert_positive_definite(self) -> Operation:
        raise ValueError("The zero operator is never positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return self._nothing("assert_self_adjoint")


def zeros_for(left: LinearOperator, right: LinearOperator) -> LinearOperatorZeros:
    """The product of two operators of which one is zero."""
    rows = left.range_dimension.value
    columns = right.domain_dimension.value
    batch: Any = left.batch_shape
    if batch.is_fully_defined() and right.batch_shape.is_fully_defined():
        batch = tools.broadcast_batches([batch, right.batch_shape])
    else:
        batch = broadcast_dynamic_shape(left.batch_shape_tensor(), right.batch_shape_tensor())
    square = left.is_square and right.is_square
    return LinearOperatorZeros(
        rows if rows is not None else left.range_dimension_tensor(),
        columns if columns is not None else right.domain_dimension_tensor(),
        batch,
        left.dtype,
        is_self_adjoint=True if square else None,
        is_square=True if square else rows == columns,
    )
