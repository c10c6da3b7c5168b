"""An operator plus a matrix of low rank."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.linalg.factorizations import cholesky
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.solve import slogdet
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_diag import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
)
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import matrix_argument


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H: solved through L and a matrix as small as the rank of the update."""

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.  However, user set 'is_diag_update_positive' to False.")  # fmt: skip
            is_diag_update_positive = True
        self._symmetric = v is None
        if self._symmetric:
            if base_operator.is_self_adjoint and (diag_update is None or not base_operator.dtype.is_complex):
                is_self_adjoint = self._promised(is_self_adjoint, "self adjoint")
            if base_operator.is_positive_definite and is_diag_update_positive:
                is_positive_definite = self._promised(is_positive_definite, "positive definite")
        self._base_operator = base_operator
        self._u = matrix_argument(u, "u")
        self._v = self._u if v is None else matrix_argument(v, "v")
        self._diag_update = None if diag_update is None else matrix_argument(diag_update, "diag_update", 1)
        self._is_diag_update_positive = is_diag_update_positive
        parents = [*base_operator.graph_parents, self._u]
        parents += [] if self._diag_update is None else [self._diag_update]
        parents += [] if v is None else [self._v]
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(base_operator.dtype, parents, *hints, name)
        self._diag_operator = self._make_diag()
        self._check_shapes()

    @staticmethod
    def _promised(given: bool | None, word: str) -> bool:
        if given is False:
            raise ValueError(f"Operator is {word}, but the hint says it is not.")
        return True

    def _make_diag(self) -> LinearOperator:
        if self._diag_update is not None:
            return LinearOperatorDiag(self._diag_update, is_positive_definite=self._is_diag_update_positive)
        rank = self._u.shape.as_list()[-1] if self._u.shape.rank is not None else None
        size = rank if rank is not None else tools.shape_of(self._u)[-1]
        return LinearOperatorIdentity(size, dtype=self._u.dtype)

    def _check_shapes(self) -> None:
        tools.broadcast_batches(
            [self._base_operator.batch_shape, tools.batch_of(self._u), tools.batch_of(self._v)]
        )
        if self._u.shape.rank is not None:
            self._base_operator.range_dimension.assert_is_compatible_with(self._u.shape[-2])
        if self._v.shape.rank is not None:
            self._base_operator.domain_dimension.assert_is_compatible_with(self._v.shape[-2])

    u = readonly("_u", "The left factor of the update.")
    v = readonly("_v", "The right factor of the update, before its adjoint is taken.")
    base_operator = readonly("_base_operator", "What is updated.")
    diag_update = readonly("_diag_update", "The diagonal between the factors, if any.")
    diag_operator = readonly("_diag_operator", "That diagonal as an operator.")
    is_diag_update_positive = readonly(
        "_is_diag_update_positive", "Whether that diagonal is positive, if said."
    )

    def _batches(self) -> list[TensorShape]:
        results = [self._base_operator.batch_shape, self._diag_operator.batch_shape]
        return [*results, tools.batch_of(self._u), tools.batch_of(self._v)]

    def _shape(self) -> TensorShape:
        base = self._base_operator.shape
        return base if base.rank is None else tools.broadcast_batches(self._batches()).concatenate(base[-2:])

    def _shape_tensor(self) -> Tensor:
        own = self._base_operator.shape_tensor()
        batches = [own[:-2], self._diag_operator.batch_shape_tensor()]
        batches += [tools.shape_of(self._u)[:-2], tools.shape_of(self._v)[:-2]]
        return tools.joined(tools.broadcast_batch_tensors(batches), own[-2:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        small = matmul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        update = matmul(left, self._diag_operator.matmul(small, adjoint))
        return self._base_operator.matmul(x, adjoint, adjoint_arg) + update

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        """Woodbury's formula."""
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        base = self._base_operator.solve(rhs, adjoint, adjoint_arg)
        small = matmul(right, base, adjoint_a=True)
        capacitance = self._capacitance(adjoint)
        if self._is_cholesky_capacitance:
            inner = tools.solved_by_factor(cholesky(capacitance), small)
        else:
            inner = tools.solved(capacitance, small)
        return base - self._base_operator.solve(matmul(left, inner), adjoint)

    @property
    def _is_cholesky_capacitance(self) -> bool:
        base = self._base_operator
        return bool(
            self._symmetric
            and base.is_self_adjoint
            and base.is_positive_definite
            and self.is_diag_update_positive
        )

    def _capacitance(self, adjoint: bool = False) -> Tensor:
        """D^-1 + V^H L^-1 U."""
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = matmul(right, self._base_operator.solve(left, adjoint), adjoint_a=True)
        diagonal = self._diag_operator.inverse()
        return (diagonal.adjoint() if adjoint else diagonal).add_to_tensor(inner)

    def _determinant(self) -> Tensor:
        return (
            apply("MatrixDeterminant", self._capacitance())
            * self._diag_operator.determinant()
            * self._base_operator.determinant()
        )

    def _log_abs_determinant(self) -> Tensor:
        capacitance = self._capacitance()
        if self._is_cholesky_capacitance:
            factor = apply("MatrixDiagPart", cholesky(capacitance))
            own = 2 * tools.total(tools.log_magnitude(factor))
        else:
            own = slogdet(capacitance).log_abs_determinant
        return own + self._diag_operator.log_abs_determinant() + self._base_operator.log_abs_determinant()

    def _diag_part(self) -> Tensor:
        weighted = self._diag_operator.matmul(tools.adjoint(self._v))
        update = tools.total(self._u * matrix_transpose(weighted))
        return self._base_operator.diag_part() + update
