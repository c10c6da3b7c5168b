"""Operators side by side on the diagonal."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import Dimension, TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.array.concat import split
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_composition import (
    checked_operators,
    joint_promises,
    parents_of,
)


def _sum(dims: list[Dimension]) -> Dimension:
    return reduce(lambda a, b: a + b, dims)


class LinearOperatorBlockDiag(LinearOperator):
    """A matrix with the matrices of other operators along its diagonal, and zero elsewhere."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        self._operators = checked_operators(operators)
        hints = joint_promises(
            self._operators,
            "direct sum",
            is_non_singular=is_non_singular,
            is_self_adjoint=is_self_adjoint,
            is_positive_definite=is_positive_definite,
        )
        if not is_square or any(o.is_square is False for o in self._operators):
            raise ValueError("Can only represent a block diagonal of square matrices.")
        super().__init__(
            self._operators[0].dtype,
            parents_of(self._operators),
            **hints,
            is_square=True,
            name=name or "_ds_".join(o.name for o in self._operators),
        )

    operators = readonly("_operators", "The blocks.")

    def _shape(self) -> TensorShape:
        batch = tools.broadcast_batches([o.batch_shape for o in self._operators])
        rows = _sum([o.range_dimension for o in self._operators])
        return batch.concatenate([rows, _sum([o.domain_dimension for o in self._operators])])

    def _shape_tensor(self) -> Tensor:
        shapes = [o.shape_tensor() for o in self._operators]
        batch = tools.broadcast_batch_tensors([s[:-2] for s in shapes])
        return tools.joined(batch, reduce(lambda a, b: a + b, [s[-2:] for s in shapes]))

    def _parted(self, x: Tensor) -> list[Tensor]:
        """The rows of `x` that belong to each block."""
        sizes = [o.domain_dimension.value for o in self._operators]
        if None not in sizes:
            return split(x, sizes, axis=-2)
        counts = apply("Pack", [o.domain_dimension_tensor() for o in self._operators])
        return split(x, counts, axis=-2, num=len(self._operators))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return apply("ConcatV2", tools.same_batch(*parts), -2)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = self._parted(tools.adjoint(x) if adjoint_arg else x)
        return self._joined([o.matmul(p, adjoint) for o, p in zip(self._operators, parts, strict=True)])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = self._parted(tools.adjoint(rhs) if adjoint_arg else rhs)
        return self._joined([o.solve(p, adjoint) for o, p in zip(self._operators, parts, strict=True)])

    def _determinant(self) -> Tensor:
        return reduce(lambda a, b: a * b, [o.determinant() for o in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        return reduce(lambda a, b: a + b, [o.log_abs_determinant() for o in self._operators])

    def _trace(self) -> Tensor:
        return reduce(lambda a, b: a + b, [o.trace() for o in self._operators])

    def _side_by_side(self, of: Callable[[LinearOperator], Tensor]) -> Tensor:
        """Vectors of the blocks, one behind the other."""
        columns = tools.same_batch(*[tools.column(of(o)) for o in self._operators])
        return tools.without_column(apply("ConcatV2", columns, -2))

    def _diag_part(self) -> Tensor:
        return self._side_by_side(lambda o: o.diag_part())

    def _eigvals(self) -> Tensor:
        return self._side_by_side(lambda o: o.eigvals())

    def _to_dense(self) -> Tensor:
        blocks = tools.same_batch(*[o.to_dense() for o in self._operators])
        width = self.domain_dimension_tensor()
        rows = []
        before = to_tensor(np.int32(0))
        for operator, block in zip(self._operators, blocks, strict=True):
            own = operator.domain_dimension_tensor()
            rows.append(_padded(block, before, width - before - own))
            before = before + own
        return apply("ConcatV2", rows, -2)

    def _adjoint(self) -> LinearOperator:
        return self._each("adjoint")

    def _inverse(self) -> LinearOperator:
        return self._each("inverse")

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorBlockDiag([o.cholesky() for o in self._operators], is_non_singular=True)

    def _each(self, method: str) -> LinearOperator:
        return LinearOperatorBlockDiag(
            [getattr(o, method)() for o in self._operators],
            self.is_non_singular,
            self.is_self_adjoint,
            self.is_positive_definite,
        )

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        if not isinstance(right, LinearOperatorBlockDiag) or len(right._operators) != len(self._operators):
            return None
        pairs = list(zip(self._operators, right._operators, strict=True))
        if any(a.domain_dimension.value != b.range_dimension.value for a, b in pairs):
            return None
        return LinearOperatorBlockDiag([a.matmul(b) for a, b in pairs])

    def _assert_non_singular(self) -> Operation:
        return group(*[o.assert_non_singular() for o in self._operators])

    def _assert_positive_definite(self) -> Operation:
        return group(*[o.assert_positive_definite() for o in self._operators])

    def _assert_self_adjoint(self) -> Operation:
        return group(*[o.assert_self_adjoint() for o in self._operators])


def _padded(block: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """A block with that many columns of zeros on each side."""
    shape = tools.shape_of(block)
    zero = np.zeros((), block.dtype.as_numpy_dtype)

    def zeros(count: Tensor) -> Tensor:
        return apply("Fill", tools.joined(shape[:-1], apply("Reshape", count, [1])), zero)

    return apply("ConcatV2", [zeros(left), block, zeros(right)], -1)
