"""Operators with a structure of their own: reflections, permutations, constant or few diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.constructors import one_hot
from tensorfleet.ops.array.tile_roll_reverse import reverse, roll
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.linalg.matrix_functions import matrix_diagonal, tridiagonal_matmul, tridiagonal_solve
from tensorfleet.ops.math.sorting import argsort
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import matrix_argument


class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the plane that stands on `reflection_axis`."""

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        self._reflection_axis = matrix_argument(reflection_axis, "reflection_axis", 1)
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite is True:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        if is_non_singular is False:
            raise ValueError("A Householder operator is always non-singular.")
        super().__init__(self._reflection_axis.dtype, [self._reflection_axis], True, True, False, True, name)

    reflection_axis = readonly("_reflection_axis", "The vector that changes its sign.")

    def _shape(self) -> TensorShape:
        shape = self._reflection_axis.shape
        return shape if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = apply("Shape", self._reflection_axis)
        return tools.joined(shape, shape[-1:])

    def _unit(self) -> Tensor:
        axis = self._reflection_axis
        sizes = tools.magnitude(axis)
        length = apply("Sqrt", tools.total(sizes * sizes))
        return axis / tools.column(tools.as_type(length, axis.dtype))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = tools.adjoint(x) if adjoint_arg else x
        unit = tools.column(self._unit())
        return x - 2 * unit * matmul(unit, x, adjoint_a=True)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _filled(self, value: float) -> Tensor:
        return apply("Fill", self.batch_shape_tensor(), np.array(value, self.dtype.as_numpy_dtype))

    def _determinant(self) -> Tensor:
        return self._filled(-1.0)

    def _log_abs_determinant(self) -> Tensor:
        return self._filled(0.0)

    def _trace(self) -> Tensor:
        return apply(
            "Fill", self.batch_shape_tensor(), tools.as_type(self.domain_dimension_tensor(), self.dtype) - 2
        )

    def _diag_part(self) -> Tensor:
        unit = self._unit()
        return 1 - 2 * unit * tools.conjugated(unit)

    def _eigvals(self) -> Tensor:
        axis = self._reflection_axis
        ones = apply("OnesLike", axis[..., :-1])
        return apply("ConcatV2", [-apply("OnesLike", axis[..., :1]), ones], -1)

    def _cond(self) -> Tensor:
        return self._filled(1.0)

    def _inverse(self) -> LinearOperator:
        return self

    def _assert_non_singular(self) -> Operation:
        return self._nothing("assert_non_singular")

    def _assert_positive_definite(self) -> Operation:
        raise ValueError("A Householder operator is always non-positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return self._nothing("assert_self_adjoint")


class LinearOperatorPermutation(LinearOperator):
    """The operator whose row i picks element `perm[i]`."""

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        self._perm = to_tensor(perm, name="perm")
        if not self._perm.dtype.is_integer:
            raise TypeError(f"perm must be integer dtype but was {self._perm.dtype}.")
        if self._perm.shape.rank == 0:
            raise ValueError(f"Argument perm must have at least 1 dimension.  Found: {self._perm}.")
        known = constant_value(self._perm)
        if known is not None and not (np.sort(known, -1) == np.arange(known.shape[-1])).all():
            raise ValueError(
                f"Argument perm must be a vector of unique integers from 0 to {known.shape[-1] - 1}."
            )
        if is_non_singular is False:
            raise ValueError("A Permutation operator is always non-singular.")
        if is_square is False:
            raise ValueError("A Permutation operator is always square.")
        super().__init__(dtype, [self._perm], True, is_self_adjoint, is_positive_definite, True, name)

    perm = readonly("_perm", "Where each row takes its element from.")

    def _shape(self) -> TensorShape:
        shape = self._perm.shape
        return shape if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = apply("Shape", self._perm)
        return tools.joined(shape, shape[-1:])

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = tools.adjoint(x) if adjoint_arg else x
        perm = argsort(self._perm) if adjoint else self._perm
        if perm.shape.rank == 1:
            return apply("GatherV2", x, perm, -2)
        return matmul(self._chosen(perm), x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _chosen(self, perm: Tensor) -> Tensor:
        size = self.domain_dimension.value
        depth = size if size is not None else self.domain_dimension_tensor()
        return one_hot(perm, depth, dtype=self.dtype)

    def _to_dense(self) -> Tensor:
        return self._chosen(self._perm)

    def _diag_part(self) -> Tensor:
        places = apply("Range", 0, self.domain_dimension_tensor(), 1)
        fixed = apply("Equal", self._perm, apply("Cast", places, DstT=self._perm.dtype.base_dtype))
        return apply("Cast", fixed, DstT=self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return apply("Fill", self.batch_shape_tensor(), np.zeros((), self.dtype.as_numpy_dtype))

    def _cond(self) -> Tensor:
        return apply("Fill", self.batch_shape_tensor(), np.ones((), self.dtype.as_numpy_dtype))

    def _assert_non_singular(self) -> Operation:
        return self._nothing("assert_non_singular")


class LinearOperatorToeplitz(LinearOperator):
    """A matrix with the same number all along each diagonal, given by its first column and row."""

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        self._col = matrix_argument(col, "col", 1)
        self._row = matrix_argument(row, "row", 1)
        if self._col.dtype.base_dtype != self._row.dtype.base_dtype:
            raise TypeError(f"Argument row has dtype {self._row.dtype}, argument col {self._col.dtype}.")
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(self._col.dtype, [self._col, self._row], *hints, name)

    col = readonly("_col", "The first column.")
    row = readonly("_row", "The first row.")

    def _shape(self) -> TensorShape:
        shape = tools.broadcast_batches([self._col.shape, self._row.shape])
        return shape if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = tools.broadcast_batch_tensors([apply("Shape", self._col), apply("Shape", self._row)])
        return tools.joined(shape, shape[-1:])

    def _both(self) -> tuple[Tensor, Tensor]:
        """(column, row) in one batch."""
        col, row = tools.same_batch(tools.column(self._col), tools.column(self._row))
        return tools.without_column(col), tools.without_column(row)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        """By the circulant matrix of twice the size that it is a corner of."""
        x = tools.adjoint(x) if adjoint_arg else x
        col, row = self._both()
        if adjoint:
            col, row = tools.conjugated(row), tools.conjugated(col)
        middle = apply("ZerosLike", col[..., :1])
        ring = apply("ConcatV2", [col, middle, reverse(row[..., 1:], [-1])], -1)
        kind = {"complex128": "complex128", "float64": "complex128"}.get(self.dtype.name, "complex64")
        rows = tools.as_type(matrix_transpose(x), kind)
        padded = apply("ConcatV2", [rows, apply("ZerosLike", rows)], -1)
        spectrum = apply("ExpandDims", apply_any("FFT", tools.as_type(ring, kind)), -2)
        size = tools.shape_of(rows)[-1]
        result = apply_any("IFFT", apply_any("FFT", padded) * spectrum)[..., :size]
        return matrix_transpose(tools.as_type(result, self.dtype))

    def _to_dense(self) -> Tensor:
        col, row = self._both()
        size = tools.shape_of(col)[-1]
        numbers = apply("Range", 0, size, 1)
        values = apply("ConcatV2", [reverse(row, [-1]), col[..., 1:]], -1)
        places = size - 1 + apply("ExpandDims", numbers, 1) - apply("ExpandDims", numbers, 0)
        return apply("GatherV2", values, places, -1)

    def _diag_part(self) -> Tensor:
        col, _ = self._both()
        return apply("BroadcastTo", col[..., :1], tools.shape_of(col))

    def _trace(self) -> Tensor:
        return self._both()[0][..., 0] * tools.as_type(self.domain_dimension_tensor(), self.dtype)


class LinearOperatorTridiag(LinearOperator):
    """A matrix with three diagonals: packed as [..., 3, size], as a sequence of three, or as a whole matrix."""

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        if diagonals_format not in ("matrix", "sequence", "compact"):
            raise ValueError(
                f"Expected `diagonals_format` to be one of matrix, compact, or sequence. Found: {diagonals_format}"
            )
        if is_square is False:
            raise ValueError("Only square tridiagonal operators currently supported.")
        self._diagonals_format = diagonals_format
        if diagonals_format == "sequence":
            self._diagonals: Any = [matrix_argument(d, "diagonals", 1) for d in diagonals]
            parents = list(self._diagonals)
        else:
            self._diagonals = matrix_argument(diagonals, "diagonals")
            parents = [self._diagonals]
        super().__init__(
            parents[0].dtype, parents, is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    diagonals = readonly("_diagonals", "The diagonals, as they were given.")
    diagonals_format = readonly("_diagonals_format", "How they were given.")

    def _three(self) -> list[Tensor]:
        """(above, main, below), each as long as the main one; row i holds above[i], main[i] and below[i]."""
        if self._diagonals_format == "matrix":
            above, main, below = (matrix_diagonal(self._diagonals, k) for k in (1, 0, -1))
            zero = apply("ZerosLike", main[..., :1])
            return [apply("ConcatV2", [above, zero], -1), main, apply("ConcatV2", [zero, below], -1)]
        if self._diagonals_format == "compact":
            return [self._diagonals[..., i, :] for i in range(3)]
        columns = tools.same_batch(*[tools.column(d) for d in self._diagonals])
        return [tools.without_column(c) for c in columns]

    def _shape(self) -> TensorShape:
        if self._diagonals_format == "matrix":
            return self._diagonals.shape
        if self._diagonals_format == "compact":
            shape = self._diagonals.shape
            return shape if shape.rank is None else shape[:-2].concatenate([shape[-1], shape[-1]])
        shape = tools.broadcast_batches([d.shape for d in self._diagonals])
        return shape if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = apply("Shape", self._three()[1])
        return tools.joined(shape, shape[-1:])

    def _used(self, adjoint: bool) -> list[Tensor]:
        above, main, below = self._three()
        if not adjoint:
            return [above, main, below]
        turned = [roll(below, -1, -1), main, roll(above, 1, -1)]
        return [tools.conjugated(d) for d in turned]

    def _wide(self, x: Tensor, adjoint: bool) -> tuple[list[Tensor], Tensor]:
        """The diagonals and `x` in one batch."""
        *columns, x = tools.same_batch(*[tools.column(d) for d in self._used(adjoint)], x)
        return [tools.without_column(c) for c in columns], x

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        diagonals, x = self._wide(tools.adjoint(x) if adjoint_arg else x, adjoint)
        return tridiagonal_matmul(diagonals, x, diagonals_format="sequence")

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        diagonals, rhs = self._wide(tools.adjoint(rhs) if adjoint_arg else rhs, adjoint)
        return tridiagonal_solve(diagonals, rhs, diagonals_format="sequence")

    def _diag_part(self) -> Tensor:
        return self._three()[1]

    def _to_dense(self) -> Tensor:
        if self._diagonals_format == "matrix":
            return self._diagonals
        above, main, below = self._three()
        middle = apply("MatrixDiag", main)
        upper = apply("MatrixDiag", above[..., :-1])
        lower = apply("MatrixDiag", below[..., 1:])
        rows = apply("ZerosLike", middle[..., :1, 1:])
        side = apply("ZerosLike", middle[..., :, :1])
        over = apply("ConcatV2", [side, apply("ConcatV2", [upper, rows], -2)], -1)
        under = apply("ConcatV2", [apply("ConcatV2", [rows, lower], -2), side], -1)
        return middle + over + under

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorTridiag(
            self._used(True),
            "sequence",
            self.is_non_singular,
            self.is_self_adjoint,
            self.is_positive_definite,
            True,
        )
