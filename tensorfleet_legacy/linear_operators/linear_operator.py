"""`tf.linalg.LinearOperator`: what every kind can do, computed from the whole matrix where it knows no better way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import Dimension, TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.basic import no_op
from tensorfleet.ops.array.checks import assert_equal, assert_less, assert_near
from tensorfleet.ops.array.constructors import eye
from tensorfleet.ops.linalg.factorizations import cholesky, self_adjoint_eigvals, svd
from tensorfleet.ops.linalg.solve import slogdet
from tensorfleet.ops.math.reduce_functions import reduce_max, reduce_min
from tensorfleet_legacy.linear_operators import linear_operator_algebra as algebra
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator_derivable import Derivable


def _scoped(public: str, does: str) -> Callable[..., Any]:
    """A public method that calls the method of the kind, `_public`, in a name scope."""

    def method(self: LinearOperator, name: str = public) -> Any:
        with self._name_scope(name):
            return getattr(self, f"_{public}")()

    method.__name__, method.__qualname__ = public, f"LinearOperator.{public}"
    method.__doc__ = does
    return method


class LinearOperator(Derivable):
    """A matrix, or a batch of them, known by what it does.

    A kind of one's own defines `_shape`, `_shape_tensor` and `_matmul`, and may define the other methods that
    begin with an underscore when it knows better ways. The hints (`is_non_singular`, ...) are promises:
    they choose the way of computing and are not checked, except by the `assert_` methods.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        for parent in graph_parents or ():
            if not isinstance(parent, Tensor) and not hasattr(parent, "_as_graph_element"):
                raise ValueError(f"Graph parent item {parent} is not a Tensor; {parent}.")
        self._dtype: DType | None = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        self._graph_parents = list(graph_parents or ())
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._is_square_hint = is_square
        self._name = name or type(self).__name__

    # -- what it is --

    @property
    def variables(self) -> tuple:
        """The variables that its tensors are made of."""
        return tools.variables_of(self._graph_parents)

    @property
    def trainable_variables(self) -> tuple:
        """The trainable ones of its variables."""
        return tuple(v for v in self.variables if v.trainable)

    name = readonly("_name", "The name that its operations are scoped by.")
    dtype = readonly("_dtype", "The type of its elements.")
    graph_parents = readonly("_graph_parents", "The tensors it is made of.")
    is_non_singular = readonly("_is_non_singular", "Whether it has an inverse, if said.")
    is_self_adjoint = readonly("_is_self_adjoint", "Whether it equals its adjoint, if said.")
    is_positive_definite = readonly("_is_positive_definite", "Whether x^H A x > 0 for all x, if said.")

    @property
    def is_square(self) -> bool | None:
        """Whether there are as many rows as columns, as far as that is known."""
        rows, columns = self.range_dimension.value, self.domain_dimension.value
        known = None if rows is None or columns is None else rows == columns
        if known is not None:
            if self._is_square_hint is not None and self._is_square_hint != known:
                raise ValueError(
                    f"User set is_square hint to {self._is_square_hint}, but the operator was "
                    f"{'' if known else 'not '}square."
                )
            return known
        return self._is_square_hint

    @property
    def shape(self) -> TensorShape:
        """The shape of the matrix, with its batch."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the batch."""
        return self.shape[:-2]

    tensor_rank = readonly("shape.ndims", "The number of dimensions, those of the batch included.")

    @property
    def domain_dimension(self) -> Dimension:
        """The number of columns."""
        return self._side(-1)

    @property
    def range_dimension(self) -> Dimension:
        """The number of rows."""
        return self._side(-2)

    def _side(self, axis: int) -> Dimension:
        shape = self.shape
        return Dimension(None) if shape.rank is None else Dimension(shape.as_list()[axis])

    @property
    def H(self) -> LinearOperator:
        """The adjoint."""
        return self.adjoint()

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape as a tensor."""
        with self._name_scope(name):
            return tools.size_tensor(self.shape, self._shape_tensor)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch as a tensor."""
        with self._name_scope(name):
            return tools.size_tensor(self.batch_shape, lambda: self._shape_tensor()[:-2])

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions as a tensor."""
        with self._name_scope(name):
            if self.tensor_rank is not None:
                return to_tensor(np.int32(self.tensor_rank))
            return apply("Size", self._shape_tensor())

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns as a tensor."""
        return self._side_tensor(name, self.domain_dimension, -1)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows as a tensor."""
        return self._side_tensor(name, self.range_dimension, -2)

    def _side_tensor(self, name: str, known: Dimension, axis: int) -> Tensor:
        with self._name_scope(name):
            return to_tensor(np.int32(known.value)) if known.value is not None else self._shape_tensor()[axis]

    # -- what a kind defines --

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError("_matmul is not implemented.")

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = tools.adjoint(rhs) if adjoint_arg else rhs
        if self._can_use_cholesky():
            return tools.solved_by_factor(cholesky(self.to_dense()), rhs)
        return tools.solved(self.to_dense(), rhs, adjoint)

    def _to_dense(self) -> Tensor:
        batch = self.batch_shape
        shape: Any = batch.as_list() if batch.is_fully_defined() else self.batch_shape_tensor()
        size = self.domain_dimension.value
        rows = size if size is not None else self.domain_dimension_tensor()
        return self._matmul(eye(rows, batch_shape=shape, dtype=self.dtype))

    def _determinant(self) -> Tensor:
        if self._can_use_cholesky():
            return apply("Exp", self.log_abs_determinant())
        return apply("MatrixDeterminant", self.to_dense())

    def _log_abs_determinant(self) -> Tensor:
        if self._can_use_cholesky():
            diagonal = apply("MatrixDiagPart", cholesky(self.to_dense()))
            return 2 * tools.total(apply("Log", diagonal))
        return slogdet(self.to_dense()).log_abs_determinant

    def _diag_part(self) -> Tensor:
        return apply("MatrixDiagPart", self.to_dense())

    def _trace(self) -> Tensor:
        return tools.total(self.diag_part())

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self.to_dense() + x

    def _eigvals(self) -> Tensor:
        return self_adjoint_eigvals(self.to_dense())

    def _cond(self) -> Tensor:
        if self.is_self_adjoint:
            sizes = tools.magnitude(self._eigvals())
        else:
            sizes = svd(self.to_dense(), compute_uv=False)
        most, least = reduce_max(sizes, [-1]), reduce_min(sizes, [-1])
        return most / least

    def _adjoint(self) -> LinearOperator:
        from tensorfleet_legacy.linear_operators.linear_operator_adjoint import LinearOperatorAdjoint

        return LinearOperatorAdjoint(self)

    def _inverse(self) -> LinearOperator:
        from tensorfleet_legacy.linear_operators.linear_operator_adjoint import LinearOperatorInversion

        return LinearOperatorInversion(self)

    def _cholesky(self) -> LinearOperator:
        from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import (
            LinearOperatorLowerTriangular,
        )

        return LinearOperatorLowerTriangular(
            cholesky(self.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
        )

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        """The product with another operator when it is of a simple kind, else None."""
        return None

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # -- checks --

    assert_non_singular = _scoped(
        "assert_non_singular", "An operation that fails when the matrix has no inverse, up to rounding."
    )
    assert_positive_definite = _scoped(
        "assert_positive_definite", "An operation that fails when the matrix is not positive definite."
    )
    assert_self_adjoint = _scoped(
        "assert_self_adjoint", "An operation that fails when the matrix is not its own adjoint."
    )

    def _assert_non_singular(self) -> Operation:
        limit = 1 / np.finfo(self._real_type).eps
        return assert_less(
            tools.as_type(self.cond(), self._real_type),
            np.array(limit, self._real_type),
            message="Singular matrix up to precision epsilon.",
        )

    def _assert_positive_definite(self) -> Operation:
        if self.is_self_adjoint:
            return cholesky(self.to_dense()).op
        raise NotImplementedError("assert_positive_definite is not implemented for this operator.")

    def _assert_self_adjoint(self) -> Operation:
        dense = self.to_dense()
        difference = tools.magnitude(dense - tools.adjoint(dense))
        none = apply("ZerosLike", difference)
        return assert_near(difference, none, message="Matrix was not equal to its adjoint.")

    def _assert_real(self, values: Tensor, message: str) -> Operation:
        if not values.dtype.is_complex:
            return self._nothing("assert_self_adjoint")
        imaginary = apply("Imag", values, Tout=values.dtype.real_dtype)
        return assert_equal(apply("ZerosLike", imaginary), imaginary, message=message)

    def _assert_none_zero(self, values: Tensor, message: str) -> Operation:
        sizes = tools.magnitude(values)
        return assert_less(
            np.zeros((), self._real_type), tools.as_type(sizes, self._real_type), message=message
        )

    @property
    def _real_type(self) -> Any:
        return {"complex64": np.float32, "complex128": np.float64}.get(
            self.dtype.name, self.dtype.as_numpy_dtype
        )

    @staticmethod
    def _nothing(name: str) -> Operation:
        return no_op(name)

    # -- what users call --

    def _checked(self, x: Any, name: str, axis: int, size: Dimension) -> Tensor:
        tensor = to_tensor(x, name=name)
        if tensor.dtype.base_dtype != self.dtype:
            raise TypeError(
                f"Expected input to have dtype {self.dtype}. Found: {tensor.dtype} in tensor: {tensor}"
            )
        if tensor.shape.rank is not None:
            if tensor.shape.rank < -axis:
                raise ValueError(f"Shape {tensor.shape} must have rank at least {-axis}")
            size.assert_is_compatible_with(tensor.shape[axis])
        return tensor

    def _sides(self, adjoint: bool) -> tuple[Dimension, Dimension]:
        """(rows, columns) of the operator or its adjoint."""
        pair = self.range_dimension, self.domain_dimension
        return pair[::-1] if adjoint else pair

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with matrices, or with another operator."""
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            _check_fit(left, right)
            with self._name_scope(name):
                return algebra.PRODUCTS.apply(left, right)
        with self._name_scope(name):
            columns = self._sides(adjoint)[1]
            return self._matmul(
                self._checked(x, "x", -1 if adjoint_arg else -2, columns), adjoint, adjoint_arg
            )

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with vectors."""
        with self._name_scope(name):
            tensor = self._checked(x, "x", -1, self._sides(adjoint)[1])
            return tools.without_column(self._matmul(tools.column(tensor), adjoint))

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """X of A X = rhs, for matrices or another operator on the right side."""
        self._must_be_solvable()
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = rhs.adjoint() if adjoint_arg else rhs
            _check_fit(left, right)
            with self._name_scope(name):
                return algebra.SOLUTIONS.apply(left, right)
        with self._name_scope(name):
            rows = self._sides(adjoint)[0]
            return self._solve(
                self._checked(rhs, "rhs", -1 if adjoint_arg else -2, rows), adjoint, adjoint_arg
            )

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """x of A x = rhs, for vectors on the right side."""
        self._must_be_solvable()
        with self._name_scope(name):
            tensor = self._checked(rhs, "rhs", -1, self._sides(adjoint)[0])
            return tools.without_column(self._solve(tools.column(tensor), adjoint))

    def _must_be_solvable(self) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        if self.is_square is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to not be square."
            )

    def _must_be_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    to_dense = _scoped("to_dense", "The whole matrix.")
    diag_part = _scoped("diag_part", "The main diagonal.")
    trace = _scoped("trace", "The sum of the main diagonal.")
    cond = _scoped("cond", "The greatest singular value over the least.")

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant."""
        self._must_be_square("Determinant")
        with self._name_scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithm of the determinant's absolute value."""
        self._must_be_square("Determinant")
        with self._name_scope(name):
            return self._log_abs_determinant()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The whole matrix plus `x`."""
        with self._name_scope(name):
            return self._add_to_tensor(self._checked(x, "x", -2, self.range_dimension))

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues of a self-adjoint operator."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        with self._name_scope(name):
            return self._eigvals()

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The conjugate transposed operator."""
        if self.is_self_adjoint:
            return self
        with self._name_scope(name):
            return algebra.ADJOINTS.apply(self)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The inverse operator."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._name_scope(name):
            return algebra.INVERSES.apply(self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular operator L with L L^H = A."""
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix."
            )
        with self._name_scope(name):
            return algebra.CHOLESKYS.apply(self)


def _check_fit(left: LinearOperator, right: LinearOperator) -> None:
    columns, rows = left.domain_dimension.value, right.range_dimension.value
    if columns is not None and rows is not None and columns != rows:
        raise ValueError(
            f"Operators are incompatible. Expected `x` to have dimension {columns} but got {rows}."
        )


@algebra.PRODUCTS.register(LinearOperator, LinearOperator)
def composed(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """The product of two operators, of a simple kind where there is one."""
    from tensorfleet_legacy.linear_operators.linear_operator_composition import LinearOperatorComposition
    from tensorfleet_legacy.linear_operators.linear_operator_diag import LinearOperatorIdentity
    from tensorfleet_legacy.linear_operators.linear_operator_zeros import LinearOperatorZeros, zeros_for

    if isinstance(left, LinearOperatorIdentity):
        return right
    if isinstance(right, LinearOperatorIdentity):
        return left
    if isinstance(left, LinearOperatorZeros) or isinstance(right, LinearOperatorZeros):
        return zeros_for(left, right)
    result = left._compose(right)
    return result if result is not None else LinearOperatorComposition([left, right])


algebra.ADJOINTS.register(LinearOperator)(lambda operator: operator._adjoint())
algebra.CHOLESKYS.register(LinearOperator)(lambda operator: operator._cholesky())
algebra.INVERSES.register(LinearOperator)(lambda operator: operator._inverse())
algebra.SOLUTIONS.register(LinearOperator, LinearOperator)(
    lambda left, right: algebra.PRODUCTS.apply(left.inverse(), right)
)


def hints_of_product(left: LinearOperator, right: LinearOperator, commute: bool = False) -> dict[str, Any]:
    """The promises of a product of two operators; self-adjoint only if they `commute`."""
    both = left.is_non_singular and right.is_non_singular
    hints: dict[str, Any] = {"is_non_singular": True if both else None, "is_square": True}
    if commute:
        hints["is_self_adjoint"] = True if left.is_self_adjoint and right.is_self_adjoint else None
        definite = left.is_positive_definite and right.is_positive_definite
        hints["is_positive_definite"] = True if definite else None
    return hints


def hints_of(operator: LinearOperator) -> dict[str, Any]:
    """The promises of an operator, for one that shares them all."""
    return {
        "is_non_singular": operator.is_non_singular,
        "is_self_adjoint": operator.is_self_adjoint,
        "is_positive_definite": operator.is_positive_definite,
        "is_square": operator._is_square_hint,
    }
