# Written by tools/make_stubs.py.
from tensorfleet_legacy.distributions.categorical import Bernoulli as Bernoulli
from tensorfleet_legacy.distributions.categorical import Categorical as Categorical
from tensorfleet_legacy.distributions.categorical import Multinomial as Multinomial
from tensorfleet_legacy.distributions.distribution import Distribution as Distribution
from tensorfleet_legacy.distributions.distribution import ReparameterizationType as ReparameterizationType
from tensorfleet_legacy.distributions.distribution import ReparameterizationType as _ReparameterizationType
from tensorfleet_legacy.distributions.gamma import Beta as Beta
from tensorfleet_legacy.distributions.gamma import Dirichlet as Dirichlet
from tensorfleet_legacy.distributions.gamma import DirichletMultinomial as DirichletMultinomial
from tensorfleet_legacy.distributions.gamma import Gamma as Gamma
from tensorfleet_legacy.distributions.kullback_leibler import RegisterKL as RegisterKL
from tensorfleet_legacy.distributions.kullback_leibler import kl_divergence as kl_divergence
from tensorfleet_legacy.distributions.normal import Laplace as _Laplace
from tensorfleet_legacy.distributions.normal import Normal as Normal
from tensorfleet_legacy.distributions.normal import StudentT as StudentT
from tensorfleet_legacy.distributions.uniform import Exponential as Exponential
from tensorfleet_legacy.distributions.uniform import Uniform as Uniform
import builtins
import typing
FULLY_REPARAMETERIZED: _ReparameterizationType
class Laplace(_Laplace):
    def __init__(self, loc: typing.Any, scale: typing.Any, validate_args: builtins.bool = ..., allow_nan_stats: builtins.bool = ..., name: builtins.str = ...) -> None: ...
NOT_REPARAMETERIZED: _ReparameterizationType
