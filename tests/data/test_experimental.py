"""`tf.data.experimental`: sizes, optional elements, groups with a state, sparse batches, rows of a database."""

import sqlite3

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import elements

x = tf.data.experimental


def test_cardinality(session):
    numbers = tf.data.Dataset.range(10)
    sizes = {
        10: numbers.shuffle(3).cache().prefetch(1),
        4: numbers.batch(3),
        3: numbers.batch(3, drop_remainder=True),
        20: numbers.repeat(2),
        -1: numbers.repeat(),
        -2: numbers.filter(lambda n: n > 3),
        7: numbers.skip(3),
        2: tf.data.Dataset.zip((numbers, numbers.take(2))),
    }
    assert [session.run(x.cardinality(d)) for d in sizes.values()] == list(sizes)


def test_the_end_is_an_optional_without_a_value(session):
    iterator = tf.data.Dataset.range(1).make_one_shot_iterator()
    following = x.get_next_as_optional(iterator)
    there, value = following.has_value(), following.get_value()
    assert following.value_structure == tf.TensorSpec([], tf.int64)
    assert session.run([there, value]) == [True, 0]
    assert not session.run(there)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        session.run(value)


def test_optionals_of_values(session):
    some = x.Optional.from_value({"a": [1, 2], "b": "text"})
    none = x.Optional.none_from_structure(some.value_structure)
    assert session.run([some.has_value(), none.has_value()]) == [True, False]
    assert session.run(some.get_value())["b"] == b"text"


def test_one_element_per_key():
    reducer = x.Reducer(lambda key: (key, 0), lambda state, n: (state[0], state[1] + 1), lambda k, n: (k, n))
    made = tf.data.Dataset.range(10).apply(x.group_by_reducer(lambda n: 2 - n % 3, reducer))
    assert elements(made) == [(0, 3), (1, 3), (2, 4)]


def test_sparse_batches():
    rows = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    first, second = elements(rows.apply(x.dense_to_sparse_batch(2, [5])))
    assert first.indices.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert first.values.tolist() == [1, 2, 2]
    assert first.dense_shape.tolist() == [2, 5] and second.dense_shape.tolist() == [1, 5]


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_resampled_classes_are_spread_as_asked(initial):
    labels = np.array(([0] * 9 + [1]) * 100, np.int32)
    dataset = tf.data.Dataset.from_tensor_slices(labels)
    kept = elements(dataset.apply(x.rejection_resample(lambda n: n, [0.5, 0.5], initial, seed=5)))
    assert len(kept) > 50 and all(a == b for a, b in kept)
    assert 0.35 < np.mean([a for a, _ in kept]) < 0.65


def test_variants_are_datasets_again():
    dataset = tf.data.Dataset.range(3).map(lambda n: (n, n * 2))
    again = x.from_variant(x.to_variant(dataset), x.get_structure(dataset))
    assert elements(again) == [(0, 0), (1, 2), (2, 4)]


def test_rows_of_a_database(tmp_path):
    path = str(tmp_path / "people.db")
    with sqlite3.connect(path) as connection:
        connection.execute("create table people (name text, age int)")
        connection.executemany("insert into people values (?, ?)", [("a", 1), ("b", 2)])
    query = "select name, age from people order by age"
    assert elements(x.SqlDataset("sqlite", path, query, (tf.string, tf.int32))) == [(b"a", 1), (b"b", 2)]


def test_specs_say_what_fits():
    spec = tf.TensorSpec([None, 2], tf.int32)
    assert spec.is_compatible_with(tf.zeros([3, 2], tf.int32))
    assert not spec.is_compatible_with(tf.zeros([3, 2]))
    assert spec == tf.TensorSpec([None, 2], "int32") and spec != tf.TensorSpec([None, 3], "int32")
    wider = tf.TensorSpec([1, 2], tf.int32).most_specific_compatible_type(tf.TensorSpec([3, 2], tf.int32))
    assert wider.shape.as_list() == [None, 2]
    dataset = tf.data.Dataset.from_tensors({"a": tf.SparseTensor([[0]], [1.5], [3])}).window(2)
    assert isinstance(dataset.element_spec["a"], tf.data.DatasetSpec)
    assert tf.RaggedTensorSpec([2, None], tf.int32).is_compatible_with(tf.ragged.constant([[1], [2, 3]]))
    assert repr(tf.TensorSpec([2])) == "TensorSpec(shape=(2,), dtype=tf.float32, name=None)"
