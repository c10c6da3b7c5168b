import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.naming import find

ds = tf.distributions


@pytest.fixture
def sess():
    with tf.Session() as sess:
        yield sess


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: ds.Bernoulli(probs=1.01, validate_args=True).probs, "probs has components greater than 1"),
        (lambda: ds.Bernoulli(probs=-0.5, validate_args=True).probs, "Condition x >= 0"),
        (lambda: ds.Bernoulli(probs=0.5, validate_args=True).prob(2), "Elements cannot exceed 1"),
        (lambda: ds.Categorical(probs=[0.5, 0.6], validate_args=True).probs, "probs does not sum to 1"),
        (lambda: ds.Beta(-1.0, 1.0, validate_args=True).mean(), "Concentration parameter must be positive"),
        (lambda: ds.Beta(2.0, 1.0, validate_args=True).prob(1.5), "sample must be less than `1`"),
        (lambda: ds.Beta([1.0], [2.0], allow_nan_stats=False).mode(), "Mode undefined for concentration1"),
        (lambda: ds.Gamma(2.0, 1.0, validate_args=True).prob(-1.0), "Condition x > 0"),
        (lambda: ds.Dirichlet([1.0, 2], validate_args=True).prob([0.2, 0.9]), "must sum to `1`"),
        (
            lambda: ds.Multinomial(5, probs=[0.5, 0.5], validate_args=True).prob([1.0, 1]),
            "must sum to `self.total",
        ),
        (lambda: ds.Multinomial(5, probs=[0.5, 0.5], validate_args=True).prob([2.5, 2.5]), "fractional"),
        (lambda: ds.DirichletMultinomial(5.0, [1.0, 2], validate_args=True).prob([-1.0, 6]), "non-negative"),
        (lambda: ds.StudentT(1.0, 0.0, 1.0, allow_nan_stats=False).mean(), "mean not defined for components"),
    ],
)
def test_what_is_not_allowed_fails_with_tensorflows_words(sess, build, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        sess.run(build())


def test_too_few_classes_are_refused_while_the_graph_is_built():
    with pytest.raises(ValueError, match="at least 2 events"):
        ds.Categorical(probs=[1.0], validate_args=True)


def test_a_mode_that_does_not_exist_is_nan(sess):
    assert np.isnan(sess.run(ds.Dirichlet([1.0, 2, 3]).mode())).all()
    assert np.isnan(sess.run(ds.Beta([1.0, 2.0], [1.0, 2.0]).mode())).tolist() == [True, False]


def test_a_divergence_that_is_nan_is_an_error_unless_it_may_be(sess):
    class Own(ds.Normal):
        pass

    @ds.RegisterKL(Own, Own)
    def _kl(a, b, name=None):
        return tf.constant(float("nan"))

    own = Own(0.0, 1.0)
    assert np.isnan(sess.run(ds.kl_divergence(own, own)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned NaN values"):
        sess.run(ds.kl_divergence(own, own, allow_nan_stats=False))


def test_a_distribution_tells_its_name_and_shapes():
    normal = ds.Normal([0.0, 1.0], 1.0)
    assert (
        str(normal) == 'tfp.distributions.Normal("Normal/", batch_shape=(2,), event_shape=(), dtype=float32)'
    )
    assert repr(normal).startswith("<tfp.distributions.Normal 'Normal/' batch_shape=(2,)")
    assert normal.loc.op.name == "Normal/loc"
    assert ds.Normal(0.0, 1.0).name == "Normal_1/"


def test_the_shapes_of_parameters_are_those_of_the_samples(sess):
    assert sess.run(ds.Normal.param_shapes([2, 3])["loc"]).tolist() == [2, 3]
    assert ds.Normal.param_static_shapes(tf.TensorShape([2]))["scale"] == [2]
    with pytest.raises(ValueError, match="must be fully defined"):
        ds.Normal.param_static_shapes(tf.TensorShape([None]))


def test_parameters_may_be_given_before_their_softplus(sess):
    result = find("python.ops.distributions.student_t.StudentTWithAbsDfSoftplusScale")(-3.2, 0.0, -2.0)
    assert sess.run(result.df) == 3
    np.testing.assert_allclose(sess.run(result.scale), np.log1p(np.exp(-2.0)), rtol=1e-6)
    beta = find("python.ops.distributions.beta.BetaWithSoftplusConcentration")(-2.0, 1.0)
    np.testing.assert_allclose(sess.run(beta.concentration0), np.log1p(np.exp(1.0)), rtol=1e-6)
    assert beta.copy(concentration0=0.0).parameters["concentration0"] == 0.0


def test_numbers_are_close_that_differ_by_rounding_alone(sess):
    from tensorfleet.python.ops.distributions import util

    x = tf.constant([1.0, 5.0])
    sess.run([util.assert_close(x, x + 1e-8), util.assert_close([1, 2], [1, 2])])
    for a, b in ((x, x + 1e-3), ([1, 2], [1, 3])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x ~= y"):
            sess.run(util.assert_close(a, b))
