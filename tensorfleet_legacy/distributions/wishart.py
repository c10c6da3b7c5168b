"""Distributions of covariance matrices."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    Distribution,
    counted,
    tensors,
)


class _Wishart(Distribution):
    """The sum of the squares of `df` normal vectors whose covariance is `lower @ lower^T`."""

    def _with(self, df: Any, lower: Tensor, factors: bool, given: dict[str, Any], scope: str) -> None:
        """Ends a constructor with its `locals()`; `factors`: values are Cholesky factors of the matrices."""
        (self._df,) = tensors(lower.dtype.base_dtype, df=df)
        self._lower, self._factors = find("matrix_band_part")(lower, -1, 0), factors
        known, size = find("get_static_value")(self._df), lower.shape.as_list()[-1]
        if known is not None and size is not None and (known < size).any():
            raise ValueError(
                f"Degrees of freedom (df = {known}) cannot be less than dimension of scale matrix (scale.dimension = "
                f"{size})"
            )
        self._start(lower.dtype.base_dtype, FULLY_REPARAMETERIZED, given, scope)

    df = readonly("_df", "The degrees of freedom.")
    cholesky_input_output_matrices = readonly(
        "_factors", "Whether values are Cholesky factors of the matrices."
    )

    @property
    def dimension(self) -> Tensor:
        """The side of the matrices."""
        return find("shape")(self._lower)[-1]

    def scale(self) -> Tensor:
        """The scale matrix, or its Cholesky factor if values are such."""
        return self._lower if self._factors else self._squared(self._lower)

    def _squared(self, lower: Tensor) -> Tensor:
        return find("matmul")(lower, lower, transpose_b=True)

    def _batch_shape(self) -> TensorShape:
        return broadcast_shape(self._df.shape, self._lower.shape[:-2])

    def _batch_shape_tensor(self) -> Tensor:
        return find("broadcast_dynamic_shape")(find("shape")(self._df), find("shape")(self._lower)[:-2])

    def _event_shape(self) -> TensorShape:
        return self._lower.shape[-2:]

    def _event_shape_tensor(self) -> Tensor:
        return find("shape")(self._lower)[-2:]

    def _steps(self) -> Tensor:
        """0, 1, ... up to the side."""
        return find("cast")(find("range")(self.dimension), self._dtype)

    def _side(self) -> Tensor:
        return find("cast")(self.dimension, self._dtype)

    def _sample_n(self, count: Any, seed: int | None = None) -> Tensor:
        # Bartlett's decomposition: normals below the diagonal, the roots of chi-squares on it.
        batch = self.batch_shape_tensor()
        size = find("concat")([counted(count, batch), self.event_shape_tensor()], 0)
        below = find("random_normal")(size, dtype=self._dtype, seed=seed)
        second = None if seed is None else (seed * 1_000_003 + 12345) % (2**31 - 1)
        half = 0.5 * (self._df[..., None] - self._steps())
        half = find("broadcast_to")(half, find("concat")([batch, [self.dimension]], 0))
        squares = find("random_gamma")(
            find("reshape")(count, [1]), half, beta=0.5, dtype=self._dtype, seed=second
        )
        inner = find("matrix_set_diag")(find("matrix_band_part")(below, -1, 0), find("sqrt")(squares))
        shape = find("shape")(inner)
        output = find("matmul")(find("broadcast_to")(self._lower, shape), inner)
        return output if self._factors else self._squared(output)

    def _log_prob(self, x: Tensor) -> Tensor:
        root = x if self._factors else find("cholesky")(x)
        lower = find("broadcast_to")(
            self._lower, find("broadcast_dynamic_shape")(find("shape")(root), find("shape")(self._lower))
        )
        mixed = find("matrix_triangular_solve")(lower, root + find("zeros_like")(lower))
        trace = find("reduce_sum")(find("square")(mixed), [-2, -1])
        log_det = 2 * find("reduce_sum")(find("log")(find("matrix_diag_part")(root)), -1)
        return 0.5 * ((self._df - self._side() - 1) * log_det - trace) - self.log_normalization()

    def log_normalization(self, name: str = "log_normalization") -> Tensor:
        """The logarithm of what the density is divided by."""
        with self._scope(name):
            log_det = find("reduce_sum")(find("log")(find("matrix_diag_part")(self._lower)), -1)
            volume = self._df * log_det + 0.5 * self._df * self._side() * math.log(2)
            return (
                volume
                + self._multi(find("lgamma"))
                + 0.25 * self._side() * (self._side() - 1) * math.log(math.pi)
            )

    def _multi(self, function: Any) -> Tensor:
        return find("reduce_sum")(function(0.5 * (self._df[..., None] - self._steps())), -1)

    def mean_log_det(self, name: str = "mean_log_det") -> Tensor:
        """The mean of the logarithm of the determinant."""
        with self._scope(name):
            log_det = 2 * find("reduce_sum")(find("log")(find("matrix_diag_part")(self._lower)), -1)
            return self._multi(find("digamma")) + self._side() * math.log(2) + log_det

    def _entropy(self) -> Tensor:
        half = 0.5 * self._df * self._side()
        return self.log_normalization() + half - 0.5 * (self._df - self._side() - 1) * self.mean_log_det()

    def _mean(self) -> Tensor:
        if self._factors:
            return find("sqrt")(self._df)[..., None, None] * self._lower
        return self._df[..., None, None] * self._squared(self._lower)

    def _variance(self) -> Tensor:
        scale = self._squared(self._lower)
        diagonal = find("matrix_diag_part")(scale)
        result = self._df[..., None, None] * (
            find("square")(scale) + diagonal[..., None] * diagonal[..., None, :]
        )
        return find("cholesky")(result) if self._factors else result

    def _stddev(self) -> Tensor:
        if self._factors:
            raise ValueError(
                "Computing std. dev. when is cholesky_input_output_matrices=True does not make sense."
            )
        return find("sqrt")(self._variance())

    def _mode(self) -> Tensor:
        times = self._df - self._side() - 1
        times = find("where")(times < 0, find("zeros_like")(times) * math.nan, times)
        if self._factors:
            return find("sqrt")(times)[..., None, None] * self._lower
        return times[..., None, None] * self._squared(self._lower)


class WishartCholesky(_Wishart):
    """The Wishart distribution, with the Cholesky factor of its scale."""

    def __init__(
        self,
        df: Any,
        scale: Any,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartCholesky",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            lower = self._factor(tensors(scale=scale)[0])
            self._with(df, lower, cholesky_input_output_matrices, given, scope)

    def _factor(self, scale: Tensor) -> Tensor:
        return scale


class WishartFull(_Wishart):
    """The Wishart distribution, with its scale."""

    __init__ = with_defaults(WishartCholesky.__init__, name="WishartFull")

    def _factor(self, scale: Tensor) -> Tensor:
        return find("cholesky")(scale)
