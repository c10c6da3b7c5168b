"""tf.contrib.learn, as scripts from before tf.estimator use it."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.testing.cluster import free_addresses
from tensorfleet_legacy.estimator.training import start_server
from tests.support.tasks import output

learn = tf.contrib.learn
W = np.array([[1.0], [-2.0]], np.float32)
X = np.random.RandomState(0).rand(64, 2).astype(np.float32)
Y = X @ W
PROGRAM = Path(__file__).parent / "programs" / "experiment.py"


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def input_fn():
    return tf.constant(X), tf.constant(Y)


def model_fn(features, targets, mode, params):
    y = tf.layers.dense(features, 1, use_bias=False)
    outputs = {None: (learn.ProblemType.LINEAR_REGRESSION, {learn.PredictionKey.SCORES: y})}
    if mode == learn.ModeKeys.INFER:
        return learn.ModelFnOps(mode, {"y": y}, output_alternatives=outputs)
    loss = tf.losses.mean_squared_error(targets, y)
    train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    return learn.ModelFnOps(mode, {"y": y}, loss, train)


def made(folder):
    return learn.Estimator(model_fn, str(folder), params={"rate": 0.5})


def test_an_estimator_of_before(tmp_path):
    estimator = made(tmp_path)
    assert estimator.fit(input_fn=input_fn, steps=300) is estimator
    metrics = {"error": learn.MetricSpec(tf.metrics.mean_absolute_error, prediction_key="y")}
    result = estimator.evaluate(input_fn=input_fn, steps=1, metrics=metrics)
    assert sorted(result) == ["error", "global_step", "loss"] and result["error"] < 0.05
    assert sorted(estimator.evaluate(X, Y)) == ["global_step", "loss"]
    rows = list(estimator.predict(X))
    assert len(rows) == 64
    np.testing.assert_allclose(estimator.predict(X, as_iterable=False)["y"], Y, atol=0.2)
    estimator.partial_fit(X, Y)
    assert estimator.get_variable_value("global_step") == 301
    with pytest.raises(ValueError, match="Either x or input_fn"):
        estimator.fit()
    with pytest.raises(ValueError, match="both input_fn and x"):
        estimator.fit(X, input_fn=input_fn)


def test_a_model_function_may_give_a_tuple(tmp_path):
    def function(features, labels):
        train = tf.assign_add(tf.train.get_global_step(), 1)
        return features, tf.reduce_mean(labels), train

    estimator = learn.Estimator(function, str(tmp_path)).fit(X, Y, steps=2)
    assert estimator.evaluate(X, Y)["loss"] == pytest.approx(Y.mean(), rel=1e-4)
    with pytest.raises(ValueError, match="please return ModelFnOps"):
        learn.Estimator(lambda features, labels: 3, str(tmp_path)).fit(X, Y, steps=1)


def test_flowers_are_told_apart(tmp_path):
    labels = (X[:, 0] > X[:, 1]).astype(int) + (X.sum(1) > 1)
    columns = learn.infer_real_valued_columns_from_input(X)
    config = learn.RunConfig(tf_random_seed=1)
    classifier = learn.DNNClassifier(
        [10], columns, str(tmp_path), 3, optimizer=tf.train.AdamOptimizer(0.05), config=config
    )
    classifier.fit(x=X, y=labels, steps=200)
    assert classifier.evaluate(x=X, y=labels)["accuracy"] > 0.9
    classes = np.array(list(classifier.predict(X)))
    assert classes.shape == (64,) and (classes == labels).mean() > 0.9
    np.testing.assert_array_equal(classifier.predict_classes(X, as_iterable=False), classes)
    assert classifier.predict_proba(X, as_iterable=False).shape == (64, 3)
    with pytest.raises(ValueError, match="embedding_lr_multipliers is not supported"):
        learn.DNNClassifier([10], columns, embedding_lr_multipliers={"x": 1.0})
    with pytest.raises(ValueError, match="enable_centered_bias=True is not supported"):
        learn.LinearClassifier(columns, enable_centered_bias=True)


def test_regressors_give_numbers(tmp_path):
    columns = learn.infer_real_valued_columns_from_input({"x": X})
    for i, regressor in enumerate(
        (
            learn.LinearRegressor(columns, str(tmp_path / "0"), optimizer=tf.train.FtrlOptimizer(0.5)),
            learn.DNNRegressor([8], columns, str(tmp_path / "1")),
            learn.DNNLinearCombinedRegressor(
                str(tmp_path / "2"), None, columns, None, False, columns, None, [8]
            ),
        )
    ):
        regressor.fit({"x": X}, Y, steps=20)
        assert regressor.predict({"x": X}, as_iterable=False).shape == (64,), i
        assert len(list(regressor.predict_scores({"x": X}))) == 64


def test_wide_and_deep(tmp_path):
    columns = learn.infer_real_valued_columns_from_input({"x": X})
    model = learn.DNNLinearCombinedClassifier(
        str(tmp_path), linear_feature_columns=columns, dnn_feature_columns=columns, dnn_hidden_units=[4]
    )
    model.fit({"x": X}, (Y[:, 0] > 0).astype(int), steps=5)
    assert "auc" in model.evaluate({"x": X}, (Y[:, 0] > 0).astype(int))


def experiment(folder, **options):
    def serving():
        x = tf.placeholder(tf.float32, [None, 2])
        return learn.InputFnOps(x, None, {"x": x})

    return learn.Experiment(
        made(folder),
        train_input_fn=input_fn,
        eval_input_fn=input_fn,
        train_steps=30,
        eval_steps=1,
        export_strategies=[learn.make_export_strategy(serving, exports_to_keep=1)],
        **options,
    )


def test_an_experiment_trains_evaluates_and_exports(tmp_path):
    metrics = {"error": learn.MetricSpec(tf.contrib.metrics.streaming_mean_absolute_error, "y")}
    result, exported = learn.learn_runner.run(
        lambda output_dir: experiment(output_dir, eval_metrics=metrics, min_eval_frequency=1), str(tmp_path)
    )
    assert result["global_step"] == 30 and "error" in result
    (path,) = exported
    assert os.path.dirname(os.fsdecode(path)) == str(tmp_path / "export" / "Servo")
    answer = tf.contrib.predictor.from_saved_model(os.fsdecode(path))
    assert answer({"x": X})["scores"].shape == (64, 1)


class Counting(tf.train.SessionRunHook):
    def __init__(self):
        self.runs = 0

    def after_run(self, run_context, run_values):
        self.runs += 1


def test_an_experiment_may_be_given_more_hooks_and_other_exports(tmp_path):
    output, training, evaluating = experiment(str(tmp_path)), Counting(), Counting()
    output.extend_train_hooks([training])
    output.extend_eval_hooks([evaluating])
    assert [strategy.name for strategy in output.reset_export_strategies()] == ["Servo"]
    result, exported = output.local_run()
    assert (training.runs, evaluating.runs, exported, result["global_step"]) == (30, 1, [], 30)


def test_an_experiment_trains_and_evaluates_in_turns(tmp_path):
    seen = []

    def go_on(eval_results):
        seen.append(eval_results and eval_results["global_step"])
        return True

    output = experiment(str(tmp_path), train_steps_per_iteration=10)
    result, exported = output.continuous_train_and_eval(go_on)
    assert (seen, result["global_step"], len(exported)) == ([None, 10, 20, 30], 30, 1)


def test_an_experiment_evaluates_checkpoints_until_the_last(tmp_path):
    result, evaluating = experiment(str(tmp_path), eval_delay_secs=0), Counting()
    result.train(delay_secs=0)
    result.extend_eval_hooks([evaluating])
    result.continuous_eval(throttle_delay_secs=0)
    result.continuous_eval_on_train_data(
        throttle_delay_secs=0,
        continuous_eval_predicate_fn=lambda results, checkpoint_path: not checkpoint_path,
    )
    assert evaluating.runs == 2
    assert {"eval_continuous", "eval_continuous_on_train_data"} <= set(os.listdir(tmp_path))


def test_a_schedule_may_be_chosen(tmp_path):
    from tensorfleet_legacy.contrib.learn.experiment import Experiment

    assert tf.contrib.learn.python.learn.experiment.Experiment is Experiment is learn.Experiment
    runner = tf.contrib.learn.python.learn.learn_runner
    runner.run(experiment, str(tmp_path), schedule="train")
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-30")
    result, _ = runner.run(experiment, str(tmp_path), schedule="test")
    assert result["global_step"] == 31
    config = learn.RunConfig(model_dir=str(tmp_path))
    given = []
    runner.run(
        lambda run_config, hparams: given.append(hparams) or experiment(tmp_path),
        run_config=config,
        hparams=3,
    )
    assert given == [3]
    for arguments, error, message in (
        ((3,), TypeError, "not callable"),
        ((experiment,), ValueError, "Must specify an output directory"),
        ((lambda folder: 3, "x"), TypeError, "did not return an Experiment"),
        ((experiment, str(tmp_path), "sleep"), ValueError, "non-existent task sleep"),
    ):
        with pytest.raises(error, match=message):
            runner.run(*arguments)


def test_an_experiment_on_a_cluster(tmp_path, tasks):
    cluster = free_addresses(ps=1, worker=2)
    started = [
        tasks.start(PROGRAM, tmp_path, task=(cluster, job, index), environment="cloud")
        for job, index in (("ps", 0), ("worker", 0), ("worker", 1))
    ]
    for process in started:
        output(process)
    assert int(tf.train.load_variable(str(tmp_path), "global_step")) >= 100


def test_the_server_that_a_script_has_made_is_its_experiments(monkeypatch, tmp_path):
    cluster = free_addresses(ps=1, worker=2)
    for job in cluster:
        server = tf.train.Server(cluster, job, 0)
        task = {"cluster": cluster, "task": {"type": job, "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        assert start_server(learn.RunConfig(model_dir=str(tmp_path))) is server
        server.stop()


def test_examples_are_read_in_batches(tmp_path):
    path = str(tmp_path / "data.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(10):
            example = tf.train.Example()
            example.features.feature["n"].int64_list.value.append(i)
            writer.write(example.SerializeToString())
    with tf.Graph().as_default():
        spec = {"n": tf.FixedLenFeature([], tf.int64)}
        batch = learn.io.read_batch_features(
            path, 4, spec, tf.TFRecordReader, randomize_input=False, num_epochs=1
        )
        results = []
        with tf.train.MonitoredSession() as sess:
            while not sess.should_stop():
                results.append(sess.run(batch)["n"].tolist())
    assert results == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(ValueError, match="No files match"):
        learn.io.read_batch_features(str(tmp_path / "none"), 4, spec, tf.TFRecordReader)


def test_texts_become_rows_of_numbers():
    processor = learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(["the cat sat", "the dog sat down well"])))
    assert rows.tolist() == [[1, 2, 3, 0], [1, 4, 3, 5]]
    assert len(processor.vocabulary_) == 7
    assert next(processor.transform(["a cat"])).tolist() == [0, 2, 0, 0]
    assert list(processor.reverse([[2, 3]])) == ["cat sat"]
    rare = learn.preprocessing.VocabularyProcessor(3, min_frequency=1)
    assert np.array(list(rare.fit_transform(["x y", "y z", "y x"]))).tolist() == [
        [2, 1, 0],
        [1, 0, 0],
        [1, 2, 0],
    ]
    assert list(learn.preprocessing.tokenizer(["aB CDe it's"])) == [["aB", "CDe", "it's"]]


def test_input_functions_over_arrays_are_under_their_old_names_and_shuffle():
    x = np.arange(20, dtype=np.float32)
    read = tf.contrib.learn.io.numpy_input_fn({"x": x}, 2 * x, batch_size=20)
    features, labels = read()
    with tf.train.MonitoredSession() as sess:
        seen, doubled = sess.run([features["x"], labels])
    assert sorted(seen) == list(x) and seen.tolist() != x.tolist()
    assert doubled.tolist() == (2 * seen).tolist()


def test_gradients_of_ready_made_models_are_clipped(tmp_path):
    columns = learn.infer_real_valued_columns_from_input(X)
    for norm, name in ((None, "free"), (1e-3, "clipped")):
        model = learn.LinearRegressor(
            columns,
            str(tmp_path / name),
            optimizer=tf.train.GradientDescentOptimizer(1.0),
            gradient_clip_norm=norm,
        )
        model.fit(x=X, y=X.sum(1), steps=1)
        moved = np.concatenate(
            [np.ravel(model.get_variable_value(n)) for n in model.get_variable_names() if "weight" in n]
        )
        size = np.linalg.norm(moved)
        assert (size > 0.1) if norm is None else (0.5e-3 < size < 1.001e-3)
    deep = learn.DNNRegressor([4], columns, str(tmp_path / "deep"), gradient_clip_norm=1.0)
    deep.fit(x=X, y=X.sum(1), steps=2)


def test_estimators_without_a_configuration_need_no_chief_either(monkeypatch, tmp_path):
    cluster = {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    columns = [tf.contrib.layers.real_valued_column("x")]
    canned = tf.contrib.learn.LinearRegressor(columns, model_dir=str(tmp_path))
    own = tf.contrib.learn.Estimator(lambda features, labels: None, str(tmp_path))
    for config in (canned.config, own.config):
        assert config.is_chief and isinstance(config, tf.contrib.learn.RunConfig)
        assert config.num_worker_replicas == 2
