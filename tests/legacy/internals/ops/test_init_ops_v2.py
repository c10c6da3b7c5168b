"""Initializers as TensorFlow 2 has them."""

import numpy as np
import pytest

import tensorfleet as tf

init = tf.python.ops.init_ops_v2


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def test_constants_are_as_many_as_the_shape_has_or_one():
    assert _run(init.Zeros()([2], tf.int32)).tolist() == [0, 0]
    assert _run(init.Ones()([2], tf.bool)).tolist() == [True, True]
    assert _run(init.Constant(3)([2])).tolist() == [3, 3]
    assert _run(init.Constant([1, 2, 3, 4])([2, 2], tf.float64)).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        init.Constant([1, 2, 3])([2, 2])
    with pytest.raises(TypeError, match="Invalid type for initial value"):
        init.Constant(tf.constant(1.0))
    with pytest.raises(ValueError, match="numeric or boolean"):
        init.Zeros()([2], tf.string)


@pytest.mark.parametrize(
    ("made", "mean", "deviation"),
    [
        (init.RandomUniform(-1, 1, seed=1), 0, 0.577),
        (init.RandomNormal(2.0, 1.0, seed=1), 2, 1),
        (init.TruncatedNormal(0.0, 1.0, seed=1), 0, 0.88),
        (init.VarianceScaling(distribution="untruncated_normal", seed=1), 0, 0.1),
        (init.GlorotUniform(seed=1), 0, 0.1),
        (init.GlorotNormal(seed=1), 0, 0.1),
        (init.he_normal(seed=1), 0, 0.141),
        (init.lecun_uniform(seed=1), 0, 0.1),
    ],
)
def test_numbers_are_drawn_as_told(made, mean, deviation):
    x = _run(made([100, 100]))
    assert abs(x.mean() - mean) < 0.03 and abs(x.std() - deviation) < 0.03
    again = type(made).from_config({**made.get_config(), "dtype": "float32"})
    np.testing.assert_array_equal(_run(again([100, 100])), x)


def test_matrices():
    x = _run(init.Orthogonal(seed=2)([6, 4], tf.float64))
    np.testing.assert_allclose(x.T @ x, np.eye(4), atol=1e-9)
    assert _run(init.Identity(2.0)([2, 2])).tolist() == [[2, 0], [0, 2]]
    with pytest.raises(ValueError, match="2D matrices"):
        init.Identity()([2])


def test_what_is_drawn_has_a_floating_type():
    assert _run(init.RandomUniform(0, 7)([5], tf.int32)).dtype == np.int32
    for item in (init.TruncatedNormal(), init.RandomNormal(), init.Orthogonal()):
        with pytest.raises(ValueError, match="Expected floating point dtype"):
            item([2, 2], tf.int32)
    with pytest.raises(ValueError, match="Invalid `mode`"):
        init.VarianceScaling(mode="other")
