"""One object that trains, evaluates, predicts with and exports what a model function builds."""

import functools
import glob
import json
import os

import numpy as np
import pytest

import tensorfleet as tf

ModeKeys = tf.estimator.ModeKeys
W = np.array([[1.0], [-2.0]], np.float32)


def data(batches=None, size=8):
    x = np.random.RandomState(0).rand(size * 4, 2).astype(np.float32)
    result = tf.data.Dataset.from_tensor_slices(({"x": x}, x @ W)).batch(size)
    return result.repeat(batches)


def model_fn(features, labels, mode, params):
    y = tf.layers.dense(features["x"], 1, use_bias=False, name="d")
    if mode == ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y, "twice": 2 * y})
    loss = tf.losses.mean_squared_error(labels, y)
    train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, y)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield tf.estimator.Estimator(model_fn, str(tmp_path / "m"), params={"rate": 0.5})
    tf.summary.FileWriterCache.clear()


def events(folder):
    result = {}
    for path in sorted(glob.glob(os.path.join(folder, "events*"))):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                result.setdefault(value.tag, []).append((event.step, value))
    return result


def test_it_trains_evaluates_and_predicts(made):
    assert made.train(data, steps=300) is made
    result = made.evaluate(lambda: data(1))
    assert sorted(result) == ["error", "global_step", "loss"]
    assert result["global_step"] == 300 and result["loss"] < 1e-3
    np.testing.assert_allclose(made.get_variable_value("d/kernel"), W, atol=0.1)
    assert made.get_variable_names() == ["d/kernel", "global_step"]
    assert made.latest_checkpoint().endswith("model.ckpt-300")
    rows = list(made.predict(lambda: data(1)))
    assert len(rows) == 32 and sorted(rows[0]) == ["twice", "y"] and rows[0]["y"].shape == (1,)
    np.testing.assert_allclose(rows[3]["twice"], 2 * rows[3]["y"])


def test_steps_are_added_and_max_steps_is_an_end(made):
    made.train(data, steps=3)
    made.train(data, steps=3)
    assert made.get_variable_value("global_step") == 6
    made.train(data, max_steps=8)
    assert made.get_variable_value("global_step") == 8
    saved = made.latest_checkpoint()
    made.train(data, max_steps=7)
    assert made.latest_checkpoint() == saved


def test_training_ends_with_the_input(made):
    made.train(lambda: data(2))
    assert made.get_variable_value("global_step") == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 1, "max_steps": 1}, "both steps and max_steps"),
        ({"steps": 0}, "steps > 0"),
        ({"max_steps": -1}, "max_steps > 0"),
    ],
)
def test_steps_are_checked(made, arguments, message):
    with pytest.raises(ValueError, match=message):
        made.train(data, **arguments)


def test_the_run_is_in_the_events(made):
    made = tf.estimator.Estimator(
        model_fn,
        params={"rate": 0.1},
        config=tf.estimator.RunConfig(
            made.model_dir, save_summary_steps=2, save_checkpoints_steps=4, keep_checkpoint_max=2
        ),
    )
    made.train(data, steps=10)
    assert len(glob.glob(os.path.join(made.model_dir, "model.ckpt-*.index"))) == 2
    result = made.evaluate(data, steps=3, name="held_out")
    tf.summary.FileWriterCache.clear()
    # A summary is of the step at whose end it is written.
    assert [step for step, _ in events(made.model_dir)["loss"]] == [1, 3, 5, 7, 9]
    assert made.eval_dir("held_out") == os.path.join(made.model_dir, "eval_held_out")
    output = events(made.eval_dir("held_out"))
    ((step, value),) = output["error"]
    assert step == 10 and value.simple_value == pytest.approx(result["error"])
    assert "global_step" not in output


