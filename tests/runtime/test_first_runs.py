"""What XLA is far better at runs in numpy once, unless that takes longer than compiling would."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import trial


def model():
    """A convolution with dropout, whose filter and a counter are changed by each step."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 108, dtype=np.float32).reshape(3, 3, 3, 4))
    steps = tf.train.get_or_create_global_step()
    maps = tf.nn.dropout(tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME")), rate=0.5, seed=4)
    loss = tf.reduce_mean(tf.square(maps))
    return x, steps, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss, steps)


def trained(count):
    """The losses of a few steps, the step at the end, and how many programs there were after each step."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        x, steps, loss, train = model()
        session.run(tf.global_variables_initializer())
        given = {x: np.linspace(0, 1, 384, dtype=np.float32).reshape(2, 8, 8, 3)}
        losses, programs = [], []
        for _ in range(count):
            losses.append(session.run([loss, train], given)[0])
            items = session._prepare([loss, train], given).program.items
            programs.append(sum(len(item.compiler.programs) for item in items if hasattr(item, "compiler")))
        return losses, session.run(steps), programs


def test_a_model_that_runs_once_is_not_compiled_and_one_that_runs_again_is():
    _, _, programs = trained(3)
    assert programs[0] == 0
    assert programs[1] == programs[2] == 1


def test_where_numpy_takes_too_long_the_first_run_is_begun_again_and_compiled(monkeypatch):
    patient = trained(3)
    monkeypatch.setattr(trial, "_FIRST_RUN_SECONDS", -1.0)
    hurried = trained(3)
    assert hurried[2] == [1, 1, 1]
    assert hurried[1] == patient[1] == 3  # no step was counted twice
    np.testing.assert_allclose(hurried[0], patient[0], rtol=1e-4)  # and each drew its numbers once


def test_an_error_in_the_first_run_is_told_as_ever(session):
    x = tf.placeholder(tf.float32)
    y = tf.nn.conv2d(x, np.ones([3, 3, 3, 4], np.float32), 1, "SAME", name="wrong")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)must be .*wrong|depth.*wrong"):
        session.run(y, {x: np.ones([1, 4, 4, 2])})
