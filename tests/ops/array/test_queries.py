"""What can be asked while a graph is built."""

import time

import numpy as np
import pytest

import tensorfleet as tf


def test_tensors_and_what_holds_one():
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1))
    assert not tf.is_tensor(1)
    assert not tf.is_tensor(np.ones(2))


def test_values_known_without_running():
    assert tf.get_static_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert tf.get_static_value(tf.placeholder(tf.int32)) is None


def test_slices_stay_slices():
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert tf.convert_to_tensor_or_indexed_slices(slices) is slices
    assert tf.convert_to_tensor_or_indexed_slices([1, 2]).dtype == tf.int32
    with pytest.raises(ValueError, match="requested dtype int32"):
        tf.convert_to_tensor_or_indexed_slices(slices, tf.int32)


def test_modes_are_those_of_tensorflow_one():
    assert not tf.executing_eagerly()
    assert not tf.control_flow_v2_enabled()
    tf.disable_v2_behavior()
    tf.disable_eager_execution()


def test_an_init_scope_waits_for_nothing():
    with tf.control_dependencies([tf.no_op()]):
        with tf.init_scope():
            result = tf.constant(1)
    assert result.op.control_inputs == []


def test_gradients_pass_through(session):
    x = tf.constant([1.5, 2.5])
    y = tf.grad_pass_through(tf.floor)(x)
    value, grad = session.run([y, tf.gradients(y, x)[0]])
    assert value.tolist() == [1, 2]
    assert grad.tolist() == [1, 1]


def test_a_timestamp_is_taken_at_each_run(session):
    now = tf.timestamp()
    before = time.time()
    first, second = session.run(now), session.run(now)
    assert before <= first <= second <= time.time()


def test_every_float_is_checked(session):
    x = tf.placeholder(tf.float32, name="x")
    tf.sqrt(x, name="root")
    check = tf.add_check_numerics_ops()
    session.run(check, {x: 1.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match="root:0 : Tensor had NaN values"):
        session.run(check, {x: -1.0})


def test_log_sigmoid_of_large_negatives(session):
    np.testing.assert_allclose(
        session.run(tf.log_sigmoid([-100.0, 0.0, 100.0])), [-100, -np.log(2), 0], atol=1e-6
    )


def test_of_a_stack_the_known_parts_can_be_asked_for():
    with tf.Graph().as_default():
        stacked = tf.stack([tf.constant([1, 2]), tf.placeholder(tf.int32, [2])])
        assert tf.get_static_value(stacked) is None
        known, unknown = tf.get_static_value(stacked, partial=True)
        assert (known.tolist(), unknown) == ([1, 2], None)
        side_by_side = tf.stack([tf.constant([1, 2]), tf.placeholder(tf.int32, [2])], axis=1)
        assert tf.get_static_value(side_by_side, partial=True) is None
        nothing = tf.stack([tf.placeholder(tf.int32, []), tf.stack(tf.placeholder(tf.int32, []))])
        assert tf.get_static_value(nothing, partial=True).tolist() == [None, None]


def test_an_assignment_passes_gradients_through():
    x = tf.get_variable("x", initializer=1.0, use_resource=True)
    z = tf.get_variable("z", initializer=3.0, use_resource=True)
    passed = tf.grad_pass_through(lambda v: tf.assign(x, v))(z**2)
    assert tf.gradients(tf.grad_pass_through(lambda v: x * v)(z), x) == [None]
    slope = tf.gradients(passed, z)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(slope) == 6


def test_the_variables_behind_results_are_found():
    behind = tf.python.ops.custom_gradient.get_dependent_variables
    v, fixed = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    x = tf.constant(2.0)
    assert behind([x], [x + 1]) == []
    assert behind({"x": x}, {"y": x * v + fixed}) == [v]
    before = tf.identity(v)
    assert behind([before], [before * 2]) == []
    assert behind([x], [x + tf.ones_like(v)]) == []


def test_a_tensor_says_that_python_was_not_converted():
    status = tf.python.autograph.core.ag_ctx
    x = tf.constant([1])
    for which, why in ((status.Status.ENABLED, "did not convert"), (status.Status.DISABLED, "is disabled")):
        with status.ControlStatusCtx(which), pytest.raises(TypeError, match=f"not allowed: AutoGraph {why}"):
            bool(x)
    with pytest.raises(TypeError, match="not allowed in Graph execution"):
        iter(x)


def test_what_is_no_tensor_is_its_own_value():
    assert tf.get_static_value(5) == 5
    assert tf.get_static_value(None) is None
    assert tf.get_static_value(tf.Variable(1.0)) is None
    assert tf.get_static_value(tf.constant(7)) == 7
