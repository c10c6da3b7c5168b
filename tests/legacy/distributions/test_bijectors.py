"""Bijectors: their values, their inverses, and that they stretch space as much as they say."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run_initialized as run

B = tf.contrib.distributions.bijectors
RANDOM = np.random.RandomState(0)
X = RANDOM.uniform(-1.5, 1.5, [5]).astype(np.float64)
P = RANDOM.uniform(0.1, 0.9, [5]).astype(np.float64)
LOWER = np.array([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-1.0, 0.3, 0.7]])


def as_float64(*values):
    return [np.asarray(v, np.float64) for v in values]


SCALARS = {
    "Identity": (lambda: B.Identity(), X, lambda x: x),
    "Exp": (lambda: B.Exp(), X, np.exp),
    "PowerTransform": (lambda: B.PowerTransform(0.5), P, lambda x: (1 + 0.5 * x) ** 2),
    "Sigmoid": (lambda: B.Sigmoid(), X, lambda x: 1 / (1 + np.exp(-x))),
    "Softplus": (lambda: B.Softplus(), X, lambda x: np.log1p(np.exp(x))),
    "Softplus, soft": (
        lambda: B.Softplus(np.float64(2.0), validate_args=True),
        X,
        lambda x: 2 * np.log1p(np.exp(x / 2)),
    ),
    "Softsign": (lambda: B.Softsign(True), X, lambda x: x / (1 + abs(x))),
    "Square": (lambda: B.Square(True), P, np.square),
    "AffineScalar": (lambda: B.AffineScalar(*as_float64(2, -3)), X, lambda x: -3 * x + 2),
    "Gumbel": (lambda: B.Gumbel(*as_float64(0.5, 2)), X, lambda x: np.exp(-np.exp(-(x - 0.5) / 2))),
    "Weibull": (lambda: B.Weibull(*as_float64(2, 1.5)), P, lambda x: 1 - np.exp(-((x / 2) ** 1.5))),
    "Kumaraswamy": (
        lambda: B.Kumaraswamy(*as_float64(2, 3)),
        P,
        lambda x: (1 - (1 - x) ** (1 / 3)) ** (1 / 2),
    ),
    "SinhArcsinh": (
        lambda: B.SinhArcsinh(*as_float64(0.3, 1.7)),
        X,
        lambda x: np.sinh((np.arcsinh(x) + 0.3) * 1.7),
    ),
    "Invert": (lambda: B.Invert(B.Exp()), P, np.log),
    "Chain": (
        lambda: B.Chain([B.AffineScalar(*as_float64(1, 2)), B.Exp()]),
        X,
        lambda x: 2 * np.exp(x) + 1,
    ),
    "Inline": (
        lambda: B.Inline(
            forward_fn=tf.exp,
            inverse_fn=tf.log,
            inverse_log_det_jacobian_fn=lambda y: -tf.log(y),
            forward_min_event_ndims=0,
        ),
        X,
        np.exp,
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_maps_of_numbers(name):
    make, x, expected = SCALARS[name]
    given = tf.constant(x)
    y = make().forward(given)
    value, slope = run([y, tf.gradients(y, given)[0]])
    np.testing.assert_allclose(value, expected(x), rtol=1e-10)
    other = make()  # one that has not seen what the first one gave
    back, there, here = run(
        [
            other.inverse(value),
            other.inverse_log_det_jacobian(value, event_ndims=0) + np.zeros(5),
            other.forward_log_det_jacobian(x, event_ndims=0) + np.zeros(5),
        ]
    )
    np.testing.assert_allclose(back, x, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(here, np.log(abs(slope)), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(there, -here, rtol=1e-8, atol=1e-10)
    whole = run(other.inverse_log_det_jacobian(value, event_ndims=1))
    np.testing.assert_allclose(whole, there.sum(), rtol=1e-8, atol=1e-10)


def masked_network(depth):
    """A fixed network each of whose outputs depends on earlier inputs only."""
    weights = np.triu(RANDOM.uniform(-1, 1, [depth, depth]), 1)

    def network(x):
        return tf.tanh(tf.tensordot(x, weights, 1)), tf.sin(tf.tensordot(x, weights, 1))

    return network


def coupling(x, units):
    weights = np.linspace(-1, 1, 2 * units).reshape([2, units])
    return tf.tensordot(x, weights, 1), tf.tanh(tf.tensordot(x, weights, 1))


FACTOR = np.array([[1.0], [0.5], [-0.2], [0.1], [0.3]])
BELOW = np.tril(RANDOM.uniform(0.5, 1, [5, 5]))
VECTORS = {
    "Affine, identity": (lambda: B.Affine(X, scale_identity_multiplier=2.0), lambda x: 2 * x + X),
    "Affine, diagonal": (lambda: B.Affine(X, scale_diag=P), lambda x: P * x + X),
    "Affine, triangle": (
        lambda: B.Affine(scale_tril=BELOW, scale_identity_multiplier=0.5),
        lambda x: (BELOW + 0.5 * np.eye(5)) @ x,
    ),
    "Affine, low rank": (
        lambda: B.Affine(scale_diag=P, scale_perturb_factor=FACTOR, scale_perturb_diag=[2.0]),
        lambda x: (np.diag(P) + 2 * FACTOR @ FACTOR.T) @ x,
    ),
    "Affine, nothing": (lambda: B.Affine(), lambda x: x),
    "AffineLinearOperator": (
        lambda: B.AffineLinearOperator(X, tf.linalg.LinearOperatorLowerTriangular(BELOW), adjoint=True),
        lambda x: BELOW.T @ x + X,
    ),
    "Permute": (lambda: B.Permute([3, 1, 0, 4, 2]), lambda x: x[[3, 1, 0, 4, 2]]),
    "MaskedAutoregressiveFlow": (lambda: B.MaskedAutoregressiveFlow(NETWORK), None),
    "MaskedAutoregressiveFlow, unrolled": (
        lambda: B.MaskedAutoregressiveFlow(NETWORK, unroll_loop=True),
        None,
    ),
    "RealNVP": (lambda: B.RealNVP(2, coupling), None),
    "Chain": (lambda: B.Chain([B.Permute([1, 0, 2, 4, 3]), B.Exp(), B.RealNVP(2, coupling)]), None),
}
NETWORK = masked_network(5)


def jacobian(y, x):
    """The matrix of the derivatives of a vector by a vector."""
    return tf.stack([tf.gradients(part, x)[0] for part in tf.unstack(y)])


@pytest.mark.parametrize("name", VECTORS)
def test_maps_of_vectors(name):
    make, expected = VECTORS[name]
    given = tf.constant(X)
    y = make().forward(given)
    value, slopes = run([y, jacobian(y, given)])
    if expected is not None:
        np.testing.assert_allclose(value, expected(X), rtol=1e-10)
    other = make()
    back, there, here = run(
        [
            other.inverse(value),
            other.inverse_log_det_jacobian(value, event_ndims=1),
            other.forward_log_det_jacobian(X, event_ndims=1),
        ]
    )
    np.testing.assert_allclose(back, X, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(here, np.linalg.slogdet(slopes)[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(there, -here, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", VECTORS)
def test_batches_of_vectors_are_mapped_one_by_one(name):
    make, _ = VECTORS[name]
    many = RANDOM.uniform(-1, 1, [2, 3, 5])
    bijector = make()
    got, each = run([bijector.forward(many), [make().forward(v) for v in many.reshape([6, 5])]])
    np.testing.assert_allclose(got.reshape([6, 5]), each, rtol=1e-8)
    summed, apart = run(
        [
            bijector.forward_log_det_jacobian(many, 2),
            bijector.forward_log_det_jacobian(many, 1) + np.zeros([2, 3]),
        ]
    )
    np.testing.assert_allclose(summed, apart.sum(1), rtol=1e-8, atol=1e-10)


def test_the_softmax_of_a_vector_and_a_zero():
    bijector, x = B.SoftmaxCentered(), tf.constant(X)
    y = bijector.forward(x)
    value, slopes = run([y, jacobian(y[:-1], x)])
    odds = np.exp(np.append(X, 0))
    np.testing.assert_allclose(value, odds / odds.sum())
    other = B.SoftmaxCentered(validate_args=True)
    back, there, here = run(
        [
            other.inverse(value),
            other.inverse_log_det_jacobian(value, 1),
            other.forward_log_det_jacobian(X, 1),
        ]
    )
    np.testing.assert_allclose(back, X)
    np.testing.assert_allclose([here, -there], np.linalg.slogdet(slopes)[1])
    assert bijector.forward_event_shape([5]).as_list() == [6]
    assert bijector.inverse_event_shape([2, 6]).as_list() == [2, 5]
    assert run(bijector.forward_event_shape_tensor([5])).tolist() == [6]


def test_rising_vectors():
    rising = np.cumsum(P)
    bijector, x = B.Ordered(), tf.constant(rising)
    y = bijector.forward(x)
    value, slopes = run([y, jacobian(y, x)])
    np.testing.assert_allclose(value, np.append(rising[:1], np.log(P[1:])))
    other = B.Ordered(validate_args=True)
    back, there, here = run(
        [
            other.inverse(value),
            other.inverse_log_det_jacobian(value, 1),
            other.forward_log_det_jacobian(rising, 1),
        ]
    )
    np.testing.assert_allclose(back, rising)
    np.testing.assert_allclose([here, -there], np.linalg.slogdet(slopes)[1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="strictly increasing"):
        run(other.forward(tf.placeholder_with_default(rising[::-1].copy(), [None])))


TRIANGLE = np.tril_indices(3)
MATRICES = {
    "CholeskyOuterProduct": (lambda: B.CholeskyOuterProduct(True), lambda x: x @ x.T),
    "MatrixInverseTriL": (lambda: B.MatrixInverseTriL(True), np.linalg.inv),
    "TransformDiagonal": (
        lambda: B.TransformDiagonal(B.Exp()),
        lambda x: x - np.diag(np.diag(x)) + np.diag(np.exp(np.diag(x))),
    ),
}


@pytest.mark.parametrize("name", MATRICES)
def test_maps_of_triangular_matrices(name):
    make, expected = MATRICES[name]
    free = tf.constant(LOWER[TRIANGLE])
    lower = tf.scatter_nd(np.stack(TRIANGLE, 1), free, [3, 3])
    y = make().forward(lower)
    value, slopes = run([y, jacobian(tf.gather_nd(y, np.stack(TRIANGLE, 1)), free)])
    np.testing.assert_allclose(value, expected(LOWER), rtol=1e-10, atol=1e-12)
    other = make()
    back, there, here = run(
        [
            other.inverse(value),
            other.inverse_log_det_jacobian(value, 2),
            other.forward_log_det_jacobian(LOWER, 2),
        ]
    )
    np.testing.assert_allclose(back, LOWER, atol=1e-12)
    np.testing.assert_allclose([here, -there], np.linalg.slogdet(slopes)[1], rtol=1e-8)


def test_a_vector_becomes_a_triangle_with_a_positive_diagonal():
    x = np.arange(-3.0, 3.0)
    bijector = B.ScaleTriL(diag_shift=0.5)
    y = run(bijector.forward(x))
    plain = run(B.FillTriangular().forward(x))
    np.testing.assert_allclose(np.diag(y), np.log1p(np.exp(np.diag(plain))) + 0.5)
    np.testing.assert_allclose(y - np.diag(np.diag(y)), plain - np.diag(np.diag(plain)))
    assert not np.triu(plain, 1).any() and np.triu(run(B.FillTriangular(upper=True).forward(x)), 1).any()
    np.testing.assert_allclose(run(B.ScaleTriL(diag_shift=0.5).inverse(y)), x, atol=1e-10)
    assert (bijector.forward_min_event_ndims, bijector.inverse_min_event_ndims) == (1, 2)
    assert bijector.forward_event_shape([4, 6]).as_list() == [4, 3, 3]
    assert bijector.inverse_event_shape([3, 3]).as_list() == [6]
    assert run(bijector.forward_event_shape_tensor([4, 6])).tolist() == [4, 3, 3]
    slope = -np.log1p(np.exp(-np.diag(plain))).sum()
    np.testing.assert_allclose(run(bijector.forward_log_det_jacobian(x, 1)), slope)


def test_events_in_another_shape():
    bijector = B.Reshape(event_shape_out=[3, -1], event_shape_in=[6])
    x = np.arange(24.0).reshape([2, 2, 6])
    y = bijector.forward(x)
    assert y.shape.as_list() == [2, 2, 3, 2]
    np.testing.assert_array_equal(run(y), x.reshape([2, 2, 3, 2]))
    np.testing.assert_array_equal(run(B.Reshape([3, 2]).inverse(run(y))), x)
    assert run(bijector.forward_log_det_jacobian(x, 1)) == 0
    assert bijector.forward_event_shape([6]).as_list() == [3, 2]
    assert run(bijector.inverse_event_shape_tensor([3, 2])).tolist() == [6]
    with pytest.raises(ValueError, match="sizes do not match"):
        B.Reshape([3, 3], [6])


def test_what_forward_has_given_the_inverse_gives_back():
    bijector, x = B.Sigmoid(), tf.constant(X)
    assert bijector.inverse(bijector.forward(x)) is x
    flow = B.MaskedAutoregressiveFlow(NETWORK)
    assert flow.inverse(flow.forward(x)) is x


def test_the_absolute_value_has_two_inverses():
    bijector = B.AbsoluteValue(validate_args=True)
    low, high = run(bijector.inverse(np.array([1.0, 2.0])))
    assert (low.tolist(), high.tolist()) == ([-1, -2], [1, 2])
    assert run(bijector.forward([-1.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(NotImplementedError, match="non-injective"):
        B.Invert(bijector)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: B.Permute([0, 0, 1]), ValueError, "exactly one of each"),
        (lambda: B.Permute([0.0, 1.0]), TypeError, "int"),
        (lambda: B.PowerTransform(-1.0), ValueError, "non-negative"),
        (lambda: B.Inline(forward_fn=tf.exp), ValueError, "at least one of"),
        (lambda: B.Exp().inverse_log_det_jacobian([1.0], -1), ValueError, "must be larger"),
        (lambda: B.CholeskyOuterProduct().forward_log_det_jacobian(LOWER, 1), ValueError, "must be larger"),
        (lambda: B.RealNVP(0, coupling), ValueError, "positive integer"),
        (lambda: B.RealNVP(5, coupling).forward(X), ValueError, "smaller than the event size"),
        (lambda: B.Affine(scale_perturb_diag=[1.0]), ValueError, "scale_perturb_factor must be specified"),
        (
            lambda: B.Inline(forward_min_event_ndims=0).forward(X),
            NotImplementedError,
            "forward not implemented",
        ),
        (
            lambda: B.Inline(forward_min_event_ndims=0).inverse_log_det_jacobian(X, 0),
            NotImplementedError,
            "inverse_log_det_jacobian not implemented",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_bijector_of_ones_own():
    class Cube(B.Bijector):
        def __init__(self):
            super().__init__(forward_min_event_ndims=0, name="cube")

        def _forward(self, x):
            return x**3

        def _inverse(self, y):
            return tf.sign(y) * tf.abs(y) ** (1 / 3)

        def _forward_log_det_jacobian(self, x):
            return tf.log(3.0 * x**2)

    cube = Cube()
    back, slope = run([cube.inverse([8.0]), cube.inverse_log_det_jacobian([8.0], 0)])
    np.testing.assert_allclose(back, [2], rtol=1e-5)
    np.testing.assert_allclose(slope, [-np.log(12)], rtol=1e-5)


def test_masked_layers_see_only_what_comes_before():
    x = tf.constant(RANDOM.uniform(-1, 1, [7, 4]).astype(np.float32))
    template = B.masked_autoregressive_default_template([8, 8])
    shift, log_scale = template(x)
    assert len(tf.trainable_variables()) == 6
    flow = B.MaskedAutoregressiveFlow(template)
    there = flow.forward(x)
    assert len(tf.trainable_variables()) == 6
    value = tf.placeholder(tf.float32, [7, 4])
    back = B.MaskedAutoregressiveFlow(template).inverse(value)
    slopes = [tf.gradients(part[:, i], x)[0] for part in (shift, log_scale) for i in range(4)]
    train = tf.train.GradientDescentOptimizer(0.05).minimize(tf.reduce_sum(shift + log_scale))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):  # also after a step, which must leave the masked weights zero
            for i, slope in enumerate(session.run(slopes)):
                assert not slope[:, i % 4 :].any()
            moved, old = session.run([there, x])
            np.testing.assert_allclose(session.run(back, {value: moved}), old, atol=1e-3)
            session.run(train)


def test_coupling_layers_train_with_their_default_network():
    flow = B.RealNVP(2, B.real_nvp_default_template([8]))
    x = tf.constant(RANDOM.normal(size=[16, 4]).astype(np.float32))
    assert run(flow.inverse_log_det_jacobian(x, 1)).shape == (16,)
    shift_only = B.RealNVP(2, B.real_nvp_default_template([8], shift_only=True, name="s"))
    assert run(shift_only.inverse_log_det_jacobian(x, 1)) == 0


def test_batches_are_normalized():
    x = RANDOM.normal(3, 2, [64, 3]).astype(np.float32)
    bijector = B.BatchNormalization()
    normal, slope = run([bijector.inverse(x), bijector.inverse_log_det_jacobian(x, 1)])
    np.testing.assert_allclose(normal.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(slope, -0.5 * np.log(x.var(0) + 1e-3).sum(), rtol=1e-4)
    frozen = B.BatchNormalization(training=False)
    back = run(B.Invert(frozen).forward(frozen.forward(x)))
    np.testing.assert_allclose(back, x, rtol=1e-5)


class _Doubling(B.Bijector):
    """Knows one way only."""

    def __init__(self, **options):
        super().__init__(forward_min_event_ndims=0, **options)

    def _forward(self, x):
        return 2 * x

    def _forward_log_det_jacobian(self, x):
        return tf.log(2.0) * tf.ones_like(x)

    def _inverse_log_det_jacobian(self, y):
        raise ArithmeticError


def test_the_stretch_of_one_way_is_the_opposite_of_the_others():
    doubling, x = _Doubling(), tf.constant([1.0, 2.0])
    y = doubling.forward(x)
    forward = doubling.forward_log_det_jacobian(x, event_ndims=0)
    back = doubling.inverse_log_det_jacobian(y, event_ndims=0)
    with tf.Session() as sess:
        np.testing.assert_allclose(*sess.run([forward, -back]))
    with pytest.raises(ArithmeticError):
        doubling.inverse_log_det_jacobian(y, event_ndims=1)


def test_a_bijector_that_is_no_subclass_cannot_be_made():
    with pytest.raises(TypeError, match="abstract class Bijector"):
        B.Bijector(forward_min_event_ndims=0)
    assert _Doubling().name == "doubling"


def test_the_number_of_axes_of_an_event_may_be_known_only_when_a_step_runs():
    x, axes = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.placeholder(tf.int32)
    log = _Doubling(validate_args=True).forward_log_det_jacobian(x, event_ndims=axes)
    with tf.Session() as sess:
        for asked, shape in ((0, (2, 2)), (1, (2,)), (2, ())):
            assert sess.run(log, {axes: asked}).shape == shape
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected scalar"):
            sess.run(log, {axes: [1, 2]})
    with pytest.raises(ValueError, match="Expected integer dtype"):
        _Doubling().forward_log_det_jacobian(x, event_ndims=1.5)
    with pytest.raises(ValueError, match="Expected scalar event_ndims"):
        _Doubling().forward_log_det_jacobian(x, event_ndims=(1, 2))


def test_a_map_that_is_measured_wrongly_is_found():
    from tensorfleet.python.ops.distributions import bijector_test_util, identity_bijector

    wrong = B.Inline(
        forward_fn=lambda x: 2 * x,
        inverse_fn=lambda y: y / 2,
        inverse_log_det_jacobian_fn=lambda y: tf.zeros_like(y),
        forward_min_event_ndims=0,
    )
    with tf.Session():
        bijector_test_util.assert_scalar_congruency(identity_bijector.Identity(), -2.0, 2.0)
        bijector_test_util.assert_bijective_and_finite(B.Exp(), np.ones(3), np.ones(3), event_ndims=0)
        with pytest.raises(AssertionError):
            bijector_test_util.assert_scalar_congruency(wrong, -2.0, 2.0)
        with pytest.raises(AssertionError, match="not all finite"):
            bijector_test_util.assert_bijective_and_finite(wrong, np.ones(2), np.array([np.inf, 1]), 0)
