"""Tests that every kind of linear operator passes, for classes that say how to make one.

A class of tests gives `operator_and_matrix`, an operator and the matrix it stands for; `add_tests` makes a test
of each method, for each type, shape and way of telling shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.testing.test_util import TestCase

_SEED = 87654321
_TOLERANCE = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12, "complex64": 1e-6, "complex128": 1e-12}


class OperatorShapesInfo:
    """The shape of an operator under test, and whatever else its class wants to know."""

    def __init__(self, shape: Any, **kwargs: Any) -> None:
        self.shape = shape
        self.__dict__.update(kwargs)


class CheckTapeSafeSkipOptions:
    """The methods whose gradients need not be checked."""

    DETERMINANT = "determinant"
    DIAG_PART = "diag_part"
    LOG_ABS_DETERMINANT = "log_abs_determinant"
    TRACE = "trace"


class LinearOperatorDerivedClassTest(TestCase):
    """Base of the tests of one kind of operator."""

    _atol = {dtypes.as_dtype(name): limit for name, limit in _TOLERANCE.items()}
    _rtol = dict(_atol)

    def assertAC(self, x: Any, y: Any) -> None:
        """Two arrays are close, as close as their type allows."""
        kind = dtypes.as_dtype(x.dtype)
        self.assertAllClose(x, y, atol=self._atol[kind], rtol=self._rtol[kind])

    @staticmethod
    def adjoint_options() -> list[bool]:
        """Whether the operator is turned."""
        return [False, True]

    @staticmethod
    def adjoint_arg_options() -> list[bool]:
        """Whether the argument is turned."""
        return [False, True]

    @staticmethod
    def dtypes_to_test() -> list:
        """The types of operators."""
        return [dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128]

    @staticmethod
    def use_placeholder_options() -> list[bool]:
        """Whether shapes are told only when the operator runs."""
        return [False, True]

    @staticmethod
    def operator_shapes_infos() -> list:
        """The shapes of operators."""
        raise TypeError("operator_shapes_infos has not been implemented.")

    @staticmethod
    def skip_these_tests() -> list[str]:
        """The names of tests that do not apply."""
        return []

    def operator_and_matrix(
        self, shapes_info: Any, dtype: Any, use_placeholder: bool, ensure_self_adjoint_and_pd: bool = False
    ) -> Any:
        """An operator and the matrix it stands for."""
        raise TypeError("operator_and_matrix has not been implemented.")

    def make_rhs(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Tensor:
        """The right side of a system to solve."""
        raise TypeError("make_rhs is not defined.")

    def make_x(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Tensor:
        """The arguments that the operator is applied to."""
        rows = _sizes_of(operator, adjoint)
        columns = 1 if operator.tensor_rank is None or operator.tensor_rank % 2 else 2
        if not with_batch:
            return random_normal([rows, columns], dtype=operator.dtype)
        if operator.shape.is_fully_defined():
            return random_normal([*operator.batch_shape.as_list(), rows, columns], dtype=operator.dtype)
        shape = find("concat")([operator.batch_shape_tensor(), [rows, columns]], 0)
        return random_normal(shape, dtype=operator.dtype)

    def assertRaisesError(self, msg: str) -> Any:
        """The block raises an OpError whose text matches."""
        return self.assertRaisesOpError(msg)

    def check_tape_safe(self, operator: Any, skip_options: Any = None) -> None:
        """Results of an operator have gradients with respect to its variables."""
        if not operator.variables:
            raise AssertionError("`operator.variables` was empty")
        x = find("cast")(find("ones")(operator.H.shape_tensor()[:-1]), operator.dtype)
        results = [operator.to_dense(), operator.adjoint().to_dense(), operator.matvec(x)]
        if operator.is_square:
            options = {"determinant", "log_abs_determinant", "diag_part", "trace"} - set(skip_options or ())
            results += [getattr(operator, option)() for option in sorted(options)]
            if operator.is_non_singular is not False:
                results += [operator.inverse().to_dense(), operator.solvevec(x)]
                if operator.is_self_adjoint and operator.is_positive_definite:
                    results.append(operator.cholesky().to_dense())
        for tensor in results:
            for gradient in find("gradients")(tensor, list(operator.variables)):
                self.assertIsNotNone(gradient)


def _sizes_of(operator: Any, adjoint: bool) -> Any:
    """How many rows the argument of an operator has: a number, or a tensor when it is not known."""
    known = operator.shape.is_fully_defined()
    if adjoint:
        return operator.range_dimension.value if known else operator.range_dimension_tensor()
    return operator.domain_dimension.value if known else operator.domain_dimension_tensor()


class SquareLinearOperatorDerivedClassTest(LinearOperatorDerivedClassTest):
    """Base of the tests of square operators."""

    @staticmethod
    def operator_shapes_infos() -> list:
        """Matrices alone and in batches."""
        shapes = [(0, 0), (1, 1), (1, 3, 3), (3, 4, 4), (2, 1, 4, 4)]
        return [OperatorShapesInfo(shape) for shape in shapes]

    def make_rhs(self, operator: Any, adjoint: bool, with_batch: bool = True) -> Tensor:
        """The right side of a system: of the same shape as an argument."""
        return self.make_x(operator, adjoint=not adjoint, with_batch=with_batch)


class NonSquareLinearOperatorDerivedClassTest(LinearOperatorDerivedClassTest):
    """Base of the tests of operators that are not square."""

    @staticmethod
    def skip_these_tests() -> list[str]:
        """Tests of square operators."""
        return ["cholesky", "inverse", "solve", "solve_with_broadcast", "det", "log_abs_det"]

    @staticmethod
    def operator_shapes_infos() -> list:
        """Matrices alone and in batches."""
        shapes = [(2, 1), (1, 2), (1, 3, 2), (3, 3, 4), (2, 1, 2, 4)]
        return [OperatorShapesInfo(shape) for shape in shapes]


# -- the tests: what an operator gives, and what its matrix gives -----------------------------------------


def _compare(made: Callable, definite: bool = False) -> Callable:
    """A test that two tensors, made of an operator and its matrix, have one shape and value."""

    def make(use_placeholder: bool, shapes_info: Any, dtype: Any, *options: bool) -> Callable:
        def run(self: Any) -> None:
            with self.session(graph=Graph()) as session:
                session.graph.seed = _SEED
                more = {"ensure_self_adjoint_and_pd": True} if definite else {}
                operator, matrix = self.operator_and_matrix(
                    shapes_info, dtype, use_placeholder=use_placeholder, **more
                )
                ours, expected = made(self, operator, matrix, *options)
                if not use_placeholder:
                    self.assertAllEqual(ours.shape, expected.shape)
                self.assertAC(*session.run([ours, expected]))

        return run

    return make


def _matmul(with_batch: bool) -> Callable:
    def made(self: Any, operator: Any, matrix: Any, adjoint: bool, adjoint_arg: bool) -> tuple:
        x = self.make_x(operator, adjoint=adjoint, with_batch=with_batch or operator.shape.rank == 2)
        given = tools.adjoint(x) if adjoint_arg else x
        ours = operator.matmul(given, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return ours, find("matmul")(*tools.same_batch(matrix, x), adjoint_a=adjoint)

    return made


def _solve(with_batch: bool) -> Callable:
    def made(self: Any, operator: Any, matrix: Any, adjoint: bool, adjoint_arg: bool) -> tuple:
        rhs = self.make_rhs(operator, adjoint=adjoint, with_batch=with_batch or operator.shape.rank == 2)
        given = tools.adjoint(rhs) if adjoint_arg else rhs
        ours = operator.solve(given, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return ours, tools.solved(matrix, rhs, adjoint)

    return made


_TURNED = {
    "matmul": _compare(_matmul(True)),
    "matmul_with_broadcast": _compare(_matmul(True)),
    "solve": _compare(_solve(True)),
    "solve_with_broadcast": _compare(_solve(False)),
}
_PLAIN = {
    "add_to_tensor": _compare(lambda _, o, m: (o.add_to_tensor(2 * m), 3 * m)),
    "adjoint": _compare(lambda _, o, m: (o.adjoint().to_dense(), tools.adjoint(m))),
    "cholesky": _compare(lambda _, o, m: (o.cholesky().to_dense(), find("cholesky")(m)), definite=True),
    "det": _compare(lambda _, o, m: (o.determinant(), find("matrix_determinant")(m))),
    "diag_part": _compare(lambda _, o, m: (o.diag_part(), find("matrix_diag_part")(m))),
    "inverse": _compare(lambda _, o, m: (o.inverse().to_dense(), find("matrix_inverse")(m))),
    "log_abs_det": _compare(lambda _, o, m: (o.log_abs_determinant(), find("linalg.slogdet")(m)[1])),
    "to_dense": _compare(lambda _, o, m: (o.to_dense(), m)),
    "trace": _compare(lambda _, o, m: (o.trace(), find("trace")(m))),
}


def add_tests(test_cls: type) -> None:
    """Gives a class of tests a test of every method."""
    cls: Any = test_cls
    kinds = itertools.product(
        cls.dtypes_to_test(), cls.use_placeholder_options(), cls.operator_shapes_infos()
    )
    for dtype, use_placeholder, info in kinds:
        what = f"_shape={info.shape},dtype={dtype},use_placeholder={use_placeholder}"
        for name, make in _PLAIN.items():
            _add(cls, name, what, make(use_placeholder, info, dtype))
        for (name, make), adjoint, turned in itertools.product(
            _TURNED.items(), cls.adjoint_options(), cls.adjoint_arg_options()
        ):
            how = f"{what},adjoint={adjoint},adjoint_arg={turned}"
            _add(cls, name, how, make(use_placeholder, info, dtype, adjoint, turned))


def _add(cls: Any, name: str, what: str, test: Callable) -> None:
    full = f"test_{name}_{what}"
    if name in cls.skip_these_tests():
        return
    if hasattr(cls, full):
        raise RuntimeError(f"Test {full} defined more than once")
    setattr(cls, full, test)


# -- random matrices -------------------------------------------------------------------------------------


def _drawn(draw: Callable, dtype: Any, seed: int | None, step: int) -> Tensor:
    """Random numbers; complex ones have a random imaginary part too."""
    kind = dtypes.as_dtype(dtype)
    real = draw(kind.real_dtype, seed)
    if not kind.is_complex:
        return real
    return find("complex")(real, draw(kind.real_dtype, None if seed is None else seed + step))


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: int | None = None
) -> Tensor:
    """Normal numbers, real or complex."""
    with name_scope("random_normal"):
        return _drawn(lambda kind, s: find("random_normal")(shape, mean, stddev, kind, s), dtype, seed, 1234)


def random_uniform(
    shape: Any, minval: Any = None, maxval: Any = None, dtype: Any = dtypes.float32, seed: int | None = None
) -> Tensor:
    """Uniform numbers, real or complex."""
    with name_scope("random_uniform"):
        return _drawn(
            lambda kind, s: find("random_uniform")(shape, minval, maxval, kind, s), dtype, seed, 12345
        )


def random_sign_uniform(
    shape: Any, minval: Any = None, maxval: Any = None, dtype: Any = dtypes.float32, seed: int | None = None
) -> Tensor:
    """Uniform numbers, each with a random sign."""
    with name_scope("random_sign_uniform"):
        numbers = random_uniform(shape, minval, maxval, dtype, seed)
        signs = find("sign")(
            find("random_uniform")(shape, -1.0, 1.0, seed=None if seed is None else seed + 12)
        )
        return numbers * find("cast")(signs, numbers.dtype)


def random_tril_matrix(
    shape: Any, dtype: Any, force_well_conditioned: bool = False, remove_upper: bool = True
) -> Tensor:
    """Lower triangular matrices; well conditioned ones have a diagonal between 1 and the root of 2."""
    kind = dtypes.as_dtype(dtype)
    with name_scope("random_tril_matrix"):
        result = random_normal(shape, dtype=kind)
        if remove_upper:
            result = find("matrix_band_part")(result, -1, 0)
        if force_well_conditioned:
            most = to_tensor(np.sqrt(2.0), kind.real_dtype)
            result = find("matrix_set_diag")(result, random_sign_uniform(shape[:-1], 1.0, most, kind))
        return result


def random_positive_definite_matrix(shape: Any, dtype: Any, force_well_conditioned: bool = False) -> Tensor:
    """Positive definite matrices."""
    if not isinstance(shape, Tensor):
        shape = TensorShape(shape)
        shape.dims[-1].assert_is_compatible_with(shape.dims[-2])
    with name_scope("random_positive_definite_matrix"):
        tril = random_tril_matrix(shape, dtype, force_well_conditioned)
        return find("matmul")(tril, tril, adjoint_b=True)


def random_normal_correlated_columns(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    eps: float = 1e-4,
    seed: int | None = None,
) -> Tensor:
    """Matrices of normal numbers whose columns, if there are not more than rows, nearly depend on each other."""
    *batch, rows, columns = [int(d) for d in TensorShape(shape).as_list()]
    if len(TensorShape(shape).as_list()) < 2:
        raise ValueError(f"Argument shape must be at least length 2.  Found: {shape}")
    if rows < columns or columns < 2:
        return random_normal(shape, mean, stddev, dtype, seed)
    seeds = (None, None) if seed is None else (seed + 1, seed + 2)
    smaller = random_normal([*batch, columns, columns - 1], 0.0, 1.0 / np.sqrt(columns - 1), dtype, seed)
    numbers = random_normal([*batch, rows, columns - 1], 0.0, stddev, dtype, seeds[0])
    plane = tools.adjoint(find("matmul")(smaller, numbers, adjoint_b=True))
    return plane + random_normal(shape, 0.0, eps, dtype, seeds[1]) + mean
