"""Models of tf.contrib.learn with a head of one's choice, support vector machines, logistic regression."""

import numpy as np
import pytest

import tensorfleet as tf

learn, layers = tf.contrib.learn, tf.contrib.layers
X = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)


def numbers():
    return {"x": tf.constant(X)}, tf.constant(2 * X + 1)


def column():
    return layers.real_valued_column("x")


@pytest.mark.parametrize(
    "make",
    [
        lambda head: learn.LinearEstimator([column()], head, optimizer=tf.train.FtrlOptimizer(0.5)),
        lambda head: learn.DNNEstimator(head, [8], [column()], activation_fn="tanh", gradient_clip_norm=5.0),
        lambda head: learn.DNNLinearCombinedEstimator(
            head,
            linear_feature_columns=[column()],
            linear_optimizer="SGD",
            dnn_feature_columns=[column()],
            dnn_hidden_units=[4],
            fix_global_step_increment_bug=True,
        ),
    ],
)
def test_a_head_ends_each_kind_of_network(make):
    model = make(learn.regression_head())
    model.fit(input_fn=numbers, steps=1)
    before = model.evaluate(input_fn=numbers, steps=1)
    model.fit(input_fn=numbers, steps=60)
    after = model.evaluate(input_fn=numbers, steps=1)
    assert after["loss"] < before["loss"] and after["global_step"] == 61
    predictions = list(model.predict(input_fn=lambda: ({"x": tf.train.limit_epochs(X, 1)}, None)))
    assert [sorted(f) for f in predictions[:1]] == [["scores"]]


class Runs(tf.train.SessionRunHook):
    """Counts them."""

    count = 0

    def after_run(self, run_context, run_values):
        self.count += 1


class Trained(tf.train.SessionRunHook):
    """Keeps the names of the variables that are trained."""

    def begin(self):
        self.names = [v.name for v in tf.trainable_variables()]


@pytest.mark.parametrize("mended", [True, False])
def test_two_optimizers_count_two_steps_unless_that_is_mended(mended):
    model = learn.DNNLinearCombinedEstimator(
        learn.multi_class_head(3),
        linear_feature_columns=[column()],
        dnn_feature_columns=[column()],
        dnn_hidden_units=[2],
        fix_global_step_increment_bug=mended,
    )
    hook = Runs()
    given = lambda: ({"x": tf.constant(X)}, tf.constant([0, 1, 2, 1]))  # noqa: E731
    model.fit(input_fn=given, max_steps=4, monitors=[hook])
    assert hook.count == 4 if mended else hook.count < 4


def test_the_variables_of_the_input_are_cut_as_asked():
    pair = layers.real_valued_column("x", 2)
    model = learn.DNNLinearCombinedEstimator(
        learn.regression_head(),
        linear_feature_columns=[pair],
        dnn_feature_columns=[pair],
        dnn_hidden_units=[2],
        input_layer_partitioner=tf.fixed_size_partitioner(2),
    )
    hook = Trained()
    model.fit(input_fn=lambda: ({"x": tf.ones([4, 2])}, tf.ones([4, 1])), steps=1, monitors=[hook])
    assert [name for name in hook.names if "x/weight" in name] == [
        "linear/x/weight/part_0:0",
        "linear/x/weight/part_1:0",
    ]


def test_weights_are_in_the_loss_that_is_reported():
    head = learn.regression_head(weight_column_name="w")
    model = learn.LinearEstimator([column()], head)
    model.fit(input_fn=lambda: (dict(numbers()[0], w=tf.ones([4, 1])), numbers()[1]), steps=1)

    def weighted(w):
        given = lambda: (dict(numbers()[0], w=tf.constant(w)), numbers()[1])  # noqa: E731
        return model.evaluate(input_fn=given, steps=1)["loss"]

    one, double = [[1.0], [0.0], [0.0], [0.0]], [[2.0], [0.0], [0.0], [0.0]]
    assert weighted(one) == weighted(double) > 0


def examples():
    features = {
        "id": tf.constant(["1", "2", "3"]),
        "price": tf.constant([[0.6], [0.8], [0.3]]),
        "country": tf.SparseTensor([[0, 0], [1, 0], [2, 0]], ["IT", "US", "GB"], [3, 1]),
    }
    return features, tf.constant([[1], [0], [1]])


def test_a_support_vector_machine_tells_two_classes_apart():
    columns = [
        layers.real_valued_column("price"),
        layers.sparse_column_with_hash_bucket("country", hash_bucket_size=5),
    ]
    model = learn.SVM("id", columns)
    model.fit(input_fn=examples, steps=30)
    result = model.evaluate(input_fn=examples, steps=1)
    assert result["accuracy"] == 1 and result["loss"] < 0.1

    def given():
        features, _ = examples()
        return {**features, "price": tf.train.limit_epochs(features["price"], 1)}, None

    assert [int(c) for c in model.predict_classes(input_fn=given)][:3] == [1, 0, 1]
    with pytest.raises(ValueError, match="Kernel SVMs are not currently supported"):
        learn.SVM("id", columns, kernels=[1])


def test_regularization_keeps_a_support_vector_machine_from_its_best():
    def loss(**more):
        model = learn.SVM("id", [layers.real_valued_column("price")], **more)
        model.fit(input_fn=examples, steps=20)
        return model.evaluate(input_fn=examples, steps=1)["loss"]

    assert loss(l2_regularization=10.0) > loss()


def test_a_logistic_regressor_has_the_metrics_of_two_classes():
    def model_fn(features, labels, mode):
        weight = tf.get_variable("w", [1], initializer=tf.zeros_initializer())
        logits = features["x"][:, 0] * weight - 1.5
        loss = tf.losses.sigmoid_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
        return tf.sigmoid(logits), loss, train

    def given():
        return {"x": tf.constant(X)}, tf.constant([0, 0, 1, 1])

    model = learn.LogisticRegressor(model_fn, thresholds=[0.5, 0.9])
    model.fit(input_fn=given, steps=50)
    result = model.evaluate(input_fn=given, steps=1)
    assert result["accuracy/threshold_0.500000_mean"] >= 0.75 and result["auc"] == pytest.approx(1, abs=1e-4)
    assert result["labels/actual_label_mean"] == result["accuracy/baseline_label_mean"] == 0.5
    assert "recall/positive_threshold_0.900000_mean" in result


def test_what_these_models_cannot_do_is_refused():
    head = learn.regression_head()
    with pytest.raises(ValueError, match="LinearEstimator does not support SDCA optimizer"):
        learn.LinearEstimator([column()], head, optimizer=tf.contrib.linear_optimizer.SDCAOptimizer("id"))
    with pytest.raises(ValueError, match="Either linear_feature_columns or dnn_feature_columns must be"):
        learn.DNNLinearCombinedEstimator(head)
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined when"):
        learn.DNNLinearCombinedEstimator(head, dnn_feature_columns=[column()])
    model = learn.DNNEstimator(head, [2], [column()], activation_fn="other")
    with pytest.raises(ValueError, match="Activation name should be one of"):
        model.fit(input_fn=numbers, steps=1)
