"""tf.contrib.layers.optimize_loss: noise, clipping, summaries, and what it refuses."""

import numpy as np
import pytest

import tensorfleet as tf

optimize = tf.contrib.layers.optimize_loss


@pytest.fixture
def model():
    x = tf.get_variable("x", [], initializer=tf.constant_initializer(10.0))
    return x, tf.abs(5.0 * x), tf.train.create_global_step()


def one_step(session, train):
    session.run(tf.global_variables_initializer())
    session.run(train)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 9.5),
        ({"optimizer": "Momentum"}, 9.5),
        ({"clip_gradients": 0.1}, 9.99),
        # The mean of the logarithms is 0.05 * log(5) after the first step.
        ({"clip_gradients": tf.contrib.layers.adaptive_clipping_fn()}, 10 - 0.1 * 5**0.05),
        ({"clip_gradients": tf.contrib.layers.adaptive_clipping_fn(static_max_norm=0.5)}, 9.95),
    ],
)
def test_a_step_with_options(model, session, options, expected):
    x, loss, step = model
    one_step(session, optimize(loss, step, **{"learning_rate": 0.1, "optimizer": "SGD", **options}))
    assert session.run(x) == pytest.approx(expected, rel=1e-5)
    assert session.run(step) == 1


def test_the_step_of_the_graph_is_counted_unless_told_otherwise(model, session):
    _, loss, step = model
    one_step(session, optimize(loss, None, 0.1, "SGD"))
    assert session.run(step) == 1
    one_step(session, optimize(loss, None, 0.1, "SGD", increment_global_step=False, name="other"))
    assert session.run(step) == 0


def test_noise_is_added_and_variables_without_gradient_are_let_be(model, session):
    tf.set_random_seed(1)
    x, loss, step = model
    unused = tf.get_variable("unused", [])
    options = {
        "gradient_noise_scale": 1.0,
        "gradient_multipliers": {unused: 2.0, x: tf.constant(2.0, tf.float64)},
    }
    one_step(session, optimize(loss, step, 0.1, "SGD", clip_gradients=1e6, **options))
    moved = 10 - session.run(x)
    assert 0.6 <= moved <= 1.4 and moved != pytest.approx(1.0, abs=1e-6)


def test_summaries_of_gradients(model, session):
    _, loss, step = model
    everything = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
    optimize(loss, step, 0.1, "SGD", clip_gradients=0.1, summaries=everything)
    session.run(tf.global_variables_initializer())
    string = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    values = {v.tag.removeprefix("OptimizeLoss/"): v.simple_value for v in string.value}
    assert set(values) == {
        "learning_rate_1",  # the variable has the name itself
        "loss",
        "gradients/x_0",
        "gradient_norm/x_0",
        "global_norm/gradient_norm",
        "global_norm/clipped_gradient_norm",
    }
    assert values["global_norm/gradient_norm"] == 5.0
    np.testing.assert_allclose(values["global_norm/clipped_gradient_norm"], 0.1, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": -0.1}, "Invalid learning_rate"),
        ({"learning_rate": 1}, "Learning rate should be 0d Tensor or float"),
        ({"loss": [[1.0]]}, "Expected scalar"),
        ({"optimizer": lambda rate: None}, "Unrecognized optimizer"),
        ({"optimizer": dict}, "Unrecognized optimizer"),
    ],
)
def test_wrong_arguments_are_refused(model, change, message):
    _, loss, step = model
    given = {"loss": loss, "global_step": step, "learning_rate": 0.1, "optimizer": "SGD", **change}
    with pytest.raises(ValueError, match=message):
        optimize(**given)


def test_a_constant_counts_no_steps(model):
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'assign_add'"):
        optimize(model[1], tf.constant(1, tf.int64), 0.1, "SGD")


def test_an_activation_is_summarized_with_the_share_that_it_cuts_off(session):
    tf.contrib.layers.summarize_activation(tf.nn.relu6(tf.constant([-1.0, 2.0, 7.0, 8.0]), name="act"))
    shown = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    by_name = {value.tag: value.simple_value for value in shown.value}
    assert (by_name["act/zeros"], by_name["act/sixes"]) == (0.25, 0.5) and "act/activation" in by_name


def test_a_scalar_begins_as_a_random_number_of_the_xavier_kind(session):
    for start in (tf.contrib.layers.xavier_initializer(), tf.contrib.layers.variance_scaling_initializer()):
        value = session.run(start([], dtype=tf.float32))
        assert value.shape == () and abs(value) < 5.0
