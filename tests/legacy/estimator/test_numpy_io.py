"""Input functions over arrays in memory."""

import importlib.util

import numpy as np
import pytest

import tensorfleet as tf

numpy_input_fn = tf.estimator.inputs.numpy_input_fn


def batches(function):
    result = []
    with tf.Graph().as_default():
        tensors = function()
        with tf.Session() as sess:
            try:
                while len(result) < 20:
                    result.append(sess.run(tensors))
            except tf.errors.OutOfRangeError:
                return result
    return result


def test_batches_go_over_the_ends_of_epochs():
    x = {"a": np.arange(5), "b": np.array(["p", "q", "r", "s", "t"])}
    result = batches(numpy_input_fn(x, np.arange(5) * 2.0, 3, num_epochs=2, shuffle=False))
    assert [f[0]["a"].tolist() for f in result] == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4]]
    assert result[0][0]["b"].tolist() == [b"p", b"q", b"r"]
    assert result[0][1].tolist() == [0.0, 2.0, 4.0]


def test_rows_are_shuffled_together():
    x = np.arange(50)
    result = batches(numpy_input_fn(x, {"y": 2 * x}, 10, shuffle=True))
    xs, ys = (np.concatenate(v) for v in zip(*[(f[0], f[1]["y"]) for f in result], strict=True))
    assert sorted(xs) == list(x) and list(xs) != list(x)
    np.testing.assert_array_equal(ys, 2 * xs)


def test_features_alone_for_ever():
    result = batches(numpy_input_fn({"a": np.ones([2, 3])}, batch_size=2, num_epochs=None, shuffle=False))
    assert len(result) == 20 and result[0]["a"].shape == (2, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.ones(2)}, ValueError, "shuffle must be provided"),
        ({"x": [1], "shuffle": True}, TypeError, "x must be a dict or array"),
        ({"x": {}, "shuffle": True}, ValueError, "x cannot be an empty dict"),
        ({"x": {"a": 1}, "y": {}, "shuffle": True}, ValueError, "y cannot be empty dict"),
        ({"x": {"a": 1}, "y": {"a": 1}, "shuffle": True}, ValueError, "1 duplicate keys"),
    ],
)
def test_arguments_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        numpy_input_fn(**arguments)


def test_lengths_are_checked():
    with pytest.raises(ValueError, match="Length of tensors in x and y is mismatched"):
        numpy_input_fn({"a": np.ones(3)}, np.ones(2), shuffle=False)()


class Series:
    def __init__(self, values, index):
        self._values, self.index = values, index

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype=object if isinstance(self._values[0], str) else dtype)


class Frame:
    """As much of pandas.DataFrame as is used."""

    def __init__(self, index=(0, 1), **columns):
        self.columns, self._columns, self.index = list(columns), columns, index

    def __getitem__(self, name):
        return Series(self._columns[name], self.index)


def test_data_frames(monkeypatch):
    x = Frame(a=[1, 2], b=["p", "q"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TypeError, match="without pandas"):
        tf.estimator.inputs.pandas_input_fn(x, shuffle=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    ((features, labels),) = batches(
        tf.estimator.inputs.pandas_input_fn(x, Series([3.0, 4.0], x.index), shuffle=False)
    )
    assert features["a"].tolist() == [1, 2] and features["b"].tolist() == [b"p", b"q"]
    assert labels.tolist() == [3.0, 4.0]
    ((features, labels),) = batches(tf.estimator.inputs.pandas_input_fn(x, Frame(y=[3, 4]), shuffle=False))
    assert labels["y"].tolist() == [3, 4]
    with pytest.raises(ValueError, match="Index for x and y are mismatched"):
        tf.estimator.inputs.pandas_input_fn(x, Series([3.0, 4.0], (5, 6)), shuffle=False)
    with pytest.raises(ValueError, match="Cannot use name a for target column"):
        tf.estimator.inputs.pandas_input_fn(x, Series([3.0, 4.0], x.index), shuffle=False, target_column="a")


def counted():
    for i in range(5):
        yield {"b": np.full([2], i, np.float32), "a": np.bytes_(f"s{i}"), "label": i}


generator_input_fn = tf.contrib.learn.io.generator_input_fn


def test_what_a_generator_yields_comes_in_batches_with_its_labels():
    result = batches(generator_input_fn(counted, "label", 3, num_epochs=2, shuffle=False))
    assert [labels.tolist() for _, labels in result] == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4]]
    assert result[0][0]["a"].tolist() == [b"s0", b"s1", b"s2"]
    np.testing.assert_array_equal(result[1][0]["b"], [[3, 3], [4, 4], [0, 0]])
    mixed = batches(generator_input_fn(counted, ["label", "a"], 5))
    assert sorted(mixed[0][1]["label"]) == [0, 1, 2, 3, 4] and list(mixed[0][0]) == ["b"]


def test_arrays_of_a_generator_are_filled_up_to_the_longest():
    def growing():
        for i in range(1, 4):
            yield {"x": np.arange(i)}

    result = batches(generator_input_fn(growing, None, 3, shuffle=False, pad_value=-1))
    np.testing.assert_array_equal(result[0]["x"], [[0, -1, -1], [0, 1, -1], [0, 1, 2]])


def test_what_is_no_generator_of_dicts_is_refused():
    with pytest.raises(TypeError, match="x must be generator function; got dict"):
        generator_input_fn({})
    with pytest.raises(TypeError, match="x\\(\\) must be generator; got int"):
        generator_input_fn(lambda: 1)
    with pytest.raises(TypeError, match="x\\(\\) must yield dict; got int"):
        generator_input_fn(lambda: (i for i in range(3)))
    with pytest.raises(TypeError, match="target_key must be str or Container of str; got int"):
        generator_input_fn(counted, 1)
    with pytest.raises(KeyError, match="target_key not in yielded dict"):
        generator_input_fn(counted, ["none"])
