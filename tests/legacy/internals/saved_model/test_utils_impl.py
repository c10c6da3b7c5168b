"""Where the files of a model are, and signatures of training and evaluation."""

import os

import pytest
from tensorfleet.python.saved_model import loader_impl, signature_def_utils_impl, utils_impl

import tensorfleet as tf


def test_the_parts_of_a_model_have_their_places(tmp_path):
    assert utils_impl.get_variables_path(str(tmp_path)) == str(tmp_path / "variables" / "variables")
    assert utils_impl.get_or_create_variables_dir(tmp_path) == utils_impl.get_variables_dir(tmp_path)
    assert utils_impl.get_or_create_assets_dir(str(tmp_path)) == str(tmp_path / "assets")
    assert sorted(os.listdir(tmp_path)) == ["assets", "variables"]


@pytest.mark.parametrize("kind", ["train", "eval"])
def test_a_supervised_signature_has_losses_predictions_and_metrics(kind):
    make = getattr(signature_def_utils_impl, f"supervised_{kind}_signature_def")
    x, loss, metric = (
        tf.constant("a", name="x"),
        tf.constant(1.0, name="loss"),
        tf.constant(2.0, name="metric"),
    )
    signature = make({"x": x}, {"loss": loss}, metrics={"m/value": metric})
    assert signature.method_name.startswith(f"tensorflow/supervised/{kind}")
    assert {k: v.name for k, v in signature.outputs.items()} == {"loss": "loss:0", "m/value": "metric:0"}
    assert utils_impl.get_element_from_tensor_info(signature.inputs["x"]) is x
    with pytest.raises(ValueError, match="inputs cannot be None or empty"):
        make({}, {"loss": loss})


def test_signatures_are_checked_by_their_kind():
    signature = tf.saved_model.predict_signature_def({"x": tf.constant(1)}, {"y": tf.constant(2)})
    assert signature_def_utils_impl._is_valid_predict_signature(signature)
    assert not signature_def_utils_impl._is_valid_regression_signature(signature)


def test_the_files_of_a_model_are_found_by_their_tensors(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a")
    builder = tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Session() as sess:
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, tf.constant(str(vocabulary), name="file"))
        assets = tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)
        builder.add_meta_graph_and_variables(sess, ["tag"], assets_collection=assets)
    builder.save()
    meta = loader_impl.SavedModelLoader(str(tmp_path / "model")).get_meta_graph_def_from_tags(["tag"])
    result = loader_impl.get_asset_tensors(str(tmp_path / "model"), meta)
    assert result == {"file:0": str(tmp_path / "model" / "assets" / "words.txt")}
