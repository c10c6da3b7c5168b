"""The names under `tf.distributions` and `tf.contrib.distributions`, loaded when first used."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import publish_finder, publish_lazily

_MODULES = {
    "distribution": (
        "Distribution",
        "FULLY_REPARAMETERIZED",
        "NOT_REPARAMETERIZED",
        "ReparameterizationType",
    ),
    "kullback_leibler": ("RegisterKL", "kl_divergence"),
    "categorical": ("Bernoulli", "Categorical", "Multinomial"),
    "normal": ("Laplace", "Normal", "StudentT"),
    "uniform": ("Exponential", "Uniform"),
    "gamma": ("Beta", "Dirichlet", "DirichletMultinomial", "Gamma"),
}
_CONTRIB = {
    "categorical": ("Poisson", "OneHotCategorical"),
    "normal": (
        "LogNormal",
        "Logistic",
        "LaplaceWithSoftplusScale",
        "NormalWithSoftplusScale",
        "StudentTWithAbsDfSoftplusScale",
    ),
    "uniform": ("ExponentialWithSoftplusRate",),
    "gamma": ("BetaWithSoftplusConcentration", "GammaWithSoftplusConcentrationRate"),
    "binomial": ("Binomial", "Geometric", "NegativeBinomial"),
    "mixture": ("Independent", "Mixture", "Deterministic", "VectorDeterministic"),
    "mvn_linear_operator": (
        "MultivariateNormalDiag",
        "MultivariateNormalDiagPlusLowRank",
        "MultivariateNormalDiagWithSoftplusScale",
        "MultivariateNormalFullCovariance",
        "MultivariateNormalTriL",
        "VectorExponentialDiag",
        "VectorLaplaceDiag",
    ),
    "transformed_distribution": (
        "ConditionalDistribution",
        "ConditionalTransformedDistribution",
        "QuantizedDistribution",
        "TransformedDistribution",
    ),
    "relaxed_onehot_categorical": (
        "ExpRelaxedOneHotCategorical",
        "RelaxedBernoulli",
        "RelaxedOneHotCategorical",
    ),
    "mixture_same_family": ("Autoregressive", "BatchReshape", "MixtureSameFamily"),
    "inverse_gamma": (
        "Cauchy",
        "Chi2",
        "Chi2WithAbsDf",
        "HalfNormal",
        "InverseGamma",
        "InverseGammaWithSoftplusConcentrationRate",
        "Kumaraswamy",
        "SinhArcsinh",
    ),
    "wishart": ("WishartCholesky", "WishartFull"),
    "util": (
        "fill_triangular",
        "fill_triangular_inverse",
        "matrix_diag_transform",
        "reduce_weighted_logsumexp",
        "softplus_inverse",
        "tridiag",
    ),
    "moving_stats": (
        "SeedStream",
        "assign_log_moving_mean_exp",
        "assign_moving_mean_variance",
        "auto_correlation",
        "moving_mean_variance",
    ),
    "sample_stats": (
        "normal_conjugates_known_scale_posterior",
        "normal_conjugates_known_scale_predictive",
        "percentile",
    ),
}
_BIJECTORS = {
    "bijector_impl": ("Bijector", "Chain", "ConditionalBijector", "Identity", "Inline", "Invert"),
    "bijectors.affine_scalar": (
        "AbsoluteValue",
        "AffineScalar",
        "Exp",
        "Gumbel",
        "Kumaraswamy",
        "Ordered",
        "PowerTransform",
        "Sigmoid",
        "SinhArcsinh",
        "Softplus",
        "Softsign",
        "Square",
        "Weibull",
    ),
    "bijectors.affine": ("Affine", "AffineLinearOperator"),
    "bijectors.fill_triangular": (
        "CholeskyOuterProduct",
        "FillTriangular",
        "MatrixInverseTriL",
        "Permute",
        "Reshape",
        "ScaleTriL",
        "SoftmaxCentered",
        "TransformDiagonal",
    ),
    "bijectors.masked_autoregressive": (
        "BatchNormalization",
        "MaskedAutoregressiveFlow",
        "RealNVP",
        "masked_autoregressive_default_template",
        "masked_dense",
        "real_nvp_default_template",
    ),
}


def _publish(modules: dict[str, tuple[str, ...]], *prefixes: str) -> None:
    for module, names in modules.items():
        for prefix in prefixes:
            publish_lazily(functools.partial(_loaded, module), *(f"{prefix}.{name}" for name in names))


def _loaded(module: str, full: str) -> Any:
    found = importlib.import_module(f"tensorfleet_legacy.distributions.{module}")
    return getattr(found, full.rpartition(".")[2])


_publish(_MODULES, "contrib.distributions", "distributions")
_publish(_CONTRIB, "contrib.distributions")
_publish(_BIJECTORS, "contrib.distributions.bijectors")
_publish(
    {"mvn_linear_operator": ("MultivariateNormalLinearOperator",)},
    "contrib.distributions",
    "contrib.distributions.python.ops.mvn_linear_operator",
)
_publish(
    {"bijector_impl": ("Bijector",)},
    "python.ops.distributions.bijector_impl",
    "python.ops.distributions.bijector",
)
_publish({"bijector_impl": ("Identity",)}, "python.ops.distributions.identity_bijector")
_publish(
    {"transformed_distribution": ("TransformedDistribution",)},
    "python.ops.distributions.transformed_distribution",
)


_WITH_SOFTPLUS = {
    "uniform": {"exponential": "ExponentialWithSoftplusRate"},
    "normal": {
        "laplace": "LaplaceWithSoftplusScale",
        "normal": "NormalWithSoftplusScale",
        "student_t": "StudentTWithAbsDfSoftplusScale",
    },
    "gamma": {"beta": "BetaWithSoftplusConcentration", "gamma": "GammaWithSoftplusConcentrationRate"},
}


def _from_util(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet_legacy.distributions.util"), name, None)


_publish(
    {"kullback_leibler": ("cross_entropy", "_registered_kl", "_DIVERGENCES")},
    "python.ops.distributions.kullback_leibler",
)
for _module, _inner in _WITH_SOFTPLUS.items():
    for _place, _name in _inner.items():
        _publish({_module: (_name,)}, f"python.ops.distributions.{_place}")
publish_finder("python.ops.distributions.util", _from_util)
_publish({"util": ("pad",)}, "python.ops.distributions.util")  # another one than `tf.pad`
