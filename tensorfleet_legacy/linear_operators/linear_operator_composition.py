"""Products of operators: one behind the other, and Kronecker's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator


def checked_operators(operators: Any) -> list[LinearOperator]:
    """A list of operators of one type that is not empty."""
    result = list(operators)
    if not result:
        raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
    if any(o.dtype != result[0].dtype for o in result):
        listed = ", ".join(f"({o.name}, {o.dtype.name})" for o in result)
        raise TypeError(f"Expected all operators to have the same dtype.  Found {listed}")
    return result


def all_promise(
    operators: Sequence[LinearOperator], hint: str, given: bool | None, wrong: str
) -> bool | None:
    """True when every operator promises it; ValueError when that contradicts what was given."""
    if all(getattr(o, hint) for o in operators):
        if given is False:
            raise ValueError(wrong)
        return True
    return given


_WORDS = {
    "is_square": "square",
    "is_non_singular": "non-singular",
    "is_self_adjoint": "self-adjoint",
    "is_positive_definite": "positive definite",
}


def joint_promises(operators: Sequence[LinearOperator], what: str, **given: bool | None) -> dict[str, Any]:
    """The promises of what is made of operators and has every property that all of them have."""
    return {
        hint: all_promise(
            operators, hint, value, f"The {what} of {_WORDS[hint]} operators is always {_WORDS[hint]}."
        )
        for hint, value in given.items()
    }


def parents_of(operators: Sequence[LinearOperator]) -> list:
    """The tensors that the operators are made of."""
    return [t for o in operators for t in o.graph_parents]


class LinearOperatorComposition(LinearOperator):
    """The product of operators: the last one is applied first."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._operators = checked_operators(operators)
        super().__init__(
            self._operators[0].dtype,
            parents_of(self._operators),
            **joint_promises(self._operators, "composition", is_non_singular=is_non_singular),
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
            is_square=is_square,
            name=name or "_o_".join(o.name for o in self._operators),
        )

    operators = readonly("_operators", "The factors.")

    def _shape(self) -> TensorShape:
        for left, right in zip(self._operators[:-1], self._operators[1:], strict=True):
            left.domain_dimension.assert_is_compatible_with(right.range_dimension)
        batch = tools.broadcast_batches([o.batch_shape for o in self._operators])
        return batch.concatenate([self._operators[0].range_dimension, self._operators[-1].domain_dimension])

    def _shape_tensor(self) -> Tensor:
        shapes = [o.shape_tensor() for o in self._operators]
        batch = tools.broadcast_batch_tensors([s[:-2] for s in shapes])
        return tools.joined(batch, shapes[0][-2:-1], shapes[-1][-1:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators if adjoint else self._operators[::-1]
        x = order[0].matmul(x, adjoint, adjoint_arg)
        for operator in order[1:]:
            x = operator.matmul(x, adjoint)
        return x

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators[::-1] if adjoint else self._operators
        rhs = order[0].solve(rhs, adjoint, adjoint_arg)
        for operator in order[1:]:
            rhs = operator.solve(rhs, adjoint)
        return rhs

    def _determinant(self) -> Tensor:
        return reduce(lambda a, b: a * b, [o.determinant() for o in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        return reduce(lambda a, b: a + b, [o.log_abs_determinant() for o in self._operators])


class LinearOperatorKronecker(LinearOperator):
    """Kronecker's product of operators."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._operators = checked_operators(operators)
        hints = joint_promises(
            self._operators,
            "Kronecker product",
            is_square=is_square,
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
        )
        super().__init__(
            self._operators[0].dtype,
            parents_of(self._operators),
            **hints,
            name=name or "_x_".join(o.name for o in self._operators),
        )

    operators = readonly("_operators", "The factors.")

    def _shape(self) -> TensorShape:
        batch = tools.broadcast_batches([o.batch_shape for o in self._operators])
        rows = reduce(lambda a, b: a * b, [o.range_dimension for o in self._operators])
        columns = reduce(lambda a, b: a * b, [o.domain_dimension for o in self._operators])
        return batch.concatenate([rows, columns])

    def _shape_tensor(self) -> Tensor:
        shapes = [o.shape_tensor() for o in self._operators]
        batch = tools.broadcast_batch_tensors([s[:-2] for s in shapes])
        return tools.joined(batch, reduce(lambda a, b: a * b, [s[-2:] for s in shapes]))

    def _through(self, x: Tensor, method: str, adjoint: bool) -> Tensor:
        """Each factor applied along its own axis of the long one, the last factor first.

        The first part of the rows is always the next factor's: it is multiplied and becomes the last part.
        """
        by_rows = (method == "solve") != adjoint
        for operator in self._operators:
            size = operator.range_dimension_tensor() if by_rows else operator.domain_dimension_tensor()
            shape = tools.shape_of(x)
            one = apply("Reshape", size, [1])
            rest = shape[-2:-1] // one
            columns = shape[-1:]
            flat = apply("Reshape", x, tools.joined(shape[:-2], one, rest * columns))
            done = getattr(operator, method)(flat, adjoint)
            after = tools.shape_of(done)
            # [batch, own, rest, columns] -> [batch, rest, own, columns]
            parted = apply("Reshape", done, tools.joined(after[:-2], after[-2:-1], rest, columns))
            rank = parted.shape.rank
            order: Any
            if rank is None:
                order = _swap(apply("Rank", parted))
            else:
                order = [*range(rank - 3), rank - 2, rank - 3, rank - 1]
            turned = apply("Transpose", parted, order)
            x = apply("Reshape", turned, tools.joined(after[:-2], rest * after[-2:-1], columns))
        return x

    def _known(self, result: Tensor, x: Tensor, rows: Any) -> Tensor:
        if x.shape.rank is not None and self.batch_shape.rank is not None:
            batch = tools.broadcast_batches([self.batch_shape, x.shape[:-2]])
            result.set_shape(batch.concatenate([rows, x.shape[-1]]))
        return result

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = tools.adjoint(x) if adjoint_arg else x
        return self._known(self._through(x, "matmul", adjoint), x, self._sides(adjoint)[0])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = tools.adjoint(rhs) if adjoint_arg else rhs
        return self._known(self._through(rhs, "solve", adjoint), rhs, self._sides(adjoint)[1])

    def _powers(self) -> list[Tensor]:
        """How often each factor's determinant counts: the size of the product over its own."""
        size = tools.as_type(self.domain_dimension_tensor(), self.dtype)
        return [size / tools.as_type(o.domain_dimension_tensor(), self.dtype) for o in self._operators]

    def _determinant(self) -> Tensor:
        parts = [
            apply("Pow", o.determinant(), p) for o, p in zip(self._operators, self._powers(), strict=True)
        ]
        return reduce(lambda a, b: a * b, parts)

    def _log_abs_determinant(self) -> Tensor:
        parts = [o.log_abs_determinant() * p for o, p in zip(self._operators, self._powers(), strict=True)]
        return reduce(lambda a, b: a + b, parts)

    def _trace(self) -> Tensor:
        return reduce(lambda a, b: a * b, [o.trace() for o in self._operators])

    def _diag_part(self) -> Tensor:
        return reduce(_outer, [o.diag_part() for o in self._operators])

    def _eigvals(self) -> Tensor:
        return reduce(_outer, [o.eigvals() for o in self._operators])

    def _adjoint(self) -> LinearOperator:
        return self._each("adjoint")

    def _inverse(self) -> LinearOperator:
        return self._each("inverse")

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorKronecker([o.cholesky() for o in self._operators], is_square=True)

    def _each(self, method: str) -> LinearOperator:
        return LinearOperatorKronecker(
            [getattr(o, method)() for o in self._operators],
            self.is_non_singular,
            self.is_self_adjoint,
            self.is_positive_definite,
            self._is_square_hint,
        )


def _outer(a: Tensor, b: Tensor) -> Tensor:
    """All products of the last axes of two tensors, as one axis."""
    result = tools.column(a) * apply("ExpandDims", b, -2)
    shape = tools.shape_of(result)
    return apply("Reshape", result, tools.joined(shape[:-2], to_tensor(np.array([-1], np.int32))))


def _swap(rank: Tensor) -> Tensor:
    """The order of axes that exchanges the third and the second from the end."""
    front = apply("Range", 0, rank - 3, 1)
    return tools.joined(front, apply("Pack", [rank - 2, rank - 3, rank - 1]))
