"""The names under `tf.distributions` and `tf.contrib.distributions`, loaded when first used."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import publish_finder, publish_lazily

_MODULES = {
    "base": (
        "Distribution",
        "FULLY_REPARAMETERIZED",
        "NOT_REPARAMETERIZED",
        "ReparameterizationType",
    ),
    "divergence": ("RegisterKL", "kl_divergence"),
    "discrete": ("Bernoulli", "Categorical", "Multinomial"),
    "continuous": ("Laplace", "Normal", "StudentT"),
    "bounded": ("Exponential", "Uniform"),
    "gammas": ("Beta", "Dirichlet", "DirichletMultinomial", "Gamma"),
}
_CONTRIB = {
    "discrete": ("Poisson", "OneHotCategorical"),
    "continuous": (
        "LogNormal",
        "Logistic",
        "LaplaceWithSoftplusScale",
        "NormalWithSoftplusScale",
        "StudentTWithAbsDfSoftplusScale",
    ),
    "bounded": ("ExponentialWithSoftplusRate",),
    "gammas": ("BetaWithSoftplusConcentration", "GammaWithSoftplusConcentrationRate"),
    "counts": ("Binomial", "Geometric", "NegativeBinomial"),
    "vectors": ("Independent", "Mixture", "Deterministic", "VectorDeterministic"),
    "normals": (
        "MultivariateNormalDiag",
        "MultivariateNormalDiagPlusLowRank",
        "MultivariateNormalDiagWithSoftplusScale",
        "MultivariateNormalFullCovariance",
        "MultivariateNormalTriL",
        "VectorExponentialDiag",
        "VectorLaplaceDiag",
    ),
    "transformed": (
        "ConditionalDistribution",
        "ConditionalTransformedDistribution",
        "QuantizedDistribution",
        "TransformedDistribution",
    ),
    "relaxed": ("ExpRelaxedOneHotCategorical", "RelaxedBernoulli", "RelaxedOneHotCategorical"),
    "mixtures": ("Autoregressive", "BatchReshape", "MixtureSameFamily"),
    "heavy": (
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
    "moving": (
        "SeedStream",
        "assign_log_moving_mean_exp",
        "assign_moving_mean_variance",
        "auto_correlation",
        "moving_mean_variance",
    ),
    "statistics": (
        "normal_conjugates_known_scale_posterior",
        "normal_conjugates_known_scale_predictive",
        "percentile",
    ),
}
_BIJECTORS = {
    "bijector": ("Bijector", "Chain", "ConditionalBijector", "Identity", "Inline", "Invert"),
    "bijectors_scalar": (
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
    "bijectors_affine": ("Affine", "AffineLinearOperator"),
    "bijectors_vector": (
        "CholeskyOuterProduct",
        "FillTriangular",
        "MatrixInverseTriL",
        "Permute",
        "Reshape",
        "ScaleTriL",
        "SoftmaxCentered",
        "TransformDiagonal",
    ),
    "flows": (
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
    {"normals": ("MultivariateNormalLinearOperator",)},
    "contrib.distributions",
    "contrib.distributions.python.ops.mvn_linear_operator",
)
_publish(
    {"bijector": ("Bijector",)}, "python.ops.distributions.bijector_impl", "python.ops.distributions.bijector"
)
_publish({"bijector": ("Identity",)}, "python.ops.distributions.identity_bijector")
_publish({"transformed": ("TransformedDistribution",)}, "python.ops.distributions.transformed_distribution")


_WITH_SOFTPLUS = {
    "bounded": {"exponential": "ExponentialWithSoftplusRate"},
    "continuous": {
        "laplace": "LaplaceWithSoftplusScale",
        "normal": "NormalWithSoftplusScale",
        "student_t": "StudentTWithAbsDfSoftplusScale",
    },
    "gammas": {"beta": "BetaWithSoftplusConcentration", "gamma": "GammaWithSoftplusConcentrationRate"},
}


def _from_util(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet_legacy.distributions.util"), name, None)


_publish(
    {"divergence": ("cross_entropy", "_registered_kl", "_DIVERGENCES")},
    "python.ops.distributions.kullback_leibler",
)
for _module, _inner in _WITH_SOFTPLUS.items():
    for _place, _name in _inner.items():
        _publish({_module: (_name,)}, f"python.ops.distributions.{_place}")
publish_finder("python.ops.distributions.util", _from_util)
_publish({"util": ("pad",)}, "python.ops.distributions.util")  # another one than `tf.pad`
