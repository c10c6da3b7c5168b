"""Normal numbers between bounds, each batch with its own mean, deviation and bounds."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import philox
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.random.ops import get_seed


@op(
    "ParameterizedTruncatedNormal",
    "shape: T, means: dtype[1-], stdevs: dtype[1-], minvals: dtype[1-], maxvals: dtype[1-] -> output: dtype",
    "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: index",
    shape=lambda op: shape_given_by(op, 0),
    host=True,
    stateful=True,
)
def _parameterized_truncated_normal(
    ctx: HostContext,
    shape: Array,
    means: Array,
    deviations: Array,
    lows: Array,
    highs: Array,
    *,
    dtype: dtypes.DType,
) -> Array:
    dims = ints(shape)
    if not dims:
        raise errors.invalid("Shape tensor must not be empty, got []")
    rows = int(np.prod(dims[1:], dtype=np.int64))
    given = {"Means": means, "Standard deviations": deviations, "Minvals": lows, "Maxvals": highs}
    per_batch = [_per_batch(name, value, dims[0]) for name, value in given.items()]
    uniform = philox.random_uniform(
        np, ctx.random(philox.reserved(ctx.op.type, dims[0] * rows)), (dims[0], rows), np.dtype(np.float64)
    )
    return _between(uniform, *per_batch).astype(dtype.np_dtype).reshape(dims)


def _per_batch(name: str, value: Array, batches: int) -> Array:
    """One number for each batch, in a column."""
    array = np.asarray(value)
    if array.ndim > 1 or array.size not in (1, batches):
        raise errors.invalid(f"{name} must have length 1 or {batches}, got shape {list(array.shape)}")
    return np.broadcast_to(array.astype(np.float64).reshape(-1, 1), (batches, 1))


def _between(uniform: Array, mean: Array, deviation: Array, low: Array, high: Array) -> Array:
    """The quantiles of the normal distribution between two bounds; nan where the bounds leave nothing."""
    from scipy.special import log_ndtr, ndtri_exp

    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (low - mean) / deviation, (high - mean) / deviation
        # In logarithms, and in the left tail, where shares do not round to one.
        turned = a > 0
        a, b = np.where(turned, -b, a), np.where(turned, -a, b)
        below, above = log_ndtr(a), log_ndtr(b)
        share = np.logaddexp(np.log1p(-uniform) + below, np.log(uniform) + above)
        quantile = np.clip(ndtri_exp(share), a, b)
        scaled = mean + deviation * np.where(turned, -quantile, quantile)
    return np.where((deviation > 0) & (low < high), scaled, np.nan)


not_differentiable("ParameterizedTruncatedNormal")


@export("python.ops.random_ops.parameterized_truncated_normal")
def parameterized_truncated_normal(
    shape: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers between bounds; parameters are for all, or one for each entry of the first dimension."""
    kind = dtypes.as_dtype(dtype)
    with name_scope(name, "parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]):
        given = [to_tensor(value, kind) for value in (means, stddevs, minvals, maxvals)]
        seed1, seed2 = (s or 0 for s in get_seed(seed))
        return apply("ParameterizedTruncatedNormal", to_tensor(shape), *given, seed=seed1, seed2=seed2)
