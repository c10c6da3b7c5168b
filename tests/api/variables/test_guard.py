"""Initial values that depend on variables which may have no value yet."""

import tensorfleet as tf


def test_an_uninitialized_variable_stands_for_its_initial_value(session):
    v = tf.Variable(2.0, name="v")
    w = tf.Variable(3.0 * v, name="w")
    session.run(w.initializer)
    assert session.run(w) == 6.0
    assert not session.run(tf.is_variable_initialized(v))


def test_a_variable_that_has_a_value_gives_it(session):
    v = tf.Variable(2.0)
    w = tf.Variable(v, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    session.run(v.assign(7.0))
    session.run(w.initializer)
    assert session.run(w) == 7.0


def test_the_operations_in_between_are_made_anew_and_named_after_the_variable():
    v = tf.Variable(2.0, name="v")
    with tf.name_scope("scope"):
        w = tf.Variable(tf.multiply(v, 3.0, name="product"), name="w")
    result = w.initializer.inputs[1].op
    assert result.name == "scope/product_scope/w"
    assert [t.op.name for t in result.inputs] == ["v/read_scope/w", "scope/product/y"]
    assert result.inputs[0].op.inputs[0].op.type == "Merge"
    assert w.initial_value.op.name == "scope/product"


def test_nothing_is_made_for_what_depends_on_no_variable_or_on_a_loop(session):
    plain = tf.Variable(tf.ones([2]), name="plain")
    assert plain.initializer.inputs[1] is plain.initial_value
    v = tf.Variable(0, name="v")
    count = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [v])
    looped = tf.Variable(tf.identity(count), name="looped")
    assert looped.initializer.inputs[1] is looped.initial_value
    session.run(v.initializer)
    session.run(looped.initializer)
    assert session.run(looped) == 3


def test_an_initialized_value_is_a_branch_on_whether_there_is_one():
    for use_resource in (False, True):
        v = tf.Variable(1.0, use_resource=use_resource)
        value = v.initialized_value()
        assert value.op.type == "Merge"
        with tf.Session() as sess:
            assert sess.run(value) == 1.0
            sess.run(v.initializer)
            sess.run(v.assign(5.0))
            assert sess.run(value) == 5.0
