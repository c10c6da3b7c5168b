"""Connectionist temporal classification in numpy: the loss with its gradient, and decoding.

All sequences of a batch advance together, one time step after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
    tops = inputs.max(-1)
    kept = (best != blank) & (np.arange(len(best))[:, None] < lengths)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    decoded = [best[kept[:, b], b].tolist() for b in range(best.shape[1])]
    scores = [-tops[:length, b].sum() for b, length in enumerate(lengths)]
    return decoded, np.array(scores, inputs.dtype).reshape(-1, 1)


def beam_search(
    inputs: np.ndarray, lengths: np.ndarray, width: int, top_paths: int, merge_repeated: bool
) -> tuple[list[list[list[int]]], np.ndarray]:
    """The most probable label sequences of each element, [path][batch], and their log probabilities."""
    batch, blank = inputs.shape[1], inputs.shape[2] - 1
    scores = log_softmax(inputs.astype(np.float64))
    decoded: list[list[list[int]]] = [[] for _ in range(top_paths)]
    probabilities = np.zeros((batch, top_paths), inputs.dtype)
    for b in range(batch):
        beams = _Beams([()], np.zeros(1), np.full(1, _NEVER))
        for t in range(int(lengths[b])):
            beams = _advance(beams, scores[t, b], blank, width)
        best = np.argsort(-beams.whole, kind="stable")[:top_paths].tolist()
        for k, which in enumerate(best):
            path: list[int] = list(beams.labels[which])
            if merge_repeated:
                path = [x for i, x in enumerate(path) if i == 0 or x != path[i - 1]]
            decoded[k].append(path)
            probabilities[b, k] = beams.whole[which]
        for k in range(len(best), top_paths):
            decoded[k].append([])
    return decoded, probabilities


class _Beams(NamedTuple):
    """Label sequences with the log probability of each with a blank last, and with a label last."""

    labels: list[tuple[int, ...]]
    with_blank: np.ndarray
    with_label: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """The log probability of each."""
        return np.logaddexp(self.with_blank, self.with_label)


def _advance(beams: _Beams, step: np.ndarray, blank: int, width: int) -> _Beams:
    """All continuations of the beams by one time step, the best of them.

    The first column of the tables is a beam itself, the others are the beam with one more label.
    """
    whole, count = beams.whole, len(beams.labels)
    last = np.array([labels[-1] if labels else -1 for labels in beams.labels])
    with_blank = np.full((count, blank + 1), _NEVER)
    with_label = np.full((count, blank + 1), _NEVER)
    with_blank[:, 0] = whole + step[blank]
    with_label[:, 1:] = whole[:, None] + step[:blank]
    ended = np.flatnonzero(last >= 0)
    with_label[ended, 0] = beams.with_label[ended] + step[last[ended]]
    # A label that comes again is another one only after a blank.
    with_label[ended, last[ended] + 1] = beams.with_blank[ended] + step[last[ended]]
    there = with_label > _NEVER
    there[:, 0] = True
    _merge(beams.labels, with_blank, with_label, there)
    order = np.where(there, -np.logaddexp(with_blank, with_label), np.nan).ravel().argsort(kind="stable")
    best = order[: min(width, int(there.sum()))]
    rows, columns = np.divmod(best, blank + 1)
    labels = [
        beams.labels[r] if c == 0 else (*beams.labels[r], c - 1)
        for r, c in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return _Beams(labels, with_blank.ravel()[best], with_label.ravel()[best])


def _merge(
    labels: list[tuple[int, ...]], with_blank: np.ndarray, with_label: np.ndarray, there: np.ndarray
) -> None:
    """Joins each beam with the one that becomes the same by one more label, where it comes first of the two."""
    places = {beam: i for i, beam in enumerate(labels)}
    for own, beam in enumerate(labels):
        parent = places.get(beam[:-1]) if beam else None
        if parent is None or not there[parent, beam[-1] + 1]:
            continue
        longer = (parent, beam[-1] + 1)
        kept, gone = (longer, (own, 0)) if parent < own else ((own, 0), longer)
        with_label[kept] = np.logaddexp(with_label[own, 0], with_label[longer])
        with_blank[kept] = with_blank[own, 0]
        there[gone] = False
