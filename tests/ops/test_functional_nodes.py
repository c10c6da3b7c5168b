"""Branches and loops whose parts are functions."""

from __future__ import annotations

import pytest
from tensorfleet.python.framework.function import Defun
from tensorfleet.python.ops import functional_ops

import tensorfleet as tf


@Defun(tf.float32)
def plus_one(x):
    return x + 1.0


@Defun(tf.float32)
def tenfold(x):
    return x * 10.0


@Defun(tf.float32)
def below_fifty(x):
    return x < 50.0


def test_a_condition_chooses_between_two_functions():
    cond = tf.placeholder(tf.bool, [])
    (y,) = functional_ops.If(cond, [2.0], plus_one, tenfold)
    assert (y.op.type, y.dtype) == ("If", tf.float32)
    with tf.Session() as s:
        assert [s.run(y, {cond: c}) for c in (True, False, True, False)] == [3, 20, 3, 20]
        assert s.run(functional_ops.If(tf.constant(0), [2.0], plus_one, tenfold)) == [20]


def test_a_loop_goes_on_while_a_function_says_so():
    start = tf.placeholder(tf.float32, [])
    (y,) = functional_ops.While([start], below_fifty, tenfold)
    with tf.Session() as s:
        assert [s.run(y, {start: x}) for x in (2.0, 60.0, 2.0)] == [200, 60, 200]


def test_a_loop_over_a_range():
    @Defun(tf.int32, tf.float32)
    def add(i, x):
        return x + tf.cast(i, tf.float32)

    with tf.Session() as s:
        assert s.run(functional_ops.For(0, 5, 2, [1.0], add)) == [7]


def test_a_graph_with_a_branch_and_a_loop_is_imported():
    with tf.Graph().as_default() as made:
        (x,) = functional_ops.If(tf.constant(True), [2.0], plus_one, tenfold)
        functional_ops.While([x], below_fifty, tenfold, name="loop")
    with tf.Graph().as_default(), tf.Session() as s:
        (y,) = tf.import_graph_def(made.as_graph_def(), return_elements=["loop:0"])
        assert s.run(y) == 300


def test_functions_are_called_and_differentiated():
    with tf.Session() as s:
        assert s.run(functional_ops.remote_call("/cpu:0", [2.0], [tf.float32], plus_one)) == [3]
        assert s.run(functional_ops.symbolic_gradient([2.0, 3.0], [tf.float32], tenfold)) == [30]
    assert plus_one.definition.signature.name == plus_one.name


def test_a_branch_takes_nothing_from_around():
    outside = tf.placeholder(tf.float32, [])

    @Defun(tf.float32)
    def taking(x):
        return x + outside

    with pytest.raises(ValueError, match="uses tensors from around it"):
        functional_ops.If(tf.constant(True), [1.0], taking, plus_one)
