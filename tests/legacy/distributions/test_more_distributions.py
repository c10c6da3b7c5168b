"""Distributions of `tf.contrib` against SciPy's: densities, probabilities, moments, samples."""

import numpy as np
import pytest
from scipy import stats

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

ds = tf.contrib.distributions
SEED = 2
A, B = np.array([1.5, 3.0, 0.7]), np.array([0.5, 2.0, 1.3])
P = np.array([0.2, 0.5, 0.9])
Z = np.array([0.3, 1.7, 4.0])
COUNTS = np.array([0.0, 2.0, 3.0])


def kumaraswamy(a, b):
    """SciPy has none: a beta variable of the second parameter, to the power of one over the first."""

    class Found(stats.rv_continuous):
        def _pdf(self, x):
            return a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)

    return Found(a=0, b=1)()


# name -> (ours, SciPy's, values to ask about)
CASES = {
    "Binomial": (lambda: ds.Binomial(np.float64(5), probs=P), stats.binom(5, P), COUNTS),
    "Binomial, logits": (
        lambda: ds.Binomial(np.float64(5), logits=A),
        stats.binom(5, 1 / (1 + np.exp(-A))),
        COUNTS,
    ),
    "NegativeBinomial": (lambda: ds.NegativeBinomial(A, probs=P), stats.nbinom(A, 1 - P), COUNTS),
    "Geometric": (lambda: ds.Geometric(probs=P), stats.geom(P, loc=-1), COUNTS),
    "Poisson": (lambda: ds.Poisson(A), stats.poisson(A), COUNTS),
    "Cauchy": (lambda: ds.Cauchy(A, B), stats.cauchy(A, B), Z),
    "HalfNormal": (lambda: ds.HalfNormal(B), stats.halfnorm(scale=B), Z),
    "InverseGamma": (lambda: ds.InverseGamma(A + 2, B), stats.invgamma(A + 2, scale=B), Z),
    "InverseGamma, soft": (
        lambda: ds.InverseGammaWithSoftplusConcentrationRate(A + 2, B),
        stats.invgamma(np.log1p(np.exp(A + 2)), scale=np.log1p(np.exp(B))),
        Z,
    ),
    "Chi2": (lambda: ds.Chi2(A), stats.chi2(A), Z),
    "Chi2WithAbsDf": (lambda: ds.Chi2WithAbsDf(-A - 1), stats.chi2(np.floor(A + 1)), Z),
    "Kumaraswamy": (lambda: ds.Kumaraswamy(np.float64(2), np.float64(3)), kumaraswamy(2.0, 3.0), P),
    "TransformedDistribution": (
        lambda: ds.TransformedDistribution(ds.Normal(A, B), ds.bijectors.Exp()),
        stats.lognorm(B, scale=np.exp(A)),
        Z,
    ),
    "TransformedDistribution, affine": (
        lambda: ds.TransformedDistribution(ds.Logistic(A, B), ds.bijectors.AffineScalar(np.float64(1), B)),
        stats.logistic(A * B + 1, B * B),
        Z,
    ),
    "absolute value": (
        lambda: ds.TransformedDistribution(ds.Normal(0 * B, B), ds.bijectors.AbsoluteValue()),
        stats.halfnorm(scale=B),
        Z,
    ),
    "SinhArcsinh, plain": (lambda: ds.SinhArcsinh(A, B), stats.norm(A, B), Z),
    "MixtureSameFamily": (
        lambda: ds.MixtureSameFamily(
            ds.Categorical(probs=np.array([0.25, 0.75])),
            ds.Normal(np.array([0.0, 0.0]), np.array([2.0, 2.0])),
        ),
        stats.norm(0, 2),
        Z,
    ),
}


