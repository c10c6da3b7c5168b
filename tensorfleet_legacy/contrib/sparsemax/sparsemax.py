"""`tf.contrib.sparsemax`: probabilities many of which are zero; `tf.contrib.nn.alpha_dropout`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


@export("contrib.sparsemax.sparsemax")
def sparsemax(logits: Any, name: str | None = None) -> Tensor:
    """The probabilities nearest to the logits, [batch, classes]: small ones are zero (Martins and Astudillo 2016)."""
    with name_scope(name, "sparsemax", [logits]):
        z = to_tensor(logits, name="logits")
        z = z - find("reduce_max")(z, 1, keepdims=True)
        size = find("shape")(z)[1]
        ordered, _ = find("nn.top_k")(z, size)
        below = find("cumsum")(ordered, axis=1)
        ranks = find("cast")(find("range")(1, size + 1), z.dtype)
        counts = find("cast")(1 + ranks * ordered > below, z.dtype)
        support = find("reduce_sum")(counts, 1, keepdims=True)
        level = (find("reduce_sum")(counts * ordered, 1, keepdims=True) - 1) / support
        return find("maximum")(z - level, find("zeros_like")(z))


@export("contrib.sparsemax.sparsemax_loss")
def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Tensor:
    """The loss of each row whose slope is the difference between `sparsemax(logits)` and the labels."""
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = to_tensor(logits, name="logits")
        p, q = to_tensor(sparsemax, name="sparsemax"), to_tensor(labels, z.dtype, name="labels")
        z = z - find("reduce_max")(z, 1, keepdims=True)
        chosen = find("where")(p > 0, p * (z - 0.5 * p), find("zeros_like")(p))
        return find("reduce_sum")(chosen + q * (0.5 * q - z), 1)


@export("contrib.nn.alpha_dropout")
def alpha_dropout(
    x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """A dropout that keeps mean and deviation, for networks of `selu`."""
    with name_scope(name, "alpha_dropout", [x]):
        x = to_tensor(x, name="x")
        if isinstance(keep_prob, (int, float)) and not 0 < keep_prob <= 1.0:
            raise ValueError(
                f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob:g}"
            )
        keep = to_tensor(keep_prob, x.dtype, name="keep_prob")
        shape = find("shape")(x) if noise_shape is None else noise_shape
        kept = find("floor")(keep + find("random_uniform")(shape, dtype=x.dtype, seed=seed))
        lowest = np.asarray(-1.7580993408473766, x.dtype.as_numpy_dtype)  # what selu gives far to the left
        result = x * kept + lowest * (1 - kept)
        scale = find("rsqrt")(keep + keep * lowest**2 * (1 - keep))
        result = scale * result - scale * lowest * (1 - keep)
        result.set_shape(x.shape)
        return result
