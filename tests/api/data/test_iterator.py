"""Iterators: initialized, shared, named, and ended with everything they started."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import all_of
from tests.support.waiting import together

Dataset = tf.data.Dataset


def prefetching():
    return {t for t in threading.enumerate() if t.name == "tensorfleet-prefetch"}


def test_outputs_of_one_call_advance_together_and_two_calls_twice(session):
    iterator = Dataset.range(10).map(lambda x: (x, -x)).make_one_shot_iterator()
    a, b = iterator.get_next()
    other, _ = iterator.get_next()
    assert session.run([a, b, a + b]) == [0, 0, 0]
    assert session.run([b, a]) == [-1, 1]
    assert sorted(session.run([a, other])) == [2, 3]


def test_an_initializable_iterator_must_be_initialized_and_can_be_again(session):
    count = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(count).make_initializable_iterator()
    following = iterator.get_next()
    with pytest.raises(tf.errors.FailedPreconditionError, match="iterator has not been initialized"):
        session.run(following)
    for n in (2, 3):
        session.run(iterator.initializer, {count: n})
        assert [session.run(following) for _ in range(n)] == list(range(n))
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                session.run(following)


def test_sessions_have_their_own_places():
    following = Dataset.range(5).make_one_shot_iterator().get_next()
    with tf.Session() as one, tf.Session() as two:
        assert [one.run(following), one.run(following), two.run(following)] == [0, 1, 0]


def test_one_iterator_for_several_datasets():
    a, b = Dataset.range(3), Dataset.range(10, 12)
    iterator = tf.data.Iterator.from_structure(a.output_types, a.output_shapes)
    following = iterator.get_next()
    start_a, start_b = iterator.make_initializer(a), iterator.make_initializer(b, name="b")
    with tf.Session() as session:
        for start, expected in ((start_a, 0), (start_b, 10), (start_a, 0)):
            session.run(start)
            assert session.run(following) == expected
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(Dataset.from_tensors(1.0))
    with pytest.raises(TypeError, match="Expected output shapes compatible"):
        iterator.make_initializer(a.batch(2))
    with pytest.raises(ValueError, match="does not have an initializer"):
        _ = iterator.initializer


def test_a_handle_chooses_the_iterator(session):
    train = Dataset.range(100).make_one_shot_iterator()
    test = Dataset.range(5).map(lambda x: -x).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    following = tf.data.Iterator.from_string_handle(
        handle, train.output_types, train.output_shapes
    ).get_next()
    names = session.run([train.string_handle(), test.string_handle()])
    session.run(test.initializer)
    items = [session.run(following, {handle: names[i]}) for i in (0, 1, 0, 1)]
    assert items == [0, 0, 1, -1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="string_handle"):
        session.run(following, {handle: b"nobody"})


def test_a_one_shot_iterator_needs_no_state():
    with pytest.raises(ValueError, match="make_initializable_iterator"):
        Dataset.range(tf.placeholder(tf.int64, [])).make_one_shot_iterator()
    variable = tf.Variable(np.int64(2))
    with pytest.raises(ValueError, match="Cannot capture a stateful node"):
        Dataset.range(3).map(lambda x: x * variable).make_one_shot_iterator()


def test_many_threads_share_an_iterator(session):
    following = Dataset.range(200).make_one_shot_iterator().get_next()
    result = together(*[lambda: all_of(session, following)] * 4)
    assert sorted(value for part in result for value in part) == list(range(200))


def test_prefetching_threads_end_with_the_session_and_with_the_data():
    before = prefetching()
    following = Dataset.range(10**9).prefetch(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(5)] == list(range(5))
        assert len(prefetching() - before) == 1
    assert not prefetching() - before
    short = Dataset.range(3).prefetch(10).make_initializable_iterator()
    with tf.Session() as session:
        session.run(short.initializer)
        assert session.run(short.get_next()) == 0
        session.run(short.initializer)  # drops the run before, and its thread
        assert session.run(short.get_next()) == 0
    assert not prefetching() - before


def test_what_is_prefetched_fails_in_its_turn(session):
    result = Dataset.from_tensor_slices([2, 0, 4]).map(lambda x: 12 // x).prefetch(3)
    following = result.make_one_shot_iterator().get_next()
    assert session.run(following) == 6
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        session.run(following)
    assert session.run(following) == 3
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(following)


def test_waiting_for_an_element_ends_with_the_deadline(session):
    gate = threading.Event()

    def slow(value):
        gate.wait(30)
        return value

    result = Dataset.range(3).map(lambda x: tf.py_func(slow, [x], tf.int64)).prefetch(1)
    following = result.make_one_shot_iterator().get_next()
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(following, options=tf.RunOptions(timeout_in_ms=50))
    gate.set()
    assert session.run(following) == 0


def test_helpers_of_both_versions():
    result = Dataset.from_tensor_slices(([1], ["a"]))
    assert tf.data.get_output_types(result) == (tf.int32, tf.string)
    assert tf.data.get_output_classes(result) == (tf.Tensor, tf.Tensor)
    assert [s.as_list() for s in tf.data.get_output_shapes(tf.data.make_one_shot_iterator(result))] == [
        [],
        [],
    ]
    iterator = tf.data.make_initializable_iterator(result, shared_name="shared")
    assert iterator.initializer.type == "MakeIterator" and iterator._iterator_resource.op.type == "IteratorV2"


def test_batches_that_somebody_holds_are_not_overwritten(session):
    rows = np.arange(64 * 1000, dtype=np.float64).reshape(64, 1000)
    batch = Dataset.from_tensor_slices(rows).batch(16).make_one_shot_iterator().get_next()
    held = tf.get_variable("held", [16, 1000], tf.float64, tf.zeros_initializer(), use_resource=True)
    keep = held.assign(batch)
    session.run(held.initializer)
    first, part = session.run(batch), session.run(batch)[3:5]
    session.run(keep)
    session.run(batch)
    np.testing.assert_array_equal(first, rows[:16])
    np.testing.assert_array_equal(part, rows[19:21])
    np.testing.assert_array_equal(session.run(held), rows[32:48])


def test_a_function_of_elements_updates_a_resource_variable(session):
    count = tf.get_variable("count", initializer=0, use_resource=True)
    data = tf.data.Dataset.from_tensors(0).repeat(3).map(lambda _: count.assign_add(1))
    iterator = tf.data.make_initializable_iterator(data)
    following = iterator.get_next()
    session.run(iterator.initializer)  # reads nothing yet
    session.run(count.initializer)
    assert [(session.run(following), session.run(count)) for _ in range(3)] == [(1, 1), (2, 2), (3, 3)]


def test_many_calls_of_get_next_are_warned_of():
    from tensorfleet.python.data.ops import iterator_ops

    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
    for _ in range(iterator_ops.GET_NEXT_CALL_WARNING_THRESHOLD):
        iterator.get_next()
    with pytest.warns(UserWarning, match="An unusually high number of `Iterator.get_next..` calls"):
        iterator.get_next()


def test_shapes_of_another_form_than_the_types():
    with pytest.raises(TypeError, match="does not have the structure of the elements"):
        tf.data.Iterator.from_structure((tf.int64, tf.float64), [None])
    iterator = tf.data.Iterator.from_structure((tf.int64, tf.float32))
    nested = tf.data.Dataset.from_tensors((((1,)), (2.0,)))
    with pytest.raises(ValueError, match="Expected output types"):
        iterator.make_initializer(nested)
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(tf.data.Dataset.from_tensors((1, 2.0)))


def test_a_generator_that_yields_another_form_is_told():
    data = tf.data.Dataset.from_generator(lambda: iter([1]), (tf.int64, tf.int64))
    following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="did not match the expected"):
        s.run(following)