def answer(ask):
    """The value, or None where there is no answer."""
    try:
        return run(ask())
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", CASES)
def test_densities_and_moments_are_scipys(name):
    make, theirs, values = CASES[name]
    ours = make()
    density = theirs.logpmf if isinstance(theirs.dist, stats.rv_discrete) else theirs.logpdf
    np.testing.assert_allclose(run(ours.log_prob(values)), density(values), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(run(ours.prob(values)), np.exp(density(values)), rtol=1e-6, atol=1e-9)
    expected = {
        "cdf": theirs.cdf(values),
        "survival_function": theirs.sf(values),
        "log_cdf": np.log(theirs.cdf(values)),
    }
    for question, value in expected.items():
        result = answer(lambda q=question: getattr(ours, q)(values))
        if result is not None:
            np.testing.assert_allclose(result, value, rtol=1e-6, atol=1e-9, err_msg=question)
    for question, value in {"mean": theirs.mean(), "variance": theirs.var(), "stddev": theirs.std()}.items():
        result = answer(getattr(ours, question))
        if result is not None:
            np.testing.assert_allclose(result, value, rtol=1e-6, err_msg=question)
    if not isinstance(theirs.dist, stats.rv_discrete) or name == "Geometric":
        result = answer(ours.entropy)
        if result is not None:
            np.testing.assert_allclose(result, theirs.entropy(), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_distributions_quantiles(name):
    make, theirs, _ = CASES[name]
    ours = make()
    drawn = run(ours.sample(4000, seed=5))
    assert drawn.shape == (4000, *ours.batch_shape.as_list())
    at = theirs.ppf(0.4) if name != "Kumaraswamy" else np.float64(0.45)
    np.testing.assert_allclose((drawn <= at).mean(0), theirs.cdf(at), atol=0.03)


@pytest.mark.parametrize("name", ["Cauchy", "HalfNormal", "TransformedDistribution"])
def test_quantiles_are_scipys(name):
    make, theirs, _ = CASES[name]
    np.testing.assert_allclose(run(make().quantile(P)), theirs.ppf(P), rtol=1e-6)


def test_counts_outside_what_can_be():
    n = ds.Binomial(np.float64(5), probs=np.float64(0.3))
    np.testing.assert_allclose(run(n.cdf(np.array([-1.0, 5.0, 7.0]))), [0, 1, 1])
    assert run(ds.Geometric(probs=1.0).log_prob(0.0)) == 0
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(ds.Geometric(probs=0.5, validate_args=True).log_prob(tf.placeholder_with_default(1.5, [])))


LOC = np.array([0.5, -1.0, 2.0])
LOWER = np.array([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-1.0, 0.3, 0.7]])
FACTOR = np.array([[1.0, 0.0], [0.5, 0.2], [-0.2, 0.1]])
NORMALS = {
    "diag": (lambda: ds.MultivariateNormalDiag(LOC, A), np.diag(A**2)),
    "identity": (lambda: ds.MultivariateNormalDiag(LOC, scale_identity_multiplier=2.0), 4 * np.eye(3)),
    "soft": (
        lambda: ds.MultivariateNormalDiagWithSoftplusScale(LOC, A),
        np.diag(np.log1p(np.exp(A)) ** 2),
    ),
    "triangle": (lambda: ds.MultivariateNormalTriL(LOC, LOWER), LOWER @ LOWER.T),
    "covariance": (
        lambda: ds.MultivariateNormalFullCovariance(LOC, LOWER @ LOWER.T),
        LOWER @ LOWER.T,
    ),
    "low rank": (
        lambda: ds.MultivariateNormalDiagPlusLowRank(
            LOC, A, scale_perturb_factor=FACTOR, scale_perturb_diag=np.array([1.0, 2.0])
        ),
        np.linalg.matrix_power(np.diag(A) + FACTOR @ np.diag([1.0, 2.0]) @ FACTOR.T, 2),
    ),
    "operator": (
        lambda: ds.MultivariateNormalLinearOperator(LOC, tf.linalg.LinearOperatorFullMatrix(LOWER)),
        LOWER @ LOWER.T,
    ),
}


@pytest.mark.parametrize("name", NORMALS)
def test_normal_vectors_are_scipys(name):
    make, covariance = NORMALS[name]
    ours, theirs = make(), stats.multivariate_normal(LOC, covariance)
    x = np.array([[0.1, 0.2, 0.3], [1.0, -2.0, 2.5]])
    assert (ours.batch_shape.as_list(), ours.event_shape.as_list()) == ([], [3])
    np.testing.assert_allclose(run(ours.log_prob(x)), theirs.logpdf(x), rtol=1e-8)
    np.testing.assert_allclose(run(ours.covariance()), covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(run(ours.variance()), np.diag(covariance), rtol=1e-8)
    np.testing.assert_allclose(run(ours.stddev()), np.sqrt(np.diag(covariance)), rtol=1e-8)
    np.testing.assert_allclose(run(ours.entropy()), theirs.entropy(), rtol=1e-8)
    np.testing.assert_allclose(run([ours.mean(), ours.mode()]), [LOC, LOC])
    drawn = run(ours.sample(4000, seed=1))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.15 * covariance.max())


@pytest.mark.parametrize("other", NORMALS)
def test_divergences_between_normal_vectors(other):
    (make, first), (make_other, second) = NORMALS["triangle"], NORMALS[other]
    b = make_other().copy(loc=LOC[::-1].copy())
    apart = LOC[::-1] - LOC
    inverse = np.linalg.inv(second)
    expected = np.trace(inverse @ first) - 3 + apart @ inverse @ apart
    expected += np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    np.testing.assert_allclose(run(ds.kl_divergence(make(), b)), expected / 2, rtol=1e-8)


def test_batches_of_normal_vectors_of_unknown_size():
    loc = tf.placeholder(tf.float32, [None, 3])
    d = ds.MultivariateNormalDiag(loc, tf.ones([3]))
    assert d.batch_shape.as_list() == [None] and d.sample(5).shape.as_list() == [5, None, 3]
    with tf.Session() as session:
        feed = {loc: np.tile(LOC, [4, 1])}
        drawn, density, batch, mean, entropy = session.run(
            [d.sample(5), d.log_prob(loc), d.batch_shape_tensor(), d.mean(), d.entropy()], feed
        )
    assert drawn.shape == (5, 4, 3) and batch.tolist() == [4]
    np.testing.assert_allclose(density, np.full(4, -1.5 * np.log(2 * np.pi)), rtol=1e-5)
    np.testing.assert_allclose(mean, feed[loc], rtol=1e-6)
    assert entropy.shape == (4,)


def test_gradients_flow_through_samples_of_normal_vectors():
    lower = tf.constant(LOWER)
    drawn = ds.MultivariateNormalTriL(LOC, lower).sample(seed=4)
    value, slope = run([drawn, tf.gradients(drawn, lower)[0]])
    noise = np.linalg.solve(LOWER, value - LOC)
    np.testing.assert_allclose(slope, np.tril(np.tile(noise, [3, 1])), rtol=1e-8)


def test_vectors_of_other_numbers():
    laplace = ds.VectorLaplaceDiag(LOC, A)
    exponential = ds.VectorExponentialDiag(LOC, A)
    x = LOC + np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(run(laplace.log_prob(x)), stats.laplace(LOC, A).logpdf(x).sum(), rtol=1e-8)
    np.testing.assert_allclose(run(exponential.log_prob(x)), stats.expon(LOC, A).logpdf(x).sum(), rtol=1e-8)
    np.testing.assert_allclose(run(laplace.variance()), 2 * A**2)
    np.testing.assert_allclose(run(exponential.mean()), LOC + A)
    np.testing.assert_allclose(run(exponential.mode()), LOC)


def test_an_event_may_be_made_of_many_numbers_of_each_variable():
    inner = ds.Normal(np.array([0.0, 10.0], np.float32), np.float32(1))
    d = ds.TransformedDistribution(inner, ds.bijectors.Exp(), event_shape=[3])
    assert (d.batch_shape.as_list(), d.event_shape.as_list()) == ([2], [3])
    drawn, density = run([d.sample(4, seed=1), d.log_prob(np.ones([2, 3], np.float32))])
    assert drawn.shape == (4, 2, 3) and (np.log(drawn[:, 1]) > 5).all() and (np.log(drawn[:, 0]) < 5).all()
    np.testing.assert_allclose(density, 3 * stats.norm([0, 10]).logpdf(0), rtol=1e-5)
    whole = ds.TransformedDistribution(ds.Normal(0.0, 1.0), batch_shape=[2], event_shape=[3])
    assert whole.sample().shape.as_list() == [2, 3]
    np.testing.assert_allclose(run(whole.entropy()), [3 * stats.norm().entropy()] * 2, rtol=1e-5)
    with pytest.raises(ValueError, match="not scalar"):
        ds.TransformedDistribution(inner, batch_shape=[4])


def test_a_flow_learns_a_distribution():
    target = np.random.RandomState(0).normal([2.0, -1.0], [0.5, 3.0], [256, 2]).astype(np.float32)
    flow = ds.TransformedDistribution(
        ds.MultivariateNormalDiag(np.zeros(2, np.float32), np.ones(2, np.float32)),
        ds.bijectors.MaskedAutoregressiveFlow(ds.bijectors.masked_autoregressive_default_template([8])),
    )
    loss = -tf.reduce_mean(flow.log_prob(target))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    drawn = flow.sample(500, seed=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            session.run(train)
        best = stats.norm(0, 0.5).entropy() + stats.norm(0, 3).entropy()
        assert session.run(loss) < best + 0.3
        np.testing.assert_allclose(session.run(drawn).mean(0), [2, -1], atol=0.5)


def test_conditions_reach_the_bijector():
    class Shifted(ds.bijectors.ConditionalBijector):
        def __init__(self):
            super().__init__(forward_min_event_ndims=0, is_constant_jacobian=True)

        def _forward(self, x, by):
            return x + by

        def _inverse(self, y, by):
            return y - by

        def _inverse_log_det_jacobian(self, y, by):
            return tf.constant(0.0)

    d = ds.ConditionalTransformedDistribution(ds.Normal(0.0, 1.0), Shifted())
    density = run(d.log_prob(3.0, bijector_kwargs={"by": 2.0}))
    np.testing.assert_allclose(density, stats.norm().logpdf(1), rtol=1e-5)
    assert abs(run(d.sample(500, seed=1, bijector_kwargs={"by": 50.0})).mean() - 50) < 1


def test_quantized_numbers():
    d = ds.QuantizedDistribution(ds.Normal(np.float64(0.7), np.float64(2.0)), low=-3.0, high=3.0)
    inner, whole = stats.norm(0.7, 2), np.arange(-3.0, 4.0)
    below, upto = inner.cdf(whole - 1), inner.cdf(whole)
    below[0], upto[-1] = 0, 1
    np.testing.assert_allclose(run(d.prob(whole)), upto - below, rtol=1e-6)
    np.testing.assert_allclose(run(d.log_prob(whole)), np.log(upto - below), rtol=1e-6)
    np.testing.assert_allclose(run(d.cdf(whole + 0.5)), upto, rtol=1e-6)
    np.testing.assert_allclose(run(d.survival_function(whole)), 1 - upto, rtol=1e-6, atol=1e-12)
    drawn = run(d.sample(3000, seed=1))
    assert set(drawn) == set(whole)
    np.testing.assert_allclose((drawn == 0).mean(), inner.cdf(0) - inner.cdf(-1), atol=0.03)


def test_relaxed_coins_and_classes():
    coin = ds.RelaxedBernoulli(np.float64(0.5), probs=P)
    x = np.array([0.3, 0.5, 0.8])
    z = np.log(x / (1 - x))
    odds = np.log(P / (1 - P))
    expected = stats.logistic(odds / 0.5, 1 / 0.5).logpdf(z) - np.log(x * (1 - x))
    np.testing.assert_allclose(run(coin.log_prob(x)), expected, rtol=1e-8)
    assert ((run(coin.sample(2000, seed=1)) > 0.5).mean(0) - P < 0.04).all()
    logits, heat = np.log([0.2, 0.3, 0.5]), 0.7
    share = np.array([0.1, 0.6, 0.3])
    weights = np.exp(logits) * share**-heat
    # The density of the Concrete distribution (Maddison et al. 2017).
    density = 2 * heat**2 * np.prod(np.exp(logits) * share ** (-heat - 1)) / weights.sum() ** 3
    relaxed = ds.RelaxedOneHotCategorical(np.float64(heat), logits=logits)
    np.testing.assert_allclose(run(relaxed.prob(share)), density, rtol=1e-8)
    drawn = run(relaxed.sample(3000, seed=1))
    np.testing.assert_allclose(drawn.sum(1), 1)
    np.testing.assert_allclose(np.bincount(drawn.argmax(1)) / 3000, np.exp(logits), atol=0.03)
    inner = ds.ExpRelaxedOneHotCategorical(np.float64(heat), logits=logits)
    inside = run(inner.log_prob(np.log(share)))
    np.testing.assert_allclose(inside, np.log(density) + np.log(share).sum(), rtol=1e-8)
    heat_of = tf.constant(0.7)
    sample = ds.RelaxedOneHotCategorical(heat_of, probs=[0.3, 0.7]).sample(seed=1)
    assert run(tf.gradients(sample[0], heat_of)[0]) != 0


def test_mixtures_of_one_family():
    weights = np.array([[0.2, 0.8], [0.5, 0.5]])
    locs = np.random.RandomState(1).normal(size=[2, 2, 3])
    d = ds.MixtureSameFamily(ds.Categorical(probs=weights), ds.MultivariateNormalDiag(locs, np.ones(3)))
    assert (d.batch_shape.as_list(), d.event_shape.as_list()) == ([2], [3])
    x = np.array([[0.1, 0.2, 0.3], [0.5, -0.5, 0.0]])
    each = np.exp(stats.norm(locs).logpdf(x[:, None]).sum(-1))
    np.testing.assert_allclose(run(d.log_prob(x)), np.log((weights * each).sum(-1)), rtol=1e-8)
    mean = (weights[..., None] * locs).sum(1)
    np.testing.assert_allclose(run(d.mean()), mean, rtol=1e-8)
    drawn = run(d.sample(4000, seed=1))
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.15)
    covariance = run(d.covariance())
    np.testing.assert_allclose([np.cov(drawn[:, i].T) for i in range(2)], covariance, atol=0.25)
    np.testing.assert_allclose(run(d.variance()), np.diagonal(covariance, axis1=1, axis2=2), rtol=1e-8)
    with pytest.raises(ValueError, match="does not equal"):
        ds.MixtureSameFamily(ds.Categorical(probs=[0.2, 0.3, 0.5]), ds.Normal(locs[0, 0, :2], 1.0))


def test_batches_in_another_shape():
    inner = ds.MultivariateNormalDiag(np.arange(12.0).reshape([4, 3]), np.ones(3))
    d = ds.BatchReshape(inner, [2, -1])
    assert (d.batch_shape.as_list(), d.event_shape.as_list()) == ([2, 2], [3])
    x = np.zeros([5, 2, 2, 3])
    np.testing.assert_allclose(
        run(d.log_prob(x)), run(inner.log_prob(x.reshape([5, 4, 3]))).reshape([5, 2, 2])
    )
    assert run(d.sample(7, seed=1)).shape == (7, 2, 2, 3)
    np.testing.assert_allclose(run(d.mean()), np.arange(12.0).reshape([2, 2, 3]))
    assert run(d.covariance()).shape == (2, 2, 3, 3) and run(d.entropy()).shape == (2, 2)
    with pytest.raises(ValueError, match="must match"):
        ds.BatchReshape(inner, [3, 2])


def test_elements_that_depend_on_those_before():
    weights = np.array([[0.0, 0.0], [2.0, 0.0]])

    def given(sample=None):
        sample = np.zeros(2) if sample is None else sample
        return ds.Independent(ds.Normal(tf.tensordot(sample, weights.T, 1), np.float64(0.1)), 1)

    d = ds.Autoregressive(given)
    drawn = run(d.sample(1000, seed=3))
    assert drawn.shape == (1000, 2)
    x = np.array([0.1, 0.3])
    expected = stats.norm([0, 0.2], 0.1).logpdf(x).sum()
    np.testing.assert_allclose(run(d.log_prob(x)), expected, rtol=1e-8)


def test_always_the_same_vector():
    d = ds.VectorDeterministic(np.array([[0.0, 1.0], [2.0, 3.0]]), atol=0.1)
    assert (d.batch_shape.as_list(), d.event_shape.as_list()) == ([2], [2])
    assert run(d.prob(np.array([0.05, 0.95]))).tolist() == [1, 0]
    assert run(d.sample(3)).shape == (3, 2, 2)
    divergence = run(ds.kl_divergence(ds.Deterministic(0.5), ds.Normal(0.0, 1.0)))
    np.testing.assert_allclose(divergence, -stats.norm().logpdf(0.5), rtol=1e-5)


@pytest.mark.parametrize("factors", [False, True])
def test_wishart_matrices(factors):
    scale = LOWER @ LOWER.T
    d = ds.WishartCholesky(np.float64(5), LOWER, cholesky_input_output_matrices=factors)
    theirs = stats.wishart(5, scale)
    x = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, 0.0], [0.1, 0.0, 1.0]])
    given = np.linalg.cholesky(x) if factors else x
    np.testing.assert_allclose(run(d.log_prob(given)), theirs.logpdf(x), rtol=1e-8)
    np.testing.assert_allclose(run(d.entropy()), theirs.entropy(), rtol=1e-8)
    drawn = run(d.sample(4000, seed=1))
    drawn = drawn @ drawn.transpose([0, 2, 1]) if factors else drawn
    np.testing.assert_allclose(drawn.mean(0), 5 * scale, atol=1.2)
    if not factors:
        np.testing.assert_allclose(run(d.mean()), theirs.mean(), rtol=1e-8)
        np.testing.assert_allclose(run(d.variance()), theirs.var(), rtol=1e-8)
        np.testing.assert_allclose(run(ds.WishartFull(np.float64(5), scale).mode()), theirs.mode(), rtol=1e-8)
        with pytest.raises(ValueError, match="Degrees of freedom"):
            ds.WishartFull(np.float64(2), scale)


