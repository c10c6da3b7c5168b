"""Last layers of `tf.contrib.learn.models`."""

import numpy as np
import pytest

import tensorfleet as tf

models = tf.contrib.learn.models
X = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)


def values(*tensors):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensors)


def test_logistic_regression_gives_probabilities_and_cross_entropy(graph):
    probabilities, loss = values(*models.logistic_regression_zero_init(tf.constant(X), tf.eye(2)))
    assert probabilities == pytest.approx(np.full((2, 2), 0.5))
    assert loss == pytest.approx(np.log(2.0))
    assert [v.op.name for v in tf.trainable_variables()] == [
        "logistic_regression/weights",
        "logistic_regression/bias",
    ]


def test_class_weights_multiply_the_logits(graph):
    tf.set_random_seed(1)
    probabilities, _ = models.logistic_regression(tf.constant(X), tf.eye(2), [0.0, 0.0], init_mean=2.0)
    assert values(probabilities)[0] == pytest.approx(np.full((2, 2), 0.5))


@pytest.mark.parametrize("y", [[2.0, 0.0], [[2.0], [0.0]]])
def test_linear_regression_has_the_shape_of_its_targets(graph, y):
    predictions, loss = values(*models.linear_regression_zero_init(tf.constant(X), tf.constant(y)))
    assert predictions.shape == np.shape(y) and loss == pytest.approx(2.0)


def test_a_model_that_always_wants_labels_predicts_after_a_training(tmp_path):
    def model(features, target):
        target = tf.one_hot(target, 2)
        probabilities, loss = models.logistic_regression_zero_init(features, target)
        train = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 1.0, "SGD")
        return {"class": tf.argmax(probabilities, 1)}, loss, train

    estimator = tf.contrib.learn.Estimator(model, model_dir=str(tmp_path))
    estimator.fit(X, np.array([0, 1]), steps=20)
    assert [row["class"] for row in estimator.predict(X, as_iterable=True)] == [0, 1]
