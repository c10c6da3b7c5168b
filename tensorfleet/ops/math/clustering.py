"""What k-means is made of: nearest centers, and centers to start from that lie far from each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensorfleet.base import errors
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import philox
from tensorfleet.ops.common import SCALAR, require
from tensorfleet.ops.samples import case

_POINTS = np.array([[0.0, 0.0], [0.5, 1.0], [4.0, 4.0], [4.0, 5.0]], np.float32)
_MAX_DISTANCES = 1 << 20  # distances that are computed at a time


def _same_columns(op: Operation) -> list[TensorShape]:
    rows = op._inputs[0].shape
    first = TensorShape._of((None if rows.rank is None else rows.as_list()[0], None))
    return [first, first]


@op(
    "NearestNeighbors",
    "points: float, centers: float, k: int64 -> nearest_center_indices: int64, nearest_center_distances: float",
    shape=_same_columns,
    host=True,
    examples=[case(_POINTS, _POINTS[1:3], np.int64(2)), case(_POINTS, _POINTS[:3], np.int64(1))],
)
def _nearest_neighbors(ctx: HostContext, points: Array, centers: Array, k: Array) -> tuple[Array, Array]:
    require(points.ndim == 2, "Input points must be a matrix.")
    require(centers.ndim == 2, "Input centers must be a matrix.")
    require(k.ndim == 0 and bool(k > 0), "k must be positive.")
    require(points.shape[1] == centers.shape[1], "Dimension of points and centers must match.")
    count = min(int(k), len(centers))
    squares = (centers * centers).sum(1)
    places = np.zeros((len(points), count), np.int64)
    distances = np.zeros((len(points), count), np.float32)
    step = max(1, _MAX_DISTANCES // max(1, len(centers)))
    for start in range(0, len(points), step):
        rows = points[start : start + step]
        squared = squares - 2 * rows @ centers.T
        order = np.argsort(squared, 1, kind="stable")[:, :count]
        near = np.take_along_axis(squared, order, 1) + (rows * rows).sum(1, keepdims=True)
        places[start : start + step], distances[start : start + step] = order, np.maximum(near, 0)
    return places, distances


class _SeededDraws:
    """Numbers from a stream that begins at a seed, one after the other."""

    def __init__(self, seed: Array) -> None:
        self._words = self._stream(int(seed))

    @staticmethod
    def _stream(seed: int) -> Iterator[int]:
        state, at = philox.initial_state(seed, 0) if seed else np.zeros(6, np.uint32), 0
        while True:
            words = philox.blocks(np, state, np.arange(at, at + 64, dtype=np.uint64))
            yield from words.ravel().tolist()
            at += 64

    def unit(self) -> np.float32:
        """A float in [0, 1)."""
        (unit,) = philox.unit_float(np.array([next(self._words)], np.uint32))
        return np.float32(unit)

    def below(self, limit: int) -> int:
        """An integer in [0, limit): two words give one, and those that some would be likelier by are left out."""
        rest = 0 if limit & (limit - 1) == 0 else (1 << 64) % limit
        while (number := next(self._words) | next(self._words) << 32) < rest:
            pass
        return number % limit


@op(
    "KmeansPlusPlusInitialization",
    "points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 -> samples: float",
    shape=lambda op: TensorShape._of(
        (None, op._inputs[0].shape.as_list()[1] if op._inputs[0].shape.rank else None)
    ),
    host=True,
    examples=[case(_POINTS, np.int64(2), np.int64(7), np.int64(3))],
)
def _kmeans_plus_plus(
    ctx: HostContext, points: Array, num_to_sample: Array, seed: Array, num_retries_per_sample: Array
) -> Array:
    wanted, retries = int(num_to_sample), int(num_retries_per_sample)
    require(points.ndim == 2, "Input points must be a matrix.")
    require(wanted > 0, "num_to_sample must be positive.")
    require(retries >= 0, "num_retries_per_sample must be non-negative.")
    if len(points) < wanted:
        raise errors.invalid(
            f"num_to_sample must not exceed the number of points: {wanted} of {len(points)}."
        )
    draws, taken = _SeededDraws(seed), list[int]()
    distances = np.full(len(points), np.inf, np.float32)
    cumulative = distances
    for _ in range(wanted):
        tries = [_drawn(draws, taken, cumulative, len(points)) for _ in range(retries + 1)]
        near = [np.minimum(distances, _squared_distances(points, index)) for index in tries]
        best = int(np.argmin([d.sum() for d in near]))
        taken.append(tries[best])
        distances = near[best]
        cumulative = np.cumsum(distances, dtype=np.float32)
    return points[taken]


def _drawn(draws: _SeededDraws, taken: list[int], cumulative: Array, size: int) -> int:
    """A point that is not taken, more likely the farther it is from all that are."""
    if not taken:
        return draws.below(size)
    while True:
        index = int(np.searchsorted(cumulative, draws.unit() * cumulative[-1], side="right"))
        if index not in taken:
            return index


def _squared_distances(points: Array, index: int) -> Array:
    result: Array = ((points - points[index]) ** 2).sum(1)
    return result


@op(
    "KMC2ChainInitialization",
    "distances: float, seed: int64 -> index: int64",
    shape=lambda op: SCALAR,
    host=True,
    examples=[case(np.array([1.0, 0.5, 4.0, 3.0], np.float32), np.int64(5))],
)
def _kmc2_chain(ctx: HostContext, distances: Array, seed: Array) -> np.int64:
    require(distances.ndim == 1 and len(distances) > 0, "Input distances must be a vector with elements.")
    draws, index = _SeededDraws(seed), 0
    for i in range(1, len(distances)):
        if distances[i] > draws.unit() * distances[index]:
            index = i
    return np.int64(index)


not_differentiable("NearestNeighbors", "KmeansPlusPlusInitialization", "KMC2ChainInitialization")