def test_skewed_numbers_lean():
    d = ds.SinhArcsinh(np.float64(1.0), np.float64(2.0), skewness=0.5, tailweight=1.2)
    x = np.array([-1.0, 0.5, 4.0])
    stretched = 2 * 2 / np.sinh(np.arcsinh(2) * 1.2)
    z = np.sinh(np.arcsinh((x - 1) / stretched) / 1.2 - 0.5)
    np.testing.assert_allclose(run(d.cdf(x)), stats.norm().cdf(z), rtol=1e-8)


def test_percentiles():
    x = np.array([[1.0, 4.0, 2.0, 3.0], [10.0, 40.0, 20.0, 30.0]])
    for kind in ("nearest", "lower", "higher"):
        result = run([ds.percentile(x, q, axis=1, interpolation=kind) for q in (0, 30, 55, 100)])
        expected = [np.percentile(x, q, axis=1, method=kind) for q in (0, 30, 55, 100)]
        np.testing.assert_array_equal(result, expected)
    assert run(ds.percentile(x, 50.0, axis=[0], keep_dims=True)).shape == (1, 4)
    assert run(ds.percentile(x, 100.0)) == 40
    with pytest.raises(ValueError, match="interpolation"):
        ds.percentile(x, 50.0, interpolation="linear")


