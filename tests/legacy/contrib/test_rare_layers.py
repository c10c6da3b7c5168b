"""Layers that compute their inside again, and channels divided by their norm."""

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.contrib.layers
X = np.random.RandomState(0).normal(size=[2, 3, 4]).astype(np.float32)


def run(fetches):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def dense(x, side=None):
    x = x if side is None else x + side[0]
    return tf.layers.dense(x, 4, tf.tanh, kernel_initializer=tf.constant_initializer(0.3), name="dense")


@pytest.mark.parametrize("side", [False, True])
def test_a_reversible_block_has_the_gradients_of_a_plain_one(side):
    results = []
    for efficient in (True, False):
        tf.reset_default_graph()
        x1, x2 = tf.constant(X[0]), tf.constant(X[1])
        more = tf.constant(X[0] * 0.5)
        given = {"f_side_input": [more], "g_side_input": [more]} if side else {}
        y1, y2 = layers.rev_block(x1, x2, dense, dense, 3, is_training=efficient, **given)
        names = sorted(v.op.name for v in tf.trainable_variables())
        sources = [
            x1,
            x2,
            *sorted(tf.trainable_variables(), key=lambda v: v.op.name),
            *([more] if side else []),
        ]
        results.append(run([y1, y2, *tf.gradients(tf.reduce_sum(y1 * y1 + 2.0 * y2), sources)]))
        assert names[0] == "revblock/revlayer_0/f/dense/bias" and len(names) == 12
    for mine, plain in zip(*results, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=2e-4, atol=1e-5)


def test_a_reversible_block_runs_backwards():
    block = layers.RevBlock(dense, dense, 2)
    y1, y2 = block.forward(tf.constant(X[0]), tf.constant(X[1]))
    x1, x2 = block.backward(y1, y2)
    result = run([x1, x2])
    np.testing.assert_allclose(result[0], X[0], atol=1e-5)
    np.testing.assert_allclose(result[1], X[1], atol=1e-5)
    with pytest.raises(ValueError, match="has 1 functions for 2 layers"):
        layers.RevBlock([dense], dense, 2)


def test_a_function_computed_again_has_the_same_gradients():
    def two(x):
        return tf.layers.dense(dense(x), 1, name="last", kernel_initializer=tf.constant_initializer(0.2))

    results = []
    for wrap in (layers.recompute_grad, lambda f: f):
        tf.reset_default_graph()
        x = tf.constant(X[0])
        y = wrap(two)(x)
        results.append(run([y, *tf.gradients(y, [x, *tf.trainable_variables()])]))
        assert len(tf.trainable_variables()) == 4
    for mine, plain in zip(*results, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-5)
    with pytest.raises(ValueError, match="All inputs to function must be Tensors"):
        layers.recompute_grad(two)(X[0])


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("inverse", [False, True])
def test_channels_are_divided_by_their_norm(data_format, inverse):
    y = layers.gdn(tf.constant(X), inverse=inverse, data_format=data_format, name="norm")
    assert [v.op.name for v in tf.trainable_variables()] == ["norm/reparam_beta", "norm/reparam_gamma"]
    norm = np.sqrt(1 + 0.1 * np.square(X))  # gamma starts as a tenth of the identity
    np.testing.assert_allclose(run(y), X * norm if inverse else X / norm, rtol=1e-5)


def test_the_norm_mixes_channels_and_its_parameters_learn():
    layer = layers.GDN(gamma_init=0.5)
    y = layer.apply(tf.constant(X))
    gamma = np.random.RandomState(1).uniform(0.1, 1, [4, 4]).astype(np.float32)
    slope = tf.gradients(y, tf.trainable_variables())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.trainable_variables()[1].assign(np.sqrt(gamma)))
        np.testing.assert_allclose(sess.run(y), X / np.sqrt(1 + np.square(X) @ gamma), rtol=1e-4)
        assert all(np.abs(s).min() > 0 for s in sess.run(slope))
    with pytest.raises(ValueError, match="Unsupported `data_format` for GDN"):
        layers.GDN(data_format="NHWC")


def test_each_id_is_looked_up_once():
    table, ids = tf.constant(X[0]), tf.constant([[2, 0, 2], [1, 1, 1]])
    result = layers.embedding_lookup_unique(table, ids)
    assert result.shape == [2, 3, 4]
    value, slope = run([result, tf.convert_to_tensor(tf.gradients(result, table)[0])])
    np.testing.assert_array_equal(value, X[0][[[2, 0, 2], [1, 1, 1]]])
    np.testing.assert_array_equal(slope[:, 0], [1, 3, 2])


def test_scattered_embeddings_are_parameters_at_hashes():
    params = [tf.constant(np.arange(6.0)), tf.constant(np.arange(6.0, 11.0))]
    words = tf.constant([["a", "b"], ["c", "a"]])
    result = run(layers.scattered_embedding_lookup(params, words, 5))
    assert result.shape == (2, 2, 5)
    np.testing.assert_array_equal(result[0, 0], result[1, 1])
    assert set(result.ravel()) <= set(np.arange(11.0)) and len(set(result.ravel())) > 3
    sparse = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "c"], [3, 2])
    sums = run(layers.scattered_embedding_lookup_sparse(params, sparse, 5, combiner="sum"))
    np.testing.assert_allclose(sums[0], result[0, 0] + result[0, 1])
    np.testing.assert_allclose(sums[2], result[1, 0])
    with pytest.raises(ValueError, match="Tensor 0 in params has size 5, expected 6"):
        layers.scattered_embedding_lookup(params[::-1], words, 5)


def test_volumes_are_enlarged():
    result = layers.conv3d_transpose(tf.ones([1, 2, 3, 4, 5]), 6, [3, 3, 3], stride=2, scope="up")
    assert result.shape == [1, 4, 6, 8, 6]
    assert {v.op.name for v in tf.trainable_variables()} == {"up/weights", "up/biases"}
    assert (run(result) >= 0).all()


def test_a_layer_with_elu():
    result = run(layers.elu(tf.constant(X[0]), 200))
    assert -1 < result.min() < 0


def test_a_function_that_is_computed_again_may_know_it():
    results = []

    @layers.recompute_grad(tupleize_grads=True)
    def layer(x, is_recomputing=False):
        results.append(is_recomputing)
        return tf.layers.dense(x, 2)

    x = tf.ones([2, 4])
    tf.gradients(layer(x), x)
    assert results == [False, True]


def test_a_function_that_is_computed_again_has_no_tensors_from_around_it():
    around = tf.ones([2])
    with pytest.raises(ValueError, match="closes over"):
        layers.recompute_grad(lambda x: x * around)


def test_a_function_with_variables_is_computed_again_once_in_a_scope():
    layer = layers.recompute_grad(lambda x: tf.layers.dense(x, 2))
    x = tf.ones([2, 4])
    with tf.variable_scope("same"):
        both = layer(x) + layer(x)
    with pytest.raises(ValueError, match="called twice in the same enclosing scope"):
        tf.gradients(both, x)
