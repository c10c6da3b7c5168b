"""SavedModels are exchanged with TensorFlow in both directions."""

import os

import numpy as np
import pytest

import tensorfleet as tf

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def write(lib, path: str, vocabulary: str) -> np.ndarray:
    """A model with a placeholder, a small network and an asset, saved by `lib`; gives its output for X."""
    with lib.Graph().as_default() as g, lib.Session(graph=g) as sess:
        x = lib.placeholder(lib.float32, [None, 2], name="x")
        w = lib.get_variable("w", [2, 3], initializer=lib.constant_initializer([1, 2, 3, 4, 5, 6]))
        b = lib.get_variable("b", [3], initializer=lib.zeros_initializer(), use_resource=True)
        y = lib.nn.relu(lib.matmul(x, w) + b, name="y")
        asset = lib.constant(vocabulary, name="vocabulary")
        lib.add_to_collection(lib.GraphKeys.ASSET_FILEPATHS, asset)
        seen = lib.get_variable("seen", [], lib.string, initializer=lib.constant_initializer(""))
        main = lib.assign(seen, asset, name="main").op
        sess.run(lib.global_variables_initializer())
        sess.run(lib.assign(w, w + 0.5))
        builder = lib.saved_model.builder.SavedModelBuilder(path)
        builder.add_meta_graph_and_variables(
            sess,
            [lib.saved_model.tag_constants.SERVING],
            {
                "serving_default": lib.saved_model.signature_def_utils.predict_signature_def(
                    {"x": x}, {"y": y}
                )
            },
            assets_collection=lib.get_collection(lib.GraphKeys.ASSET_FILEPATHS),
            main_op=main,
        )
        builder.save()
        return sess.run(y, {x: X})


def read(lib, path: str) -> tuple[np.ndarray, str]:
    with lib.Graph().as_default() as g, lib.Session(graph=g) as sess:
        meta = lib.saved_model.loader.load(sess, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        out = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: X})
        return out, sess.run("seen:0").decode()


@pytest.mark.parametrize("ours_writes", [True, False])
def test_a_model_written_by_one_is_read_by_the_other(tensorflow, tmp_path, ours_writes):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\n")
    writer, reader = (tf, tensorflow) if ours_writes else (tensorflow, tf)
    path = str(tmp_path / "m")
    expected = write(writer, path, str(vocabulary))
    out, asset = read(reader, path)
    np.testing.assert_allclose(out, expected)
    assert asset == os.path.join(path, "assets", "words.txt")


def test_the_files_hold_the_same_collections(tensorflow, tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\n")
    metas = []
    for i, lib in enumerate((tf, tensorflow)):
        write(lib, str(tmp_path / str(i)), str(vocabulary))
        with lib.Graph().as_default() as g, lib.Session(graph=g) as sess:
            metas.append(lib.saved_model.loader.load(sess, ["serve"], str(tmp_path / str(i))))
    ours, theirs = metas
    for key in ("saved_model_assets", "saved_model_main_op", "asset_filepaths"):
        expected = theirs.collection_def[key].SerializeToString(deterministic=True)
        assert ours.collection_def[key].SerializeToString(deterministic=True) == expected
    signature = theirs.signature_def["serving_default"].SerializeToString(deterministic=True)
    assert ours.signature_def["serving_default"].SerializeToString(deterministic=True) == signature