def test_beliefs_about_a_mean():
    prior = ds.Normal(1.0, 2.0)
    seen = np.array([3.0, 4.0, 5.0], np.float32)
    posterior = ds.normal_conjugates_known_scale_posterior(prior, 0.5, seen.sum(), 3)
    precision = 1 / 4 + 3 / 0.25
    mean = (1 / 4 + 12 / 0.25) / precision
    np.testing.assert_allclose(run([posterior.loc, posterior.scale]), [mean, precision**-0.5], rtol=1e-5)
    ahead = ds.normal_conjugates_known_scale_predictive(prior, 0.5, seen.sum(), 3)
    np.testing.assert_allclose(
        run([ahead.loc, ahead.scale]), [mean, (1 / precision + 0.25) ** 0.5], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (
            lambda: ds.InverseGammaWithSoftplusConcentrationRate(1.0, 2.0),
            "softplus_concentration softplus_rate",
        ),
        (lambda: ds.GammaWithSoftplusConcentrationRate(1.0, 2.0), "softplus_concentration softplus_rate"),
        (
            lambda: ds.BetaWithSoftplusConcentration(1.0, 2.0),
            "softplus_concentration1 softplus_concentration0",
        ),
        (lambda: ds.MultivariateNormalDiagWithSoftplusScale([0.0], [1.0]), "Softplus"),
        (lambda: ds.MultivariateNormalFullCovariance([0.0], [[1.0]]), "Cholesky"),
        (lambda: ds.Chi2(2.0), "df"),
        (lambda: ds.Chi2WithAbsDf(2.0), "Abs Floor"),
    ],
)
def test_a_distribution_made_from_another_opens_one_scope(make, names):
    with tf.Graph().as_default() as graph:
        distribution = make()
    scope = f"{type(distribution).__name__}/"
    assert distribution.name == scope
    result = {op.name for op in graph.get_operations()}
    assert all(name.startswith(scope) for name in result)
    assert result >= {scope + name for name in names.split()}
