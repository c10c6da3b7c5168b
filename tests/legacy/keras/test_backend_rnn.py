"""A step applied along time."""

import numpy as np
import pytest

import tensorfleet as tf

K = tf.keras.backend
X = np.arange(12, dtype=np.float32).reshape(2, 3, 2)


def adding(x, states):
    """Adds up the inputs; a third state is a constant."""
    total = states[0] + x * (states[1] if len(states) > 1 else 1)
    return total, [total]


def run(unroll, x=X, **options):
    inputs = options.pop("inputs", tf.constant(x))
    last, outputs, states = K.rnn(adding, inputs, [tf.zeros([2, 2])], unroll=unroll, **options)
    return last, outputs, states


@pytest.mark.parametrize("unroll", [False, True])
def test_outputs_and_states_follow_each_other(unroll):
    last, outputs, states = run(unroll)
    assert outputs.shape.as_list() == [2, 3, 2]
    with tf.Session() as sess:
        got = sess.run([last, outputs, states[0]])
    np.testing.assert_array_equal(got[1], np.cumsum(X, 1))
    np.testing.assert_array_equal(got[0], X.sum(1))
    np.testing.assert_array_equal(got[2], X.sum(1))


@pytest.mark.parametrize("unroll", [False, True])
def test_time_goes_backwards_and_constants_come_after_the_states(unroll):
    _, outputs, _ = run(unroll, go_backwards=True, constants=[tf.constant(10.0)])
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(outputs), 10 * np.cumsum(X[:, ::-1], 1))


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_steps_that_are_left_out_keep_the_states(unroll, zeros):
    mask = np.array([[1, 0, 1], [0, 1, 1]], bool)
    _, outputs, states = run(unroll, mask=tf.constant(mask), zero_output_for_mask=zeros)
    total = np.cumsum(X * mask[:, :, None], 1)
    with tf.Session() as sess:
        got, last = sess.run([outputs, states[0]])
    np.testing.assert_array_equal(got, total * mask[:, :, None] if zeros else total)
    np.testing.assert_array_equal(last, total[:, -1])


def test_the_number_of_steps_may_be_known_only_in_the_run():
    inputs = tf.placeholder(tf.float32, [2, None, 2])
    _, outputs, _ = run(False, inputs=inputs)
    assert outputs.shape.as_list() == [2, None, 2]
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(outputs, {inputs: X[:, :2]}), np.cumsum(X[:, :2], 1))
    with pytest.raises(ValueError, match="fixed number of timesteps"):
        run(True, inputs=inputs)


def test_inputs_may_be_several_and_time_may_come_first():
    turned = X.transpose(1, 0, 2)
    pair = {"a": tf.constant(turned), "b": tf.constant(2 * turned)}

    def step(x, states):
        total = states[0] + x["a"] + x["b"]
        return {"sum": total}, [total]

    last, outputs, _ = K.rnn(step, pair, [tf.zeros([2, 2])], time_major=True)
    with tf.Session() as sess:
        got = sess.run([last, outputs])
    np.testing.assert_array_equal(got[1]["sum"], 3 * np.cumsum(turned, 0))
    np.testing.assert_array_equal(got[0]["sum"], 3 * turned.sum(0))
