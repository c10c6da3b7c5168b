"""`tf.contrib.bayesflow.monte_carlo`: expectations from samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


def expectation(
    f: Callable,
    samples: Any,
    log_prob: Callable | None = None,
    use_reparametrization: bool = True,
    axis: Any = 0,
    keep_dims: bool = False,
    name: str | None = None,
) -> Tensor:
    """The mean of f over samples; without reparametrization its gradient goes by that of `log_prob` (the score)."""
    with name_scope(name, "expectation", [samples]):
        if not callable(f):
            raise ValueError("`f` must be a callable function.")
        mean = find("reduce_mean")
        if use_reparametrization:
            return mean(f(samples), axis, keepdims=keep_dims)
        if not callable(log_prob):
            raise ValueError("`log_prob` must be a callable function.")
        stop = find("stop_gradient")
        fixed = stop(samples)
        score, values = log_prob(fixed), f(fixed)
        return mean(values + stop(values) * (score - stop(score)), axis, keepdims=keep_dims)


def _samples(distribution: Any, z: Any, n: Any, seed: Any) -> Tensor:
    if (n is None) == (z is None):
        raise ValueError(f'Must specify exactly one of arguments "n" and "z".  Found: n = {n}, z = {z}')
    return to_tensor(z, name="z") if n is None else distribution.sample(n, seed=seed)


def _log_mean(logs: Tensor) -> Tensor:
    count = find("cast")(find("shape")(logs)[0], logs.dtype)
    return find("reduce_logsumexp")(logs, 0) - find("log")(count)


def expectation_importance_sampler(
    f: Callable,
    log_p: Callable,
    sampling_dist_q: Any,
    z: Any = None,
    n: Any = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler",
) -> Tensor:
    """The expectation of f under p, by samples of q that count by how much likelier they are under p."""
    with name_scope(name, values=[z, n]):
        samples = _samples(sampling_dist_q, z, n, seed)
        ratio, values = log_p(samples) - sampling_dist_q.log_prob(samples), f(samples)
        relu, log = find("nn.relu"), find("log")
        # One is added to both parts, and so cancels: their logarithms are finite.
        above, below = (_log_mean(log(relu(sign * values) + 1.0) + ratio) for sign in (1.0, -1.0))
        return find("exp")(above) - find("exp")(below)


def expectation_importance_sampler_logspace(
    log_f: Callable,
    log_p: Callable,
    sampling_dist_q: Any,
    z: Any = None,
    n: Any = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler_logspace",
) -> Tensor:
    """The logarithm of the expectation of a positive f, of its logarithm."""
    with name_scope(name, values=[z, n]):
        samples = _samples(sampling_dist_q, z, n, seed)
        return _log_mean(log_f(samples) + log_p(samples) - sampling_dist_q.log_prob(samples))
