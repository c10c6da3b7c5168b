"""Rows of tables combined by sparse ids: TensorFlow's values, gradients and errors."""

import numpy as np

from tests.peers.programs import agree, refuse_alike, walk, walk_errors

TABLE = np.arange(20, dtype=np.float32).reshape(10, 2) + 1
IDS = ([[0, 0], [0, 1], [1, 0], [3, 2]], np.array([1, 3, 0, 7]), [4, 3])
WEIGHTS = (IDS[0], np.array([1.0, 2.0, 0.5, 3.0], np.float32), IDS[2])
ODD = ([[0, 0], [0, 1], [1, 0], [2, 1], [3, 2]], np.array([1, -1, 0, -5, 7]), [5, 3])
ODD_WEIGHTS = (ODD[0], np.array([1.0, 2.0, 0.0, 2.0, 3.0], np.float32), ODD[2])
DEEP = ([[0, 0, 0], [0, 1, 0], [1, 0, 1]], np.array([1, 2, 3]), [2, 3, 2])
COMBINERS = ("sum", "mean", "sqrtn")


def lookup(weights=None, table=None, **kwargs):
    def program(tf):
        params = tf.constant(TABLE) if table is None else table(tf)
        weighed = None if weights is None else tf.SparseTensor(*weights)
        return tf.nn.embedding_lookup_sparse(params, tf.SparseTensor(*IDS), weighed, **kwargs)

    return program


def safe(ids=ODD, weights=None, **kwargs):
    def program(tf):
        weighed = None if weights is None else tf.SparseTensor(*weights)
        return tf.nn.safe_embedding_lookup_sparse(
            [tf.constant(TABLE)], tf.SparseTensor(*ids), weighed, **kwargs
        )

    return program


def gradient(combiner, weights=None):
    def program(tf):
        table = tf.constant(TABLE)
        weighed = (
            None if weights is None else tf.SparseTensor(weights[0], tf.constant(weights[1]), weights[2])
        )
        result = tf.nn.embedding_lookup_sparse(table, tf.SparseTensor(*IDS), weighed, combiner=combiner)
        xs = [table] if weighed is None else [table, weighed.values]
        return [tf.convert_to_tensor(g) for g in tf.gradients(result * tf.constant([[1.0, 2.0]]), xs)]

    return program


def halves(tf):
    return [tf.constant(TABLE[:5]), tf.constant(TABLE[5:])]


VALUES = {
    **{f"{c} {bool(w)}": lookup(w, combiner=c) for c in COMBINERS for w in (None, WEIGHTS)},
    "integer weights": lookup((IDS[0], np.array([1, 2, 3, 4]), IDS[2]), combiner="mean"),
    "parts div": lookup(None, halves, partition_strategy="div", combiner="sum"),
    "parts mod": lookup(WEIGHTS, halves, combiner="mean"),
    "max_norm": lookup(combiner="mean", max_norm=2.0),
    **{
        f"safe {c} {bool(w)} {d}": safe(weights=w, combiner=c, default_id=d)
        for c in COMBINERS
        for w in (None, ODD_WEIGHTS)
        for d in (None, 3)
    },
    "safe deep": safe(DEEP, combiner="sum"),
    **{f"gradient {c} {bool(w)}": gradient(c, w) for c in COMBINERS for w in (None, WEIGHTS)},
}


@walk(VALUES)
def test_values(tensorflow, program):
    agree(tensorflow, program)


ERRORS = {
    "combiner": (lookup(combiner="foo"), "combiner must be one of 'mean', 'sqrtn' or 'sum'"),
    "ids": (
        lambda tf: tf.nn.embedding_lookup_sparse(TABLE, TABLE, None, combiner="sum"),
        "sp_ids must be Sparse",
    ),
    "weights": (
        lambda tf: tf.nn.embedding_lookup_sparse(TABLE, tf.SparseTensor(*IDS), TABLE, combiner="sum"),
        "sp_weights must be either None or SparseTensor",
    ),
    "safe": (
        lambda tf: tf.nn.safe_embedding_lookup_sparse(None, tf.SparseTensor(*IDS)),
        "Missing embedding_weights",
    ),
}


@walk_errors(ERRORS)
def test_errors(tensorflow, program, phrase):
    refuse_alike(tensorflow, program, phrase)
