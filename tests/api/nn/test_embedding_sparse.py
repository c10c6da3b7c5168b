"""Rows of tables combined by sparse ids, and what training does to the table."""

import numpy as np
import pytest

import tensorfleet as tf

TABLE = np.arange(20, dtype=np.float32).reshape(10, 2)
IDS = ([[0, 0], [0, 1], [2, 0]], np.array([1, 3, 7]), [3, 3])


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_gradients_stay_rows(session, resource, combiner):
    table = tf.get_variable("table", initializer=TABLE, use_resource=resource)
    result = tf.nn.embedding_lookup_sparse(table, tf.SparseTensor(*IDS), None, combiner=combiner)
    grad = tf.gradients(result, table)[0]
    assert isinstance(grad, tf.IndexedSlices)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(result))
    session.run(tf.global_variables_initializer())
    assert sorted(session.run(grad).indices.tolist()) == [1, 3, 7]
    session.run(step)
    changed = np.flatnonzero((session.run(table) != TABLE).any(axis=1))
    assert changed.tolist() == [1, 3, 7]


def test_partitioned_tables(session):
    table = tf.get_variable("table", initializer=TABLE, partitioner=tf.fixed_size_partitioner(3))
    result = tf.nn.embedding_lookup_sparse(
        table, tf.SparseTensor(*IDS), None, combiner="sum", partition_strategy="div"
    )
    safe = tf.contrib.layers.safe_embedding_lookup_sparse(table, tf.SparseTensor(*IDS), combiner="sum")
    session.run(tf.global_variables_initializer())
    expected = [(TABLE[1] + TABLE[3]).tolist(), [0, 0], TABLE[7].tolist()]
    assert session.run(result).tolist() == expected
    assert session.run(safe).tolist() == expected
    assert all(isinstance(g, tf.IndexedSlices) for g in tf.gradients(result, list(table)))


def test_the_default_combiner_is_the_mean(session):
    result = tf.nn.embedding_lookup_sparse(TABLE, tf.SparseTensor(*IDS), None)
    assert session.run(result)[0].tolist() == [4, 5]
    assert result.op.name == "embedding_lookup_sparse"


def test_sums_of_short_floats_are_long(session):
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 2], [2, 2])
    for dtype in (tf.float16, tf.bfloat16):
        result = tf.nn.embedding_lookup_sparse(tf.ones([3, 2], dtype), ids, None, combiner="sum")
        assert result.dtype == tf.float32
        assert session.run(result).tolist() == [[2.0, 2.0], [1.0, 1.0]]
