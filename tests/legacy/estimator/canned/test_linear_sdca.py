"""Linear models trained by stochastic dual coordinate ascent: to their known optimum, and as estimators."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import run

Column = tf.contrib.linear_optimizer.SparseFeatureColumn
N = 40
A = np.linspace(-1, 1, N).astype(np.float32)
X = {"a": A, "id": np.array([str(i).encode() for i in range(N)], object)}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def model(loss, labels, features, l1=0.0, l2=1.0, **options):
    """A model of dense features with its variable."""
    weights = tf.Variable(tf.zeros([features.shape[1]]))
    examples = dict(
        sparse_features=[],
        dense_features=[tf.constant(features)],
        example_labels=tf.constant(labels),
        example_weights=tf.ones([len(labels)]),
        example_ids=tf.constant([str(i) for i in range(len(labels))]),
    )
    model = tf.contrib.linear_optimizer.SdcaModel(
        examples,
        dict(sparse_features_weights=[], dense_features_weights=[weights]),
        dict(loss_type=loss, symmetric_l1_regularization=l1, symmetric_l2_regularization=l2, **options),
    )
    return model, examples, weights


def trained(steps, *args, **kwargs):
    """Weights, loss, and duality gap after some steps."""
    with tf.Graph().as_default(), tf.Session() as sess:
        result, examples, weights = model(*args, **kwargs)
        train = result.minimize()
        update = result.update_weights(train)
        fetches = [weights, result.regularized_loss(examples), result.approximate_duality_gap()]
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(update)
        return sess.run(fetches)


FEATURES = np.random.RandomState(0).randn(12, 3).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"num_table_shards": 3}, {"adaptive": False}])
def test_squared_loss_comes_to_the_ridge_solution(options):
    labels = (FEATURES @ [1.0, -2.0, 0.5]).astype(np.float32)
    weights, _, gap = trained(100, "squared_loss", labels, FEATURES, l2=2.0, **options)
    expected = np.linalg.solve(FEATURES.T @ FEATURES + 2 * np.eye(3), FEATURES.T @ labels)
    np.testing.assert_allclose(weights, expected, atol=1e-3)
    assert gap == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("loss", ["logistic_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"])
def test_the_duality_gap_closes(loss):
    labels = (FEATURES[:, 0] > 0).astype(np.float32)
    first = trained(1, loss, labels, FEATURES)
    last = trained(60, loss, labels, FEATURES)
    assert last[1] <= first[1] + 1e-6
    assert abs(last[2]) < 0.01


def test_weak_weights_are_shrunk_to_zero():
    labels = (FEATURES @ [3.0, 0.01, 0.0]).astype(np.float32)
    weights, *_ = trained(60, "squared_loss", labels, FEATURES, l1=3.0, l2=1.0)
    assert weights[0] > 1 and weights[1] == 0 and weights[2] == 0


def test_sparse_features_and_their_predictions():
    # Each example has a feature of its own: its weight is label / (1 + l2).
    with tf.Graph().as_default(), tf.Session() as sess:
        parts = [tf.Variable(tf.zeros([2])), tf.Variable(tf.zeros([1]))]
        examples = dict(
            sparse_features=[Column([0, 1, 2], [2, 0, 1], [1.0, 1.0, 1.0])],
            dense_features=[],
            example_labels=tf.constant([1.0, 2.0, 3.0]),
            example_weights=tf.ones([3]),
            example_ids=tf.constant(["x", "y", "z"]),
        )
        model = tf.contrib.linear_optimizer.SdcaModel(
            examples,
            dict(sparse_features_weights=[parts], dense_features_weights=[]),
            dict(loss_type="squared_loss", symmetric_l1_regularization=0.0, symmetric_l2_regularization=1.0),
        )
        update = model.update_weights(model.minimize())
        predictions = model.predictions(examples)
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(update)
        np.testing.assert_allclose(sess.run(parts[0]), [1.0, 1.5], rtol=1e-5)
        np.testing.assert_allclose(sess.run(parts[1]), [0.5], rtol=1e-5)
        np.testing.assert_allclose(sess.run(predictions), [0.5, 1.0, 1.5], rtol=1e-5)


def test_a_label_that_is_no_class_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Only labels of 0.0 or 1.0 are supported"):
        trained(1, "logistic_loss", np.array([2.0], np.float32), FEATURES[:1])


def test_shrinking_changes_several_variables():
    a, b = tf.Variable([1.0, -2.0, 0.05]), tf.Variable([0.3, -0.1])
    shrink = tf.train.sdca_shrink_l1([a, b], l1=0.4, l2=2.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(shrink)
        np.testing.assert_allclose(sess.run(a), [0.8, -1.8, 0.0], rtol=1e-6)
        np.testing.assert_allclose(sess.run(b), [0.1, 0.0], rtol=1e-6, atol=1e-7)


def test_fingerprints_differ():
    result = run(tf.train.sdca_fprint(tf.constant(["a", "b", "a"])))
    assert result.shape == (3, 2) and (result[0] == result[2]).all() and (result[0] != result[1]).all()


def data(y, epochs=None):
    return tf.estimator.inputs.numpy_input_fn(X, y, batch_size=N, num_epochs=epochs, shuffle=False)


def columns():
    a = tf.feature_column.numeric_column("a")
    return [a, tf.feature_column.bucketized_column(a, [-0.5, 0.5])]


def test_a_linear_classifier_learns(tmp_path):
    labels = (A > 0).astype(np.int64)
    sdca = tf.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=0.1)
    classifier = tf.estimator.LinearClassifier(columns(), str(tmp_path), optimizer=sdca)
    result = classifier.train(data(labels), steps=20).evaluate(data(labels, 1))
    assert result["accuracy"] > 0.95 and result["global_step"] == 20
    assert "linear/linear_model/a/weights" in classifier.get_variable_names()


def test_a_linear_regressor_of_contrib_learns(tmp_path):
    sdca = tf.contrib.linear_optimizer.SDCAOptimizer("id", symmetric_l2_regularization=1.0)
    regressor = tf.estimator.LinearRegressor(
        [tf.feature_column.numeric_column("a")], str(tmp_path), optimizer=sdca
    )
    result = regressor.train(data(2 * A + 1), steps=30).evaluate(data(2 * A + 1, 1))
    assert result["average_loss"] < 0.02


def test_more_than_two_classes_are_refused():
    sdca = tf.estimator.experimental.LinearSDCA("id")
    with pytest.raises(ValueError, match="LinearSDCA cannot be used in a multi-class setting"):
        tf.estimator.LinearClassifier(columns(), n_classes=3, optimizer=sdca)
    with pytest.raises(ValueError, match="LinearSDCA can only be used with one-dimensional label"):
        tf.estimator.LinearRegressor(columns(), label_dimension=2, optimizer=sdca)
