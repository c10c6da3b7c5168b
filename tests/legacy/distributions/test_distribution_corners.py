"""Corners of the distributions of `tf.contrib`: limits, other types, classes of one's own."""

import numpy as np
from scipy import stats

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

ds = tf.contrib.distributions
SEED = 2


def test_a_distribution_of_ones_own():
    class Coin(ds.Distribution):
        def __init__(self, weight):
            self._weight = tf.convert_to_tensor(weight)
            super().__init__(tf.float32, ds.NOT_REPARAMETERIZED, False, True, name="Coin")

        def _batch_shape_tensor(self):
            return tf.shape(self._weight)

        def _batch_shape(self):
            return self._weight.shape

        def _event_shape_tensor(self):
            return tf.constant([], dtype=tf.int32)

        def _event_shape(self):
            return tf.TensorShape([])

        def _sample_n(self, n, seed=None):
            shape = tf.concat([[n], tf.shape(self._weight)], 0)
            return tf.cast(tf.random_uniform(shape, seed=seed) < self._weight, tf.float32)

        def _prob(self, x):
            return x * self._weight + (1 - x) * (1 - self._weight)

    coin = Coin([0.25, 0.5])
    assert coin.sample([4, 3]).shape.as_list() == [4, 3, 2]
    np.testing.assert_allclose(run(coin.log_prob([1.0, 0.0])), np.log([0.25, 0.5]), rtol=1e-5)


def test_densities_are_finite_where_a_power_of_zero_stands_for_one():
    assert np.isfinite(run(tf.distributions.Beta(1.0, [0.1, 1.0, 2.0]).log_prob(0.0))).all()
    assert np.isfinite(run(tf.distributions.Gamma(1.0, [0.5, 2.0]).log_prob(0.0))).all()
    assert np.isfinite(run(tf.distributions.Dirichlet([1.0, 2.0, 3.0]).log_prob([0.0, 0.5, 0.5])))


def test_whole_numbers_may_be_asked_for_as_floats():
    logits = np.log([[0.2, 0.8], [0.6, 0.4]])
    chosen = tf.distributions.Categorical(logits)
    np.testing.assert_allclose(run(chosen.log_prob([0.0, 1.0])), np.log([0.2, 0.4]), rtol=1e-6)
    coin = tf.distributions.Bernoulli(probs=[0.3])
    expected = 0.5 * (np.log(0.3) + np.log(0.7))
    np.testing.assert_allclose(run(coin.log_prob(0.5)), [expected], rtol=1e-6)


def test_a_scale_below_zero_is_as_good_as_above_for_students_t():
    result = run(tf.distributions.StudentT(3.0, 7.0, -8.0).cdf([-2.5, 8.0]))
    np.testing.assert_allclose(result, stats.t.cdf([-2.5, 8.0], 3.0, loc=7.0, scale=8.0), rtol=1e-5)


def test_draws_of_a_dirichlet_multinomial_may_have_a_dimension_for_the_classes():
    alpha = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 0.5]], np.float32)
    total = np.array([5.0, 7.0], np.float32)
    each = [ds.DirichletMultinomial(t, alpha) for t in (total, total[:, None])]
    for moment in ("mean", "variance", "covariance"):
        one, two = run([getattr(d, moment)() for d in each])
        assert one.shape == (2, 3, 3) if moment == "covariance" else one.shape == (2, 3)
        np.testing.assert_allclose(one, two)


def test_the_batch_of_a_multinomial_is_that_of_its_draws_and_its_classes_together():
    theta = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32)
    total = np.array([[10.0, 9.0], [8.0, 7.0], [6.0, 5.0]], np.float32)
    multinomial = ds.Multinomial(total, probs=theta)
    assert multinomial.batch_shape == [3, 2]
    np.testing.assert_array_equal(run(multinomial.batch_shape_tensor()), [3, 2])
    drawn = run(multinomial.sample(4, seed=1))
    assert drawn.shape == (4, 3, 2, 3)
    np.testing.assert_array_equal(drawn.sum(-1), np.broadcast_to(total, (4, 3, 2)))
