"""Exponential moving averages."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.train.moving_averages import assign_moving_average
from tests.support.sessions import initialized


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_the_average_follows_the_variable(resource):
    w = tf.get_variable("w", initializer=np.float32([1, 2]), use_resource=resource)
    average = tf.train.ExponentialMovingAverage(0.9)
    update = average.apply()
    grow = tf.assign_add(w, [1.0, 1.0])
    with initialized() as session:
        session.run(grow)
        session.run(update)
        np.testing.assert_allclose(session.run(average.average(w)), [1.1, 2.1], rtol=1e-6)


def test_the_average_of_a_tensor_starts_at_zero_and_can_be_corrected():
    t = tf.constant([10.0], name="t") * 1.0
    plain = tf.train.ExponentialMovingAverage(0.9)
    corrected = tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name="Corrected")
    update = tf.group(plain.apply([t]), corrected.apply([t]))
    with initialized() as session:
        for _ in range(3):
            session.run(update)
        result = session.run([plain.average(t), corrected.average(t)])
    np.testing.assert_allclose(result, [[10 * (1 - 0.9**3)], [10.0]], rtol=1e-5)


def test_few_updates_mean_little_decay():
    w = tf.Variable([4.0])
    count = tf.placeholder(tf.int32, [])
    average = tf.train.ExponentialMovingAverage(0.999, num_updates=count)
    update = average.apply([w])
    with initialized() as session:
        session.run(tf.assign(w, [14.0]))
        session.run(update, {count: 0})
        np.testing.assert_allclose(session.run(average.average(w)), [13.0], rtol=1e-6)


def test_what_to_restore_for_evaluation():
    w = tf.get_variable("w", initializer=np.float32([1, 2]))
    other = tf.get_variable("other", initializer=np.float32(1), trainable=False)
    average = tf.train.ExponentialMovingAverage(0.9)
    before = average.variables_to_restore()
    assert before == {"w/ExponentialMovingAverage": w, "other": other}
    average.apply([w])
    assert average.variables_to_restore() == before
    assert average.average_name(w) == average.average(w).op.name == "w/ExponentialMovingAverage"
    assert average.average(other) is None and tf.moving_average_variables() == [w]


def test_integers_have_no_average():
    with pytest.raises(TypeError, match="The variables must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.constant(1)])


def test_repeated_debiasing_keeps_separate_counts():
    w = tf.get_variable("w", initializer=np.float32([0]))
    assign_moving_average(w, [1.0], 0.5)
    assign_moving_average(w, [1.0], 0.5)
    names = {v.op.name for v in tf.global_variables()}
    assert names == {"w", "w/biased", "w/local_step", "w/biased_1", "w/local_step_1"}


@pytest.mark.parametrize("debias", [True, False])
def test_replicas_move_a_variable_to_the_mean_of_what_they_have(debias):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with strategy.scope():

        def replica():
            number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
            v = tf.get_variable("v", initializer=tf.zeros([2]))
            return v, assign_moving_average(v, [1.0 + number, 3.0], 0.25, zero_debias=debias)

        v, moved = strategy.extended.call_for_each_replica(replica)
        apart = assign_moving_average(v, [9.0, 9.0], 0.0, zero_debias=False)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(strategy.experimental_local_results(moved))
        wanted = [1.5, 3.0] if debias else [1.125, 2.25]
        np.testing.assert_allclose(sess.run(list(v.values)), [wanted, wanted], rtol=1e-6)
        sess.run(strategy.experimental_local_results(apart))
        np.testing.assert_allclose(sess.run(list(v.values)), [[9.0, 9.0]] * 2)
