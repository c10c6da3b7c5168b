"""Counting the operations that XLA has to compile."""

import tensorfleet as tf
from tensorfleet.passes.equal_ops import MIN_EQUAL, distinct_ops


def test_of_equal_operations_the_first_counts():
    x = tf.placeholder(tf.float32, [])
    ops = [tf.tanh(x).op for _ in range(MIN_EQUAL)]
    assert distinct_ops(ops) == [True] + [False] * (MIN_EQUAL - 1)


def test_few_equal_operations_all_count():
    x = tf.placeholder(tf.float32, [])
    assert distinct_ops([tf.tanh(x).op for _ in range(MIN_EQUAL - 1)]) == [True] * (MIN_EQUAL - 1)


def test_operations_of_a_chain_all_count():
    y = tf.placeholder(tf.float32, [])
    ops = [(y := tf.tanh(y)).op for _ in range(MIN_EQUAL * 2)]
    assert all(distinct_ops(ops))


def test_operations_on_other_shapes_are_not_equal():
    ops = [tf.tanh(tf.placeholder(tf.float32, [n])).op for n in range(MIN_EQUAL * 2)]
    assert all(distinct_ops(ops))


def test_step_with_a_thousand_variables_is_one_segment(session):
    variables = [tf.Variable(0.0, name=f"v{n}") for n in range(1000)]
    loss = tf.add_n([tf.square(v - 1.0) for v in variables])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    assert len(session._prepare([train, loss], {}).program.items) == 1
