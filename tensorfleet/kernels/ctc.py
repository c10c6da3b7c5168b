"""Connectionist temporal classification in numpy: the loss with its gradient, and greedy decoding.

All sequences of a batch advance together, one time step after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from tensorfleet.base.types import Array

_NEVER, _LOWEST = -np.inf, np.finfo(np.float64).min
_MAX_REDUCED_WIDTH = 4  # from here on numpy's own maximum is as fast


def log_softmax(x: Array) -> Array:
    """The logarithm of the softmax over the last dimension."""
    x = x - _highest(x)
    result: Array = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return result


def _highest(x: Array) -> Array:
    """The maxima over the last dimension, by halves: numpy takes ten times as long for a short dimension."""
    while (n := x.shape[-1]) > _MAX_REDUCED_WIDTH:
        x = np.maximum(x[..., : n - n // 2], x[..., n // 2 :])
    result: Array = x.max(-1, keepdims=True)
    return result


def loss_and_gradient(
    inputs: Array, targets: Sequence[Sequence[int]], lengths: Array, merge_repeated: bool
) -> tuple[Array, Array]:
    """The negative log probability of each target, and its gradient with respect to `inputs`.

    What leads to a place of a path and what follows it are the same sum, over the sequence and over the sequence turned around,
    so both are made together. Arrays are [time, place, sequence]: a step to the next place then is a step to the next row.
    """
    steps, batch, classes = inputs.shape
    scores = inputs.astype(np.float64)
    scores -= _highest(scores)
    gradient = np.exp(scores)
    sums = gradient.sum(-1, keepdims=True)
    path, ends = _paths(targets, classes - 1)
    stays, skips = _moves(path, classes - 1, merge_repeated)
    places = np.arange(batch)[:, None] * classes + path
    emitted = np.take(scores.reshape(steps, batch * classes), places.T, axis=1) - np.log(sums).swapaxes(1, 2)
    turn = _turned(emitted.shape, ends, lengths)
    both = np.concatenate([emitted, emitted.take(turn)], 2)
    before = _arriving(both, _costs(stays, skips, ends), ends)
    through = before[:, :, :batch] + emitted
    last = through[np.maximum(lengths - 1, 0), :, np.arange(batch)]
    rows = np.arange(batch)
    total = np.logaddexp(last[rows, ends], np.where(ends > 0, last[rows, np.maximum(ends - 1, 0)], _NEVER))
    through += np.ascontiguousarray(before[:, :, batch:]).take(turn)
    inside = np.isfinite(total) & (np.arange(path.shape[1])[:, None] <= ends)
    through -= np.where(
        inside, total, np.inf
    )  # nothing leads through other places, or where nothing is possible
    shares = np.exp(through, out=through).transpose(2, 0, 1) @ (path[:, :, None] == np.arange(classes))
    gradient /= sums
    gradient -= shares.swapaxes(0, 1)
    gradient[np.arange(steps)[:, None] >= lengths] = 0.0
    return np.where(lengths > 0, -total, 0.0).astype(inputs.dtype), gradient.astype(inputs.dtype)


def _paths(targets: Sequence[Sequence[int]], blank: int) -> tuple[Array, Array]:
    """The labels of each target with blanks around them, and the position of the last blank."""
    lengths = np.array([len(t) for t in targets], np.int64)
    path = np.full((len(targets), 2 * int(lengths.max(initial=0)) + 1), blank)
    labels = np.fromiter(chain.from_iterable(targets), np.int64, int(lengths.sum()))
    within = np.arange(len(labels)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    path[np.repeat(np.arange(len(targets)), lengths), 2 * within + 1] = np.minimum(labels, blank)
    return path, 2 * lengths


def _moves(path: Array, blank: int, merge_repeated: bool) -> tuple[Array, Array]:
    """Where a path may stay for a step, and where it may have come from two places before."""
    label = path != blank
    stays = ~label | merge_repeated
    skips = label.copy()
    skips[:, :2] = False
    if merge_repeated:
        skips[:, 2:] &= path[:, 2:] != path[:, :-2]
    return stays, skips


def _turned(shape: tuple[int, ...], ends: Array, lengths: Array) -> Array:
    """Where, in the flat array, each place of each step is when sequences and paths are turned around.

    What is behind the end of either does not matter.
    """
    steps, width, batch = shape
    step = np.maximum(lengths - 1 - np.arange(steps)[:, None], 0)[:, None] * width
    place = np.maximum(ends - np.arange(width)[:, None], 0)
    result: Array = (step + place) * batch + np.arange(batch)
    return result


def _costs(stays: Array, skips: Array, ends: Array) -> Array:
    """What it costs to come to a place from two before, from one before and from itself: nothing, or it is not possible."""
    width = stays.shape[1]
    back = np.maximum(ends[:, None] - np.arange(width), 0)
    turned_skips = np.take_along_axis(skips, np.minimum(back + 2, width - 1), 1) & (np.arange(width) > 1)
    allowed = np.ones((3, 2 * len(ends), width), bool)
    allowed[0] = np.concatenate([skips, turned_skips])
    allowed[2] = np.concatenate([stays, np.take_along_axis(stays, back, 1)])
    return np.where(allowed, 0.0, _NEVER).swapaxes(1, 2).copy()


def _arriving(emitted: Array, costs: Array, ends: Array) -> Array:
    """The log probability of all that leads to each place, without what the place emits itself."""
    steps, width, count = emitted.shape
    before = np.empty(emitted.shape)
    before[:1] = _NEVER
    before[:1, 0] = 0.0
    before[:1, 1:2] = np.where(np.tile(ends, 2) > 0, 0.0, _NEVER)
    now = np.full((width + 2, count), _NEVER)  # two places that do not exist come first
    three = np.lib.stride_tricks.sliding_window_view(now, width, 0).swapaxes(1, 2)
    ways, highest = np.empty(three.shape), np.empty((width, count))
    for t in range(1, steps):
        np.add(before[t - 1], emitted[t - 1], out=now[2:])
        np.add(three, costs, out=ways)
        np.maximum.reduce(ways, 0, out=highest)
        np.maximum(highest, _LOWEST, out=highest)
        ways -= highest
        np.exp(ways, out=ways)
        np.log(np.add.reduce(ways, 0, out=before[t]), out=before[t])
        before[t] += highest
    return before


def greedy(inputs: Array, lengths: Array, merge_repeated: bool, blank: int) -> tuple[list[list[int]], Array]:
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
