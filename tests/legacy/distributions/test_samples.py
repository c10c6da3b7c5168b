"""Distributions: samples with gradients, shapes, and what is built of others."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

ds = tf.distributions
SEED = 1


def test_samples_have_the_shape_asked_for_and_the_right_moments():
    d = ds.Normal([0.0, 10.0], [1.0, 3.0])
    drawn = run(d.sample([5000], seed=1))
    assert drawn.shape == (5000, 2)
    np.testing.assert_allclose(drawn.mean(0), [0, 10], atol=0.3)
    np.testing.assert_allclose(drawn.std(0), [1, 3], rtol=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ds.Bernoulli(probs=[0.2, 0.9]),
        lambda: ds.Exponential([0.5, 2.0]),
        lambda: ds.Gamma([1.5, 3.0], [1.0, 2.0]),
        lambda: ds.Beta([1.5, 3.0], [1.0, 2.0]),
        lambda: ds.Laplace([0.0, 1.0], [1.0, 2.0]),
        lambda: ds.Uniform([0.0, 1.0], [1.0, 5.0]),
        lambda: ds.Dirichlet([[1.0, 2.0, 3.0], [5.0, 1.0, 1.0]]),
        lambda: ds.Multinomial([3.0, 5.0], probs=[[0.2, 0.8], [0.5, 0.5]]),
        lambda: ds.DirichletMultinomial([3.0, 5.0], [[2.0, 8.0], [5.0, 5.0]]),
        lambda: tf.contrib.distributions.Poisson([1.0, 4.0]),
        lambda: tf.contrib.distributions.MultivariateNormalDiag([0.0, 1.0], [1.0, 2.0]),
        lambda: tf.contrib.distributions.OneHotCategorical(probs=[0.2, 0.8]),
    ],
)
def test_the_mean_of_samples_is_the_mean(make):
    d = make()
    drawn, mean = run([d.sample(1000, seed=3), d.mean()])
    assert drawn.shape == (1000, *mean.shape)
    np.testing.assert_allclose(drawn.mean(0), mean, rtol=0.25, atol=0.15)


def test_gradients_flow_through_samples_of_a_normal():
    loc, scale = tf.Variable(1.0), tf.Variable(2.0)
    drawn = ds.Normal(loc, scale).sample(seed=1)
    value, by_loc, by_scale = run([drawn, *tf.gradients(drawn, [loc, scale])])
    assert by_loc == 1
    np.testing.assert_allclose(by_scale, (value - 1) / 2, rtol=1e-5)


def test_a_policy_gradient_moves_towards_the_rewarded_class(session):
    logits = tf.Variable(np.zeros(3, np.float32))
    policy = ds.Categorical(logits=logits)
    action = policy.sample(64, seed=5)
    reward = tf.cast(tf.equal(action, 2), tf.float32)
    loss = -tf.reduce_mean(policy.log_prob(tf.stop_gradient(action)) * reward)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(30):
        session.run(step)
    assert session.run(policy.probs)[2] > 0.8


def test_shapes_unknown_until_the_step_runs():
    loc = tf.placeholder(tf.float32)
    d = ds.Normal(loc, 1.0)
    assert d.batch_shape.rank is None
    result = run([d.sample(3), d.log_prob(0.0), d.batch_shape_tensor()], {loc: np.zeros((2, 2))})
    assert result[0].shape == (3, 2, 2) and result[1].shape == (2, 2) and result[2].tolist() == [2, 2]


def test_parts_of_a_batch_become_one_event():
    inner = ds.Normal(np.zeros((2, 3), np.float32), 1.0)
    d = tf.contrib.distributions.Independent(inner, 1)
    assert d.batch_shape.as_list() == [2] and d.event_shape.as_list() == [3]
    whole, parts = run([d.log_prob(np.ones(3)), inner.log_prob(np.ones(3))])
    np.testing.assert_allclose(whole, parts.sum(1), rtol=1e-6)


def test_a_mixture_weighs_its_components():
    parts = [ds.Normal(-5.0, 1.0), ds.Normal(5.0, 1.0)]
    d = tf.contrib.distributions.Mixture(ds.Categorical(probs=[0.25, 0.75]), parts)
    assert run(d.mean()) == 2.5
    drawn, density = run([d.sample(400, seed=2), d.prob(5.0)])
    assert 0.6 < (drawn > 0).mean() < 0.9
    np.testing.assert_allclose(density, 0.75 / np.sqrt(2 * np.pi), rtol=1e-4)


def test_arguments_are_checked_when_asked_to():
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(ds.Normal(0.0, -1.0, validate_args=True).mean())
    with pytest.raises(ValueError, match="probs or logits"):
        ds.Bernoulli()


def test_what_a_distribution_does_not_know_it_says():
    with pytest.raises(NotImplementedError, match="cdf is not implemented|log_cdf is not implemented"):
        ds.Dirichlet([1.0, 2.0]).cdf([0.5, 0.5])
    with pytest.raises(NotImplementedError, match="No KL"):
        ds.kl_divergence(ds.Normal(0.0, 1.0), ds.Bernoulli(probs=0.5))


def test_a_divergence_of_ones_own_is_used():
    class Mine(ds.Normal):
        pass

    @ds.RegisterKL(Mine, Mine)
    def _kl(a, b, name=None):
        return tf.constant(42.0)

    assert run(ds.kl_divergence(Mine(0.0, 1.0), Mine(1.0, 1.0))) == 42


def test_copies_change_what_they_are_told_to():
    d = ds.Normal(1.0, 2.0).copy(loc=5.0)
    assert run([d.mean(), d.stddev()]) == [5, 2]
