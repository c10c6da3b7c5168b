"""Boxes on images, and glimpses of them: the functions over the ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope

# TensorFlow's default for thresholds of scores.
_NO_LIMIT = float("-inf")


@export("image.non_max_suppression")
def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _NO_LIMIT,
    name: str | None = None,
) -> Tensor:
    """Which of `boxes` [count, 4] to keep, best first, so that no two overlap by more than the threshold."""
    with name_scope(name, "non_max_suppression"):
        overlap, least = _thresholds(iou_threshold, score_threshold)
        return apply("NonMaxSuppressionV3", boxes, scores, max_output_size, overlap, least)


def _thresholds(overlap: TensorLike, least: TensorLike) -> tuple[Tensor, Tensor]:
    return to_tensor(overlap, name="iou_threshold"), to_tensor(least, name="score_threshold")


@export("image.non_max_suppression_with_scores")
def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _NO_LIMIT,
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Which boxes to keep, and their scores: lowered by overlaps when `soft_nms_sigma` is positive."""
    with name_scope(name, "non_max_suppression_with_scores"):
        overlap, least = _thresholds(iou_threshold, score_threshold)
        sigma = to_tensor(soft_nms_sigma, name="soft_nms_sigma")
        outputs = apply_list("NonMaxSuppressionV5", boxes, scores, max_output_size, overlap, least, sigma)
        return outputs[0], outputs[1]


@export("image.non_max_suppression_padded")
def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _NO_LIMIT,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> list[Tensor]:
    """Which boxes to keep, filled up with zeros when asked to, and how many of them count."""
    with name_scope(name, "non_max_suppression_padded"):
        overlap, least = _thresholds(iou_threshold, score_threshold)
        given, pad = (boxes, scores, max_output_size, overlap, least), pad_to_max_output_size
        return apply_list("NonMaxSuppressionV4", *given, pad_to_max_output_size=pad)


@export("image.non_max_suppression_overlaps")
def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _NO_LIMIT,
    name: str | None = None,
) -> Tensor:
    """Which boxes to keep, given how much each overlaps each."""
    with name_scope(name, "non_max_suppression_overlaps"):
        threshold = to_tensor(overlap_threshold, name="overlap_threshold")
        return apply(
            "NonMaxSuppressionWithOverlaps", overlaps, scores, max_output_size, threshold, score_threshold
        )


@export("image.combined_non_max_suppression")
def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: TensorLike,
    max_total_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _NO_LIMIT,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> list[Tensor]:
    """For each image of a batch, the best boxes over all classes: boxes, scores, classes, how many."""
    with name_scope(name, "combined_non_max_suppression"):
        overlap, least = _thresholds(iou_threshold, score_threshold)
        limits = (max_output_size_per_class, max_total_size, overlap, least)
        options: dict[str, Any] = dict(pad_per_class=pad_per_class, clip_boxes=clip_boxes)
        return apply_list("CombinedNonMaxSuppression", boxes, scores, *limits, **options)


@export("image.draw_bounding_boxes")
def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: TensorLike = None
) -> Tensor:
    """A batch of images with boxes [batch, count, 4] (fractions: y1, x1, y2, x2) drawn on them."""
    if colors is None:
        return apply("DrawBoundingBoxes", images, boxes, name=name)
    return apply("DrawBoundingBoxesV2", images, boxes, colors, name=name)


@export("image.sample_distorted_bounding_box")
def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """A random crop that holds enough of one of the boxes: `begin` and `size` for tf.slice, and its box."""
    with name_scope(name, "sample_distorted_bounding_box"):
        return apply_list(
            "SampleDistortedBoundingBoxV2",
            image_size,
            bounding_boxes,
            min_object_covered,
            seed=seed,
            seed2=seed2,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
            name=name,
        )


@export("image.is_jpeg", "io.is_jpeg")
def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether a file is a JPEG, by its first three bytes."""
    with name_scope(name, "is_jpeg"):
        start = apply("Substr", contents, 0, 3)
        return apply("Equal", start, b"\xff\xd8\xff", name=name)
