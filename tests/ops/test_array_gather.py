"""Gather, scatter and their gradients: rows stay rows, and bad indices are named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.graph.kernels import Kernel, run_numpy
from tensorfleet.runtime.devices import load_jax
from tests.support.sessions import run


def compiled(op, values, moving):
    """The op's XLA life with the inputs in `moving` traced and the others fixed."""
    jax, jnp = load_jax()

    def f(args):
        full = list(values)
        for i, a in zip(moving, args, strict=True):
            full[i] = a
        return Kernel(op).call(jnp, full, lambda *a: None)

    return jax.jit(f)([values[i] for i in moving])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_gather_gives_what_numpy_takes(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    index_shape = data.draw(st.lists(st.integers(0, 3), max_size=2))
    count = int(np.prod(index_shape))
    entries = st.integers(0, shape[axis] - 1)
    flat = data.draw(st.lists(entries, min_size=count, max_size=count))
    indices = np.array(flat, np.int32).reshape(index_shape)
    params = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    with tf.Graph().as_default():
        y = tf.gather(tf.constant(params), tf.constant(indices), axis=axis)
        values = [params, indices, np.array(axis, np.int32)]
        expected = np.take(params, indices, axis=axis)
        assert y.shape.as_list() == list(expected.shape)
        np.testing.assert_array_equal(run_numpy(y.op, values)[0], expected)
        np.testing.assert_array_equal(compiled(y.op, values, [0, 1])[0], expected)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_scatter_nd_adds_and_gather_nd_reads_back(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    depth = data.draw(st.integers(1, len(shape)))
    rows = data.draw(st.integers(0, 5))
    picks = [[data.draw(st.integers(0, shape[k] - 1)) for k in range(depth)] for _ in range(rows)]
    indices = np.array(picks, np.int32).reshape(rows, depth)
    updates = 1 + np.arange(rows * np.prod(shape[depth:]), dtype=np.float32).reshape(rows, *shape[depth:])
    expected = np.zeros(shape, np.float32)
    for where, row in zip(picks, updates, strict=True):
        expected[tuple(where)] += row
    with tf.Graph().as_default():
        y = tf.scatter_nd(tf.constant(indices), tf.constant(updates), shape)
        back = tf.gather_nd(y, tf.constant(indices))
        size = np.array(shape, np.int32)
        assert y.shape.as_list() == shape
        np.testing.assert_allclose(run_numpy(y.op, [indices, updates, size])[0], expected)
        np.testing.assert_allclose(compiled(y.op, [indices, updates, size], [0, 1])[0], expected)
        wanted = expected[tuple(indices.T)]
        np.testing.assert_allclose(run_numpy(back.op, [expected, indices])[0], wanted)
        np.testing.assert_allclose(compiled(back.op, [expected, indices], [0, 1])[0], wanted)


def test_gather_in_batches():
    params = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    indices = np.array([[3, 0], [1, 1]])
    y = tf.gather(tf.constant(params), indices, batch_dims=1)
    z = tf.batch_gather(tf.constant(params), indices)
    expected = np.stack([params[b][indices[b]] for b in range(2)])
    assert y.shape.as_list() == [2, 2, 3]
    for got in run([y, z]):
        np.testing.assert_array_equal(got, expected)


def test_gather_out_of_range_names_the_index(session):
    params = tf.placeholder(tf.float32, [None])
    indices = tf.placeholder(tf.int32, [None])
    y = tf.gather(params, indices)
    for _ in range(4):  # interpreted at first, then compiled
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[2\] = 7 is not in \[0, 5\)"):
            session.run(y, {params: np.ones(5), indices: [0, 1, 7]})
        np.testing.assert_array_equal(session.run(y, {params: np.ones(5), indices: [0, 1, 4]}), np.ones(3))


def test_gather_nd_out_of_range_names_the_index():
    y = tf.gather_nd(tf.placeholder_with_default(np.ones((2, 3), np.float32), [2, 3]), [[0, 0], [1, 5]])
    message = r"indices\[1\] = \[1, 5\] does not index into param shape \[2,3\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(y)


def test_scatter_nd_out_of_range_names_the_index():
    where = tf.placeholder(tf.int32, [1, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"does not index into shape \[3\]"):
        run(tf.scatter_nd(where, [1.0], [3]), {where: [[7]]})


def test_compiled_gather_clips_so_that_the_check_can_report():
    y = tf.gather(tf.zeros([3]), [0])
    (got,) = compiled(
        y.op, [np.arange(3.0, dtype=np.float32), np.array([-1, 9], np.int32), np.int32(0)], [0, 1]
    )
    np.testing.assert_array_equal(got, [0, 2])


def test_gradient_of_gather_stays_rows():
    x = tf.placeholder(tf.float32, [4, 2])
    (dx,) = tf.gradients(tf.gather(x, [3, 1, 3]), x)
    assert isinstance(dx, tf.IndexedSlices)
    assert dx.dense_shape is not None
    rows, where, size = run([dx.values, dx.indices, dx.dense_shape], {x: np.zeros((4, 2))})
    np.testing.assert_array_equal(rows, np.ones((3, 2)))
    np.testing.assert_array_equal(where, [3, 1, 3])
    np.testing.assert_array_equal(size, [4, 2])


def test_gradient_of_gather_along_another_axis_is_dense():
    x = tf.placeholder(tf.float32, [2, 3])
    (dx,) = tf.gradients(tf.gather(x, [2, 0, 2], axis=-1), x)
    assert isinstance(dx, tf.Tensor)
    np.testing.assert_array_equal(run(dx, {x: np.zeros((2, 3))}), [[1, 0, 2], [1, 0, 2]])


def test_gradient_of_gather_nd_scatters():
    x = tf.placeholder(tf.float32, [2, 3])
    (dx,) = tf.gradients(tf.gather_nd(x, [[0, 1], [0, 1], [1, 2]]), x)
    assert dx.op.type == "ScatterNd"
    np.testing.assert_array_equal(run(dx, {x: np.zeros((2, 3))}), [[0, 2, 0], [0, 0, 1]])
    (rows,) = tf.gradients(tf.gather_nd(x, [[1], [1]]), x)
    assert isinstance(rows, tf.IndexedSlices)


def test_rows_become_a_tensor_by_adding_up():
    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1, 1]), tf.constant([3, 2]))
    dense = tf.convert_to_tensor(rows)
    assert dense.op.type == "UnsortedSegmentSum"
    np.testing.assert_array_equal(run(dense), [[0, 0], [4, 6], [0, 0]])


