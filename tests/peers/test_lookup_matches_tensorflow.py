"""Tables: TensorFlow's values, errors, and files."""

import numpy as np
import pytest

import tensorfleet
from tests.peers.programs import agree, outcome, refuse_alike, walk, walk_errors

KEYS, VALUES = ["brain", "salad", "surgery"], np.array([0, 1, 2], np.int64)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    texts = {
        "words": "brain\nsalad\nsurgery\n",
        "pairs": "0\tbrain\n1\tsalad\n2\tsurgery\n",
        "twice": "a\na\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def static(tf, keys=KEYS, values=VALUES, default=-1, **kwargs):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values, **kwargs), default)


def vocabulary(tf, buckets=3, keys=KEYS, **kwargs):
    return tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(keys, VALUES), buckets, **kwargs
    )


TABLES = {
    "lookup": lambda tf: static(tf).lookup(tf.constant(["brain", "tarkus", "surgery"])),
    "matrix": lambda tf: static(tf).lookup(tf.constant([["brain"], ["tarkus"]])),
    "scalar": lambda tf: static(tf).lookup(tf.constant("salad")),
    "sparse": lambda tf: static(tf).lookup(tf.SparseTensor([[0, 1]], ["salad"], [1, 2])),
    "nothing": lambda tf: static(tf).lookup(tf.constant([], tf.string)),
    "size": lambda tf: static(tf).size(),
    "strings": lambda tf: static(tf, [1, 2], ["x", "y"], "z").lookup(tf.constant([1, 5])),
    "floats": lambda tf: static(tf, ["a"], [1.5], 0.0).lookup(tf.constant(["a", "b"])),
    "vocabulary": lambda tf: vocabulary(tf).lookup(tf.constant(["brain", "x", "y", "zz", ""])),
    "vocabulary size": lambda tf: vocabulary(tf).size(),
    "vocabulary of numbers": lambda tf: vocabulary(tf, keys=np.array([5, 6, 7])).lookup(
        tf.range(10, dtype=tf.int64)
    ),
    "buckets only": lambda tf: tf.lookup.StaticVocabularyTable(None, 7, tf.string).lookup(
        tf.constant(["a", "b"])
    ),
}


@walk(TABLES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "different": (
        lambda tf: static(tf, ["a", "a"], [1, 2]).size(),
        "HashTable has different value for same key",
    ),
    "lengths": (
        lambda tf: static(tf, ["a", "a", "b"], [1, 2]).size(),
        "Dimensions must be equal, but are 3 and 2",
    ),
    "buckets": (lambda tf: vocabulary(tf, 0), "`num_oov_buckets` must be > 0; use StaticHashTable."),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)


def from_file(path, key="WHOLE_LINE", value="LINE_NUMBER", kinds=("string", "int64"), **kwargs):
    def program(tf):
        index = {
            "WHOLE_LINE": tf.lookup.TextFileIndex.WHOLE_LINE,
            "LINE_NUMBER": tf.lookup.TextFileIndex.LINE_NUMBER,
        }
        types = [getattr(tf, k) for k in kinds]
        init = tf.lookup.TextFileInitializer(
            str(path), types[0], index.get(key, key), types[1], index.get(value, value), **kwargs
        )
        default = -1 if kinds[1] == "int64" else "UNK"
        table = tf.lookup.StaticHashTable(init, default)
        keys = ["salad", "x"] if kinds[0] == "string" else np.array([1, 9])
        return [table.lookup(tf.constant(keys)), table.size()]

    return program


def test_files(tensorflow, files):
    agree(tensorflow, from_file(files / "words"))
    agree(tensorflow, from_file(files / "words", vocab_size=2))
    agree(tensorflow, from_file(files / "words", "LINE_NUMBER", "WHOLE_LINE", ("int64", "string")))
    agree(tensorflow, from_file(files / "pairs", 1, 0))
    agree(tensorflow, from_file(files / "pairs", 0, 1, ("int64", "string")))


def test_wrong_files(tensorflow, files):
    refuse_alike(tensorflow, from_file(files / "none"), "No such file or directory")
    refuse_alike(tensorflow, from_file(files / "words", vocab_size=5), "expected 5 but got 3")
    refuse_alike(tensorflow, from_file(files / "words", 1, 0), "expected at least 2 got 1")
    refuse_alike(tensorflow, from_file(files / "pairs", 0, 1), "Field brain in line 0 is not a valid int64.")
    refuse_alike(tensorflow, from_file(files / "twice"), "has different value for same key. Key a has 0")
    refuse_alike(
        tensorflow, from_file(files / "words", "LINE_NUMBER"), "`key_dtype` must be int64 if `key_index`"
    )
    refuse_alike(tensorflow, from_file(files / "words", -3), "`key_index` should be >= -2")
    refuse_alike(tensorflow, from_file(files / "words", vocab_size=0), "`vocab_size` should be > 0")


def test_a_table_must_be_filled_first(tensorflow):
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            values = static(tf).lookup(tf.constant(["brain"]))
            with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
                session.run(values)


def test_the_graphs_have_the_same_names(tensorflow):
    results = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default() as graph:
            vocabulary(tf).lookup(tf.constant(["a"]))
            tf.tables_initializer()
            results.append([(o.name, o.type) for o in graph.get_operations()])
    assert results[0] == results[1]


def dense(tf, session, **kwargs):
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, **{"empty_key": 0, "deleted_key": -5, **kwargs}
    )

    def number(values):
        return tf.constant(values, tf.int64)

    session.run(table.insert(number([11, 12, 13]), number([0, 1, 2])))
    session.run(table.insert(number([12]), number([7])))
    session.run(table.remove(number([13, 99])))
    keys, values = session.run(table.export())
    assert keys.shape == values.shape
    return session.run([table.size(), table.lookup(number([11, 12, 13]))]), [np.sort(keys.ravel())]


def test_dense_tables(tensorflow):
    results = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            results.append(dense(tf, session, initial_num_buckets=8))
    for ours, theirs in zip(*results, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("kwargs", "phrase"),
    [
        ({"empty_key": 11}, "Using the empty_key as a table key is not allowed"),
        ({"deleted_key": 11}, "Using the deleted_key as a table key is not allowed"),
        ({"deleted_key": 0}, "Empty and deleted keys cannot be equal"),
    ],
)
def test_wrong_dense_tables(tensorflow, kwargs, phrase):
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
                dense(tf, session, **kwargs)


@pytest.mark.parametrize("ours_writes", [True, False])
def test_checkpoints_of_tables_are_exchanged(tensorflow, tmp_path, ours_writes):
    writer, reader = (tensorfleet, tensorflow) if ours_writes else (tensorflow, tensorfleet)
    path = str(tmp_path / "table")

    def table(tf):
        return tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, -1, empty_key=0, deleted_key=-5, name="counts", initial_num_buckets=8
        )

    with writer.Graph().as_default(), writer.Session() as session:
        output = table(writer)
        keys, values = (writer.constant(v, writer.int64) for v in ([5, 6], [50, 60]))
        session.run(output.insert(keys, values))
        writer.train.Saver().save(session, path, write_meta_graph=False)
    with reader.Graph().as_default(), reader.Session() as session:
        output = table(reader)
        reader.train.Saver().restore(session, path)
        result = session.run(output.lookup(reader.constant([5, 6, 7], reader.int64)))
    assert result.tolist() == [50, 60, -1]


def test_outcomes_are_compared_at_all():
    value, error = outcome(tensorfleet, lambda tf: tf.constant(1))
    assert value == 1 and error is None
