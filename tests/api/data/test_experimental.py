"""`tf.data.experimental`: sizes, optional elements, groups with a state, sparse batches, rows of a database."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import elements

x = tf.data.experimental
Dataset = tf.data.Dataset


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
    result = tf.data.Dataset.range(10).apply(x.group_by_reducer(lambda n: 2 - n % 3, reducer))
    assert elements(result) == [(0, 3), (1, 3), (2, 4)]


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
    with closing(sqlite3.connect(path)) as connection, connection:
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


def test_a_reducer_gets_the_state_and_the_whole_element():
    reducer = x.Reducer(
        lambda _: np.int64(0), lambda total, pair: total + pair[0] * pair[1], lambda total: total
    )
    pairs = Dataset.zip((Dataset.range(4), Dataset.range(4)))
    result = elements(pairs.apply(x.group_by_reducer(lambda a, b: a % 2, reducer)))
    assert sorted(result) == [4, 10]


def test_keys_are_scalars_and_may_be_plain_numbers():
    one = Dataset.range(4).apply(x.group_by_window(lambda _: 0, lambda _, window: window.batch(4), 4))
    assert [v.tolist() for v in elements(one)] == [[0, 1, 2, 3]]
    for key in ("wrong", np.zeros(2, np.int64)):
        with pytest.raises(ValueError, match="`key_func` must return a single tf.int64"):
            Dataset.range(4).apply(x.group_by_window(lambda _, k=key: k, lambda _, w: w, 4))


def test_elements_that_do_not_fit_the_rows_of_a_sparse_batch_are_errors():
    rows = Dataset.from_tensors([[1]]).apply(x.dense_to_sparse_batch(4, [12]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible with the row shape"):
        elements(rows)
    rows = Dataset.range(13).batch(13).apply(x.dense_to_sparse_batch(4, [12]))
    with pytest.raises(tf.errors.DataLossError, match="larger than the row shape"):
        elements(rows)


def test_elements_beyond_the_last_boundary_cannot_be_padded_to_one():
    lengths = Dataset.from_tensor_slices(np.int64([3, 12])).map(lambda n: tf.ones([n]))
    bucketed = x.bucket_by_sequence_length(tf.size, [5, 10], [1, 1, 1], pad_to_bucket_boundary=True)
    following = lengths.apply(bucketed).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(following).shape == (1, 4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="bucket_boundaries"):
            sess.run(following)


def test_arrays_are_told_apart_by_all_of_them():
    rows = Dataset.from_tensor_slices(np.int64([[1, 1], [1, 1], [2, 2], [1, 1]])).apply(x.unique())
    assert [v.tolist() for v in elements(rows)] == [[1, 1], [2, 2]]


def test_a_counter_may_go_down():
    assert elements(x.Counter(start=3, step=-2).take(3)) == [3, 1, -1]


def test_a_query_that_cannot_be_run_is_an_error(tmp_path):
    path = str(tmp_path / "db")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("create table t (name text, n integer)")
        db.executemany("insert into t values (?, ?)", [("a", 1), ("b", 2), ("c", 3)])

    def rows(query, types=(tf.string, tf.int32), driver="sqlite"):
        return x.SqlDataset(driver, path, query, types)

    assert elements(rows("select name from t", tf.string)) == [b"a", b"b", b"c"]
    for bad in (rows("select name from t"), rows("insert into t values ('d', 4)"), rows("", driver="other")):
        with pytest.raises(tf.errors.InvalidArgumentError):
            elements(bad)
    with pytest.raises(tf.errors.UnknownError, match="syntax error"):
        elements(rows("selekt name from t"))


def test_the_place_in_the_rows_of_a_query_is_saved(tmp_path):
    path = str(tmp_path / "db")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("create table t (n integer)")
        db.executemany("insert into t values (?)", [(i,) for i in range(5)])
    iterator = x.SqlDataset("sqlite", path, "select n from t", tf.int64).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver({"place": x.make_saveable_from_iterator(iterator)})
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert [sess.run(following) for _ in range(2)] == [0, 1]
        place = saver.save(sess, str(tmp_path / "place"))
    with tf.Session() as sess:
        saver.restore(sess, place)
        assert [sess.run(following) for _ in range(3)] == [2, 3, 4]
