"""Embedding lookups, whole and in parts."""

import numpy as np
import pytest

import tensorfleet as tf

TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)


@pytest.mark.parametrize("resource", [False, True])
def test_rows_and_their_sparse_gradient(session, resource):
    table = tf.get_variable("table", initializer=TABLE, use_resource=resource)
    rows = tf.nn.embedding_lookup(table, [3, 1, 3])
    (g,) = tf.gradients(tf.reduce_sum(rows * rows), table)
    assert isinstance(g, tf.IndexedSlices)
    session.run(tf.global_variables_initializer())
    got, values, indices = session.run([rows, g.values, g.indices])
    np.testing.assert_array_equal(got, TABLE[[3, 1, 3]])
    np.testing.assert_array_equal(values, 2 * TABLE[[3, 1, 3]])
    np.testing.assert_array_equal(indices, [3, 1, 3])


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_table_in_parts_is_looked_up_as_one(session, strategy, count):
    if strategy == "mod":
        parts = [TABLE[i::count] for i in range(count)]
    else:
        parts = np.array_split(TABLE, count)
    ids = tf.placeholder(tf.int64, [None, 2])
    result = tf.nn.embedding_lookup([tf.constant(p) for p in parts], ids, partition_strategy=strategy)
    assert result.shape.as_list() == [None, 2, 4]
    wanted = np.array([[0, 9], [4, 5], [7, 7]])
    np.testing.assert_array_equal(session.run(result, {ids: wanted}), TABLE[wanted])


def test_a_partitioned_variable(session):
    table = tf.get_variable(
        "table",
        shape=[10, 4],
        initializer=tf.constant_initializer(1.0),
        partitioner=tf.fixed_size_partitioner(3),
    )
    rows = tf.nn.embedding_lookup(table, [0, 9, 4], partition_strategy="div")
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(rows), np.ones([3, 4]))


def test_long_rows_are_clipped(session):
    rows = session.run(tf.nn.embedding_lookup(tf.constant(TABLE), [0, 9], max_norm=2.0))
    np.testing.assert_allclose(np.linalg.norm(rows[1]), 2, rtol=1e-5)
    np.testing.assert_allclose(rows[1] / 2, TABLE[9] / np.linalg.norm(TABLE[9]), rtol=1e-5)


def test_names_are_those_of_tensorflow():
    tf.nn.embedding_lookup(tf.constant(TABLE), [1])
    names = [(op.name, op.type) for op in tf.get_default_graph().get_operations()]
    assert names[-2:] == [("embedding_lookup", "GatherV2"), ("embedding_lookup/Identity", "Identity")]


def test_errors(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 20 is not in \[0, 10\)"):
        session.run(tf.nn.embedding_lookup(tf.constant(TABLE), [1, 20]))
    with pytest.raises(ValueError, match="Unrecognized partition strategy"):
        tf.nn.embedding_lookup([TABLE, TABLE], [1], partition_strategy="x")
    with pytest.raises(ValueError, match="params must be specified"):
        tf.nn.embedding_lookup(None, [1])


def test_a_function_of_the_rows_is_computed_where_each_part_is(session):
    from tensorfleet.python.ops import embedding_ops

    table = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    ids = [[0, 5], [3, 3]]
    for parts in ([table], [table[0::2], table[1::2]]):
        result = embedding_ops._embedding_lookup_and_transform(
            parts, ids, transform_fn=lambda rows: tf.reduce_sum(rows, axis=1)
        )
        np.testing.assert_array_equal(session.run(result), table.sum(axis=1)[np.array(ids)])
    rows = embedding_ops.embedding_lookup_v2([table[:3], table[3:]], ids)
    np.testing.assert_array_equal(session.run(rows), table[np.array(ids)])


def test_rows_at_ragged_ids(session):
    ids = tf.ragged.constant([[0, 2], [1]])
    rows = tf.nn.embedding_lookup(tf.constant([[3.0, 4.0], [0.0, 1.0], [2.0, 0.0]]), ids, max_norm=1.0)
    assert session.run(rows).to_list() == [[[pytest.approx(0.6), pytest.approx(0.8)], [1, 0]], [[0, 1]]]
