"""What models give when they are exported, under the names inside TensorFlow."""

import os

import pytest
from tensorfleet.python.saved_model.model_utils import export_output, export_utils, mode_keys

import tensorfleet as tf


def test_outputs_of_training_are_named_by_what_they_are():
    loss, value = tf.constant(1.0), tf.constant(2.0)
    metrics = {("a", "b"): (value, tf.no_op()), "metrics": (value, value)}
    output = export_output.TrainOutput(loss, {"y": value}, metrics)
    assert output.loss == {"loss": loss} and output.predictions == {"predictions/y": value}
    update = output.metrics.pop("metrics/a/b/update_op")
    assert update.op.control_inputs[0].type == "NoOp"
    assert output.metrics == dict.fromkeys(["metrics/a/b/value", "metrics/value", "metrics/update_op"], value)
    signature = output.as_signature_def({"x": loss})
    assert signature.method_name == "tensorflow/supervised/training"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": 1}, "loss output value must be a Tensor"),
        ({"metrics": {"m": (1, None)}}, "m output value must be a Tensor"),
    ],
)
def test_outputs_that_are_no_tensors_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        export_output.EvalOutput(**given)


def test_outputs_by_mode():
    predictions = {"y": tf.constant(1.0)}
    (output,) = export_utils.export_outputs_for_mode(mode_keys.KerasModeKeys.TEST, None, predictions).values()
    assert isinstance(output, export_output.EvalOutput)
    result = export_utils.export_outputs_for_mode(mode_keys.EstimatorModeKeys.PREDICT, None, predictions)
    assert result["serving_default"].outputs == predictions
    with pytest.raises(ValueError, match="not found for mode"):
        export_utils.export_outputs_for_mode("rest")


def test_serving_leaves_out_what_is_for_training():
    x, y = tf.placeholder(tf.float32, name="x"), tf.constant(1.0)
    outputs = {"serving_default": export_output.PredictOutput(y), "train": export_output.TrainOutput(y)}
    assert list(export_utils.build_all_signature_defs(x, outputs)) == ["serving_default"]
    assert len(export_utils.build_all_signature_defs(x, outputs, serving_only=False)) == 2
    with pytest.raises(ValueError, match="must be a dict"):
        export_utils.build_all_signature_defs(x, None)


def test_folders_of_exports(tmp_path):
    folder = export_utils.get_timestamped_export_dir(str(tmp_path))
    assert os.path.basename(folder).isdigit()
    assert export_utils.get_temp_export_dir("a/12") == b"a/temp-12"


def test_values_by_mode():
    values = mode_keys.ModeKeyMap(train=1, predict=2)
    assert (values["train"], values["infer"], list(values), len(values)) == (1, 2, ["train", "predict"], 2)
    with pytest.raises(ValueError, match="Multiple keys"):
        mode_keys.ModeKeyMap(test=1, eval=2)
    with pytest.raises(ValueError, match="Invalid mode"):
        values["rest"]
