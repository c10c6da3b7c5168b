"""Feature columns give TensorFlow's numbers, with variables of TensorFlow's names."""

import warnings

import numpy as np
import pytest

import tensorfleet


def features(tf):
    words = [[0, 0], [1, 0], [1, 1]], ["a", "b", "zz"], [2, 2]
    return {
        "x": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
        "y": tf.constant([[0.5], [1.5]]),
        "id": tf.constant([[1], [4]]),
        "word": tf.SparseTensor(*words),
        "other": tf.constant([["q"], ["r"]]),
        "w": tf.SparseTensor(words[0], [0.5, 2.0, 3.0], words[2]),
    }


class Columns:
    """The same columns in either library."""

    def __init__(self, tf):
        fc = tf.feature_column
        self.number, self.pair = (
            fc.numeric_column("y", normalizer_fn=lambda v: v * 2),
            fc.numeric_column("x", 2),
        )
        self.bucket = fc.bucketized_column(fc.numeric_column("y"), [0.0, 1.0, 2.0])
        self.id = fc.categorical_column_with_identity("id", 5)
        self.hashed = fc.categorical_column_with_hash_bucket("word", 10)
        self.listed = fc.categorical_column_with_vocabulary_list("word", ["a", "b"], num_oov_buckets=2)
        self.crossed = fc.crossed_column(["word", self.bucket], 20)
        self.keyed = fc.crossed_column(["word", "other"], 20, hash_key=7)
        self.weighted = fc.weighted_categorical_column(
            fc.categorical_column_with_vocabulary_list("word", ["a", "b", "c"]), "w"
        )


def layer(tf, *columns):
    return tf.feature_column.input_layer(features(tf), list(columns))


PROGRAMS = {
    "numbers": lambda tf, fc, c: layer(tf, c.number, c.pair),
    "buckets": lambda tf, fc, c: layer(tf, c.bucket),
    "counts": lambda tf, fc, c: layer(tf, *map(fc.indicator_column, (c.id, c.hashed))),
    "vocabulary": lambda tf, fc, c: layer(tf, fc.indicator_column(c.listed)),
    "crosses": lambda tf, fc, c: layer(tf, *map(fc.indicator_column, (c.crossed, c.keyed))),
    "weighted counts": lambda tf, fc, c: layer(tf, fc.indicator_column(c.weighted)),
    "embedding": lambda tf, fc, c: layer(tf, c.pair, fc.embedding_column(c.hashed, 3)),
    "sum": lambda tf, fc, c: layer(tf, fc.embedding_column(c.listed, 2, combiner="sum")),
    "clipped": lambda tf, fc, c: layer(tf, fc.embedding_column(c.id, 2, max_norm=0.5)),
    "weighted embedding": lambda tf, fc, c: layer(tf, fc.embedding_column(c.weighted, 2)),
    "frozen": lambda tf, fc, c: layer(tf, fc.embedding_column(c.crossed, 2, trainable=False)),
    "shared": lambda tf, fc, c: layer(
        tf,
        *fc.shared_embedding_columns([c.hashed, fc.categorical_column_with_hash_bucket("other", 10)], 2),
    ),
    "linear": lambda tf, fc, c: fc.linear_model(
        features(tf), [c.pair, c.hashed, c.bucket, c.crossed], units=2
    ),
    "linear mean": lambda tf, fc, c: fc.linear_model(
        features(tf), [c.weighted, c.listed], sparse_combiner="mean"
    ),
    "linear sqrtn": lambda tf, fc, c: fc.linear_model(
        features(tf), [c.weighted, c.id], sparse_combiner="sqrtn"
    ),
}


def outcome(tf, program):
    with tf.Graph().as_default(), tf.Session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow's own use of what it deprecated
        result = PROGRAMS[program](tf, tf.feature_column, Columns(tf))
        variables = tf.global_variables()
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for v in variables:
            shape = v.shape.as_list()
            v.load((np.arange(np.prod(shape)).reshape(shape) / 10 + 0.1).astype(np.float32), session)
        names = [v.op.name for v in variables], [v.op.name for v in tf.trainable_variables()]
        return names, session.run(result)


@pytest.mark.parametrize("program", PROGRAMS)
def test_columns_give_the_same_numbers_and_names(tensorflow, program):
    names, ours = outcome(tensorfleet, program)
    their_names, theirs = outcome(tensorflow, program)
    assert names == their_names
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_parsing_specifications_are_the_same(tensorflow):
    def spec(tf):
        c, fc = Columns(tf), tf.feature_column
        columns = [c.pair, c.bucket, c.keyed, fc.embedding_column(c.weighted, 2), fc.indicator_column(c.id)]
        return sorted(f"{k}: {v}" for k, v in fc.make_parse_example_spec(columns).items())

    assert spec(tensorfleet) == spec(tensorflow)
