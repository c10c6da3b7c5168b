"""While a step runs that takes longer than its input, the next element is read: nothing is lost, nobody can tell."""

import shutil
import threading
import time

import numpy as np
import pytest

import tensorfleet as tf

Dataset = tf.data.Dataset


def reading():
    return {t for t in threading.enumerate() if t.name == "tensorfleet-prefetch"}


def taken_slowly(session, following, most, before=frozenset()):
    """What is taken with pauses in between, until a thread reads ahead or there were `most`."""
    result = []
    while len(result) < most and not reading() - before:
        result.append(session.run(following))
        time.sleep(0.01)
    return result


def test_slow_steps_find_the_next_element_there(session):
    before = reading()
    following = Dataset.range(10**6).batch(2).make_one_shot_iterator().get_next()
    result = taken_slowly(session, following, 2000, before)
    assert len(reading() - before) == 1
    result += [session.run(following) for _ in range(50)]
    assert np.concatenate(result).tolist() == list(range(2 * len(result)))


def test_what_is_read_ahead_ends_as_it_would(session):
    before = reading()
    iterator = Dataset.from_tensor_slices(np.arange(3000)).shuffle(10, seed=3).make_initializable_iterator()
    following = iterator.get_next()
    session.run(iterator.initializer)
    result = taken_slowly(session, following, 2900, before)
    assert reading() - before
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        while True:
            result.append(session.run(following))
    assert sorted(result) == list(range(3000))
    assert not reading() - before
    session.run(iterator.initializer)
    assert 0 <= session.run(following) < 11


def test_a_place_read_ahead_of_is_saved(session, tmp_path):
    before = reading()
    iterator = Dataset.range(10**6).make_initializable_iterator()
    following = iterator.get_next()
    saver = tf.train.Saver({"it": tf.data.experimental.make_saveable_from_iterator(iterator)})
    session.run(iterator.initializer)
    count = len(taken_slowly(session, following, 2000, before))
    path = saver.save(session, str(tmp_path / "place"))
    assert session.run(following) == count
    with tf.Session() as other:
        other.run(iterator.initializer)
        saver.restore(other, path)
        assert [other.run(following) for _ in range(3)] == [count, count + 1, count + 2]


def test_functions_that_may_have_effects_wait_until_they_are_asked_for(session):
    called = []
    numbers = Dataset.range(1000).map(
        lambda x: tf.py_func(lambda v: called.append(int(v)) or v, [x], tf.int64)
    )
    following = numbers.make_one_shot_iterator().get_next()
    before = reading()
    result = taken_slowly(session, following, 40, before)
    assert called == result == list(range(40))


def test_a_cache_whose_folder_is_gone_is_closed(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    following = tf.data.Dataset.range(5).cache(str(folder / "numbers")).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(following) == 0
        shutil.rmtree(folder)
