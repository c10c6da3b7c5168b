"""Of boxes that overlap, keeping the best: non-max suppression in all its versions."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from copy import copy
from itertools import chain
from typing import Any

import numpy as np

from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array
from tensorfleet.graph.kernel_types import HostContext
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels.parallel_for import in_parts
from tensorfleet.ops.common import SCALAR, require, static_value, vector_of
from tensorfleet.ops.nn.shapes import of_rank, same_dimension
from tensorfleet.ops.samples import case

_BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    np.float32,
)
_SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)
_HALF, _LOW = np.float32(0.5), np.float32(0.4)


class _Boxes:
    """Groups of boxes (group, box, corner), with their areas; each group stands for so many."""

    def __init__(self, boxes: Array, times: int = 1) -> None:
        y, x, other_y, other_x = boxes.reshape(-1, 4).T
        low, high = np.minimum([y, x], [other_y, other_x]), np.maximum([y, x], [other_y, other_x])
        self.parts = np.concatenate([low, high, np.prod(high - low, 0, keepdims=True)])
        self.flat = bool((self.parts[4] <= 0).any())
        self.starts = np.repeat(np.arange(len(boxes)), times)[:, None] * boxes.shape[1]

    def of(self, start: int, stop: int) -> _Boxes:
        """Those of some of the groups."""
        result = copy(self)
        result.starts = self.starts[start:stop]
        return result

    def overlaps(self, some: Array, others: Array) -> Array:
        """Intersection over union of each of some boxes with each of others; zero for boxes without area."""
        mine = self.parts.take(self.starts + some, 1)[..., None]
        their = self.parts.take(self.starts + others, 1)[..., None, :]
        sides = np.minimum(mine[2:4], their[2:4])
        sides -= np.maximum(mine[:2], their[:2])
        # An array of zeros: numpy is slow with one number.
        shared: Array
        shared, width = np.maximum(sides, np.zeros_like(sides), out=sides)
        shared *= width
        union = np.add(mine[4], their[4], out=width)
        union -= shared
        if self.flat:
            union[union <= 0] = 1
        shared /= union
        if self.flat:
            shared[(mine[4] <= 0) | (their[4] <= 0)] = 0
        return shared


# Boxes of one group, and of each of several, that are compared with those kept, and with each other, at a time.
_BOXES_AT_ONCE = 64
_BOXES_AT_ONCE_PER_GROUP = 32
_BOXES_PER_THREAD = 1 << 17  # boxes that are worth a thread of their own


def _keep_apart(
    overlaps: Callable[[Any, Any], Array], scores: Array, limit: int, threshold: float, least: float
) -> list[list[int]]:
    """The boxes kept of each group, best first: none that overlaps a better one that is kept."""
    counts = (scores > least).sum(1).tolist()
    size = _BOXES_AT_ONCE if len(scores) == 1 else _BOXES_AT_ONCE_PER_GROUP
    order = _best_first(scores, size * (1 + 2 * limit // size))
    kept: list[list[int]] = [[] for _ in scores]
    for start in range(0, max(counts, default=0), size):
        if all(len(group) >= min(limit, n) for group, n in zip(kept, counts, strict=True)):
            break
        if start == order.shape[1]:
            order = _best_first(scores, scores.shape[1])
        some = order[:, start : start + size]
        before = np.zeros((len(kept), max(map(len, kept))), np.int64)
        for row, group in zip(before, kept, strict=True):
            row[: len(group)] = group
        taken = np.arange(start, start + some.shape[1]) >= np.array(counts)[:, None]
        if before.size:
            close_to_kept = overlaps(some, before) > threshold
            close_to_kept &= (np.arange(before.shape[1]) < np.array(list(map(len, kept)))[:, None])[:, None]
            taken |= close_to_kept.any(2)
        close = _as_bits(overlaps(some, some) > threshold)
        for group, which, gone, near in zip(kept, some.tolist(), _as_bits(taken), close, strict=True):
            for i, box in enumerate(which):
                if not gone >> i & 1:
                    group.append(box)
                    if len(group) >= limit:
                        break
                    gone |= near[i]
    return [group[:limit] for group in kept]


def _best_first(scores: Array, count: int) -> Array:
    """Where along the last axis the highest score is, the second ...; of equal ones the first comes first.

    At least so many of them. A score and its place make one whole number of 64 bits, which are sorted faster than fractions;
    those of 32 bits, a score alone, eight times as fast, and tell which scores are high enough.
    """
    bits = (np.fmax(scores.astype(np.float32), -np.inf) + np.float32(0)).view(np.int32)
    falling = ~(bits ^ (bits >> 31 & 0x7FFFFFFF))  # as the scores rise, below zero too
    places = np.arange(scores.shape[-1])
    if 4 * count <= scores.shape[-1]:
        enough = falling <= np.partition(falling, count - 1, -1)[:, count - 1 : count]
        candidates = np.flatnonzero(enough)
        if len(candidates) == count * len(scores):  # or some are equal
            candidates = candidates.reshape(-1, count)
            places = candidates - np.arange(len(scores))[:, None] * scores.shape[-1]
            falling = falling.ravel()[candidates]
    both = falling.astype(np.int64) << 32 | places
    return np.sort(both, -1) & 0xFFFFFFFF


def _as_bits(flags: Array) -> list[Any]:
    """The flags along the last axis as one number, the first flag as its lowest bit."""
    size = _BOXES_AT_ONCE if flags.shape[-1] > _BOXES_AT_ONCE_PER_GROUP else _BOXES_AT_ONCE_PER_GROUP
    padded = np.zeros((*flags.shape[:-1], size), bool)
    padded[..., : flags.shape[-1]] = flags
    numbers: list[Any] = np.packbits(padded, -1, bitorder="little").view(f"<u{size // 8}")[..., 0].tolist()
    return numbers


def _soften(
    overlaps: Callable[[Any, Any], Array], scores: Array, limit: int, least: float, sigma: float
) -> tuple[list[int], list[float]]:
    """The boxes kept, best first, with their scores: lowered by each overlap with one that is kept."""
    queue = [(-s, i, 0) for i, s in enumerate(scores.tolist()) if s > least]
    heapq.heapify(queue)
    kept: list[int] = []
    kept_scores: list[float] = []
    while queue and len(kept) < limit:
        negative, which, seen = heapq.heappop(queue)
        score = -negative
        if len(kept) > seen:
            for each in overlaps(np.array([[which]]), np.array([kept[seen:]]))[0, 0, ::-1].tolist():
                score = float(np.float32(score * math.exp(-0.5 / sigma * each * each)))
                if score <= least:
                    break
        if score == -negative:
            kept.append(which)
            kept_scores.append(score)
        elif score > least:
            heapq.heappush(queue, (-score, which, len(kept)))
    return kept, kept_scores


def _check_boxes(boxes: Array, scores: Array, threshold: float) -> None:
    require(0 <= threshold <= 1, "iou_threshold must be in [0, 1]")
    require(boxes.ndim == 2, f"boxes must be 2-D{list(boxes.shape)}")
    require(boxes.shape[1] == 4, "boxes must have 4 columns")
    require(scores.ndim == 1, f"scores must be 1-D{list(scores.shape)}")
    require(
        len(scores) == len(boxes), f"scores has incompatible shape: {len(scores)} scores, {len(boxes)} boxes"
    )


def _best(
    boxes: Array,
    scores: Array,
    limit: Array,
    threshold: Array | float,
    least: Array | float = -math.inf,
    sigma: float = 0.0,
) -> tuple[list[int], list[float]]:
    boxes, scores = np.asarray(boxes, np.float32), np.asarray(scores)
    _check_boxes(boxes, scores, float(threshold))
    require(int(limit) >= 0, f"max_output_size must be non-negative, got {int(limit)}")
    if sigma > 0:
        return _soften(_Boxes(boxes[None]).overlaps, scores, int(limit), float(least), sigma)
    kept = _keep_apart(
        _Boxes(boxes[None]).overlaps, scores[None], int(limit), float(threshold), float(least)
    )[0]
    return kept, scores[kept].tolist()


def _kept(op: Operation) -> TensorShape:
    boxes, scores = of_rank(op._inputs[0].shape, 2), of_rank(op._inputs[1].shape, 1)
    same_dimension(boxes.as_list()[0], scores.as_list()[0])
    if boxes.as_list()[1] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes.as_list()[1]}")
    for t in op._inputs[2:]:
        of_rank(t.shape, 0)
    return vector_of(None)


def _kept_padded(op: Operation) -> TensorShape:
    limit = static_value(op, 2)
    _kept(op)
    return vector_of(None if limit is None or not op._attrs["pad_to_max_output_size"] else int(limit))


def _padded(values: Sequence[float], limit: Array, pad: bool, dtype: type | np.dtype[Any]) -> Array:
    missing = max(int(limit) - len(values), 0) if pad else 0
    return np.array([*values, *[0] * missing], dtype)


@op(
    "NonMaxSuppression",
    "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
    "iou_threshold: float = 0.5",
    shape=_kept,
    host=True,
    examples=[case(_BOXES, _SCORES, np.int32(3))],
)
def _nms(ctx: HostContext, boxes: Array, scores: Array, limit: Array, *, iou_threshold: float) -> Array:
    return np.array(_best(boxes, scores, limit, iou_threshold)[0], np.int32)


_TYPES = "T: {half, float} = float; T_threshold: {half, float} = float"


@op(
    "NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
    _TYPES,
    shape=_kept,
    host=True,
    examples=[case(_BOXES, _SCORES, np.int32(3), _HALF)],
)
def _nms_v2(ctx: HostContext, boxes: Array, scores: Array, limit: Array, threshold: Array) -> Array:
    return np.array(_best(boxes, scores, limit, threshold)[0], np.int32)


_V3 = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold -> "


@op(
    "NonMaxSuppressionV3",
    _V3 + "selected_indices: int32",
    _TYPES,
    shape=_kept,
    host=True,
    examples=[
        case(_BOXES, _SCORES, np.int32(30), _HALF, _LOW),
        case(_BOXES, _SCORES, np.int32(0), _HALF, _LOW),
    ],
)
def _nms_v3(
    ctx: HostContext, boxes: Array, scores: Array, limit: Array, threshold: Array, least: Array
) -> Array:
    return np.array(_best(boxes, scores, limit, threshold, least)[0], np.int32)


@op(
    "NonMaxSuppressionV4",
    _V3 + "selected_indices: int32, valid_outputs: int32",
    _TYPES + "; pad_to_max_output_size: bool = false",
    shape=lambda op: [_kept_padded(op), SCALAR],
    host=True,
    examples=[
        case(_BOXES, _SCORES, np.int32(5), _HALF, _LOW, pad_to_max_output_size=p) for p in (True, False)
    ],
)
def _nms_v4(
    ctx: HostContext,
    boxes: Array,
    scores: Array,
    limit: Array,
    threshold: Array,
    least: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Array, np.int32]:
    kept, _ = _best(boxes, scores, limit, threshold, least)
    return _padded(kept, limit, pad_to_max_output_size, np.int32), np.int32(len(kept))


@op(
    "NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
    "selected_indices: int32, selected_scores: T, valid_outputs: int32",
    "T: {half, float} = float; pad_to_max_output_size: bool = false",
    shape=lambda op: [_kept_padded(op), _kept_padded(op), SCALAR],
    host=True,
    examples=[
        case(_BOXES, _SCORES, np.int32(6), _HALF, np.float32(0), np.float32(s), grad=False) for s in (0, 0.5)
    ],
)
def _nms_v5(
    ctx: HostContext,
    boxes: Array,
    scores: Array,
    limit: Array,
    threshold: Array,
    least: Array,
    sigma: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Array, Array, np.int32]:
    kept, values = _best(boxes, scores, limit, threshold, least, float(sigma))
    pad = pad_to_max_output_size
    dtype = np.asarray(scores).dtype
    return (
        _padded(kept, limit, pad, np.int32),
        _padded(values, limit, pad, dtype),
        np.int32(len(kept)),
    )


@op(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float[n,n], scores: float[n], max_output_size: int32[0], overlap_threshold: float[0], score_threshold: float[0] -> "
    "selected_indices: int32",
    shape=lambda op: vector_of(None),
    host=True,
    examples=[
        case(np.eye(3, dtype=np.float32) + np.float32(0.2), _SCORES[:3], np.int32(3), np.float32(t), _LOW)
        for t in (0.1, 0.5)
    ],
)
def _nms_overlaps(
    ctx: HostContext, overlaps: Array, scores: Array, limit: Array, threshold: Array, least: Array
) -> Array:
    overlaps, scores = np.asarray(overlaps), np.asarray(scores)
    require(overlaps.ndim == 2 and overlaps.shape[0] == overlaps.shape[1], "overlaps must be square")
    kept = _keep_apart(
        lambda i, j: overlaps[i[..., None], j[:, None]],
        scores[None],
        int(limit),
        float(threshold),
        float(least),
    )
    return np.array(kept[0], np.int32)


def _combined_shapes(op: Operation) -> list[TensorShape]:
    batch = of_rank(op._inputs[0].shape, 4).as_list()[0]
    per_class, total = static_value(op, 2), static_value(op, 3)
    classes = of_rank(op._inputs[1].shape, 3).as_list()[2]
    count = None if total is None else int(total)
    if op._attrs["pad_per_class"] and count is not None:
        known = per_class is not None and classes is not None
        count = min(count, int(per_class) * classes) if known else None  # type: ignore[arg-type]
    line = TensorShape([batch, count])
    return [TensorShape([batch, count, 4]), line, line, TensorShape([batch])]


@op(
    "CombinedNonMaxSuppression",
    "boxes: float[b,n,_,4], scores: float[b,n,_], max_output_size_per_class: int32[0], max_total_size: int32[0], iou_threshold: float[0], "
    "score_threshold: float[0] -> nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
    "valid_detections: int32",
    "pad_per_class: bool = false; clip_boxes: bool = true",
    shape=_combined_shapes,
    host=True,
    examples=[
        case(
            np.stack([_BOXES, _BOXES / 20])[:, :, None],
            np.stack([_SCORES, _SCORES[::-1]])[:, :, None] * np.array([1, 0.7], np.float32),
            np.int32(3),
            np.int32(5),
            _HALF,
            np.float32(0.25),
            clip_boxes=clip,
            pad_per_class=not clip,
        )
        for clip in (True, False)
    ],
)
def _combined_nms(
    ctx: HostContext,
    boxes: Array,
    scores: Array,
    per_class: Array,
    total: Array,
    threshold: Array,
    least: Array,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[Array, Array, Array, Array]:
    boxes, scores = np.asarray(boxes), np.asarray(scores)
    require(int(per_class) > 0, "max_size_per_class must be positive")
    batch, classes = scores.shape[0], scores.shape[2]
    require(boxes.shape[2] in (1, classes), "third dimension of boxes must be either 1 or num classes")
    size = min(int(total), int(per_class) * classes) if pad_per_class else int(total)
    out_boxes = np.zeros((batch, size, 4), np.float32)
    out_scores, out_classes = np.zeros((2, batch, size), np.float32)
    each = boxes.swapaxes(1, 2).reshape(-1, boxes.shape[1], 4)
    by_class = np.ascontiguousarray(scores.swapaxes(1, 2)).reshape(batch * classes, scores.shape[1])
    times = classes // max(boxes.shape[2], 1)  # that have the same boxes
    if len(each) and classes:
        _check_boxes(each[0], by_class[0], float(threshold))
    groups = _Boxes(each, times)
    kept: list[list[int]] = [[]] * len(by_class)

    def some(start: int, stop: int) -> None:
        kept[start:stop] = _keep_apart(
            groups.of(start, stop).overlaps,
            by_class[start:stop],
            int(per_class),
            float(threshold),
            float(least),
        )

    in_parts(some, len(by_class), _BOXES_PER_THREAD // max(scores.shape[1], 1) + 1)
    group = np.repeat(np.arange(len(kept)), list(map(len, kept)))
    box = np.fromiter(chain.from_iterable(kept), np.int64, len(group))
    scores_of, image = by_class[group, box], group // max(classes, 1)
    best = np.lexsort((-scores_of, image))  # those of an image together, best first
    starts = np.searchsorted(image, np.arange(batch + 1))  # they were together before, too
    rank = np.arange(len(best)) - starts[image]
    best, image, rank = best[rank < size], image[rank < size], rank[rank < size]
    group, box = group[best], box[best]
    chosen = each[group // max(times, 1), box]
    out_boxes[image, rank] = np.clip(chosen, 0, 1) if clip_boxes else chosen
    out_scores[image, rank], out_classes[image, rank] = scores_of[best], group - image * classes
    valid = np.minimum(np.diff(starts), size).astype(np.int32)
    return out_boxes, out_scores, out_classes, valid


not_differentiable("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
not_differentiable("NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "CombinedNonMaxSuppression")
