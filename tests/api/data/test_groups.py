"""group_by_window and bucket_by_sequence_length: many elements are read at once where nobody can tell."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import elements


def grouped(dataset, size=None, sizes=None):
    by = tf.data.experimental.group_by_window(lambda x: x % 3, lambda k, w: w.batch(1000), size, sizes)
    return dataset.apply(by)


def expected(values, size_of):
    groups, result = {}, []
    for v in values:
        groups.setdefault(v % 3, []).append(v)
        if len(groups[v % 3]) == size_of(v % 3):
            result.append(groups.pop(v % 3))
    return result + [groups[k] for k in sorted(groups)]


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 500])
def test_groups_are_those_of_element_after_element(count, size):
    values = np.random.default_rng(count).integers(0, 50, count)
    result = elements(grouped(tf.data.Dataset.from_tensor_slices(values), size))
    assert [f.tolist() for f in result] == expected(values.tolist(), lambda k: size)


def test_every_key_has_its_own_size():
    values = np.random.default_rng(0).integers(0, 50, 300)
    result = elements(grouped(tf.data.Dataset.from_tensor_slices(values), sizes=lambda k: k * 2 + 1))
    assert [f.tolist() for f in result] == expected(values.tolist(), lambda k: k * 2 + 1)


def test_a_function_with_effects_is_not_called_ahead(session):
    seen = []

    def note(x):
        seen.append(int(x))
        return x

    source = tf.data.Dataset.range(100).map(lambda x: tf.reshape(tf.py_func(note, [x], tf.int64), []))
    following = grouped(source, 2).make_one_shot_iterator().get_next()
    assert session.run(following).tolist() == [0, 3] and seen == [0, 1, 2, 3]


def test_elements_before_one_that_fails_come_first(session):
    values = tf.constant(np.array([1, 1, 2, 2, -1, 2, 1, 2], np.int64))
    source = tf.data.Dataset.from_tensor_slices(values).map(
        lambda x: tf.gather(tf.range(10, dtype=tf.int64), x)
    )
    following = grouped(source, 2).make_one_shot_iterator().get_next()
    assert session.run(following).tolist() == [1, 1]
    assert session.run(following).tolist() == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="in element 4"):
        session.run(following)
    assert session.run(following).tolist() == [2, 2]


def test_a_size_that_is_no_size_is_told_in_its_turn(session):
    source = tf.data.Dataset.from_tensor_slices(np.array([0, 0, 1, 0, 0], np.int64))
    sizes = lambda k: tf.where(tf.equal(k, 1), tf.constant(0, tf.int64), tf.constant(2, tf.int64))  # noqa: E731
    following = grouped(source, sizes=sizes).make_one_shot_iterator().get_next()
    assert session.run(following).tolist() == [0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be greater than zero"):
        session.run(following)
    assert session.run(following).tolist() == [0, 0]


def test_the_place_among_groups_can_be_saved(tmp_path, session):
    values = np.random.default_rng(3).integers(0, 50, 200)
    iterator = grouped(tf.data.Dataset.from_tensor_slices(values), 5).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    session.run(iterator.initializer)
    for _ in range(3):
        session.run(following)
    path = saver.save(session, str(tmp_path / "place"))
    rest = [session.run(following).tolist() for _ in range(10)]
    session.run(iterator.initializer)
    saver.restore(session, path)
    assert [session.run(following).tolist() for _ in range(10)] == rest


def test_buckets_of_similar_lengths():
    lengths = np.random.default_rng(1).integers(1, 30, 200).astype(np.int32)
    source = tf.data.Dataset.from_tensor_slices(lengths).map(lambda n: tf.fill([n], n))
    by = tf.data.experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [10, 20], [4, 3, 2])
    result = elements(source.apply(by))
    limits = [(1, 9, 4), (10, 19, 3), (20, 29, 2)]
    for batch in result:
        (low, high, size), *others = [b for b in limits if b[0] <= batch.max() <= b[1]]
        assert not others and len(batch) <= size
        assert all((row > 0).sum() == row[0] and low <= row[0] <= high for row in batch)
    assert sorted(row[0] for batch in result for row in batch) == sorted(lengths)
