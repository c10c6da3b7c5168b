"""Models in the format from before SavedModel."""

import os

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.contrib.session_bundle.exporter import load_session_bundle_from_path

exporter = tf.contrib.session_bundle.exporter
Signatures = tf.contrib.session_bundle.manifest_pb2.Signatures


@pytest.fixture
def model(session):
    """A tensor that is fed, one to fetch, and a session in which it can be."""
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.multiply(x, tf.Variable(3.0), name="y")
    session.run(tf.global_variables_initializer())
    return x, y


def made(x, y, **options):
    result = exporter.Exporter(tf.train.Saver(sharded=True))
    result.init(
        tf.get_default_graph().as_graph_def(),
        named_graph_signatures={
            "inputs": exporter.generic_signature({"data": x}),
            "outputs": exporter.generic_signature({"result": y}),
        },
        **options,
    )
    return result


def test_an_exported_model_gives_what_it_gave(session, model, tmp_path):
    path = made(*model).export(str(tmp_path), tf.constant(7), session)
    assert path == str(tmp_path / "00000007")
    assert {"export.meta", "checkpoint"} <= set(os.listdir(path))
    assert tf.train.latest_checkpoint(path) == f"{path}/export"
    loaded, meta = load_session_bundle_from_path(path)
    (envelope,) = meta.collection_def["serving_signatures"].any_list.value
    assert envelope.type_url == "type.googleapis.com/tensorflow.serving.Signatures"
    named = Signatures.FromString(envelope.value).named_signatures
    assert named["inputs"].generic_signature.map["data"].tensor_name == "x:0"
    with loaded:
        np.testing.assert_array_equal(loaded.run("y:0", {"x:0": [2.0]}), [6.0])


def test_an_init_op_runs_with_the_files_of_the_model(session, model, tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")
    name = tf.constant(str(tmp_path / "words.txt"))
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            name, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        ),
        1,
    )
    result = tf.identity(table.lookup(tf.constant(["b"])), "found")
    path = made(*model, init_op=tf.tables_initializer(), assets_collection=[name]).export(
        str(tmp_path / "models"), tf.constant(1), session
    )
    (tmp_path / "words.txt").unlink()
    with load_session_bundle_from_path(path)[0] as loaded:
        assert loaded.run(result.name) == [1]


def test_a_version_is_written_once_and_old_ones_go(session, model, tmp_path):
    one = made(*model)
    for step in (2, 1):
        one.export(
            str(tmp_path),
            tf.constant(step),
            session,
            lambda paths: [p for p in paths if p.export_version == 2],
        )
    assert os.listdir(tmp_path) == ["00000002"]
    with pytest.raises(RuntimeError, match="Duplicate export dir"):
        one.export(str(tmp_path), tf.constant(2), session)


def test_exporting_needs_init(session, model, tmp_path):
    with pytest.raises(RuntimeError, match="init must be called first"):
        exporter.Exporter(tf.train.Saver()).export(str(tmp_path), tf.constant(1), session)


def test_signatures_of_classes_and_numbers(model):
    x, y = model
    both = exporter.classification_signature(x, y, x).classification_signature
    assert (both.input.tensor_name, both.classes.tensor_name, both.scores.tensor_name) == (
        "x:0",
        "y:0",
        "x:0",
    )
    assert exporter.regression_signature(x, y).regression_signature.output.tensor_name == "y:0"
