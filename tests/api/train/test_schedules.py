"""Learning-rate schedules at a few steps each."""

import math

import numpy as np
import pytest

import tensorfleet as tf

train = tf.train
CASES = {
    "exponential": (
        lambda g: train.exponential_decay(0.1, g, 10, 0.5),
        {0: 0.1, 10: 0.05, 15: 0.1 * 0.5**1.5},
    ),
    "staircase": (lambda g: train.exponential_decay(0.1, g, 10, 0.5, staircase=True), {9: 0.1, 19: 0.05}),
    "natural": (lambda g: train.natural_exp_decay(0.1, g, 10, 0.5), {10: 0.1 * math.exp(-0.5)}),
    "inverse": (lambda g: train.inverse_time_decay(0.1, g, 10, 0.5), {10: 0.1 / 1.5}),
    "polynomial": (lambda g: train.polynomial_decay(0.1, g, 10, 0.02), {0: 0.1, 5: 0.06, 10: 0.02, 99: 0.02}),
    "cycle": (lambda g: train.polynomial_decay(0.1, g, 10, 0.0, cycle=True), {0: 0.1, 10: 0.0, 15: 0.025}),
    "cosine": (lambda g: train.cosine_decay(0.1, g, 10), {0: 0.1, 5: 0.05, 10: 0.0, 20: 0.0}),
    "restarts": (lambda g: train.cosine_decay_restarts(0.1, g, 10), {0: 0.1, 10: 0.1, 20: 0.05, 30: 0.1}),
    "piecewise": (
        lambda g: train.piecewise_constant(g, [5, 9], [1.0, 0.5, 0.1]),
        {5: 1.0, 6: 0.5, 9: 0.5, 10: 0.1},
    ),
    "linear_cosine": (lambda g: train.linear_cosine_decay(0.1, g, 10), {0: 0.1001, 5: 0.0251, 10: 0.0001}),
}


@pytest.mark.parametrize("name", CASES)
def test_rate_at_step(name):
    make, expected = CASES[name]
    with tf.Graph().as_default():
        step = tf.placeholder(tf.int64, [])
        rate = make(step)
        with tf.Session() as session:
            by_name = {i: session.run(rate, {step: i}) for i in expected}
    assert by_name == pytest.approx(expected, abs=1e-6)


def test_noise_fades():
    with tf.Graph().as_default():
        step = tf.placeholder(tf.int64, [])
        rate = tf.train.noisy_linear_cosine_decay(1.0, step, 1000, variance_decay=2.0)
        with tf.Session() as session:
            early = np.std([session.run(rate, {step: 0}) for _ in range(50)])
            late = np.std([session.run(rate, {step: 400}) for _ in range(50)])
    assert late < early / 10


def test_a_schedule_follows_the_global_step_of_the_training(session):
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(0.0)
    rate = tf.train.exponential_decay(1.0, step, 1, 0.5)
    update = tf.train.GradientDescentOptimizer(rate).minimize(-w, global_step=step)
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(update)
    assert session.run([rate, w]) == pytest.approx([0.125, 1.75])


def test_boundaries_and_values_must_fit():
    step = tf.placeholder(tf.int64, [])
    with pytest.raises(ValueError, match="1 less than the length of values"):
        tf.train.piecewise_constant(step, [1], [1.0])
    with pytest.raises(ValueError, match="must have the same dtype as x"):
        tf.train.piecewise_constant(step, [1.5], [1.0, 2.0])
    with pytest.raises(ValueError, match="elements all with the same dtype"):
        tf.train.piecewise_constant(step, [1], [1.0, 2])


def test_a_schedule_needs_a_step():
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="global_step is required for exponential_decay"),
    ):
        tf.train.exponential_decay(0.1, None, 10, 0.5)
