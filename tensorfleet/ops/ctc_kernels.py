"""Connectionist temporal classification in numpy: the loss with its gradient, and greedy decoding.

All sequences of a batch advance together, one time step after another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_NEVER = -np.inf


def log_softmax(x: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over the last dimension."""
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def loss_and_gradient(
    inputs: np.ndarray, targets: list[list[int]], lengths: np.ndarray, merge_repeated: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The negative log probability of each target, and its gradient with respect to `inputs`."""
    steps, batch, classes = inputs.shape
    scores = log_softmax(inputs.astype(np.float64))
    path, ends = _paths(targets, classes - 1)
    emitted = np.take_along_axis(scores, np.broadcast_to(path[None], (steps, *path.shape)), 2)
    stays, skips = _moves(path, classes - 1, merge_repeated)
    forward = _forward(emitted, stays, skips, ends, lengths)
    backward = _backward(emitted, stays, skips, ends, lengths)
    last = np.maximum(lengths - 1, 0)
    rows = np.arange(batch)
    total = np.logaddexp(
        forward[last, rows, ends], np.where(ends > 0, forward[last, rows, np.maximum(ends - 1, 0)], _NEVER)
    )
    loss = np.where(lengths > 0, -total, 0.0)
    gradient = np.exp(scores)
    with np.errstate(invalid="ignore"):
        shares = np.exp(forward + backward - np.where(np.isfinite(total), total, 0.0)[:, None])
    for b in range(batch):
        if np.isfinite(total[b]):
            chosen = np.zeros((path.shape[1], classes))
            chosen[np.arange(path.shape[1]), path[b]] = 1.0
            gradient[:, b] -= shares[:, b] @ chosen
        gradient[lengths[b] :, b] = 0.0
    return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)


def _paths(targets: list[list[int]], blank: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels of each target with blanks around them, and the position of the last blank."""
    longest = max((len(t) for t in targets), default=0)
    path = np.full((len(targets), 2 * longest + 1), blank)
    for row, target in zip(path, targets, strict=True):
        row[1 : 2 * len(target) : 2] = np.minimum(target, blank)
    return path, np.array([2 * len(t) for t in targets], np.int64)


def _moves(path: np.ndarray, blank: int, merge_repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where a path may stay for a step, and where it may have come from two places before."""
    label = path != blank
    stays = ~label | merge_repeated
    skips = label.copy()
    skips[:, :2] = False
    if merge_repeated:
        skips[:, 2:] &= path[:, 2:] != path[:, :-2]
    return stays, skips


def _forward(emitted: Any, stays: Any, skips: Any, ends: Any, lengths: Any) -> np.ndarray:
    found = np.full(emitted.shape, _NEVER)
    now = np.full(emitted.shape[1:], _NEVER)
    now[:, 0] = 0.0
    for t in range(emitted.shape[0]):
        if t == 0:
            now[:, 1:2] = np.where(ends[:, None] > 0, 0.0, _NEVER)[:, : now.shape[1] - 1]
            new = now
        else:
            new = np.where(stays, now, _NEVER)
            new[:, 1:] = np.logaddexp(new[:, 1:], now[:, :-1])
            new[:, 2:] = np.logaddexp(new[:, 2:], np.where(skips[:, 2:], now[:, :-2], _NEVER))
        now = np.where((t < lengths)[:, None], new + emitted[t], now)
        found[t] = now
    return found


def _backward(emitted: Any, stays: Any, skips: Any, ends: Any, lengths: Any) -> np.ndarray:
    """The log probability of what follows each place, without what it emits itself."""
    steps, batch, width = emitted.shape
    found = np.full(emitted.shape, _NEVER)
    places = np.arange(width)
    final = np.where(
        (places == ends[:, None]) | ((places == ends[:, None] - 1) & (ends[:, None] > 0)), 0.0, _NEVER
    )
    now = np.full((batch, width), _NEVER)
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            following = now + emitted[t + 1]
            new = np.where(stays, following, _NEVER)
            new[:, :-1] = np.logaddexp(new[:, :-1], following[:, 1:])
            new[:, :-2] = np.logaddexp(new[:, :-2], np.where(skips[:, 2:], following[:, 2:], _NEVER))
        else:
            new = now
        now = np.where((t == lengths - 1)[:, None], final, new)
        found[t] = now
    return found


def greedy(
    inputs: np.ndarray, lengths: np.ndarray, merge_repeated: bool, blank: int
) -> tuple[list, np.ndarray]:
    """The best label of every step, blanks left out, and the negated sum of their scores."""
    best = inputs.argmax(-1)
    tops = np.take_along_axis(inputs, best[..., None], -1)[..., 0]
    within = np.arange(len(best))[:, None] < lengths
    kept = (best != blank) & within
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    labels, ends = best.T[kept.T].tolist(), kept.sum(0).cumsum().tolist()
    decoded = [labels[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    scores = -np.where(within, tops, 0).sum(0)
    return decoded, scores.astype(inputs.dtype).reshape(-1, 1)
