"""Templates share the variables of their first call."""

import numpy as np
import pytest

import tensorfleet as tf


def scaled(x, scale=1.0):
    return x * tf.get_variable("v", [2], initializer=tf.ones_initializer()) * scale


def test_every_call_uses_the_same_variables():
    layer = tf.make_template("layer", scaled, scale=2.0)
    first, second = layer(tf.constant([1.0, 2.0])), layer(tf.constant([3.0, 4.0]))
    assert [v.name for v in tf.global_variables()] == ["layer/v:0"]
    assert (first.op.name, second.op.name) == ("layer/mul_1", "layer_1/mul_1")
    assert layer.variables == layer.trainable_variables == tf.global_variables()
    assert layer.variable_scope_name == "layer/"


def test_two_templates_of_one_name_are_apart():
    x = tf.constant([1.0, 2.0])
    tf.make_template("layer", scaled)(x)
    tf.make_template("layer", scaled)(x)
    assert [v.name for v in tf.global_variables()] == ["layer/v:0", "layer_1/v:0"]


def test_the_scope_may_be_that_of_the_definition():
    with tf.variable_scope("outer"):
        layer = tf.make_template("layer", scaled, create_scope_now_=True)
    layer(tf.constant([1.0, 2.0]))
    assert layer.variables[0].name == "outer/layer/v:0"


def test_new_variables_after_the_first_call_are_refused():
    names = iter("abc")
    layer = tf.make_template("layer", lambda: tf.get_variable(next(names), [1]))
    layer()
    with pytest.raises(ValueError, match="does not exist"):
        layer()
    other = tf.make_template("other", lambda: tf.Variable(1.0))
    other()
    with pytest.raises(ValueError, match="New variable"):
        other()


def test_a_variable_in_parts():
    parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer(), name="parts")
    assert [p.name for p in parts] == ["parts/part_0:0", "parts/part_1:0"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert np.concatenate(sess.run(parts)).shape == (4, 2)
    with pytest.raises(ValueError, match="must have the length"):
        tf.create_partitioned_variables([4, 2], [2], tf.ones_initializer())


def test_a_template_tells_what_it_does_not_train():
    def both():
        return tf.get_variable("a", []), tf.get_variable("b", [], trainable=False)

    with tf.Graph().as_default():
        result = tf.make_template("t", both)
        a, b = result()
        assert [v is a for v in result.trainable_variables] == [True]
        assert [v is b for v in result.non_trainable_variables] == [True]


def test_a_scope_made_early_leaves_the_name_scope_to_the_first_call():
    with tf.Graph().as_default():
        result = tf.make_template("t", lambda: tf.get_variable("v", []) + 1.0, create_scope_now_=True)
        assert result.variable_scope.name == "t" and not result._variables_created
        assert [result().op.name, result().op.name] == ["t/add", "t_1/add"]
        assert result._variables_created


def test_the_scope_of_a_template_made_now_has_its_own_name_for_a_name_scope():
    with tf.variable_scope("model"), tf.name_scope("step"):
        first = tf.make_template("layer", lambda: tf.get_variable("w", []), create_scope_now_=True)
        second = tf.make_template("layer", lambda: tf.get_variable("w", []), create_scope_now_=True)
    assert first.variable_scope.original_name_scope == "layer"
    assert second.variable_scope.original_name_scope == "layer_1"
    with tf.variable_scope(first.variable_scope) as again:
        assert again.original_name_scope == "layer"
