"""`tf.contrib.losses.metric_learning.cluster_loss`: embeddings whose best clusters are the classes (Song et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.summary.summary import scalar
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.losses.metric_loss_ops import pairwise_distance

_HERE = "contrib.losses.metric_learning"
_CENTER_ITERATIONS = 5  # of moving the centers

# -- how well clusters fit classes -------------------------------------------------------------------


def _counts(labels: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """How many examples of each class, by row, are in each cluster, by column."""
    rows, row = np.unique(labels, return_inverse=True)
    columns, column = np.unique(clusters, return_inverse=True)
    result = np.zeros([len(rows), len(columns)], np.int64)
    np.add.at(result, (row, column), 1)
    return result


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _information(table: np.ndarray) -> tuple[float, float]:
    """The mutual information of clusters and classes, and the mean of both entropies."""
    mean = (_entropy(table.sum(1)) + _entropy(table.sum(0))) / 2
    return 2 * mean - _entropy(table.ravel()), mean


def _mutual(labels: np.ndarray, clusters: np.ndarray) -> float:
    table = _counts(labels, clusters)
    if table.shape == (1, 1):
        return 1.0
    information, mean = _information(table)
    return max(information, 0.0) / mean


def _expected(table: np.ndarray) -> float:
    """The mutual information that clusters of these sizes have by chance."""
    total = int(table.sum())
    log = lambda n: math.lgamma(n + 1)  # noqa: E731
    result = 0.0
    for a in table.sum(1).tolist():
        for b in table.sum(0).tolist():
            fixed = log(a) + log(b) + log(total - a) + log(total - b) - log(total)
            for n in range(max(1, a + b - total), min(a, b) + 1):
                ways = fixed - log(n) - log(a - n) - log(b - n) - log(total - a - b + n)
                result += n / total * math.log(total * n / (a * b)) * math.exp(ways)
    return result


def _adjusted_mutual(labels: np.ndarray, clusters: np.ndarray) -> float:
    table = _counts(labels, clusters)
    if table.shape == (1, 1) or min(table.shape) == len(labels):
        return 1.0
    (information, mean), chance = _information(table), _expected(table)
    rest = mean - chance
    smallest = float(np.finfo(np.float64).eps)
    return (information - chance) / (min(rest, -smallest) if rest < 0 else max(rest, smallest))


def _adjusted_pairs(labels: np.ndarray, clusters: np.ndarray) -> float:
    table = _counts(labels, clusters)
    pairs = lambda counts: float((counts * (counts - 1)).sum()) / 2  # noqa: E731
    together, rows, columns = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    everything = len(labels) * (len(labels) - 1) / 2
    chance = rows * columns / everything if everything else 0.0
    rest = (rows + columns) / 2 - chance
    return 1.0 if rest == 0 else (together - chance) / rest


def _all_the_same(labels: np.ndarray, clusters: np.ndarray) -> float:
    return float(np.array_equal(labels, clusters))


_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "nmi": _mutual,
    "vmeasure": _mutual,
    "ami": _adjusted_mutual,
    "ari": _adjusted_pairs,
    "const": _all_the_same,
}


@export(f"{_HERE}.metric_loss_ops.compute_clustering_score")
def compute_clustering_score(labels: Any, predictions: Any, margin_type: str) -> Tensor:
    """How well clusters fit classes, from 0 to 1; `margin_type` says by which measure."""
    score = _score(margin_type)
    result = find("py_func")(lambda a, b: np.float32(score(a, b)), [labels, predictions], dtypes.float32)
    result.set_shape([])
    return result


def _score(kind: str) -> Callable[[np.ndarray, np.ndarray], float]:
    if kind not in _SCORES:
        raise ValueError(f"Unrecognized margin_type: {kind}")
    return lambda labels, clusters: max(_SCORES[kind](labels, clusters), 0.0)


# -- which examples are centers ----------------------------------------------------------------------


class _Search:
    """Looks for centers that are worst: near to all examples, with clusters that are not the classes."""

    def __init__(self, distances: np.ndarray, labels: np.ndarray, margin: float, score: Callable) -> None:
        self._distances, self._labels, self._margin, self._score = distances, labels, margin, score

    def clusters(self, centers: list[int]) -> np.ndarray:
        """The number of the nearest center of each example; a center is its own."""
        result = self._distances[centers].argmin(0)
        result[centers] = np.arange(len(centers))
        return result

    def wrong(self, centers: list[int]) -> float:
        """How much worse clusters are than the classes, as a loss."""
        return self._margin * (1.0 - self._score(self._labels, self.clusters(centers)))

    def greedy(self) -> list[int]:
        """A center for each class, one after the other."""
        centers: list[int] = []
        for _ in range(len(np.unique(self._labels))):
            rest = [i for i in range(len(self._labels)) if i not in centers]
            values = [self.wrong([*centers, i]) - self._distances[[*centers, i]].min(0).sum() for i in rest]
            centers.append(rest[int(np.argmax(values))])
        return centers

    def moved(self, centers: list[int]) -> list[int]:
        """The centers, each moved to the worst place inside of its cluster, some times."""
        for _ in range(_CENTER_ITERATIONS):
            clusters, centers = self.clusters(centers), list(centers)
            for i in range(len(centers)):
                members = np.flatnonzero(clusters == i).tolist()
                near = -self._distances[np.ix_(members, members)].sum(0)
                tried = [[*centers[:i], m, *centers[i + 1 :]] for m in members]
                values = [n + self.wrong(t) for n, t in zip(near, tried, strict=True)]
                centers = tried[int(np.argmax(values))]
        return centers


def _class_energy(distances: Tensor, labels: Tensor) -> Tensor:
    """How near the examples of each class are to their best center, below zero."""
    classes, number = find("unique")(labels)
    same = find("cast")(find("equal")(labels[:, None], labels[None, :]), distances.dtype)
    sums = find("reduce_sum")(distances * same, 0)
    return -find("reduce_sum")(find("unsorted_segment_min")(sums, number, find("size")(classes)))


@export(f"{_HERE}.cluster_loss")
def cluster_loss(
    labels: Any,
    embeddings: Any,
    margin_multiplier: float,
    enable_pam_finetuning: bool = True,
    margin_type: str = "nmi",
    print_losses: bool = False,
) -> Tensor:
    """How much better the best wrong clusters are than the classes, and by `margin_multiplier` how wrong they are.

    `margin_type` is the measure of that: "nmi", "ami", "ari", "vmeasure" or "const". `enable_pam_finetuning` moves
    the centers that were found to better places.
    """
    score, distances = _score(margin_type), pairwise_distance(embeddings)
    labels = find("squeeze")(labels)

    def search(distances: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.float32]:
        looks = _Search(distances, labels, margin_multiplier, score)
        centers = looks.greedy()
        centers = looks.moved(centers) if enable_pam_finetuning else centers
        return np.array(centers, np.int32), np.float32(score(labels, looks.clusters(centers)))

    centers, fit = find("py_func")(search, [distances, labels], [dtypes.int32, dtypes.float32])
    centers.set_shape([None])
    fit.set_shape([])
    result = -find("reduce_sum")(find("reduce_min")(find("gather")(distances, centers), 0))
    truth = _class_energy(distances, labels)
    loss = find("maximum")(result + margin_multiplier * (1.0 - fit) - truth, 0.0, name="clustering_loss")
    if print_losses:
        loss = find("Print")(loss, ["clustering_loss: ", loss, find("shape")(loss)])
    scalar("losses/score_pred", result)
    scalar(f"losses/{margin_type}", fit)
    scalar("losses/score_gt", truth)
    return loss
