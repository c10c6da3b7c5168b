"""Distributions give TensorFlow's densities, moments and divergences."""

import warnings

import numpy as np
import pytest

import tensorfleet

A, B = np.array([0.5, 1.5, 3.0], np.float32), np.array([1.0, 2.0, 2.5], np.float32)
P = np.array([0.1, 0.5, 0.8], np.float32)
ROWS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], np.float32)
# name -> (the distribution, another of its kind, values to ask about)
CASES = {
    "Normal": (lambda d: d.Normal(A, B), lambda d: d.Normal(B, A), [0.3, 1.0, -4.0]),
    "Laplace": (lambda d: d.Laplace(A, B), None, [0.3, 1.0, 9.0]),
    "StudentT": (lambda d: d.StudentT(A + 2.5, A, B), None, [0.3, 1.0, 9.0]),
    "StudentT-heavy": (lambda d: d.StudentT(A, A, B), None, [0.3, 1.0, 9.0]),
    "Uniform": (lambda d: d.Uniform(A, A + B), lambda d: d.Uniform(A - 1, A + 4), [0.7, 0.0, 9.0]),
    "Exponential": (lambda d: d.Exponential(A), lambda d: d.Exponential(B), [0.3, 1.0, 4.0]),
    "Gamma": (lambda d: d.Gamma(A, B), lambda d: d.Gamma(B, A), [0.3, 1.0, 4.0]),
    "Beta": (lambda d: d.Beta(A + 1, B + 1), lambda d: d.Beta(B, A), [0.3, 0.5, 0.9]),
    "Bernoulli": (lambda d: d.Bernoulli(probs=P), lambda d: d.Bernoulli(logits=A), [0, 1, 1]),
    "Categorical": (lambda d: d.Categorical(probs=ROWS), lambda d: d.Categorical(logits=ROWS), [2, 0]),
    "Multinomial": (
        lambda d: d.Multinomial(np.float32(4), probs=ROWS),
        None,
        [[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]],
    ),
    "Dirichlet": (
        lambda d: d.Dirichlet(ROWS * 9),
        lambda d: d.Dirichlet(ROWS[::-1] + 1),
        ROWS[::-1].tolist(),
    ),
    "DirichletMultinomial": (
        lambda d: d.DirichletMultinomial(np.float32(4), ROWS * 9),
        None,
        [[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]],
    ),
}
QUESTIONS = [
    "entropy",
    "mean",
    "mode",
    "variance",
    "stddev",
    "covariance",
    "batch_shape_tensor",
    "event_shape_tensor",
]
OF_VALUES = ["log_prob", "prob", "cdf", "log_cdf", "survival_function"]


def answers(tf, name):
    """What the distribution says to every question; "no answer" where it raises NotImplementedError."""
    make, other, values = CASES[name]
    said = {}
    with tf.Graph().as_default(), tf.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        d = make(tf.distributions)
        kind = np.int32 if d.dtype == tf.int32 else np.float32
        asked = {q: getattr(d, q) for q in QUESTIONS}
        asked |= {q: lambda q=q: getattr(d, q)(np.array(values, kind)) for q in OF_VALUES}
        asked["quantile"] = lambda: d.quantile(P)
        if other is not None:
            asked["kl"] = lambda: tf.distributions.kl_divergence(d, other(tf.distributions))
        for question, ask in asked.items():
            try:
                said[question] = session.run(ask())
            except (NotImplementedError, ValueError):  # TensorFlow 2.21 cannot build a Dirichlet's mode
                said[question] = "no answer"
        said["shapes"] = np.array([d.batch_shape.as_list() + [-1] + d.event_shape.as_list()])
        said["sample shape"] = np.array(d.sample([5, 2]).shape.as_list())
        said["one sample"] = np.array(session.run(d.sample(seed=1)).shape)
    return said


@pytest.mark.parametrize("name", CASES)
def test_distributions_say_the_same(tensorflow, name):
    ours, theirs = answers(tensorfleet, name), answers(tensorflow, name)
    for question, expected in theirs.items():
        if isinstance(expected, str):
            continue  # ours may know more
        assert not isinstance(ours[question], str), question
        np.testing.assert_allclose(ours[question], expected, rtol=2e-5, atol=1e-6, err_msg=question)


@pytest.mark.parametrize("name", ["Normal", "Uniform", "Bernoulli", "Exponential", "Laplace", "Gamma"])
def test_samples_with_a_seed_are_tensorflows(tensorflow, name):
    def draw(tf):
        with tf.Graph().as_default(), tf.Session() as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tf.set_random_seed(3)
            return session.run(CASES[name][0](tf.distributions).sample(4, seed=7))

    np.testing.assert_allclose(draw(tensorfleet), draw(tensorflow), rtol=1e-5, atol=1e-6)
