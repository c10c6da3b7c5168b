"""The names under `tf.distributions` and `tf.contrib.distributions`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_finder, publish_lazily

_MODULES = {
    "base": (
        "Distribution",
        "FULLY_REPARAMETERIZED",
        "NOT_REPARAMETERIZED",
        "ReparameterizationType",
    ),
    "divergence": ("RegisterKL", "kl_divergence"),
    "discrete": ("Bernoulli", "Categorical", "Multinomial", "Poisson", "OneHotCategorical"),
    "continuous": ("Laplace", "Normal", "StudentT", "LogNormal", "Logistic"),
    "bounded": ("Exponential", "Uniform"),
    "gammas": ("Beta", "Dirichlet", "DirichletMultinomial", "Gamma"),
    "vectors": ("MultivariateNormalDiag", "Independent", "Mixture", "Deterministic"),
}
_CONTRIB_ONLY = {"Poisson", "OneHotCategorical", "LogNormal", "Logistic", *_MODULES["vectors"]}


def _load(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _MODULES.items() if name in names)
    return getattr(importlib.import_module(f"tensorfleet.distributions.{module}"), name)


for _names in _MODULES.values():
    publish_lazily(_load, *(f"contrib.distributions.{n}" for n in _names))
    publish_lazily(_load, *(f"distributions.{n}" for n in _names if n not in _CONTRIB_ONLY))

_WITH_SOFTPLUS = {
    "bounded": {"exponential": "ExponentialWithSoftplusRate"},
    "continuous": {
        "laplace": "LaplaceWithSoftplusScale",
        "normal": "NormalWithSoftplusScale",
        "student_t": "StudentTWithAbsDfSoftplusScale",
    },
    "gammas": {"beta": "BetaWithSoftplusConcentration", "gamma": "GammaWithSoftplusConcentrationRate"},
}


def _load_inner(full: str) -> Any:
    name = full.rpartition(".")[2]
    module = next(m for m, names in _WITH_SOFTPLUS.items() if name in names.values())
    return getattr(importlib.import_module(f"tensorfleet.distributions.{module}"), name)


def _from_util(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet.distributions.util"), name, None)


def _from_divergence(full: str) -> Any:
    return getattr(importlib.import_module("tensorfleet.distributions.divergence"), full.rpartition(".")[2])


publish_lazily(
    _from_divergence,
    *(
        f"python.ops.distributions.kullback_leibler.{n}"
        for n in ("cross_entropy", "_registered_kl", "_DIVERGENCES")
    ),
)
for _inner in _WITH_SOFTPLUS.values():
    publish_lazily(_load_inner, *(f"python.ops.distributions.{m}.{n}" for m, n in _inner.items()))
publish_finder("python.ops.distributions.util", _from_util)