def test_hooks_and_listeners_are_called(made):
    seen = []

    class Hook(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append("run")

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            seen.append(("saved", int(global_step_value)))

    made.train(data, hooks=[Hook()], steps=2, saving_listeners=[Listener()])
    assert seen == [("saved", 0), "run", "run", ("saved", 2)]
    with pytest.raises(TypeError, match="SessionRunHook"):
        made.train(data, hooks=[3])
    with pytest.raises(TypeError, match="CheckpointSaverListener"):
        made.train(data, saving_listeners=[3])


def test_prediction_of_some_keys_by_batches(made):
    made.train(data, steps=1)
    batches = list(made.predict(lambda: data(1), predict_keys=["y"], yield_single_examples=False))
    assert [list(b) for b in batches] == [["y"]] * 4 and batches[0]["y"].shape == (8, 1)
    with pytest.raises(ValueError, match="at least one output"):
        next(made.predict(data, predict_keys=["z"]))


def test_a_prediction_that_is_left_leaves_the_graph_as_it_was(made):
    made.train(data, steps=1)
    before = tf.get_default_graph()
    first = made.predict(data)
    next(first)
    assert tf.get_default_graph() is before
    next(made.predict(data))
    first.close()
    assert tf.get_default_graph() is before


def test_before_training_the_model_is_initialized(made):
    assert made.evaluate(data, steps=1)["global_step"] == 0
    assert len(list(made.predict(lambda: data(1)))) == 32
    with pytest.raises(ValueError, match="Could not find trained model"):
        made.get_variable_names()
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        made.export_saved_model(made.model_dir, lambda: None)


def test_a_checkpoint_may_be_chosen(made):
    made = tf.estimator.Estimator(
        model_fn,
        params={"rate": 0.1},
        config=tf.estimator.RunConfig(made.model_dir, save_checkpoints_steps=2),
    )
    made.train(data, steps=4)
    first = os.path.join(made.model_dir, "model.ckpt-2")
    assert made.evaluate(data, 1, checkpoint_path=first)["global_step"] == 2


def test_model_functions_get_what_they_name(tmp_path):
    class Model:
        def __call__(self, features, labels, mode, params, config):
            return model_fn(features, labels, mode, {**params, "rate": float(config.task_id)})

        def method(self, features, labels, mode):
            return model_fn(features, labels, mode, {"rate": 0.0})

    def partly(extra, features, labels, mode):
        return model_fn(features, labels, mode, {"rate": extra})

    functions = [
        Model(),
        Model().method,
        functools.partial(partly, 0.0),
        functools.partial(model_fn, params={"rate": 0}),
    ]
    for i, function in enumerate(functions):
        estimator = tf.estimator.Estimator(function, str(tmp_path / str(i)))
        assert estimator.train(data, steps=1).get_variable_value("global_step") == 1
    spec = estimator.model_fn
    with tf.Graph().as_default():
        tf.train.create_global_step()
        assert spec({"x": tf.ones([1, 2])}, None, ModeKeys.PREDICT, None).mode == "infer"


def test_what_a_model_function_gives_and_gets_is_checked(tmp_path):
    estimator = tf.estimator.Estimator(lambda features, labels: None, str(tmp_path))
    with pytest.raises(ValueError, match="should return an EstimatorSpec"):
        estimator.train(data, steps=1)
    estimator = tf.estimator.Estimator(lambda features: None, str(tmp_path))
    with pytest.raises(ValueError, match="does not take labels"):
        estimator.train(data, steps=1)


@pytest.mark.parametrize(
    ("function", "params", "message"),
    [
        (lambda labels: None, None, "must include features"),
        (lambda features: None, {"a": 1}, "does not include params"),
        (lambda features, colour: None, None, "not expected args: .*colour"),
        (None, None, "model_fn must be provided"),
    ],
)
def test_model_functions_are_checked(function, params, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        tf.estimator.Estimator(function, str(tmp_path), params=params)


def test_input_functions_give_tensors_or_features_alone_and_take_what_they_name(tmp_path):
    asked = {}

    def function(features, mode):
        loss = tf.reduce_mean(features)
        train = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, features, loss, train)

    def input_fn(mode, params, config):
        asked.update(mode=mode, params=params, config=config)
        return tf.ones([2])

    estimator = tf.estimator.Estimator(function, str(tmp_path))
    estimator.train(input_fn, steps=1)
    assert asked["mode"] == "train" and asked["params"] == {} and asked["config"].model_dir == str(tmp_path)
    assert estimator.evaluate(input_fn, steps=1) == {"loss": 1.0, "global_step": 1}
    assert next(estimator.predict(input_fn)) == 1.0
    with pytest.raises(ValueError, match="len 2 tuple"):
        estimator.train(lambda: (1, 2, 3), steps=1)


def test_a_subclass_may_not_change_what_an_estimator_does(tmp_path):
    class Mine(tf.estimator.Estimator):
        def train(self):
            pass

    with pytest.raises(ValueError, match="cannot override members.*train"):
        Mine(lambda features: None, str(tmp_path))


def test_a_folder_is_given_once(tmp_path):
    config = tf.estimator.RunConfig(str(tmp_path))
    assert tf.estimator.Estimator(lambda features: None, config=config).model_dir == str(tmp_path)
    with pytest.raises(ValueError, match="different values"):
        tf.estimator.Estimator(lambda features: None, "elsewhere", config)
    with pytest.raises(ValueError, match="instance of `RunConfig`"):
        tf.estimator.Estimator(lambda features: None, config=3)


def test_variables_begin_with_those_of_another_run(made, tmp_path):
    made.train(data, steps=300)
    settings = tf.estimator.WarmStartSettings(made.model_dir, vars_to_warm_start=".*kernel")
    for origin in (made.model_dir, settings):
        other = tf.estimator.Estimator(model_fn, params={"rate": 0.0}, warm_start_from=origin)
        other.train(data, steps=1)
        np.testing.assert_array_equal(
            other.get_variable_value("d/kernel"), made.get_variable_value("d/kernel")
        )
        assert other.get_variable_value("global_step") == 1
    with pytest.raises(ValueError, match="warm_start_from must be"):
        tf.estimator.Estimator(model_fn, params={}, warm_start_from=3)


def test_a_loss_that_is_not_a_number_ends_the_training(tmp_path):
    def function(features, mode):
        loss = tf.constant(np.nan)
        train = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    estimator = tf.estimator.Estimator(function, str(tmp_path))
    with pytest.raises(tf.train.NanLossDuringTrainingError):
        estimator.train(lambda: tf.ones([1]), steps=2)


def test_parameter_servers_hold_the_variables(tmp_path, monkeypatch):
    cluster = {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), params={})
    with tf.Graph().as_default(), tf.device(estimator._device_fn):
        v = [tf.get_variable(f"v{i}", []) for i in range(3)]
        c = tf.constant(1)
    assert [x.device for x in v] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert c.device == "/job:worker/task:0"
    monkeypatch.setenv("TF_CONFIG", "")
    assert tf.estimator.Estimator(model_fn, str(tmp_path), params={})._device_fn is None


def test_a_library_may_put_a_static_function_in_place_of_the_check(monkeypatch, tmp_path):
    name = "_assert_members_are_not_overridden"
    monkeypatch.setattr(tf.estimator.Estimator, name, staticmethod(lambda _: None))

    class Own(tf.estimator.Estimator):
        def train(self, *args, **kwargs):
            return "mine"

    assert Own(lambda features: None, str(tmp_path)).train() == "mine"
