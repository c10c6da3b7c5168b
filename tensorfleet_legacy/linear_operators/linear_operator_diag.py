"""Operators that only scale: diagonal ones, the identity, and multiples of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import Dimension, TensorShape, as_shape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.constant import constant_value, constant_value_as_shape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.checks import assert_positive
from tensorfleet.ops.array.constructors import eye
from tensorfleet.ops.math.reduce_functions import reduce_max, reduce_min
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator, hints_of, hints_of_product
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import (
    LinearOperatorLowerTriangular,
    matrix_argument,
)


class LinearOperatorDiag(LinearOperator):
    """An operator that is zero off its diagonal."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        self._diag = matrix_argument(diag, "diag", 1)
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(
            self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    diag = readonly("_diag", "The diagonal.")

    def _shape(self) -> TensorShape:
        shape = self._diag.shape
        return shape if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = apply("Shape", self._diag)
        return tools.joined(shape, shape[-1:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._factors(adjoint) * (tools.adjoint(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return (tools.adjoint(rhs) if adjoint_arg else rhs) / self._factors(adjoint)

    def _factors(self, adjoint: bool) -> Tensor:
        return tools.column(tools.conjugated(self._diag) if adjoint else self._diag)

    def _determinant(self) -> Tensor:
        return tools.product(self._diag)

    def _log_abs_determinant(self) -> Tensor:
        return tools.total(tools.log_magnitude(self._diag))

    def _to_dense(self) -> Tensor:
        return apply("MatrixDiag", self._diag)

    def _diag_part(self) -> Tensor:
        return self._diag

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        matrix, diagonal = tools.same_batch(x, tools.column(self._diag))
        result = apply("MatrixDiagPart", matrix) + tools.without_column(diagonal)
        return apply("MatrixSetDiag", matrix, result)

    def _eigvals(self) -> Tensor:
        return self._diag

    def _cond(self) -> Tensor:
        sizes = tools.magnitude(self._diag)
        return reduce_max(sizes, [-1]) / reduce_min(sizes, [-1])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(tools.conjugated(self._diag), **hints_of(self))

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(
            apply("Reciprocal", self._diag), **{**hints_of(self), "is_non_singular": True}
        )

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(
            apply("Sqrt", self._diag), is_non_singular=True, is_self_adjoint=True, is_positive_definite=True
        )

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        return _scaled(self, self._diag, right)

    def _assert_non_singular(self) -> Operation:
        return self._assert_none_zero(self._diag, "Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        real = tools.as_type(self._diag, self._real_type)
        return assert_positive(
            real,
            message="Diagonal operator had diagonal entries with non-positive real part, thus was not positive definite.",
        )

    def _assert_self_adjoint(self) -> Operation:
        message = "This diagonal operator contained non-zero imaginary values.  Thus it was not self-adjoint."
        return self._assert_real(self._diag, message)


def _scaled(left: LinearOperator, factors: Tensor, right: LinearOperator) -> LinearOperator | None:
    """The product of a diagonal with an operator that stays of its kind."""
    if isinstance(right, (LinearOperatorDiag, LinearOperatorScaledIdentity)):
        other = right._diag if isinstance(right, LinearOperatorDiag) else tools.column(right.multiplier)
        return LinearOperatorDiag(factors * other, **hints_of_product(left, right, commute=True))
    if isinstance(right, LinearOperatorLowerTriangular):
        return LinearOperatorLowerTriangular(
            tools.column(factors) * right.to_dense(), **hints_of_product(left, right)
        )
    return None


class _Multiple(LinearOperator):
    """The base of the identity and its multiples: a size that is a number or a tensor."""

    _rows: Tensor
    _known_rows: int | None

    def _take_rows(self, num_rows: Any) -> None:
        if num_rows is None:
            raise ValueError("Argument `num_rows` cannot be `None`.")
        self._rows = to_tensor(num_rows, name="num_rows")
        self._known_rows = checked_size(self._rows, "num_rows")

    @property
    def _square(self) -> TensorShape:
        return TensorShape([self._known_rows, self._known_rows])

    def _size_pair(self) -> Tensor:
        size = apply("Reshape", tools.as_type(self._rows, dtypes.int32), [1])
        return tools.joined(size, size)

    def _ones_diag(self, batch: Tensor) -> Tensor:
        size = apply("Reshape", tools.as_type(self._rows, dtypes.int32), [1])
        return apply("Fill", tools.joined(batch, size), np.ones((), self.dtype.as_numpy_dtype))

    def _real_rows(self) -> Tensor:
        return tools.as_type(self._rows, self.dtype)


def checked_size(size: Tensor, what: str) -> int | None:
    """The value of a scalar size when it is known; an error when it is none."""
    if not size.dtype.is_integer:
        raise TypeError(f"Argument `{what}` must be integer type.  Found: {size}")
    if size.shape.rank not in (None, 0):
        raise ValueError(f"Argument `{what}` must be a 0-D Tensor.  Found: {size}")
    known = constant_value(size)
    if known is not None and known < 0:
        raise ValueError(f"Argument `{what}` must be non-negative.  Found: {int(known)}")
    return None if known is None else int(known)


def checked_batch(batch_shape: Any) -> tuple[Tensor | None, TensorShape]:
    """A batch shape as a tensor (None: no batch), and what is known of it."""
    if batch_shape is None:
        return None, TensorShape([])
    if isinstance(batch_shape, TensorShape):
        batch_shape = batch_shape.as_list()
    if isinstance(batch_shape, (list, tuple)) and not batch_shape:
        return None, TensorShape([])
    tensor = to_tensor(batch_shape, name="batch_shape_arg")
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument `batch_shape` must be integer type.  Found: {batch_shape}")
    if tensor.shape.rank not in (None, 1):
        raise ValueError(f"Argument `batch_shape` must be a 1-D Tensor.  Found: {batch_shape}")
    known = constant_value(tensor)
    if known is not None and (known < 0).any():
        raise ValueError(f"Argument `batch_shape` must be non-negative.  Found: {known.tolist()}")
    return tools.as_type(tensor, dtypes.int32), as_shape(constant_value_as_shape(tensor))


class LinearOperatorIdentity(_Multiple):
    """The operator that changes nothing."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        if not is_self_adjoint:
            raise ValueError("An identity operator is always self adjoint.")
        if not is_non_singular:
            raise ValueError("An identity operator is always non-singular.")
        if not is_positive_definite:
            raise ValueError("An identity operator is always positive-definite.")
        if not is_square:
            raise ValueError("An identity operator is always square.")
        super().__init__(dtype or dtypes.float32, None, True, True, True, True, name)
        self._take_rows(num_rows)
        self._batch, self._known_batch = checked_batch(batch_shape)

    def _shape(self) -> TensorShape:
        return self._known_batch.concatenate(self._square)

    def _shape_tensor(self) -> Tensor:
        pair = self._size_pair()
        return pair if self._batch is None else tools.joined(self._batch, pair)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._repeated(tools.adjoint(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _repeated(self, x: Tensor) -> Tensor:
        """`x` in the batch of the operator."""
        if self._batch is None:
            return x
        ones = to_tensor(np.ones(2, np.int32))
        unit = apply("Fill", tools.joined(self._batch, ones), np.zeros((), self.dtype.as_numpy_dtype))
        return tools.same_batch(x, unit)[0]

    def _batch_sizes(self) -> Tensor:
        return to_tensor(np.zeros(0, np.int32)) if self._batch is None else self._batch

    def _determinant(self) -> Tensor:
        return apply("Fill", self._batch_sizes(), np.ones((), self.dtype.as_numpy_dtype))

    def _log_abs_determinant(self) -> Tensor:
        return apply("Fill", self._batch_sizes(), np.zeros((), self.dtype.as_numpy_dtype))

    def _trace(self) -> Tensor:
        return apply("Fill", self._batch_sizes(), self._real_rows())

    def _diag_part(self) -> Tensor:
        return self._ones_diag(self._batch_sizes())

    def _to_dense(self) -> Tensor:
        rows = self._known_rows if self._known_rows is not None else self._rows
        return eye(rows, batch_shape=self._batch, dtype=self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        with self._name_scope(name):
            x = self._checked(mat, "x", -2, self.range_dimension)
            one = np.ones((), self.dtype.as_numpy_dtype)
            return apply("MatrixSetDiag", x, apply("MatrixDiagPart", x) + one)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        return self._determinant()

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self

    def _assert_non_singular(self) -> Operation:
        return self._nothing("assert_non_singular")

    def _assert_positive_definite(self) -> Operation:
        return self._nothing("assert_positive_definite")

    def _assert_self_adjoint(self) -> Operation:
        return self._nothing("assert_self_adjoint")


class LinearOperatorScaledIdentity(_Multiple):
    """The identity times a number, one for each matrix of the batch."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self._multiplier = matrix_argument(multiplier, "multiplier", 0)
        if not self._multiplier.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(self._multiplier.dtype, [self._multiplier], *hints, name)
        self._take_rows(num_rows)

    multiplier = readonly("_multiplier", "What the identity is multiplied by.")

    def _shape(self) -> TensorShape:
        return self._multiplier.shape.concatenate(self._square)

    def _shape_tensor(self) -> Tensor:
        return tools.joined(apply("Shape", self._multiplier), self._size_pair())

    def _factor(self, adjoint: bool = False) -> Tensor:
        factor = tools.conjugated(self._multiplier) if adjoint else self._multiplier
        return tools.column(tools.column(factor))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return (tools.adjoint(x) if adjoint_arg else x) * self._factor(adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return (tools.adjoint(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _determinant(self) -> Tensor:
        return apply("Pow", self._multiplier, self._real_rows())

    def _log_abs_determinant(self) -> Tensor:
        return self._real_rows() * tools.log_magnitude(self._multiplier)

    def _trace(self) -> Tensor:
        return self._multiplier * self._real_rows()

    def _diag_part(self) -> Tensor:
        return self._ones_diag(apply("Shape", self._multiplier)) * tools.column(self._multiplier)

    def _to_dense(self) -> Tensor:
        return apply("MatrixDiag", self._diag_part())

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        with self._name_scope(name):
            x, factor = tools.same_batch(self._checked(mat, "x", -2, self.range_dimension), self._factor())
            diagonal = apply("MatrixDiagPart", x) + tools.without_column(factor)
            return apply("MatrixSetDiag", x, diagonal)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        zero = np.zeros((), self._multiplier.dtype.as_numpy_dtype)
        one = apply("OnesLike", self._multiplier)
        bad = apply("Fill", apply("Shape", self._multiplier), np.array(np.nan, zero.dtype))
        return apply("Select", apply("Equal", self._multiplier, zero), bad, one)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, tools.conjugated(self._multiplier), **hints_of(self))

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, apply("Reciprocal", self._multiplier), **{**hints_of(self), "is_non_singular": True}
        )

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, apply("Sqrt", self._multiplier), True, True, True, is_square=True
        )

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        if isinstance(right, LinearOperatorScaledIdentity):
            return LinearOperatorScaledIdentity(
                self._rows,
                self._multiplier * right._multiplier,
                **hints_of_product(self, right, commute=True),
            )
        return _scaled(self, tools.column(self._multiplier), right)

    def _assert_non_singular(self) -> Operation:
        return self._assert_none_zero(self._multiplier, "LinearOperator was singular")

    def _assert_positive_definite(self) -> Operation:
        real = tools.as_type(self._multiplier, self._real_type)
        return assert_positive(real, message="LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return self._assert_real(self._multiplier, "LinearOperator was not self-adjoint")


#: the kinds whose product with a triangle is one again
SCALING = (LinearOperatorDiag, LinearOperatorScaledIdentity)


def identity_like(operator: LinearOperator) -> LinearOperatorIdentity:
    """The identity of the shape of an operator."""
    rows: Dimension = operator.domain_dimension
    size = rows.value if rows.value is not None else operator.domain_dimension_tensor()
    batch: Any = operator.batch_shape
    if not batch.is_fully_defined():
        batch = operator.batch_shape_tensor()
    return LinearOperatorIdentity(size, batch, operator.dtype)
