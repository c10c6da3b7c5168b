"""Estimators extended, on several devices, of recurrent networks, and as functions."""

import itertools

import numpy as np
import pytest

import tensorfleet as tf

E = tf.contrib.estimator
X = np.linspace(-1, 1, 16).astype(np.float32)


def line_input():
    return {"x": tf.constant(X[:, None])}, tf.constant(3.0 * X[:, None] + 1.0)


def line(optimizer=None):
    def model_fn(features, labels, mode):
        y = tf.layers.dense(features["x"], 1, name="line", kernel_initializer=tf.zeros_initializer())
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(
                mode,
                {"y": y},
                export_outputs={"serving_default": tf.estimator.export.PredictOutput({"y": y})},
            )
        loss = tf.losses.mean_squared_error(labels, y)
        result = optimizer() if optimizer else tf.train.GradientDescentOptimizer(0.3)
        train = result.minimize(loss, tf.train.get_global_step())
        metrics = {"off": tf.metrics.mean_absolute_error(labels, y)}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train, metrics)

    return model_fn


def test_an_estimator_gives_features_beside_its_predictions(tmp_path):
    model = tf.estimator.Estimator(line(), str(tmp_path))
    model.train(line_input, steps=1)
    forwarded = E.forward_features(model, "x")
    first = next(forwarded.predict(lambda: line_input()[0]))
    assert set(first) == {"x", "y"} and first["x"] == X[0]
    with pytest.raises(ValueError, match="is not in features dict"):
        next(E.forward_features(model, ["z"]).predict(lambda: line_input()[0]))
    with pytest.raises(TypeError, match="keys should be either a string"):
        E.forward_features(model, 3)


def test_sparse_features_are_given_with_a_default(tmp_path):
    def model_fn(features, labels, mode):
        total = tf.sparse_reduce_sum(features["s"], 1) * tf.get_variable("v", initializer=1.0)
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, {"total": total}, tf.reduce_sum(total), step)

    def given():
        return {"s": tf.SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 2])}

    model = tf.estimator.Estimator(model_fn, str(tmp_path))
    model.train(given, steps=1)
    predictions = E.forward_features(model, sparse_default_values={"s": -1.0}).predict(given)
    first, second = itertools.islice(predictions, 2)
    assert first["s"].tolist() == [-1, 5] and second["s"].tolist() == [6, -1]
    with pytest.raises(ValueError, match="should be a Tensor"):
        next(E.forward_features(model).predict(given))


def test_gradients_are_scaled_down_to_a_norm(session):
    x = tf.Variable([3.0, 4.0])
    optimizer = E.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
    train = optimizer.minimize(tf.reduce_sum(tf.square(x)) / 2)
    session.run(tf.global_variables_initializer())
    session.run(train)
    np.testing.assert_allclose(session.run(x), [2.4, 3.2], rtol=1e-6)
    assert optimizer.get_name() == "ClipByNormGradientDescent"


@pytest.mark.parametrize("reduction", ["weighted_sum_by_nonzero_weights", "weighted_sum"])
def test_towers_train_like_one(tmp_path, reduction):
    def two():
        return E.TowerOptimizer(tf.train.GradientDescentOptimizer(0.3))

    mean = reduction != "weighted_sum"
    alone = tf.estimator.Estimator(line(), str(tmp_path / "alone"))
    both = tf.estimator.Estimator(
        E.replicate_model_fn(line(two), reduction, devices=["/cpu:0", "/cpu:0"]), str(tmp_path / "both")
    )
    for model in (alone, both):
        model.train(line_input, steps=5 if mean else 1)
    factor = 1 if mean else 2  # the sum of two means is twice their mean
    kernel = "line/kernel"
    np.testing.assert_allclose(
        both.get_variable_value(kernel), factor * alone.get_variable_value(kernel), rtol=1e-4
    )
    if mean:
        ours, theirs = (m.evaluate(line_input, steps=1) for m in (alone, both))
        np.testing.assert_allclose([ours["off"], ours["loss"]], [theirs["off"], theirs["loss"]], rtol=1e-4)
        predictions = [
            [p["y"][0] for p in itertools.islice(m.predict(lambda: line_input()[0]), 16)]
            for m in (alone, both)
        ]
        np.testing.assert_allclose(*predictions, rtol=1e-4)


def test_towers_need_optimizers_that_know_of_them(tmp_path):
    model = tf.estimator.Estimator(E.replicate_model_fn(line(), devices=["/cpu:0", "/cpu:0"]), str(tmp_path))
    with pytest.raises(ValueError, match="Please wrap optimizers with TowerOptimizer"):
        model.train(line_input, steps=1)
    with pytest.raises(ValueError, match="need to be reduced"):
        E.replicate_model_fn(line(), tf.losses.Reduction.NONE)


def test_a_recurrent_network_tells_sequences_apart(tmp_path):
    random = np.random.RandomState(0)
    rows = [random.randint(0, 5, random.randint(2, 6)) for _ in range(40)]
    labels = np.array([row[-1] > 2 for row in rows], np.int64)

    def given():
        places = [[i, t] for i, row in enumerate(rows) for t in range(len(row))]
        values = np.concatenate(rows).astype(np.int64)
        return {
            "words": tf.SparseTensor(places, values, [40, 5]),
            "bias": tf.constant(np.ones([40, 1], np.float32)),
        }, tf.constant(labels)

    words = tf.contrib.feature_column.sequence_categorical_column_with_identity("words", 5)
    model = E.RNNClassifier(
        [tf.feature_column.indicator_column(words)],
        [tf.feature_column.numeric_column("bias")],
        num_units=[8],
        cell_type="gru",
        optimizer=tf.train.AdamOptimizer(0.1),
        model_dir=str(tmp_path),
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    model.train(given, steps=40)
    assert model.evaluate(given, steps=1)["accuracy"] > 0.95
    assert "rnn/gru_cell/gates/kernel" in " ".join(model.get_variable_names())
    with pytest.raises(ValueError, match="must not be specified when using rnn_cell_fn"):
        E.RNNClassifier([words], num_units=[2], rnn_cell_fn=tf.nn.rnn_cell.GRUCell)


def receiver():
    x = tf.placeholder(tf.float32, [None, 1], "given")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def test_an_estimator_is_a_function_of_arrays(tmp_path):
    model = tf.estimator.Estimator(line(), str(tmp_path))
    model.train(line_input, steps=100)
    predict = tf.contrib.predictor.from_estimator(model, receiver)
    np.testing.assert_allclose(predict({"x": [[2.0]]})["y"], [[7.0]], atol=0.05)
    with pytest.raises(KeyError, match="output_key must be one of"):
        tf.contrib.predictor.from_estimator(model, receiver, output_key="other")
    with pytest.raises(TypeError, match="from_estimator"):
        tf.contrib.predictor.from_contrib_estimator(model, receiver)


def test_an_estimator_of_contrib_learn_is_a_function_of_arrays(tmp_path):
    model = tf.contrib.learn.LinearRegressor(
        [tf.contrib.layers.real_valued_column("x")],
        model_dir=str(tmp_path),
        optimizer=tf.train.GradientDescentOptimizer(0.3),
    )
    model.fit(input_fn=line_input, steps=100)

    def given():
        x = tf.placeholder(tf.float32, [None, 1])
        return tf.contrib.learn.InputFnOps({"x": x}, None, {"x": x})

    predict = tf.contrib.predictor.from_contrib_estimator(model, given, output_alternative_key="predict")
    (value,) = predict({"x": [[2.0]]}).values()
    np.testing.assert_allclose(np.ravel(value), [7.0], atol=0.1)
