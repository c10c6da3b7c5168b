"""Statistics of samples: percentiles, and the posterior of a mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.distributions.normal import Normal


def percentile(
    x: Any,
    q: Any,
    axis: Any = None,
    interpolation: str | None = None,
    keep_dims: bool = False,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """The value that `q` percent of the values along some axes are below: one of them, by default the nearest."""
    kind = interpolation or "nearest"
    if kind not in ("nearest", "lower", "higher"):
        raise ValueError(
            f"Argument 'interpolation' must be in {sorted(('nearest', 'lower', 'higher'))}.  Found {kind}"
        )
    with name_scope(name, "percentile", [x, q]):
        x, q = to_tensor(x), to_tensor(q, np.float64)
        rank = x.shape.rank
        if rank is None:
            raise ValueError("The rank of `x` must be known while the graph is built.")
        axes = range(rank) if axis is None else np.ravel(axis)
        gone = sorted(int(a) % rank for a in axes)
        kept = [a for a in range(rank) if a not in gone]
        shape = find("shape")(x)
        outer = find("gather")(shape, np.array(kept, np.int32))
        flat = find("reshape")(find("transpose")(x, [*kept, *gone]), find("concat")([outer, [-1]], 0))
        count = find("shape")(flat)[-1]
        # Counted from the top, as far as the values are sorted downwards.
        place = find("cast")(count - 1, np.float64) * (1.0 - q / 100.0)
        chosen = find({"nearest": "round", "lower": "ceil", "higher": "floor"}[kind])(place)
        chosen = find("clip_by_value")(find("cast")(chosen, np.int32), 0, count - 1)
        result = find("gather")(find("nn.top_k")(flat, count)[0], chosen, axis=-1)
        for a in gone if keep_dims else ():
            result = find("expand_dims")(result, a)
        return result


def _posterior(prior: Any, scale: Any, s: Any, n: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The mean and the variance of the belief, and the variance of one observation."""
    if not isinstance(prior, Normal):
        raise TypeError(f"Expected prior to be an instance of type Normal, but saw {prior}")
    if s.dtype != prior.dtype:
        raise TypeError(f"Observation sum s.dtype does not match prior dtype: {s.dtype} vs. {prior.dtype}")
    count = find("cast")(n, prior.dtype)
    before, each = find("square")(prior.scale), find("square")(to_tensor(scale, prior.dtype))
    after = 1 / (1 / before + count / each)
    return (prior.loc / before + s / each) * after, after, each


def normal_conjugates_known_scale_posterior(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """The posterior of a mean after `n` observations with deviation `scale` and sum `s`."""
    mean, variance, _ = _posterior(prior, scale, to_tensor(s, prior.dtype), n)
    return Normal(mean, find("sqrt")(variance))


def normal_conjugates_known_scale_predictive(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """The predictive distribution of the next observation after `n` of them."""
    mean, variance, each = _posterior(prior, scale, to_tensor(s, prior.dtype), n)
    return Normal(mean, find("sqrt")(variance + each))
