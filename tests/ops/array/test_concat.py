"""Joining and splitting tensors: static shapes, old argument orders, refusals."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run
from tests.support.shapes import dims


def test_concat_of_one_is_an_identity(graph, x):
    y = tf.concat([x], 0)
    assert (y.op.name, y.op.type) == ("concat/concat", "Identity")


def test_concat_shapes(x, u):
    assert dims(tf.concat([x, u], 0)) == [None, 3]
    assert dims(tf.concat([u, u], -1)) == [None, 6]
    assert dims(tf.concat([x, x], tf.placeholder(tf.int32, []))) == [None, None]
    assert dims(tf.concat([tf.placeholder(tf.float32), x], 0)) == [None, 3]


def test_the_axis_of_a_concat_may_come_first_as_it_once_did(x):
    assert dims(tf.concat(0, [x, x])) == dims(tf.concat([x, x], 0))
    assert dims(tf.concat(5, 0)) == []


def test_concat_of_what_does_not_fit(x):
    with pytest.raises(ValueError, match="Dimension 1 in both shapes must be equal, but are 3 and 4"):
        tf.concat([x, tf.zeros([2, 4])], 0)
    with pytest.raises(ValueError, match=r"Can't concatenate scalars \(use tf.stack instead\)"):
        tf.concat([1.0, 2.0], 0)
    with pytest.raises(ValueError, match="Shape must be rank 2 but is rank 1"):
        tf.concat([x, [1.0]], 0)
    y = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ConcatOp : Dimensions of inputs should match"):
        run(tf.concat([y, tf.zeros([2, 4])], 0), {y: np.ones((2, 3))})


def test_split_by_number_and_by_sizes(x, u):
    assert [dims(t) for t in tf.split(x, 3, axis=-1)] == [[2, 1]] * 3
    assert [dims(t) for t in tf.split(x, [1, -1], 1)] == [[2, 1], [2, 2]]
    assert [dims(t) for t in tf.split(u, 2)] == [[None, 3]] * 2
    with pytest.raises(ValueError, match="Dimension size must be evenly divisible by 2 but is 3"):
        tf.split(x, 2, axis=1)
    with pytest.raises(ValueError, match="can't split axis of size 3"):
        tf.split(x, [1, 1], axis=1)


def test_stack_of_numbers_is_a_constant(x):
    assert tf.stack([1, 2]).op.type == "Const"
    p = tf.placeholder(tf.int32, [])
    assert tf.stack([p, 1]).op.type == "Pack"
    assert dims(tf.stack([x, x], axis=-1)) == [2, 3, 2]
    with pytest.raises(ValueError, match=r"axis = 5 not in \[-3, 3\)"):
        tf.stack([x, x], axis=5)


def test_unstack_needs_a_number(x, u):
    assert [dims(t) for t in tf.unstack(x, axis=-1)] == [[2]] * 3
    with pytest.raises(ValueError, match=r"Cannot infer num from shape \(\?, 3\)"):
        tf.unstack(u)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must equal 5"):
        run(tf.unstack(u, num=5), {u: np.ones((2, 3))})
