"""Circulant operators, given by their spectrum: multiplied and solved by Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply, apply_any
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.ops.array.checks import assert_near, assert_positive
from tensorfleet.ops.array.transpose import matrix_transpose
from tensorfleet.ops.math.reduce_functions import reduce_mean, reduce_prod, reduce_sum
from tensorfleet_legacy.linear_operators import linear_operator_util as tools
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator, hints_of, hints_of_product
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import matrix_argument

_COMPLEX = {"float16": "complex64", "float32": "complex64", "float64": "complex128"}


def _as_complex(x: Tensor) -> Tensor:
    return tools.as_type(x, _COMPLEX.get(x.dtype.base_dtype.name, x.dtype.base_dtype.name))


class _Circulant(LinearOperator):
    """The base of circulant operators with one, two or three levels of blocks."""

    _depth = 1

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str = "LinearOperatorCirculant",
    ) -> None:
        self._spectrum = matrix_argument(spectrum, "spectrum", self._depth)
        if not is_square:
            raise ValueError("A `[[nested] block] circulant operator is always square.")
        if not self._spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, True)
        super().__init__(dtypes.as_dtype(input_output_dtype), [self._spectrum], *hints, name)

    spectrum = readonly("_spectrum", "The Fourier transform of the convolution kernel.")
    block_depth = readonly("_depth", "How many levels of blocks there are.")

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of the blocks."""
        return self._spectrum.shape[-self._depth :]

    def block_shape_tensor(self) -> Tensor:
        """The sizes of the blocks as a tensor."""
        return tools.size_tensor(self.block_shape, lambda: apply("Shape", self._spectrum)[-self._depth :])

    def _shape(self) -> TensorShape:
        shape = self._spectrum.shape
        if shape.rank is None:
            return shape
        size = self.block_shape.num_elements()
        return shape[: -self._depth].concatenate([size, size])

    def _shape_tensor(self) -> Tensor:
        shape = apply("Shape", self._spectrum)
        size = reduce_prod(shape[-self._depth :], [0], keepdims=True)
        return tools.joined(shape[: -self._depth], size, size)

    # -- transforms --

    def _fft(self, x: Tensor) -> Tensor:
        return apply_any(("FFT", "FFT2D", "FFT3D")[self._depth - 1], x)

    def _ifft(self, x: Tensor) -> Tensor:
        return apply_any(("IFFT", "IFFT2D", "IFFT3D")[self._depth - 1], x)

    def _complex_spectrum(self) -> Tensor:
        return _as_complex(self._spectrum)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The kernel whose convolution the operator is."""
        with self._name_scope(name):
            return tools.as_type(self._ifft(self._complex_spectrum()), self.dtype)

    def _filtered(self, x: Tensor, factors: Tensor, adjoint_arg: bool) -> Tensor:
        """`x`, its columns transformed, multiplied by `factors`, and transformed back."""
        rows = x if adjoint_arg else matrix_transpose(x)  # [batch, columns, size]
        rows = tools.conjugated(rows) if adjoint_arg else rows
        rows = _as_complex(rows)
        shape = tools.shape_of(rows)
        blocks = apply("Reshape", rows, tools.joined(shape[:-1], self.block_shape_tensor()))
        wide = apply("ExpandDims", factors, -1 - self._depth)
        blocks = self._ifft(self._fft(blocks) * tools.as_type(wide, blocks.dtype))
        after = tools.shape_of(blocks)[: -self._depth]
        result = matrix_transpose(apply("Reshape", blocks, tools.joined(after, shape[-1:])))
        return tools.as_type(result, self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex_spectrum()
        return self._filtered(x, tools.conjugated(spectrum) if adjoint else spectrum, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        spectrum = self._complex_spectrum()
        spectrum = tools.conjugated(spectrum) if adjoint else spectrum
        return self._filtered(rhs, apply("Reciprocal", spectrum), adjoint_arg)

    # -- what the spectrum says --

    @property
    def _axes(self) -> list[int]:
        return list(range(-self._depth, 0))

    def _determinant(self) -> Tensor:
        return tools.as_type(reduce_prod(self._complex_spectrum(), self._axes), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        sizes = apply("Log", tools.magnitude(self._spectrum))
        return tools.as_type(reduce_sum(sizes, self._axes), self.dtype)

    def _trace(self) -> Tensor:
        return tools.as_type(reduce_sum(self._complex_spectrum(), self._axes), self.dtype)

    def _diag_part(self) -> Tensor:
        mean = tools.column(reduce_mean(self._complex_spectrum(), self._axes))
        size = apply("Reshape", self.domain_dimension_tensor(), [1])
        shape = tools.joined(self.batch_shape_tensor(), size)
        return tools.as_type(apply("BroadcastTo", mean, shape), self.dtype)

    def _eigvals(self) -> Tensor:
        return apply("Reshape", self._spectrum, self.shape_tensor()[:-1])

    def _adjoint(self) -> LinearOperator:
        return self._like(tools.conjugated(self._complex_spectrum()), hints_of(self))

    def _inverse(self) -> LinearOperator:
        hints = {**hints_of(self), "is_non_singular": True}
        return self._like(apply("Reciprocal", self._spectrum), hints)

    def _compose(self, right: LinearOperator) -> LinearOperator | None:
        if type(right) is not type(self):
            return None
        spectrum = self._complex_spectrum() * right._complex_spectrum()
        return self._like(spectrum, hints_of_product(self, right, commute=True))

    def _like(self, spectrum: Tensor, hints: dict[str, Any]) -> LinearOperator:
        kind: Any = type(self)
        hints["is_square"] = True
        return kind(spectrum, input_output_dtype=self.dtype, **hints)

    # -- checks --

    def _assert_non_singular(self) -> Operation:
        limit = np.finfo(self._real_type).eps
        return assert_positive(
            tools.magnitude(self._spectrum) - limit,
            message="Singular operator:  Spectrum contained zero values.",
        )

    def _assert_positive_definite(self) -> Operation:
        spectrum = self._spectrum
        real = (
            apply("Real", spectrum, Tout=spectrum.dtype.real_dtype) if spectrum.dtype.is_complex else spectrum
        )
        return assert_positive(
            real, message="Not positive definite:  Real part of spectrum was not all positive."
        )

    def _assert_self_adjoint(self) -> Operation:
        if not self._spectrum.dtype.is_complex:
            return self._nothing("assert_self_adjoint")
        imaginary = apply("Imag", self._spectrum, Tout=self._spectrum.dtype.real_dtype)
        message = "Not self-adjoint:  The spectrum contained non-zero imaginary part."
        return assert_near(imaginary, apply("ZerosLike", imaginary), message=message)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Operation:
        """An operation that fails when the convolution kernel is not real."""
        with self._name_scope(name):
            kernel = self._ifft(self._complex_spectrum())
            imaginary = apply("Imag", kernel, Tout=kernel.dtype.real_dtype)
            limit = np.array(
                1e3 * np.finfo(imaginary.dtype.as_numpy_dtype).eps, imaginary.dtype.as_numpy_dtype
            )
            return assert_near(imaginary, apply("ZerosLike", imaginary), rtol=0, atol=limit)


class LinearOperatorCirculant(_Circulant):
    """A matrix whose rows are those above, shifted by one."""


class LinearOperatorCirculant2D(_Circulant):
    """A circulant matrix of circulant blocks."""

    _depth = 2
    __init__ = with_defaults(_Circulant.__init__, name="LinearOperatorCirculant2D")


class LinearOperatorCirculant3D(_Circulant):
    """A circulant matrix of blocks that are circulant matrices of circulant blocks."""

    _depth = 3
    __init__ = with_defaults(_Circulant.__init__, name="LinearOperatorCirculant3D")
