"""The adjoint and the inverse of an operator, as operators."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator


def _shared(operator: LinearOperator, given: dict[str, Any], what: str) -> dict[str, Any]:
    """The promises of an operator, which those that are given may not contradict."""
    result = {}
    for hint, value in given.items():
        known = operator.is_square if hint == "is_square" else getattr(operator, hint)
        if value is not None and known is not None and value != known:
            raise ValueError(f"The operator and its {what} must both be {hint} or neither.")
        result[hint] = known if value is None else value
    return result


class LinearOperatorAdjoint(LinearOperator):
    """The conjugate transposed operator of another."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        given = dict(is_non_singular=is_non_singular, is_self_adjoint=is_self_adjoint)
        given |= dict(is_positive_definite=is_positive_definite, is_square=is_square)
        hints = _shared(operator, given, "adjoint")
        self._operator = operator
        super().__init__(
            operator.dtype, operator.graph_parents, **hints, name=name or f"{operator.name}_adjoint"
        )

    operator = readonly("_operator", "The operator that this is the adjoint of.")

    def _adjoint(self) -> LinearOperator:
        return self._operator

    def _shape(self) -> TensorShape:
        shape = self._operator.shape
        return shape if shape.rank is None else shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self) -> Tensor:
        shape = self._operator.shape_tensor()
        return tools.joined(shape[:-2], shape[-1:], shape[-2:-1])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(rhs, not adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        return tools.adjoint(self._operator.to_dense())

    def _determinant(self) -> Tensor:
        return tools.conjugated(self._operator.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._operator.log_abs_determinant()

    def _diag_part(self) -> Tensor:
        return tools.conjugated(self._operator.diag_part())

    def _trace(self) -> Tensor:
        return tools.conjugated(self._operator.trace())

    def _cond(self) -> Tensor:
        return self._operator.cond()


class LinearOperatorInversion(LinearOperator):
    """The inverse of another operator: multiplying by it solves."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if operator.is_non_singular is False or is_non_singular is False:
            raise ValueError(
                "operator must be non-singular and have an inverse; is_non_singular of it and of its inverse must not "
                "be False."
            )
        given = dict(is_self_adjoint=is_self_adjoint, is_positive_definite=is_positive_definite)
        hints = _shared(operator, {**given, "is_square": is_square}, "inverse")
        self._operator = operator
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            is_non_singular=True,
            **hints,
            name=name or f"{operator.name}_inv",
        )

    operator = readonly("_operator", "The operator that this is the inverse of.")

    def _inverse(self) -> LinearOperator:
        return self._operator

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        from tensorfleet_legacy.linear_operators.linear_operator_diag import identity_like

        return identity_like(right) if right is self._operator else None

    def _shape(self) -> TensorShape:
        return self._operator.shape

    def _shape_tensor(self) -> Tensor:
        return self._operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.solve(x, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._operator.matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Tensor:
        return apply("Reciprocal", self._operator.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return -self._operator.log_abs_determinant()

    def _eigvals(self) -> Tensor:
        return apply("Reciprocal", self._operator.eigvals())

    def _cond(self) -> Tensor:
        return self._operator.cond()
