"""Operators that are given as whole matrices."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.diagonals import matrix_band_part
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator, hints_of_product

_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def matrix_argument(value: Any, what: str, rank: int = 2) -> Tensor:
    """A tensor of floating-point numbers with at least `rank` dimensions."""
    tensor = to_tensor(value, name=what)
    if tensor.dtype.base_dtype not in _FLOATS:
        raise TypeError(
            f"Argument {what} must have dtype in {[d.name for d in _FLOATS]}.  Found: {tensor.dtype.name}"
        )
    if tensor.shape.rank is not None and tensor.shape.rank < rank:
        kind = "dimension" if rank == 1 else "dimensions"
        raise ValueError(f"Argument {what} must have at least {rank} {kind}.  Found: {tensor}")
    return tensor


class LinearOperatorFullMatrix(LinearOperator):
    """An operator given by all its elements."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = matrix_argument(matrix, "matrix")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(self._matrix.dtype, [self._matrix], *hints, name)

    matrix = readonly("_matrix", "The matrix.")

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return apply("Shape", self._matrix)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """An operator with the lower triangle of a matrix; what is above its diagonal does not count."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._given = matrix_argument(tril, "tril")
        self._tril = matrix_band_part(self._given, -1, 0)
        self._diagonal = apply("MatrixDiagPart", self._tril)
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(self._tril.dtype, [self._given], *hints, name)

    tril = readonly("_given", "The matrix whose lower triangle this is.")

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _shape_tensor(self) -> Tensor:
        return apply("Shape", self._tril)

    def _assert_non_singular(self) -> Operation:
        return self._assert_none_zero(self._diagonal, "Singular operator:  Diagonal contained zero values.")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self._tril, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return tools.solved_lower(self._tril, tools.adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def _determinant(self) -> Tensor:
        return tools.product(self._diagonal)

    def _log_abs_determinant(self) -> Tensor:
        return tools.total(tools.log_magnitude(self._diagonal))

    def _diag_part(self) -> Tensor:
        return self._diagonal

    def _to_dense(self) -> Tensor:
        return self._tril

    def _eigvals(self) -> Tensor:
        return self._diagonal

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        from tensorfleet_legacy.linear_operators.linear_operator_diag import SCALING

        if not isinstance(right, SCALING):
            return None
        product = self._tril * apply("ExpandDims", right.diag_part(), -2)
        return LinearOperatorLowerTriangular(product, **hints_of_product(self, right))
