# Written by tools/make_stubs.py.
from tensorfleet.contrib.distributions import bijectors as bijectors
from tensorfleet.contrib.distributions import python as python
from tensorfleet_legacy.distributions.binomial import Binomial as Binomial
from tensorfleet_legacy.distributions.binomial import Geometric as Geometric
from tensorfleet_legacy.distributions.binomial import NegativeBinomial as NegativeBinomial
from tensorfleet_legacy.distributions.categorical import Bernoulli as Bernoulli
from tensorfleet_legacy.distributions.categorical import Categorical as Categorical
from tensorfleet_legacy.distributions.categorical import Multinomial as Multinomial
from tensorfleet_legacy.distributions.categorical import OneHotCategorical as _OneHotCategorical
from tensorfleet_legacy.distributions.categorical import Poisson as Poisson
from tensorfleet_legacy.distributions.distribution import Distribution as Distribution
from tensorfleet_legacy.distributions.distribution import ReparameterizationType as ReparameterizationType
from tensorfleet_legacy.distributions.distribution import ReparameterizationType as _ReparameterizationType
from tensorfleet_legacy.distributions.gamma import Beta as Beta
from tensorfleet_legacy.distributions.gamma import BetaWithSoftplusConcentration as _BetaWithSoftplusConcentration
from tensorfleet_legacy.distributions.gamma import Dirichlet as Dirichlet
from tensorfleet_legacy.distributions.gamma import DirichletMultinomial as DirichletMultinomial
from tensorfleet_legacy.distributions.gamma import Gamma as Gamma
from tensorfleet_legacy.distributions.gamma import GammaWithSoftplusConcentrationRate as _GammaWithSoftplusConcentrationRate
from tensorfleet_legacy.distributions.inverse_gamma import Cauchy as _Cauchy
from tensorfleet_legacy.distributions.inverse_gamma import Chi2 as Chi2
from tensorfleet_legacy.distributions.inverse_gamma import Chi2WithAbsDf as Chi2WithAbsDf
from tensorfleet_legacy.distributions.inverse_gamma import HalfNormal as HalfNormal
from tensorfleet_legacy.distributions.inverse_gamma import InverseGamma as _InverseGamma
from tensorfleet_legacy.distributions.inverse_gamma import InverseGammaWithSoftplusConcentrationRate as InverseGammaWithSoftplusConcentrationRate
from tensorfleet_legacy.distributions.inverse_gamma import Kumaraswamy as Kumaraswamy
from tensorfleet_legacy.distributions.inverse_gamma import SinhArcsinh as SinhArcsinh
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL as RegisterKL
from tensorfleet_legacy.distributions.kullback_leibler import kl_divergence as kl_divergence
from tensorfleet_legacy.distributions.mixture import Deterministic as _Deterministic
from tensorfleet_legacy.distributions.mixture import Independent as Independent
from tensorfleet_legacy.distributions.mixture import Mixture as Mixture
from tensorfleet_legacy.distributions.mixture import VectorDeterministic as _VectorDeterministic
from tensorfleet_legacy.distributions.mixture_same_family import Autoregressive as Autoregressive
from tensorfleet_legacy.distributions.mixture_same_family import BatchReshape as BatchReshape
from tensorfleet_legacy.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from tensorfleet_legacy.distributions.moving_stats import SeedStream as SeedStream
from tensorfleet_legacy.distributions.moving_stats import assign_log_moving_mean_exp as assign_log_moving_mean_exp
from tensorfleet_legacy.distributions.moving_stats import assign_moving_mean_variance as assign_moving_mean_variance
from tensorfleet_legacy.distributions.moving_stats import auto_correlation as auto_correlation
from tensorfleet_legacy.distributions.moving_stats import moving_mean_variance as moving_mean_variance
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalDiag as MultivariateNormalDiag
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalDiagPlusLowRank as MultivariateNormalDiagPlusLowRank
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalDiagWithSoftplusScale as MultivariateNormalDiagWithSoftplusScale
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalFullCovariance as MultivariateNormalFullCovariance
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalLinearOperator as MultivariateNormalLinearOperator
from tensorfleet_legacy.distributions.mvn_linear_operator import MultivariateNormalTriL as MultivariateNormalTriL
from tensorfleet_legacy.distributions.mvn_linear_operator import VectorExponentialDiag as _VectorExponentialDiag
from tensorfleet_legacy.distributions.mvn_linear_operator import VectorLaplaceDiag as _VectorLaplaceDiag
from tensorfleet_legacy.distributions.normal import Laplace as _Laplace
from tensorfleet_legacy.distributions.normal import LaplaceWithSoftplusScale as _LaplaceWithSoftplusScale
from tensorfleet_legacy.distributions.normal import LogNormal as LogNormal
from tensorfleet_legacy.distributions.normal import Logistic as _Logistic
from tensorfleet_legacy.distributions.normal import Normal as Normal
from tensorfleet_legacy.distributions.normal import NormalWithSoftplusScale as _NormalWithSoftplusScale
from tensorfleet_legacy.distributions.normal import StudentT as StudentT
from tensorfleet_legacy.distributions.normal import StudentTWithAbsDfSoftplusScale as _StudentTWithAbsDfSoftplusScale
from tensorfleet_legacy.distributions.relaxed_onehot_categorical import ExpRelaxedOneHotCategorical as ExpRelaxedOneHotCategorical
from tensorfleet_legacy.distributions.relaxed_onehot_categorical import RelaxedBernoulli as RelaxedBernoulli
from tensorfleet_legacy.distributions.relaxed_onehot_categorical import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from tensorfleet_legacy.distributions.sample_stats import normal_conjugates_known_scale_posterior as normal_conjugates_known_scale_posterior
from tensorfleet_legacy.distributions.sample_stats import normal_conjugates_known_scale_predictive as normal_conjugates_known_scale_predictive
from tensorfleet_legacy.distributions.sample_stats import percentile as percentile
from tensorfleet_legacy.distributions.transformed_distribution import ConditionalDistribution as ConditionalDistribution
from tensorfleet_legacy.distributions.transformed_distribution import ConditionalTransformedDistribution as ConditionalTransformedDistribution
from tensorfleet_legacy.distributions.transformed_distribution import QuantizedDistribution as QuantizedDistribution
from tensorfleet_legacy.distributions.transformed_distribution import TransformedDistribution as TransformedDistribution
from tensorfleet_legacy.distributions.uniform import Exponential as Exponential
from tensorfleet_legacy.distributions.uniform import ExponentialWithSoftplusRate as _ExponentialWithSoftplusRate
from tensorfleet_legacy.distributions.uniform import Uniform as Uniform
from tensorfleet_legacy.distributions.util import fill_triangular as fill_triangular
from tensorfleet_legacy.distributions.util import fill_triangular_inverse as fill_triangular_inverse
from tensorfleet_legacy.distributions.util import matrix_diag_transform as matrix_diag_transform
from tensorfleet_legacy.distributions.util import reduce_weighted_logsumexp as reduce_weighted_logsumexp
from tensorfleet_legacy.distributions.util import softplus_inverse as softplus_inverse
from tensorfleet_legacy.distributions.util import tridiag as tridiag
from tensorfleet_legacy.distributions.wishart import WishartCholesky as WishartCholesky
from tensorfleet_legacy.distributions.wishart import WishartFull as _WishartFull
import builtins
import typing
class BetaWithSoftplusConcentration(_BetaWithSoftplusConcentration):
    def __init__(self, concentration1: typing.Any, concentration0: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class Cauchy(_Cauchy):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class Deterministic(_Deterministic):
    def __init__(self, loc: typing.Any, atol: typing.Any = ..., rtol: typing.Any = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class ExponentialWithSoftplusRate(_ExponentialWithSoftplusRate):
    def __init__(self, rate: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
FULLY_REPARAMETERIZED: _ReparameterizationType
class GammaWithSoftplusConcentrationRate(_GammaWithSoftplusConcentrationRate):
    def __init__(self, concentration: typing.Any, rate: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class InverseGamma(_InverseGamma):
    def __init__(self, concentration: typing.Any, rate: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class Laplace(_Laplace):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class LaplaceWithSoftplusScale(_LaplaceWithSoftplusScale):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class Logistic(_Logistic):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
NOT_REPARAMETERIZED: _ReparameterizationType
class NormalWithSoftplusScale(_NormalWithSoftplusScale):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class OneHotCategorical(_OneHotCategorical):
    def __init__(self, logits: typing.Any = ..., probs: typing.Any = ..., dtype: typing.Any = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class StudentTWithAbsDfSoftplusScale(_StudentTWithAbsDfSoftplusScale):
    def __init__(self, df: typing.Any, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class VectorDeterministic(_VectorDeterministic):
    def __init__(self, loc: typing.Any, atol: typing.Any = ..., rtol: typing.Any = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
class VectorExponentialDiag(_VectorExponentialDiag):
    def __init__(self, loc: typing.Any = ..., scale_diag: typing.Any = ..., scale_identity_multiplier: typing.Any = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str | None = ...) -> None: ...
class VectorLaplaceDiag(_VectorLaplaceDiag):
    def __init__(self, loc: typing.Any = ..., scale_diag: typing.Any = ..., scale_identity_multiplier: typing.Any = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str | None = ...) -> None: ...
class WishartFull(_WishartFull):
    def __init__(self, df: typing.Any, scale: typing.Any, cholesky_input_output_matrices: builtins.bool = ..., validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
