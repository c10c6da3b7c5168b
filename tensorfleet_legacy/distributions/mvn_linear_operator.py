"""Distributions of vectors that a matrix makes of independent numbers: the multivariate normals and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.bijectors.affine import AffineLinearOperator, scale_operator
from tensorfleet_legacy.distributions.distribution import Distribution, tensors
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL
from tensorfleet_legacy.distributions.normal import Laplace, Normal
from tensorfleet_legacy.distributions.transformed_distribution import TransformedDistribution
from tensorfleet_legacy.distributions.uniform import Exponential
from tensorfleet_legacy.linear_operators.linear_operator import LinearOperator
from tensorfleet_legacy.linear_operators.linear_operator_diag import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)
from tensorfleet_legacy.linear_operators.linear_operator_full_matrix import LinearOperatorLowerTriangular


class VectorOfScale(TransformedDistribution):
    """loc + scale @ z, where the elements of z are independent, all of one distribution."""

    def _place(
        self,
        inner: Distribution,
        loc: Any,
        scale: LinearOperator | None,
        given: dict[str, Any],
        scope: str,
    ) -> None:
        """Ends a constructor whose `locals()` are `given`."""
        if scale is None:
            raise ValueError("Missing required `scale` parameter.")
        if not scale.dtype.is_floating:
            raise TypeError("`scale` parameter must have floating-point dtype.")
        shift = None if loc is None else tensors(scale.dtype.base_dtype, loc=loc)[0]
        batch, event = _shapes(shift, scale)
        affine = AffineLinearOperator(shift=shift, scale=scale, validate_args=given["validate_args"])
        TransformedDistribution.__init__(self, inner, affine, batch, event, given["validate_args"], scope)
        self._allow_nan_stats = given["allow_nan_stats"]
        self._remember(given)

    loc = readonly("_bijector.shift", "What is added, or None.")
    scale = readonly("_bijector.scale", "The LinearOperator that mixes the elements.")

    #: the variance of one element of z
    _unit_variance = 1.0

    def _covariance(self) -> Tensor:
        if isinstance(self.scale, (LinearOperatorDiag, LinearOperatorIdentity, LinearOperatorScaledIdentity)):
            return find("matrix_diag")(self._variance())
        dense = self.scale.to_dense()
        return self._full(self._unit_variance * self.scale.matmul(dense, adjoint_arg=True), 2)

    def _variance(self) -> Tensor:
        if isinstance(self.scale, (LinearOperatorDiag, LinearOperatorIdentity, LinearOperatorScaledIdentity)):
            return self._full(self._unit_variance * find("square")(self.scale.diag_part()), 1)
        return find("matrix_diag_part")(self._covariance())

    def _stddev(self) -> Tensor:
        return find("sqrt")(self._variance())

    def _full(self, value: Tensor, axes: int) -> Tensor:
        """A value for each variable of the batch."""
        size = find("shape")(value)
        event = size[find("size")(size) - axes :]
        return find("broadcast_to")(value, find("concat")([self.batch_shape_tensor(), event], 0))

    def _mode(self) -> Tensor:
        return self._mean()


def _shapes(loc: Tensor | None, scale: LinearOperator) -> tuple[Any, Any]:
    """The shape of the batch, None if it is `[]`, and that of an event."""
    batch, batch_tensor = scale.batch_shape, scale.batch_shape_tensor()
    event = scale.range_dimension
    size = event.value if hasattr(event, "value") else event
    if loc is not None and loc.shape.rank:
        *outer, last = loc.shape.as_list()
        batch = broadcast_shape(batch, TensorShape(outer))
        batch_tensor = find("broadcast_dynamic_shape")(batch_tensor, find("shape")(loc)[:-1])
        size = last if size is None or size == 1 else size
        if last not in (None, 1, size):
            raise ValueError(f"Event size of 'scale' ({size}) and 'loc' ({last}) do not match.")
    if size is None:
        raise ValueError("The last dimension of `loc` or `scale` must be known.")
    if batch.is_fully_defined():
        return batch.as_list() or None, [size]
    return batch_tensor, [size]


def _standard(kind: Any) -> Normal:
    return Normal(np.zeros([], kind.as_numpy_dtype), np.ones([], kind.as_numpy_dtype))


class MultivariateNormalLinearOperator(VectorOfScale):
    """A normal vector with mean `loc` and covariance `scale @ scale^T`."""

    def __init__(
        self,
        loc: Any = None,
        scale: LinearOperator | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalLinearOperator",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            inner = _standard(scale.dtype if scale is not None else find("float32"))
            self._place(inner, loc, scale, given, scope)

    def _from_parts(self, given: dict[str, Any], scope: str, loc: Any, scale: LinearOperator) -> None:
        """Ends the constructor of a kind of its own."""
        self._place(_standard(scale.dtype), loc, scale, given, scope)


def diagonal_scale(loc: Any, diag: Any, multiplier: Any) -> LinearOperator:
    """The operator of a diagonal, or of a multiple of the identity as large as `loc`."""
    given = {"diag": diag, "multiplier": multiplier, "loc": loc}
    result = tensors(**{k: v for k, v in given.items() if v is not None})
    if diag is None and loc is None:
        raise ValueError("Cannot infer `event_shape` unless `loc` or `shape_hint` is specified.")
    size = result[-1].shape.as_list()[-1] if diag is None else None
    return scale_operator(multiplier, diag, None, None, None, size, result[0].dtype.base_dtype)


class MultivariateNormalDiag(MultivariateNormalLinearOperator):
    """A vector of independent normals."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            scale = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            self._from_parts(given, scope, loc, scale)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """A vector of independent normals whose deviations are the softplus of what is given."""

    def __init__(
        self,
        loc: Any,
        scale_diag: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            (diag,) = tensors(scale_diag=scale_diag)
            soft = find("nn.softplus")(diag)
        super().__init__(loc, soft, None, validate_args, allow_nan_stats, scope)
        self._remember(given)


class MultivariateNormalTriL(MultivariateNormalLinearOperator):
    """A normal vector whose covariance is that of a lower triangular scale."""

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        given = locals()
        if loc is None and scale_tril is None:
            raise ValueError("Must specify one or both of `loc`, `scale_tril`.")
        with name_scope(name) as scope:
            if scale_tril is None:
                scale = diagonal_scale(loc, None, None)
            else:
                (lower,) = tensors(scale_tril=scale_tril)
                lower = find("matrix_band_part")(lower, -1, 0)
                scale = LinearOperatorLowerTriangular(lower, is_non_singular=True)
            self._from_parts(given, scope, loc, scale)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """A normal vector with a covariance matrix."""

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            lower = None
            if covariance_matrix is not None:
                (matrix,) = tensors(covariance_matrix=covariance_matrix)
                lower = find("cholesky")(matrix)
        super().__init__(loc, lower, validate_args, allow_nan_stats, scope)
        self._remember(given)


class MultivariateNormalDiagPlusLowRank(MultivariateNormalLinearOperator):
    """A normal vector whose scale is a diagonal plus a matrix of low rank."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            if scale_perturb_factor is None:
                scale = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            else:
                (factor,) = tensors(scale_perturb_factor=scale_perturb_factor)
                size, kind = factor.shape.as_list()[-2], factor.dtype.base_dtype
                scale = scale_operator(
                    scale_identity_multiplier, scale_diag, None, factor, scale_perturb_diag, size, kind
                )
            self._from_parts(given, scope, loc, scale)


