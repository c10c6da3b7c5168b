"""Sparse tensors rearranged, computed with, kept, inside one session."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.kernels import Kernel
from tensorfleet.kernels.sparse import union_of_two
from tensorfleet.ops.sparse import tensors_map as sparse_tensors_map
from tensorfleet.runtime.devices import load_jax


def sparse():
    return tf.SparseTensor([[0, 1], [1, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 4])


def test_static_shapes_survive():
    s = sparse()
    assert tf.sparse_reorder(s).shape.as_list() == [3, 4]
    assert tf.sparse_transpose(s).shape.as_list() == [4, 3]
    assert tf.sparse_reshape(s, [2, -1]).shape.as_list() == [2, 6]
    assert tf.sparse_concat(1, [s, s]).shape.as_list() == [3, 8]
    assert tf.sparse_retain(s, [True, True, False]).shape.as_list() == [3, 4]
    assert tf.sparse_reset_shape(s, [5, 6]).shape.as_list() == [5, 6]
    assert tf.sparse.expand_dims(s, 1).shape.as_list() == [3, 1, 4]
    assert tf.sparse_reduce_sum(s, 1).shape.as_list() == [3]
    assert tf.sparse_reduce_sum(s, 1, keepdims=True).shape.as_list() == [3, 1]
    assert tf.sparse_fill_empty_rows(s, 0.0)[1].shape.as_list() == [3]
    assert tf.sparse_to_indicator(tf.cast(s, tf.int32), 6).shape.as_list() == [3, 6]
    assert (s * 2.0).shape.as_list() == [3, 4]


def test_a_static_shape_is_one_of_the_dense_tensor_too():
    s, dense = sparse(), tf.sparse_tensor_to_dense
    assert dense(tf.sparse_add(s, s)).shape.as_list() == [3, 4]
    assert dense(tf.sparse_concat(0, [s, s])).shape.as_list() == [6, 4]
    assert dense(tf.sparse_reshape(s, [2, -1])).shape.as_list() == [2, 6]


def test_operators_have_tensorflows_names():
    s = sparse()
    assert (s * 2.0).values.op.type == "SparseDenseCwiseMul"
    assert (s / 2.0).values.name == "truediv:0"
    assert (tf.constant(2.0) * s).values.name == "mul_1:0"
    with pytest.raises(TypeError, match="unsupported operand"):
        s + 1


def test_training_through_a_sparse_product(session):
    inputs = tf.sparse_placeholder(tf.float32, [None, 4])
    weights = tf.Variable(np.ones((4, 1), np.float32))
    loss = tf.reduce_sum(tf.square(tf.sparse_tensor_dense_matmul(inputs, weights) - 3.0))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    for size in (2, 3, 2, 3, 2, 3) * 5:
        places = [[i, i] for i in range(size)]
        session.run(step, {inputs: (places, np.ones(size), [size, 4])})
    result = session.run(weights)[:, 0]
    np.testing.assert_allclose(result[:2], [3, 3], atol=1e-2)
    assert result[3] == 1


def test_gradients_that_tensorflow_does_not_have_are_refused():
    s = sparse()
    for y in (tf.sparse_maximum(s, s), tf.sparse_minimum(s, s)):
        with pytest.raises(NotImplementedError, match="not implemented"):
            tf.gradients(y.values, s.values)


def test_kept_sparse_tensors_are_taken_once(session):
    s = sparse()
    handles = sparse_tensors_map.add_many_sparse_to_tensors_map(s)
    taken = sparse_tensors_map.take_many_sparse_from_tensors_map(handles.op, handles)
    got = session.run(taken)
    assert got.indices.tolist() == [[0, 1], [1, 0], [2, 2]] and got.dense_shape.tolist() == [3, 4]
    one = sparse_tensors_map.add_sparse_to_tensors_map(s, shared_name="shelf")
    number = session.run(one)
    back = sparse_tensors_map.take_many_sparse_from_tensors_map(one.op, [number], rank=3)
    assert session.run(back).dense_shape.tolist() == [1, 3, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to find SparseTensor"):
        session.run(back)
    with pytest.raises(TypeError, match="sparse_map_op must be one of"):
        sparse_tensors_map.take_many_sparse_from_tensors_map(s.op, [0])


def test_a_batch_through_a_queue_of_strings_comes_back(session):
    rows = [tf.serialize_sparse(sparse()), tf.serialize_sparse(sparse())]
    got = session.run(tf.deserialize_many_sparse(tf.stack(rows), tf.float32, rank=3))
    assert got.dense_shape.tolist() == [2, 3, 4] and got.values.tolist() == [1, 2, 3, 1, 2, 3]


def test_a_wrong_axis_is_refused_when_it_runs(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension -3"):
        session.run(tf.sparse_reduce_sum(sparse(), -3))


@pytest.mark.parametrize("traced", [(0,), (1,), (3,), (0, 1), (0, 1, 3)])
@pytest.mark.parametrize("name", ["SparseTensorDenseMatMul", "SparseToDense"])
def test_what_is_known_while_tracing_may_be_any_part(name, traced):
    """Constants stay numpy arrays inside a trace; feeds are traced."""
    places, values, shape = np.array([[0, 1], [1, 0]]), np.array([1.5, 2.5]), np.array([2, 3])
    full = [places, values, shape, np.arange(6.0).reshape(3, 2)]
    order = [0, 1, 2, 3]
    if name == "SparseToDense":
        full[3], order = np.array(0.5), [0, 2, 1, 3]
    op = apply_op(name, *[full[i] for i in order])
    jax, jnp = load_jax()
    kernel = Kernel(op)

    def run(*args):
        given = dict(zip(traced, args, strict=True))
        return kernel.call(jnp, [given.get(i, full[i]) for i in order], check=lambda *a: None)[0]

    result = jax.jit(run)(*[full[i] for i in traced])
    np.testing.assert_allclose(result, kernel.call(np, [full[i] for i in order])[0])


@pytest.mark.parametrize("kind", [tf.string, tf.variant])
def test_serialized_sparse_tensors_may_stand_in_any_shape(kind):
    value = tf.SparseTensorValue(np.array([[0, 1], [2, 0]]), np.array([5, 6]), np.array([3, 4]))
    parts = tf.serialize_sparse(value, out_type=kind)
    deserialize = tf.python.ops.sparse_ops.deserialize_sparse
    with tf.Session() as sess:
        one = sess.run(deserialize(parts, tf.int64, rank=2))
        np.testing.assert_array_equal(one.indices, value.indices)
        assert one.dense_shape.tolist() == [3, 4]
        four = tf.reshape(tf.stack([parts] * 4), [2, 2, 3])
        result = sess.run(deserialize(four, tf.int64))
        assert result.dense_shape.tolist() == [2, 2, 3, 4]
        assert result.indices[2].tolist() == [0, 1, 0, 1]
        many = sess.run(deserialize(tf.serialize_many_sparse(value, out_type=kind), tf.int64))
        np.testing.assert_array_equal(many.indices, value.indices)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Requested SparseTensor of type int32"):
            sess.run(deserialize(parts, tf.int32))


@pytest.mark.parametrize("seed", range(8))
def test_places_of_two_tensors_are_joined_in_order_whether_they_are_in_order_or_not(seed):
    draw = np.random.RandomState(seed)
    a, b = (np.unique(draw.randint(0, 30, draw.randint(0, 20))) for _ in range(2))
    if seed % 2:
        draw.shuffle(a)
    union, of_a, of_b = union_of_two(a, b)
    assert union.tolist() == np.union1d(a, b).tolist()
    assert union[of_a].tolist() == a.tolist() and union[of_b].tolist() == b.tolist()


@pytest.mark.parametrize("shape", [[50, 70], [4096, 1024], [3000, 2000, 5000], [1 << 30, 1 << 30]])
def test_many_places_are_brought_into_the_order_of_a_dense_tensor(session, shape):
    random = np.random.RandomState(0)
    where = np.stack([random.randint(0, n, 3000) for n in shape], 1)
    mixed = tf.SparseTensor(where, np.arange(3000), shape)
    result = session.run(tf.sparse_reorder(mixed))
    order = np.lexsort(where.T[::-1])
    np.testing.assert_array_equal(result.values, order)
    np.testing.assert_array_equal(result.indices, where[order])


@pytest.mark.parametrize("sort", [np.sort, lambda a: a], ids=["in order", "mixed"])
def test_sums_of_many_sparse_values_are_those_of_dense_ones(session, sort):
    random = np.random.RandomState(1)
    places = [sort(random.choice(4000, n, False)) for n in (900, 1300)]
    given = [
        tf.SparseTensor(np.stack([p // 80, p % 80], 1), random.rand(len(p)).astype(np.float32), [50, 80])
        for p in places
    ]
    dense = sum(session.run(tf.sparse_tensor_to_dense(g, validate_indices=False)) for g in given)
    result = session.run(tf.sparse_add(*given))
    assert result.indices.tolist() == np.argwhere(dense).tolist()
    np.testing.assert_array_equal(result.values, dense[dense != 0])
