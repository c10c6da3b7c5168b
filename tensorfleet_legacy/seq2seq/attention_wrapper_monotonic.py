"""Attention that moves forward only: the chance of each step of a memory to be the one that is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """A running product of probabilities by their logarithms, whose gradient is finite at zero."""
    with name_scope(None, "SafeCumprod", [x]):
        x = to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        logs = find("log")(find("clip_by_value")(x, tiny, 1))
        return find("exp")(find("cumsum")(logs, *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """Where attention is after each step of the memory was stopped at with a probability, from left to right.

    `mode` tells how it is computed: "recursive" step by step, "parallel" by running products, "hard" for
    probabilities of 0 and 1.
    """
    p = to_tensor(p_choose_i, name="p_choose_i")
    before = to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        return _recursive(p, before)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        shares = before / find("clip_by_value")(passed, 1e-10, 1.0)
        return p * passed * find("cumsum")(shares, axis=1)
    if mode == "hard":
        p = p * find("cumsum")(before, axis=1)
        return p * find("cumprod")(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _recursive(p: Tensor, before: Tensor) -> Tensor:
    batch = p.shape.as_list()[0] or find("shape")(p)[0]
    first = find("ones")([batch, 1], p.dtype)
    passed = find("concat")([first, 1 - p[:, :-1]], 1)
    turned = [find("transpose")(x) for x in (passed, before)]
    reached = find("scan")(
        lambda x, yz: find("reshape")(yz[0] * x + yz[1], [batch]), turned, find("zeros")([batch], p.dtype)
    )
    return p * find("transpose")(reached)


def monotonic_probabilities(
    score: Tensor, previous_alignments: Tensor, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Tensor:
    """Attention of scores, to which noise is added so that they are learned to be large."""
    if sigmoid_noise > 0:
        score = score + sigmoid_noise * find("random_normal")(find("shape")(score), seed=seed)
    p = find("cast")(score > 0, score.dtype) if mode == "hard" else find("sigmoid")(score)
    return monotonic_attention(p, previous_alignments, mode)