def test_rows_of_unknown_shape_become_a_tensor_with_a_warning():
    x = tf.placeholder(tf.float32, [None, 2])
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.shape(x))
    with pytest.warns(
        UserWarning, match="Converting sparse IndexedSlices to a dense Tensor of unknown shape"
    ):
        dense = tf.convert_to_tensor(rows)
    np.testing.assert_array_equal(run(dense, {x: np.zeros((2, 2))}), [[1, 1], [0, 0]])


def test_rows_without_dense_shape_do_not_convert():
    with pytest.raises(ValueError, match="IndexedSlices without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])))


def test_tensor_scatter_family():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    where, rows = [[1], [1]], [[10.0, 10.0], [20.0, 20.0]]
    added, less = run([tf.tensor_scatter_add(x, where, rows), tf.tensor_scatter_sub(x, where, rows)])
    np.testing.assert_array_equal(added, [[1, 2], [33, 34]])
    np.testing.assert_array_equal(less, [[1, 2], [-27, -26]])
    np.testing.assert_array_equal(run(tf.tensor_scatter_update(x, [[0, 1]], [9.0])), [[1, 9], [3, 4]])


def test_scatter_updates_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="must match the outer 1 dimensions of updates"):
        tf.scatter_nd([[0]], [1.0, 2.0], [3])


def test_gather_of_strings():
    words = tf.constant(["a", "b", "c"])
    assert run(tf.gather(words, 1)) == b"b"
    assert run(tf.gather(words, [2, 0])).tolist() == [b"c", b"a"]
    assert run(tf.gather_nd(words, [2])) == b"c"


def test_dimensions_of_a_batch_are_not_counted_from_behind():
    with pytest.raises(ValueError, match="does not allow negative batch_dims"):
        tf.gather_nd(np.zeros([2, 2]), [[0], [0]], batch_dims=-1)
