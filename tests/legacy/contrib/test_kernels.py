"""Features of kernels by random waves, and a linear model over them."""

import numpy as np
import pytest

import tensorfleet as tf

K = tf.contrib.kernel_methods
RANDOM = np.random.RandomState(0)


def test_inner_products_are_those_of_a_gaussian_kernel(session):
    x = RANDOM.normal(size=[6, 3]).astype(np.float32)
    mapper = K.RandomFourierFeatureMapper(3, 20000, stddev=2.0, name="waves")
    result = session.run(mapper.map(tf.constant(x)))
    assert result.shape == (6, 20000) and (mapper.input_dim, mapper.output_dim) == (3, 20000)
    squares = np.square(x[:, None] - x[None]).sum(2)
    np.testing.assert_allclose(result @ result.T, np.exp(-squares / 8), atol=0.03)
    np.testing.assert_array_equal(result, session.run(mapper.map(tf.constant(x))))
    with pytest.raises(Exception, match="expected 3 input features, got 4"):
        mapper.map(tf.zeros([2, 4]))


def test_the_hinge_of_the_largest_wrong_class(session):
    logits = np.array([[2.0, 1.5, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 4.0]], np.float32)
    labels = np.array([0, 0, 2])
    each = np.array([0.5, 4.0, 0.0])
    loss = K.sparse_multiclass_hinge_loss
    np.testing.assert_allclose(session.run(loss(labels, logits)), each.mean())
    weighted = loss(labels[:, None], logits, weights=[1.0, 0.0, 2.0])
    np.testing.assert_allclose(session.run(weighted), 0.5 / 2)
    with pytest.raises(ValueError, match="Invalid dtype for labels"):
        loss(logits[:, 0], logits)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(loss(tf.placeholder_with_default([0, 9, 0], [3]), logits))


def test_a_circle_is_told_from_what_is_around_it(tmp_path):
    x = RANDOM.uniform(-2, 2, [300, 2]).astype(np.float32)
    y = (np.square(x).sum(1) < 1.5).astype(np.int64)

    def given():
        return {"x": tf.constant(x)}, tf.constant(y)

    column = tf.contrib.layers.real_valued_column("x", dimension=2)
    mapper = K.RandomFourierFeatureMapper(2, 200, stddev=1.0)
    optimizer = tf.train.FtrlOptimizer(5.0)
    by_name = {}
    for name, mappers in (("plain", None), ("mapped", {column: [mapper]})):
        model = K.KernelLinearClassifier(
            [column], str(tmp_path / name), optimizer=optimizer, kernel_mappers=mappers
        )
        model.fit(input_fn=given, steps=80)
        by_name[name] = model.evaluate(input_fn=given, steps=1)["accuracy"]
    assert by_name["mapped"] > 0.95 > by_name["plain"]
    with pytest.raises(ValueError, match="at least one of feature_columns, kernel_mappers"):
        K.KernelLinearClassifier()