@RegisterKL(MultivariateNormalLinearOperator, MultivariateNormalLinearOperator)
def _kl_normal(a: Any, b: Any, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_mvn"):
        size = find("cast")(a.scale.range_dimension_tensor(), a.dtype)
        mixed = b.scale.solve(a.scale.to_dense())
        spread = find("reduce_sum")(find("square")(mixed), [-2, -1])
        volumes = b.scale.log_abs_determinant() - a.scale.log_abs_determinant()
        moved = find("square")(b.scale.solvevec(b.mean() - a.mean()))
        return volumes + 0.5 * (spread - size + find("reduce_sum")(moved, -1))


class _DiagonalKind(VectorOfScale):
    """A vector of independent numbers of one distribution, moved and stretched."""

    _made_of: Any

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        given = locals()
        with name_scope(name) as scope:
            scale = diagonal_scale(loc, scale_diag, scale_identity_multiplier)
            self._place(self._made_of(scale.dtype.base_dtype), loc, scale, given, scope)


class VectorExponentialDiag(_DiagonalKind):
    """A vector of independent exponentials, moved and stretched."""

    __init__ = with_defaults(_DiagonalKind.__init__, name="VectorExponentialDiag")

    def _made_of(self, kind: Any) -> Distribution:
        return Exponential(np.ones([], kind.as_numpy_dtype))

    def _mode(self) -> Tensor:
        return self._bijector.forward(find("zeros_like")(self._mean()))


class VectorLaplaceDiag(_DiagonalKind):
    """A vector of independent Laplace variables, moved and stretched."""

    __init__ = with_defaults(_DiagonalKind.__init__, name="VectorLaplaceDiag")

    _unit_variance = 2.0

    def _made_of(self, kind: Any) -> Distribution:
        return Laplace(np.zeros([], kind.as_numpy_dtype), np.ones([], kind.as_numpy_dtype))
