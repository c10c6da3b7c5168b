"""Texts as numbers, saved and read again; which tensors a metric is about."""

import functools

import numpy as np
import pytest

import tensorfleet as tf

learn = tf.contrib.learn


def test_a_vocabulary_is_saved_and_restored(tmp_path):
    path = str(tmp_path / "vocab")
    processor = learn.preprocessing.VocabularyProcessor(4, min_frequency=1)
    list(processor.fit_transform(["a b c", "a\nb\nc", "a, b - c"]))
    processor.save(path)
    again = learn.preprocessing.VocabularyProcessor.restore(path)
    assert [row.tolist() for row in again.transform(["a b c", "z a"])] == [[1, 2, 3, 0], [0, 1, 0, 0]]
    assert again.vocabulary_._mapping == processor.vocabulary_._mapping and len(again.vocabulary_) == 4
    assert list(again.reverse([[1, 2]])) == ["a b"]


def test_a_vocabulary_that_is_a_pickle_is_not_read(tmp_path):
    path = tmp_path / "vocab"
    path.write_bytes(b"\x80\x03ctensorflow\nVocabularyProcessor\n.")
    with pytest.raises(ValueError, match="make it anew with fit and save"):
        learn.preprocessing.VocabularyProcessor.restore(str(path))


def test_texts_are_rows_of_bytes():
    processor = learn.preprocessing.ByteProcessor(4)
    rows = list(processor.fit_transform(["ab", "\u00e9t\u00e9", b"12345"]))
    assert [row.tolist() for row in rows] == [[97, 98, 0, 0], [195, 169, 116, 195], [49, 50, 51, 52]]
    assert list(processor.reverse([rows[0], rows[1], rows[2]])) == ["ab", "", "1234"]
    assert rows[0].dtype == np.uint8


def _first(predictions, labels, weights=None):
    return predictions


def test_a_metric_says_which_of_several_tensors_it_needs():
    spec = learn.MetricSpec(_first)
    with pytest.raises(
        ValueError, match="without specified prediction_key requires predictions tensor or single"
    ):
        spec.create_metric_ops(None, "l", {"a": "1", "b": "2"})
    with pytest.raises(
        ValueError, match="without specified label_key requires labels tensor or single element dict"
    ):
        spec.create_metric_ops(None, {"a": "1", "b": "2"}, "p")
    keyed = learn.MetricSpec(_first, prediction_key="p", label_key="l")
    with pytest.raises(ValueError, match="with prediction_key specified requires predictions dict"):
        keyed.create_metric_ops(None, {"l": "1"}, "p")
    with pytest.raises(KeyError, match="Key 'l' missing"):
        keyed.create_metric_ops(None, {"k": "1"}, {"p": "1"})
    assert keyed.create_metric_ops(None, {"l": "1"}, {"p": "2"}) == "2"


def test_a_metric_is_shown_by_the_name_of_its_function():
    spec = learn.MetricSpec(functools.partial(_first, weights=1), prediction_key="p")
    assert str(spec) == "MetricSpec(metric_fn=_first, prediction_key=p, label_key=None, weight_key=None)"
