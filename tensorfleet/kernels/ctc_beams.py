"""Beam search over the labels of connectionist temporal classification, all sequences of a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensorfleet.base.types import Array
from tensorfleet.kernels.ctc import log_softmax

_NEVER = -np.inf
_MAX_TABLE_ELEMENTS = 1 << 18  # elements of a table


def beam_search(
    inputs: Array, lengths: Array, width: int, top_paths: int, merge_repeated: bool
) -> tuple[list[list[list[int]]], Array]:
    """The most probable label sequences of each element, [path][batch], and their log probabilities."""
    _, batch, classes = inputs.shape
    decoded: list[list[list[int]]] = [[] for _ in range(top_paths)]
    probabilities = np.zeros((batch, top_paths), inputs.dtype)
    group = max(1, _MAX_TABLE_ELEMENTS // (width * classes))
    for start in range(0, batch, group):
        some = slice(start, start + group)
        scores = log_softmax(inputs[:, some].astype(np.float64))
        tree = _Tree(scores.shape[1])
        beams = _searched(scores, lengths[some], width, tree)
        order = np.argsort(np.where(beams.there, -beams.whole, np.nan), kind="stable")[:, :top_paths]
        for b, best in enumerate(order.tolist()):
            best = [which for which in best if beams.there[b, which]]
            for k, which in enumerate(best):
                decoded[k].append(tree.labels(int(beams.nodes[b, which]), merge_repeated))
                probabilities[start + b, k] = beams.whole[b, which]
            for k in range(len(best), top_paths):
                decoded[k].append([])
    return decoded, probabilities


class _Tree:
    """Label sequences as nodes: each is another one and a label more. Every element of a batch has a root of its own."""

    def __init__(self, batch: int) -> None:
        self._parents = [-1] * batch
        self._last = [-1] * batch
        self._children: dict[tuple[int, int], int] = {}

    def longer(self, nodes: list[int], labels: list[int]) -> list[int]:
        """The nodes that are some nodes with a label more each, or themselves where the label is -1."""
        return [n if x < 0 else self._child(n, x) for n, x in zip(nodes, labels, strict=True)]

    def _child(self, node: int, label: int) -> int:
        result = self._children.setdefault((node, label), len(self._parents))
        if result == len(self._parents):
            self._parents.append(node)
            self._last.append(label)
        return result

    def parents(self, nodes: list[int]) -> list[int]:
        """The nodes without their last labels."""
        return [self._parents[n] for n in nodes]

    def last(self, nodes: list[int]) -> list[int]:
        """The last label of each node, -1 of roots."""
        return [self._last[n] for n in nodes]

    def labels(self, node: int, merge_repeated: bool) -> list[int]:
        """The sequence that a node stands for."""
        path: list[int] = []
        while self._parents[node] >= 0:
            path.append(self._last[node])
            node = self._parents[node]
        path.reverse()
        return [x for i, x in enumerate(path) if i == 0 or not merge_repeated or x != path[i - 1]]


@dataclass
class _Beams:
    """Nodes, [batch, beam], with the log probability of each with a blank last, and with a label last."""

    nodes: Array
    with_blank: Array
    with_label: Array
    there: Array

    @property
    def whole(self) -> Array:
        """The log probability of each."""
        return np.logaddexp(self.with_blank, self.with_label)


def _searched(scores: Array, lengths: Array, width: int, tree: _Tree) -> _Beams:
    """The beams of each sequence at its end."""
    batch = scores.shape[1]
    nothing = np.full((batch, width), _NEVER)
    beams = _Beams(np.zeros((batch, width), np.int64), nothing, nothing.copy(), nothing > 0)
    beams.nodes[:, 0], beams.with_blank[:, 0], beams.there[:, 0] = np.arange(batch), 0.0, True
    for t, step in enumerate(scores):
        on = np.flatnonzero(t < lengths)
        if not len(on):
            break
        now = _Beams(beams.nodes[on], beams.with_blank[on], beams.with_label[on], beams.there[on])
        new = _advance(now, step[on], tree)
        beams.nodes[on], beams.with_blank[on], beams.with_label[on] = (
            new.nodes,
            new.with_blank,
            new.with_label,
        )
        beams.there[on] = new.there
    return beams


def _advance(beams: _Beams, step: Array, tree: _Tree) -> _Beams:
    """All continuations of the beams by one time step, the best of them.

    The first column of the tables is a beam itself, the others are the beam with one more label.
    """
    batch, width = beams.nodes.shape
    blank, whole, nodes = step.shape[1] - 1, beams.whole, beams.nodes.ravel().tolist()
    last = np.array(tree.last(nodes)).reshape(batch, width)
    row, beam = np.nonzero((last >= 0) & beams.there)
    label = last[row, beam]
    with_label = np.empty((batch, width, blank + 1))
    with_label[..., 0] = _NEVER
    np.add(whole[..., None], step[:, None, :blank], with_label[..., 1:])
    with_label[row, beam, 0] = beams.with_label[row, beam] + step[row, label]
    # A label that comes again is another one only after a blank.
    with_label[row, beam, label + 1] = beams.with_blank[row, beam] + step[row, label]
    with_blank = np.full(with_label.shape, _NEVER)
    with_blank[..., 0] = whole + step[:, blank:]
    both = with_label.copy()
    both[..., 0] = np.logaddexp(with_blank[..., 0], with_label[..., 0])
    there = both > _NEVER
    there[..., 0] = True
    there &= beams.there[..., None]
    parents = np.array(tree.parents(nodes)).reshape(batch, width)
    _merge((row, beam, label), parents, beams, (with_blank, with_label, both, there))
    return _best((with_blank, with_label, both, there), beams, tree)


def _merge(
    ended: tuple[Array, Array, Array],
    parents: Array,
    beams: _Beams,
    tables: tuple[Array, Array, Array, Array],
) -> None:
    """Joins each beam with the one that becomes the same by one more label, where it comes first of the two."""
    row, own, label = ended
    with_blank, with_label, both, there = tables
    same = (parents[row, own, None] == beams.nodes[row]) & beams.there[row]
    parent = same.argmax(1)
    joined = np.flatnonzero(same.any(1) & there[row, parent, label + 1])
    row, own, parent, label = row[joined], own[joined], parent[joined], label[joined] + 1
    merged = np.logaddexp(with_label[row, own, 0], with_label[row, parent, label])
    blanks, first = with_blank[row, own, 0], parent < own
    kept = (row, np.where(first, parent, own), np.where(first, label, 0))
    with_label[kept], with_blank[kept], both[kept] = merged, blanks, np.logaddexp(blanks, merged)
    there[row, np.where(first, own, parent), np.where(first, 0, label)] = False


def _best(tables: tuple[Array, Array, Array, Array], beams: _Beams, tree: _Tree) -> _Beams:
    """As many of all continuations as there are beams, the first of equal ones first."""
    batch, width = beams.nodes.shape
    with_blank, with_label, both, there = (table.reshape(batch, -1) for table in tables)
    score = np.where(there, -both, np.nan)  # what is no number comes last
    if score.shape[1] > width:
        limit = np.partition(score, width - 1, axis=1)[:, width - 1, None]
        row, place = np.nonzero((score <= limit) | (np.isnan(limit) & there))
    else:
        row, place = np.nonzero(there)
    order = np.lexsort((score[row, place], row))
    row, place = row[order], place[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    row, place, rank = (x[rank < width] for x in (row, place, rank))
    beam, column = np.divmod(place, tables[0].shape[2])
    longer = tree.longer(beams.nodes[row, beam].tolist(), (column - 1).tolist())
    empty = np.full((batch, width), _NEVER)
    new = _Beams(np.zeros((batch, width), np.int64), empty, empty.copy(), empty > 0)
    new.nodes[row, rank], new.there[row, rank] = longer, True
    new.with_blank[row, rank], new.with_label[row, rank] = with_blank[row, place], with_label[row, place]
    return new
