"""Functions of `tf.keras.backend` with the arguments that Keras gives them."""

import numpy as np
import pytest

import tensorfleet as tf

K = tf.keras.backend


def test_arguments_have_keras_names_and_defaults():
    x = tf.constant([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]])
    assert K.get_value(K.argmax(x)).tolist() == [1, 0]  # along the last dimension
    assert K.get_value(K.argmin(x)).tolist() == [0, 1]
    assert K.int_shape(K.expand_dims(x)) == (2, 3, 1)
    assert K.int_shape(K.permute_dimensions(x, pattern=(1, 0))) == (3, 2)
    assert K.get_value(K.sum(x=x, axis=-1, keepdims=True)).tolist() == [[8], [7]]
    assert K.get_value(K.gather(reference=x, indices=[1])).tolist() == [[4, 0, 3]]
    assert K.get_value(K.one_hot([1], num_classes=3)).tolist() == [[0, 1, 0]]
    assert K.get_value(K.reverse(x, axes=1)).tolist() == [[2, 5, 1], [3, 0, 4]]
    assert K.int_shape(K.tile(K.constant([1.0, 2.0]), 3)) == (6,)
    assert K.get_value(K.mean(tf.constant([True, False]))) == 0.5
    assert K.get_value(K.sqrt(tf.constant([-1.0, 4.0]))).tolist() == [0, 2]
    assert K.get_value(K.relu(tf.constant([-2.0, 7.0]), alpha=0.5, max_value=6.0)).tolist() == [-1, 6]
    assert K.get_value(K.map_fn(lambda row: tf.reduce_sum(row), x, "rows", tf.float32)).tolist() == [8, 7]
    kept = list(K.stop_gradient([x, x]))
    assert tf.gradients(kept[0] + kept[1], x) == [None]


def test_cross_entropies_are_those_of_each_answer():
    true, said = tf.constant([[1.0, 0.0]]), tf.constant([[0.8, 0.4]])
    each = K.get_value(K.binary_crossentropy(true, said))
    np.testing.assert_allclose(each, [[-np.log(0.8), -np.log(0.6)]], rtol=1e-5)
    rows = tf.constant([[[0.2, 0.5], [0.8, 0.5]]])
    along = K.get_value(K.categorical_crossentropy(tf.constant([[[0.0, 1.0], [1.0, 0.0]]]), rows, axis=1))
    np.testing.assert_allclose(along, [[-np.log(0.8), -np.log(0.5)]], rtol=1e-5)


@pytest.mark.parametrize("loss", ["binary", "categorical", "sparse_categorical"])
def test_probabilities_that_were_just_made_of_logits_are_not_clipped(loss):
    logits = tf.constant([[50.0, -50.0]])
    said = (tf.sigmoid if loss == "binary" else tf.nn.softmax)(logits)
    true = tf.constant([1]) if loss == "sparse_categorical" else tf.constant([[0.0, 1.0]])
    exact = K.get_value(getattr(K, f"{loss}_crossentropy")(true, said))
    clipped = K.get_value(getattr(K, f"{loss}_crossentropy")(true, tf.identity(said)))
    assert exact.max() >= 49
    assert clipped.max() < 17
    mean = K.get_value(getattr(tf.keras.losses, f"{loss}_crossentropy")(true, said))
    np.testing.assert_allclose(mean, exact.mean(-1) if loss == "binary" else exact)
