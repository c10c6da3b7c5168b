"""`tf.estimator.tpu` without a TPU: the functions are told their batch size, specs have metrics as functions."""

import numpy as np
import pytest

import tensorfleet as tf


def input_fn(params):
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x)).batch(params["batch_size"]).repeat(20)


def squares(labels, y):
    return {"squares": tf.metrics.mean_squared_error(labels, y)}


def model_fn(features, labels, mode, params):
    y = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        size = tf.fill(tf.shape(y), params["batch_size"])
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions={"y": y, "size": size})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(params["rate"]))
    train = optimizer.minimize(loss, tf.train.get_global_step())
    count = tf.get_variable("made", [], tf.int64, tf.zeros_initializer(), trainable=False)
    return tf.contrib.tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=train,
        eval_metrics=(squares, {"labels": labels, "y": y}),
        host_call=(lambda by: [count.assign_add(by)], [tf.constant(1, tf.int64)]),
    )


def made(folder, function=model_fn, **arguments):
    config = tf.contrib.tpu.RunConfig(
        model_dir=str(folder), save_checkpoints_steps=50, tpu_config=tf.contrib.tpu.TPUConfig(num_shards=8)
    )
    given = {"use_tpu": False, "train_batch_size": 4, "eval_batch_size": 6, "predict_batch_size": 3}
    return tf.contrib.tpu.TPUEstimator(
        model_fn=function, config=config, params={"rate": 0.3}, **(given | arguments)
    )


def test_it_trains_evaluates_and_predicts_with_the_batch_size_of_each(tmp_path):
    estimator = made(tmp_path)
    estimator.train(input_fn, max_steps=60)
    assert estimator.get_variable_value("made") == 60
    result = estimator.evaluate(input_fn, steps=2)
    assert result["squares"] < 0.1 and result["global_step"] == 60
    first = next(estimator.predict(input_fn))
    assert first["size"] == [3] and first["y"] < -2
    assert "batch_size" not in estimator.params


def test_the_names_are_the_same_everywhere():
    from tensorfleet_legacy.estimator import tpu_estimator as without_tpus

    assert tf.estimator.tpu.TPUEstimator is tf.contrib.tpu.TPUEstimator is without_tpus.TPUEstimator
    assert tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2 == 3
    assert tf.contrib.tpu.TPUConfig().iterations_per_loop == 2


def test_a_config_keeps_its_tpu_settings_when_it_is_replaced(tmp_path):
    config = tf.estimator.tpu.RunConfig(model_dir=str(tmp_path), master="grpc://there:1")
    changed = config.replace(tpu_config=tf.estimator.tpu.TPUConfig(5), save_summary_steps=7)
    assert (changed.tpu_config.iterations_per_loop, changed.save_summary_steps) == (5, 7)
    assert (config.tpu_config.iterations_per_loop, config.master, config.cluster) == (
        2,
        "grpc://there:1",
        None,
    )


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="Cannot find any TPU cores.*use_tpu=False"):
        made(tmp_path, use_tpu=True).train(input_fn, max_steps=1)
    with pytest.raises(ValueError, match="required by TPUEstimator to pass batch size"):
        made(tmp_path).train(lambda: input_fn({"batch_size": 1}), max_steps=1)
    with pytest.raises(ValueError, match="`config` must be provided with type"):
        tf.estimator.tpu.TPUEstimator(model_fn, config=tf.estimator.RunConfig(), use_tpu=False)
    with pytest.raises(ValueError, match="reserved keys"):
        tf.estimator.tpu.TPUEstimator(
            model_fn, config=tf.estimator.tpu.RunConfig(), params={"batch_size": 1}, use_tpu=False
        )
    with pytest.raises(ValueError, match="eval_metrics should be a tuple"):
        tf.estimator.tpu.TPUEstimatorSpec("eval", loss=1, eval_metrics=squares)
