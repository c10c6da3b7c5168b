"""tf.contrib.input_pipeline: the elements of a list one after the other."""

import pytest

import tensorfleet as tf

pipeline = tf.contrib.input_pipeline


def test_a_counter_goes_round(session):
    counter = tf.Variable(-1, dtype=tf.int64)
    session.run(counter.initializer)
    element = pipeline.obtain_next(tf.constant(["a", "b"]), counter)
    assert [(session.run(element), session.run(counter)) for _ in range(3)] == [
        (b"a", 0),
        (b"b", 1),
        (b"a", 0),
    ]
    assert element.shape == []


def test_a_list_is_repeated_for_ever_or_some_times(session):
    for_ever = pipeline.seek_next(["a", "b", "c"])
    with tf.variable_scope("other"):
        twice = pipeline.seek_next(["x", "y"], num_epochs=2)
    session.run(tf.global_variables_initializer())
    assert [session.run(for_ever) for _ in range(4)] == [b"a", b"b", b"c", b"a"]
    assert [session.run(twice) for _ in range(4)] == [b"x", b"y"] * 2
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(twice)
    names = {v.op.name for v in tf.global_variables()}
    assert {"obtain_next/obtain_next_counter", "obtain_next/obtain_next_expanded_list"} <= names


def test_each_time_may_have_another_order(session):
    given = list("abcdefgh")
    element = pipeline.seek_next(given, shuffle=True, seed=3, num_epochs=2)
    session.run(tf.global_variables_initializer())
    items = [session.run(element).decode() for _ in range(16)]
    assert sorted(items[:8]) == sorted(items[8:]) == given and items[:8] != items[8:]
    assert given == list("abcdefgh")
