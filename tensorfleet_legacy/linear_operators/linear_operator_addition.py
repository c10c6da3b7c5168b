"""Sums of operators that stay of as simple a kind as they can: `linear_operator_addition`."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.broadcast import broadcast_static_shape
from tensorfleet.ops.array.checks import assert_proper_iterable
from tensorfleet.ops.array.constructors import ones
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_diag import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import (
    LinearOperatorFullMatrix,
    LinearOperatorLowerTriangular,
)


class Hints(NamedTuple):
    """The properties promised of a sum; None: those that follow from its terms."""

    is_non_singular: bool | None = None
    is_positive_definite: bool | None = None
    is_self_adjoint: bool | None = None


def _hints_of_sum(left: LinearOperator, right: LinearOperator, given: Hints) -> Hints:
    adjoint, definite, regular = given.is_self_adjoint, given.is_positive_definite, given.is_non_singular
    if adjoint is None:
        adjoint = left.is_self_adjoint and right.is_self_adjoint
    if definite is None:
        definite = left.is_positive_definite and right.is_positive_definite
        regular = True if definite else regular
    return Hints(regular, definite, adjoint)


class Adder(abc.ABC):
    """One way of adding two operators."""

    @property
    def name(self) -> str:
        """The name of the way, for the scope of its operations."""
        return type(self).__name__

    @abc.abstractmethod
    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        """Whether the two can be added this way."""

    @abc.abstractmethod
    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: Hints) -> Any:
        """The sum."""

    def add(
        self,
        op1: LinearOperator,
        op2: LinearOperator,
        operator_name: str | None,
        hints: Hints | None = None,
    ) -> LinearOperator:
        """The sum of two operators."""
        with name_scope(self.name.lstrip("_"), values=[*op1.graph_parents, *op2.graph_parents]):
            name = f"Add/{op1.name}__{op2.name}/" if operator_name is None else operator_name
            return self._add(op1, op2, name, _hints_of_sum(op1, op2, hints or Hints()))


class _OfKinds(Adder):
    """A way of adding operators of some kinds."""

    kinds: tuple[type[LinearOperator], ...]

    def can_add(self, op1: LinearOperator, op2: LinearOperator) -> bool:
        return isinstance(op1, self.kinds) and isinstance(op2, self.kinds)


_MULTIPLES = (LinearOperatorIdentity, LinearOperatorScaledIdentity)
_DIAGONAL = (LinearOperatorDiag, *_MULTIPLES)


def _multiplier(operator: Any) -> Tensor:
    if isinstance(operator, LinearOperatorScaledIdentity):
        return operator.multiplier
    return ones(operator.batch_shape_tensor(), dtype=operator.dtype)


def _dense_sum(left: LinearOperator, right: LinearOperator) -> Tensor:
    """The matrix of a sum: that of one term, with the other's diagonal added to it where it has no more."""
    if not isinstance(left, _DIAGONAL):
        left, right = right, left
    return left.add_to_tensor(right.to_dense())


class AddAndReturnScaledIdentity(_OfKinds):
    """Multiples of the identity, to another one."""

    kinds = _MULTIPLES

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: Hints) -> Any:
        factor = _multiplier(op1) + _multiplier(op2)
        rows = op1.range_dimension_tensor()
        return LinearOperatorScaledIdentity(rows, factor, **hints._asdict(), name=operator_name)


class AddAndReturnDiag(_OfKinds):
    """Diagonal operators, to another one."""

    kinds = _DIAGONAL

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: Hints) -> Any:
        diagonal = op1.diag_part() + op2.diag_part()
        return LinearOperatorDiag(diagonal, **hints._asdict(), name=operator_name)


class AddAndReturnTriL(_OfKinds):
    """Diagonal operators and lower triangles, to a triangle."""

    kinds = (*_DIAGONAL, LinearOperatorLowerTriangular)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: Hints) -> Any:
        return LinearOperatorLowerTriangular(_dense_sum(op1, op2), **hints._asdict(), name=operator_name)


class AddAndReturnMatrix(_OfKinds):
    """Any operators, to a whole matrix."""

    kinds = (LinearOperator,)

    def _add(self, op1: LinearOperator, op2: LinearOperator, operator_name: str, hints: Hints) -> Any:
        return LinearOperatorFullMatrix(_dense_sum(op1, op2), **hints._asdict(), name=operator_name)


# From the kind that costs least to the one that everything fits in.
_TIERS = ([AddAndReturnScaledIdentity()], [AddAndReturnDiag()], [AddAndReturnTriL()], [AddAndReturnMatrix()])


def add_operators(
    operators: Sequence[LinearOperator],
    operator_name: str | None = None,
    addition_tiers: Sequence[Sequence[Adder]] | None = None,
    name: str | None = None,
) -> list[LinearOperator]:
    """Operators with the same sum, as few as the ways of adding allow; each tier adds all it can before the next."""
    assert_proper_iterable(operators)
    _check(operators)
    parents = [parent for operator in operators for parent in operator.graph_parents]
    with name_scope(name, "add_operators", parents):
        left = list(reversed(operators))
        for tier in _TIERS if addition_tiers is None else addition_tiers:
            left = _added(left, tier, operator_name)
        return left


def _added(terms: list[LinearOperator], tier: Sequence[Adder], name: str | None) -> list[LinearOperator]:
    """The terms, those added that a tier can add; a sum may be a term of the next one."""
    done = []
    while terms:
        first = terms.pop()
        match = next(
            (
                (i, adder)
                for i in reversed(range(len(terms)))
                for adder in tier
                if adder.can_add(first, terms[i])
            ),
            None,
        )
        if match is None:
            done.append(first)
        else:
            terms.append(match[1].add(first, terms.pop(match[0]), name))
    return done


def _check(operators: Sequence[LinearOperator]) -> None:
    if not operators:
        raise ValueError(f"Argument 'operators' must contain at least one operator.  Found: {operators}")
    if not all(isinstance(operator, LinearOperator) for operator in operators):
        raise TypeError(
            f"Argument 'operators' must contain only LinearOperator instances.  Found: {operators}"
        )
    for side in ("domain", "range"):
        sizes = [(o.name, getattr(o, f"{side}_dimension").value) for o in operators]
        known = [(named, size) for named, size in sizes if size is not None]
        if len({size for _, size in known}) > 1:
            raise ValueError(f"Operators must have the same {side} dimension. Found: {known}")
    batch = operators[0].batch_shape
    for operator in operators[1:]:
        batch = broadcast_static_shape(batch, operator.batch_shape)
