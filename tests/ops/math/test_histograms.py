"""Counting values into bins and classes."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

VALUES = [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]


def test_values_outside_go_to_the_ends():
    assert run(tf.histogram_fixed_width(VALUES, [0.0, 5.0], nbins=5)).tolist() == [2, 1, 1, 0, 2]
    assert run(tf.histogram_fixed_width_bins(VALUES, [0.0, 5.0], nbins=5)).tolist() == [0, 0, 1, 2, 4, 4]


def test_ranges_and_values_that_make_no_sense():
    with pytest.raises(ValueError, match="Requires nbins > 0: 0"):
        tf.histogram_fixed_width(VALUES, [0.0, 5.0], nbins=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="value_range"):
        run(tf.histogram_fixed_width(VALUES, [5.0, 0.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
        run(tf.histogram_fixed_width([np.nan], [0.0, 5.0]))


def test_confusion_counts_labels_by_predictions():
    assert run(tf.confusion_matrix([1, 2, 2], [1, 1, 2])).tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    weighted = tf.confusion_matrix([1, 0], [1, 1], weights=[0.5, 2.0], dtype=tf.float32)
    assert run(weighted).tolist() == [[0, 2], [0, 0.5]]
    result = tf.confusion_matrix([[1], [0]], [1, 1], num_classes=3)
    assert result.shape.as_list() == [3, 3]
    assert run(result).sum() == 2


def test_classes_out_of_range_are_refused():
    labels = tf.placeholder(tf.int32, [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`labels` out of bound"):
        run(tf.confusion_matrix(labels, [0], num_classes=2), {labels: [2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="`labels` contains negative values"):
        run(tf.confusion_matrix(labels, [0]), {labels: [-1]})


def test_flat_indices_are_taken_apart():
    assert run(tf.unravel_index([2, 5, 7], [3, 3])).tolist() == [[0, 1, 2], [2, 2, 1]]
    assert run(tf.unravel_index(22, [4, 6])).tolist() == [3, 4]
    for indices, dims in (([9], [3, 3]), ([1], [3, 0])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="dims"):
            run(tf.unravel_index(indices, dims))
