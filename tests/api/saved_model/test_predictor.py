"""SavedModels as functions."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.fixture
def model(tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        bias = tf.placeholder_with_default(0.0, [], name="bias")
        y = tf.add(tf.layers.dense(x, 1, kernel_initializer=tf.ones_initializer()), bias, name="y")
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, path, {"x": x, "bias": bias}, {"y": y})
    return path


def test_a_saved_model_is_a_function_of_arrays(model):
    predict = tf.contrib.predictor.from_saved_model(model)
    np.testing.assert_allclose(predict({"x": [[1, 2]]})["y"], [[3]])
    np.testing.assert_allclose(predict({"x": [[1, 2], [3, 4]], "bias": 1.0})["y"], [[4], [8]])
    assert predict.graph is not tf.get_default_graph()
    assert set(predict.feed_tensors) == {"x", "bias"} and set(predict.fetch_tensors) == {"y"}


def test_it_is_made_from_names_of_tensors_too(model):
    predict = tf.contrib.predictor.from_saved_model(
        model, input_names={"in": "x:0"}, output_names={"out": "y:0"}, tags="serve"
    )
    np.testing.assert_allclose(predict({"in": [[1, 1]]})["out"], [[2]])


def test_mistakes_are_named(model):
    make = tf.contrib.predictor.from_saved_model
    with pytest.raises(ValueError, match="Got unexpected keys"):
        make(model)({"z": 1})
    with pytest.raises(ValueError, match="Available signatures are \\['serving_default'\\]"):
        make(model, signature_def_key="other")
    with pytest.raises(ValueError, match="must both be specified"):
        make(model, input_names={"in": "x:0"})
    with pytest.raises(ValueError, match="at most one of"):
        make(model, signature_def_key="a", input_names={"x": "x:0"}, output_names={"y": "y:0"})
