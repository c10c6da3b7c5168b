"""Arrays and iterators in batches for placeholders."""

import types

import numpy as np
import pytest

import tensorfleet as tf

feeder = tf.contrib.learn.python.learn.learn_io.data_feeder
X = np.arange(10, dtype=np.float32).reshape(5, 2)
Y = np.array([0, 2, 1, 0, 2])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def fed(made, times):
    """Pairs of what is fed to both placeholders."""
    x, y = made.input_builder()
    step = made.get_feed_dict_fn()
    pick = lambda feed, t: None if t is None else feed[t.name]  # noqa: E731
    return [(pick(feed, x), pick(feed, y)) for feed in (step() for _ in range(times))]


def test_batches_go_through_all_examples_again_and_again():
    output = feeder.setup_train_data_feeder(X, Y, None, batch_size=3, shuffle=False)
    result = fed(output, 3)
    assert [y.tolist() for _, y in result] == [[0, 2, 1], [0, 2], [0, 2, 1]]
    assert result[1][0].tolist() == X[3:].tolist()
    assert output.get_feed_params() == {"epoch": 1, "offset": 3, "batch_size": 3}


def test_labels_become_a_column_for_each_class():
    ((_, y),) = fed(feeder.setup_train_data_feeder(X, Y, 3, shuffle=False), 1)
    assert y.tolist() == np.eye(3)[Y].tolist() and y.dtype == np.int64
    ((_, several),) = fed(feeder.setup_train_data_feeder(X, np.stack([Y, Y], 1), 3, shuffle=False), 1)
    assert several.shape == (5, 2, 3)


def test_the_order_is_random_and_always_the_same():
    once, again = (
        [y.tolist() for _, y in fed(feeder.setup_train_data_feeder(X, np.arange(5), None), 2)]
        for _ in range(2)
    )
    assert once == again and sorted(once[0]) == sorted(once[1]) == [0, 1, 2, 3, 4] and once[0] != once[1]


def test_feeding_ends_after_some_times():
    result = feeder.setup_train_data_feeder(X, None, None, batch_size=5, epochs=1)
    epoch = result.make_epoch_variable()
    result.input_builder()
    step = result.get_feed_dict_fn()
    assert step()[epoch.name] == [0]
    with pytest.raises(StopIteration):
        step()


def test_dictionaries_have_a_placeholder_for_each_name():
    result = feeder.setup_train_data_feeder({"a": X, "b": X[:, 0]}, {"p": Y}, {"p": 3}, shuffle=False)
    x, y = result.input_builder()
    assert x["b"].shape.as_list() == [None, 1] and y["p"].shape.as_list() == [None, 3]
    feed = result.get_feed_dict_fn()()
    assert feed["input_b:0"].shape == (5, 1) and feed["output_p:0"].dtype == np.float32


def test_iterators_are_read_until_they_end():
    output = feeder.setup_train_data_feeder(iter(X), iter(Y), 3, batch_size=3)
    result = fed(output, 2)
    assert [len(x) for x, _ in result] == [3, 2] and result[1][1].tolist() == np.eye(3)[Y[3:]].tolist()
    with pytest.raises(StopIteration):
        output._next()
    with pytest.raises(ValueError, match="Both x and y should be iterators"):
        feeder.setup_train_data_feeder(iter(X), Y, 3)


def test_dictionaries_of_an_iterator_are_fed_too():
    rows = ({"a": row} for row in X)
    labels = ({"p": label} for label in Y)
    result = feeder.setup_train_data_feeder(rows, labels, None, batch_size=2)
    result.input_builder()
    assert result.get_feed_dict_fn()()["output_p:0"].tolist() == [0, 2]


def test_features_are_cut_for_predictions():
    assert [len(b) for b in feeder.setup_predict_data_feeder(X, 2)] == [2, 2, 1]
    assert feeder.setup_predict_data_feeder(Y)[0].shape == (5, 1)
    assert [b.shape for b in feeder.setup_predict_data_feeder(iter(X), 3)] == [(3, 2), (2, 2)]
    with pytest.raises(ValueError, match="Invalid batch_size 0"):
        feeder.setup_predict_data_feeder(X, 0)
    with pytest.raises(ValueError, match="Invalid batch_size -1"):
        feeder.setup_train_data_feeder(X, Y, None, -1)


class Table(dict):
    """As much of a table of pandas as is looked at."""

    columns = property(list)
    values = property(lambda self: np.stack([np.array(c) for c in self.values_()], 1))
    values_ = dict.values


def test_tables_become_arrays(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", types.SimpleNamespace(DataFrame=Table))
    learn = tf.contrib.learn
    table = Table(a=np.array([1, 2]), b=np.array([True, False]))
    assert learn.extract_pandas_data(table).tolist() == [[1, 1], [2, 0]]
    assert feeder.setup_processor_data_feeder(table).shape == (2, 2)
    assert learn.extract_pandas_labels(Table(a=np.array([1, 2]))).tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="Only one column for labels is allowed"):
        learn.extract_pandas_labels(table)
    with pytest.raises(ValueError, match="must be int, float, or bool. Found: 'a' type='str"):
        learn.extract_pandas_data(Table(a=np.array(["x"])))
    assert learn.extract_pandas_data(X) is X and learn.extract_pandas_labels(Y) is Y
