"""The names under `tf.distributions` and `tf.contrib.distributions`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import publish_finder
from tensorfleet_legacy.lazy_names import publish_from

_MODULES = {
    "distribution": "Distribution FULLY_REPARAMETERIZED NOT_REPARAMETERIZED ReparameterizationType",
    "kullback_leibler": "RegisterKL kl_divergence",
    "categorical": "Bernoulli Categorical Multinomial",
    "normal": "Laplace Normal StudentT",
    "uniform": "Exponential Uniform",
    "gamma": "Beta Dirichlet DirichletMultinomial Gamma",
}
_CONTRIB = {
    "categorical": "Poisson OneHotCategorical",
    "normal": """
        LogNormal Logistic LaplaceWithSoftplusScale NormalWithSoftplusScale StudentTWithAbsDfSoftplusScale
    """,
    "uniform": "ExponentialWithSoftplusRate",
    "gamma": "BetaWithSoftplusConcentration GammaWithSoftplusConcentrationRate",
    "binomial": "Binomial Geometric NegativeBinomial",
    "mixture": "Independent Mixture Deterministic VectorDeterministic",
    "mvn_linear_operator": """
        MultivariateNormalDiag MultivariateNormalDiagPlusLowRank MultivariateNormalDiagWithSoftplusScale
        MultivariateNormalFullCovariance MultivariateNormalTriL VectorExponentialDiag VectorLaplaceDiag
        MultivariateNormalLinearOperator
    """,
    "transformed_distribution": """
        ConditionalDistribution ConditionalTransformedDistribution QuantizedDistribution TransformedDistribution
    """,
    "relaxed_onehot_categorical": "ExpRelaxedOneHotCategorical RelaxedBernoulli RelaxedOneHotCategorical",
    "mixture_same_family": "Autoregressive BatchReshape MixtureSameFamily",
    "inverse_gamma": """
        Cauchy Chi2 Chi2WithAbsDf HalfNormal InverseGamma InverseGammaWithSoftplusConcentrationRate Kumaraswamy
        SinhArcsinh
    """,
    "wishart": "WishartCholesky WishartFull",
    "util": """
        fill_triangular fill_triangular_inverse matrix_diag_transform reduce_weighted_logsumexp softplus_inverse tridiag
    """,
    "moving_stats": """
        SeedStream assign_log_moving_mean_exp assign_moving_mean_variance auto_correlation moving_mean_variance
    """,
    "sample_stats": """
        normal_conjugates_known_scale_posterior normal_conjugates_known_scale_predictive percentile
    """,
}
_BIJECTORS = {
    "bijector_impl": "Bijector Chain ConditionalBijector Identity Inline Invert",
    "bijectors.affine_scalar": """
        AbsoluteValue AffineScalar Exp Gumbel Kumaraswamy Ordered PowerTransform Sigmoid SinhArcsinh Softplus Softsign
        Square Weibull
    """,
    "bijectors.affine": "Affine AffineLinearOperator",
    "bijectors.fill_triangular": """
        CholeskyOuterProduct FillTriangular MatrixInverseTriL Permute Reshape ScaleTriL SoftmaxCentered
        TransformDiagonal
    """,
    "bijectors.masked_autoregressive": """
        BatchNormalization MaskedAutoregressiveFlow RealNVP masked_autoregressive_default_template masked_dense
        real_nvp_default_template
    """,
}
# Where TensorFlow has names inside, below `python.ops.distributions`: the module here, the names, the places.
_INSIDE = (
    ("bijector_impl", "Bijector", "bijector_impl bijector"),
    ("bijector_impl", "Identity", "identity_bijector"),
    ("transformed_distribution", "TransformedDistribution", "transformed_distribution"),
    ("kullback_leibler", "cross_entropy _registered_kl _DIVERGENCES", "kullback_leibler"),
    ("uniform", "ExponentialWithSoftplusRate", "exponential"),
    ("normal", "LaplaceWithSoftplusScale", "laplace"),
    ("normal", "NormalWithSoftplusScale", "normal"),
    ("normal", "StudentTWithAbsDfSoftplusScale", "student_t"),
    ("gamma", "BetaWithSoftplusConcentration", "beta"),
    ("gamma", "GammaWithSoftplusConcentrationRate", "gamma"),
    ("util", "pad", "util"),  # another one than `tf.pad`
)


for _modules, _places in (
    (_MODULES, ("contrib.distributions", "distributions")),
    (_CONTRIB, ("contrib.distributions",)),
    (_BIJECTORS, ("contrib.distributions.bijectors",)),
):
    for _module, _names in _modules.items():
        publish_from(f"distributions.{_module}", _names, *_places)
for _module, _names, _inside in _INSIDE:
    _inner = (f"python.ops.distributions.{place}" for place in _inside.split())
    publish_from(f"distributions.{_module}", _names, *_inner)
publish_from(
    "distributions.mvn_linear_operator",
    "MultivariateNormalLinearOperator",
    "contrib.distributions.python.ops.mvn_linear_operator",
)


def _from_util(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet_legacy.distributions.util"), name, None)


publish_finder("python.ops.distributions.util", _from_util)
