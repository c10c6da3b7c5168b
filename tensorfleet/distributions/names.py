"""The names under `tf.distributions` and `tf.contrib.distributions`, loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import publish_lazily

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
