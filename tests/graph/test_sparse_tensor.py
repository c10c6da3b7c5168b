"""Sparse tensors as things of the graph: built, fed, fetched, nested."""

import numpy as np
import pytest

import tensorfleet as tf


def sparse():
    return tf.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [3, 4])


def test_parts_are_named_under_one_scope():
    s = sparse()
    assert [t.name for t in (s.indices, s.values, s.dense_shape)] == [
        "SparseTensor/indices:0",
        "SparseTensor/values:0",
        "SparseTensor/dense_shape:0",
    ]
    assert s.indices.dtype == tf.int64 and s.dtype == tf.float32
    assert s.op is s.values.op and s.graph is tf.get_default_graph()
    assert s.shape.as_list() == s.get_shape().as_list() == [3, 4]
    assert str(s).startswith('SparseTensor(indices=Tensor("SparseTensor/indices:0", shape=(2, 2)')


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (([0, 1], [1.0], [3]), "must have rank 2"),
        (([[0, 1]], [1.0, 2.0], [3, 4]), "Dimensions 1 and 2 are not compatible"),
        (([[0, 1]], [1.0], [3, 4, 5]), "Dimensions 2 and 3 are not compatible"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, text):
    with pytest.raises(ValueError, match=text):
        tf.SparseTensor(*parts)


def test_fetching_gives_values_also_inside_structures(session):
    s = sparse()
    got = session.run({"a": [s, s.values]})
    assert isinstance(got["a"][0], tf.SparseTensorValue)
    assert got["a"][0].indices.tolist() == [[0, 1], [1, 2]] and got["a"][0].dense_shape.tolist() == [3, 4]
    assert s.eval().values.tolist() == [1, 2]


def test_feeding_takes_values_and_tuples(session):
    p = tf.sparse_placeholder(tf.float32, [None, 3], name="p")
    assert p.shape.as_list() == [None, 3] and p.indices.name == "p/indices:0"
    dense = tf.sparse_tensor_to_dense(p)
    for given in (tf.SparseTensorValue([[0, 1]], [5.0], [1, 3]), (np.array([[0, 1]]), [5.0], [1, 3])):
        assert session.run(dense, {p: given}).tolist() == [[0, 5, 0]]
    run = session.make_callable(dense, [p])
    assert run(([[0, 0]], [1.0], [1, 3])).tolist() == [[1, 0, 0]]
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        session.run(dense, {p: 3})
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        session.run(dense)


def test_partial_runs_take_sparse_feeds(session):
    p = tf.sparse_placeholder(tf.float32)
    dense = tf.sparse_tensor_to_dense(p)
    handle = session.partial_run_setup([dense], [p])
    assert session.partial_run(handle, dense, {p: ([[0]], [1.0], [2])}).tolist() == [1, 0]


def test_conversion_keeps_sparse_tensors_sparse():
    s = sparse()
    assert tf.convert_to_tensor_or_sparse_tensor(s) is s
    assert isinstance(
        tf.convert_to_tensor_or_sparse_tensor(tf.SparseTensorValue([[0]], [1], [1])), tf.SparseTensor
    )
    assert tf.convert_to_tensor_or_sparse_tensor([1.0]).dtype == tf.float32
    with pytest.raises(RuntimeError, match="Sparse dtype mismatch"):
        tf.convert_to_tensor_or_sparse_tensor(s, tf.int32)
    with pytest.raises(TypeError, match="Failed to convert object of type"):
        tf.convert_to_tensor(s)
    with pytest.raises(TypeError, match="Neither a SparseTensor nor SparseTensorValue"):
        tf.SparseTensor.from_value(3)


def test_general_functions_take_them(session):
    s = sparse()
    assert tf.is_tensor(s)
    assert session.run(tf.square(s)).values.tolist() == [1, 4]
    assert tf.cast(s, tf.int32).dtype == tf.int32
    assert session.run([tf.shape(s), tf.size(s), tf.rank(s)])[1:] == [12, 2]
    assert isinstance(tf.identity(s), tf.SparseTensor)
    assert len(tf.group(s).control_inputs) == 3
    assert session.run(tf.tuple([s]))[0].values.tolist() == [1, 2]
    assert len(tf.nest.flatten(s, expand_composites=True)) == 3
    assert tf.nest.map_structure(lambda t: t, s, expand_composites=True).shape.as_list() == [3, 4]
    assert {op.type for op in s.consumers()} >= {"Square", "Cast", "Identity"}
