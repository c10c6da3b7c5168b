"""Cells of `tf.contrib.rnn` that are built around a matrix."""

from __future__ import annotations

import pytest
from tensorfleet.contrib.rnn.python.ops import core_rnn_cell

import tensorfleet as tf


@pytest.mark.parametrize("bias", [False, True])
def test_tensors_side_by_side_are_multiplied_by_one_matrix(bias):
    x, y = tf.constant([[1.0, 2.0]]), tf.constant([[3.0]])
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)) as scope:
        start = tf.constant_initializer(1.0) if bias else None
        product = core_rnn_cell._linear([x, y], 2, bias, bias_initializer=start)
        with pytest.raises(ValueError, match="already exists"):
            core_rnn_cell._Linear([x, y], 2, bias)
        scope.reuse_variables()
        again = core_rnn_cell._Linear([x, y], 2, bias)([y, x])
    names = [v.op.name for v in tf.trainable_variables()]
    assert names == ["root/kernel", "root/bias"][: 1 + bias]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(product).tolist() == s.run(again).tolist() == [[3.0 + bias] * 2]
