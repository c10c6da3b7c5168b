"""Of boxes that overlap, the best are kept."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.image.boxes import _best_first

RANDOM = np.random.RandomState(0)


@pytest.mark.parametrize(
    "scores",
    [
        RANDOM.rand(3, 100),
        RANDOM.randn(3, 100).round(1),
        np.where(RANDOM.rand(3, 100) < 0.9, -np.inf, 1.0),
        np.tile([0.0, -0.0], (2, 50)),
    ],
    ids=["different", "equal", "infinite", "zeros"],
)
@pytest.mark.parametrize("count", [1, 7, 25, 100])
def test_the_best_scores_come_first_and_equal_ones_in_order(scores, count):
    scores = scores.astype(np.float32)
    result = _best_first(scores, count)
    assert result.shape[1] >= count
    np.testing.assert_array_equal(result, np.argsort(-scores, 1, kind="stable")[:, : result.shape[1]])


def one_by_one(boxes, scores, limit, threshold):
    """What is kept, as the definition has it."""
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) < limit and all(overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(int(i))
    return kept


def overlap(a, b):
    height, width = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    areas = [np.prod(x[2:] - x[:2]) for x in (a, b)]
    return height * width / (sum(areas) - height * width)


@pytest.mark.parametrize("limit", [3, 40, 500])
def test_boxes_are_kept_as_if_looked_at_one_by_one(session, limit):
    corners = RANDOM.rand(2, 300, 2).astype(np.float32)
    boxes = np.concatenate([corners[0], corners[0] + 0.1 + 0.3 * corners[1]], 1)
    scores = RANDOM.rand(300).round(2).astype(np.float32)
    result = session.run(tf.image.non_max_suppression(boxes, scores, limit, 0.3))
    assert result.tolist() == one_by_one(boxes, scores, limit, 0.3)


def test_of_each_image_the_best_boxes_of_all_classes_are_kept(session):
    corners = RANDOM.rand(2, 2, 80, 2).astype(np.float32) * 0.5
    boxes = np.concatenate([corners[0], corners[0] + 0.1 + corners[1]], 2)
    scores = RANDOM.rand(2, 80, 3).astype(np.float32)
    result = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 4, 7, 0.3, clip_boxes=False)
    found_boxes, found_scores, found_classes, valid = session.run(result)
    for image in range(2):
        known = [
            (scores[image, i, c], c, boxes[image, i])
            for c in range(3)
            for i in one_by_one(boxes[image], scores[image, :, c], 4, 0.3)
        ]
        known = sorted(known, key=lambda k: -k[0])[:7]
        count = valid[image]
        assert count == len(known)
        np.testing.assert_array_equal(found_scores[image][:count], [k[0] for k in known])
        np.testing.assert_array_equal(found_classes[image][:count], [k[1] for k in known])
        np.testing.assert_array_equal(found_boxes[image][:count], [k[2] for k in known])
