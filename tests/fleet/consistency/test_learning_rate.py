"""A learning rate that follows how many workers make an update together."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.fleet.consistency.learning_rate import RateScaling
from tests.fleet.consistency.test_optimizer import WORKERS, cluster  # noqa: F401 - a fixture
from tests.support.waiting import together


def trained(servers, steps, make=lambda: tf.train.GradientDescentOptimizer(0.5), text="bsp", **kwargs):
    """The value that all workers have moved by a gradient of 1 in each step, and what they were told to compute."""
    sessions, trains = [], []
    for i, target in enumerate(servers.targets):
        setter = tf.train.replica_device_setter(cluster=servers.spec, worker_device=f"/job:worker/task:{i}")
        with tf.Graph().as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            opt = tf.fleet.Optimizer(make(), text, WORKERS, **kwargs)
            trains.append(opt.minimize(-w, global_step=step))
            size = opt.batch_size(32)
            sessions.append(tf.Session(target))
            if i == 0:
                sessions[0].run(tf.global_variables_initializer())
    for _ in range(steps):
        together(*(lambda i=i: sessions[i].run(trains[i]) for i in range(WORKERS)))
    return sessions[-1].run([w, size])


@pytest.mark.parametrize("make", [lambda: 0.5, lambda: lambda: tf.constant(0.5), lambda: tf.constant(0.5)])
def test_the_rate_is_that_of_all_workers(cluster, make):  # noqa: F811
    w, size = trained(cluster, 2, lambda: tf.train.GradientDescentOptimizer(make()), rate_for_workers=1)
    np.testing.assert_allclose(w, 2 * 0.5 * WORKERS)
    assert size == 11, "three times eleven are the 32 examples asked for"


def test_the_rate_was_chosen_for_some_workers(cluster):  # noqa: F811
    w, _ = trained(cluster, 2, rate_for_workers=WORKERS)
    np.testing.assert_allclose(w, 2 * 0.5)


def test_the_rate_rises_during_the_warm_up(cluster):  # noqa: F811
    w, _ = trained(cluster, 5, rate_for_workers=1, warm_up_steps=4)
    factors = [1 + (WORKERS - 1) * min(step / 4, 1) for step in range(5)]
    np.testing.assert_allclose(w, 0.5 * sum(factors), rtol=1e-6)


@pytest.mark.parametrize(("gradients", "factor"), [(2, 1.0), (1, 0.5), (6, 3.0)])
def test_the_factor_is_that_of_the_gradients_which_the_update_has(gradients, factor, session):
    assert session.run(RateScaling(2).factor(tf.constant(gradients), None)) == factor


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"rate_for_workers": 0}, "rate_for_workers must be 1 or more, not 0"),
        ({"rate_for_workers": 1, "warm_up_steps": -1}, "warm_up_steps must be 0 or more, not -1"),
        ({"warm_up_steps": 5}, "warm_up_steps needs rate_for_workers"),
        (
            {"rate_for_workers": 1, "consistency": "ssp:4"},
            "with 'ssp:4' each has one. Leave it out, or use 'bsp'",
        ),
    ],
)
def test_a_scaling_that_makes_no_sense_is_refused(kwargs, text):
    with pytest.raises(ValueError, match=text):
        tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(0.1), **{"consistency": "bsp", **kwargs})


def test_what_has_no_rate_is_refused():
    with pytest.raises(ValueError, match="Optimizer has no learning rate"):
        tf.fleet.Optimizer(tf.train.Optimizer(False, "plain"), "bsp", rate_for_workers=1)


def test_a_warm_up_needs_the_global_step():
    w = tf.Variable(1.0)
    opt = tf.fleet.Optimizer(
        tf.train.GradientDescentOptimizer(0.1), "bsp", rate_for_workers=1, warm_up_steps=3
    )
    with pytest.raises(ValueError, match="warm_up_steps are global steps: pass global_step"):
        opt.minimize(w * 2.0)


def test_the_batch_size_is_asked_for_after_the_training_step():
    opt = tf.fleet.Optimizer(tf.train.GradientDescentOptimizer(0.1), "bsp")
    with pytest.raises(ValueError, match=r"after apply_gradients\(\) or minimize\(\)"):
        opt.batch_size(32)
