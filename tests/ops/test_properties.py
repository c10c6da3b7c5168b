"""Broadcasting, reductions, gathering and scattering against numpy, on shapes that nobody thought of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.graph.kernels import Kernel
from tensorfleet.runtime.devices import load_jax

RANDOM = np.random.RandomState(0)
few = settings(max_examples=25, deadline=None)
shapes = st.lists(st.integers(0, 4), max_size=4)


def both_lives(op, values):
    """What an op gives in numpy, and compiled; both, once they agree."""
    jax, jnp = load_jax()
    moving = [i for i in range(len(values)) if i not in op.spec.static]
    kernel = Kernel(op)

    def traced(args):
        full = list(values)
        for i, a in zip(moving, args, strict=True):
            full[i] = a
        return kernel.call(jnp, full, check=lambda *a: None)

    with np.errstate(all="ignore"):
        plain = kernel.call(np, values)
    compiled = jax.jit(traced)([values[i] for i in moving])
    for a, b in zip(plain, compiled, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)
    return [np.asarray(a) for a in plain]


def numbers(shape, dtype=np.float32):
    return RANDOM.randint(-4, 5, shape).astype(dtype)


# -- broadcasting ------------------------------------------------------------------------------------


@st.composite
def pairs_of_shapes(draw):
    """Two shapes that broadcast: each dimension of either may be missing or one."""
    whole = draw(shapes)
    result = []
    for _ in range(2):
        kept = whole[draw(st.integers(0, len(whole))) :]
        result.append([1 if draw(st.booleans()) else d for d in kept])
    return result


BINARY = {
    "AddV2": np.add,
    "Mul": np.multiply,
    "Maximum": np.maximum,
    "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Less": np.less,
    "Equal": np.equal,
}


@few
@given(
    pairs_of_shapes(), st.sampled_from(sorted(BINARY)), st.sampled_from([np.float32, np.int32, np.float64])
)
def test_binary_ops_broadcast_as_numpy_does(sample, name, dtype):
    a, b = (numbers(shape, dtype) for shape in sample)
    with tf.Graph().as_default():
        x, y = tf.placeholder(dtype, a.shape), tf.placeholder(dtype, b.shape)
        z = tf.get_default_graph().create_op(name, [x, y], name="z").outputs[0]
        expected = BINARY[name](a, b)
        assert z.shape.as_list() == list(expected.shape)
        (result,) = both_lives(z.op, [a, b])
    np.testing.assert_array_equal(result, expected)


@few
@given(pairs_of_shapes())
def test_gradients_have_the_shapes_of_what_was_broadcast(sample):
    a, b = (numbers(shape, np.float64) for shape in sample)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float64, a.shape), tf.placeholder(tf.float64, b.shape)
        by_x, by_y = session.run(tf.gradients(x * y, [x, y]), {x: a, y: b})
    whole = np.broadcast(a, b).shape

    def summed(value, shape):
        value = np.broadcast_to(value, whole)
        value = value.sum(tuple(range(len(whole) - len(shape))))
        kept = tuple(i for i, d in enumerate(shape) if d == 1 and value.shape[i] != 1)
        return value.sum(kept, keepdims=True)

    np.testing.assert_allclose(by_x, summed(b, a.shape), atol=1e-9)
    np.testing.assert_allclose(by_y, summed(a, b.shape), atol=1e-9)


@few
@given(pairs_of_shapes())
def test_the_dynamic_shape_is_the_static_one(sample):
    with tf.Graph().as_default(), tf.Session() as session:
        dynamic = tf.broadcast_dynamic_shape(
            tf.constant(sample[0], tf.int32), tf.constant(sample[1], tf.int32)
        )
        static = tf.broadcast_static_shape(tf.TensorShape(sample[0]), tf.TensorShape(sample[1]))
        assert session.run(dynamic).tolist() == static.as_list()


# -- reductions --------------------------------------------------------------------------------------


@st.composite
def reductions(draw):
    shape = draw(shapes)
    axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    axes = [a - len(shape) if draw(st.booleans()) else a for a in axes]
    return shape, axes, draw(st.booleans())


REDUCTIONS = {"Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min, "Any": np.any, "All": np.all}
NOTHING = {"Max": -np.inf, "Min": np.inf}


@few
@given(reductions(), st.sampled_from(sorted(REDUCTIONS)))
def test_reductions_give_what_numpy_gives(sample, name):
    shape, axes, keep = sample
    kind = bool if name in ("Any", "All") else np.float32
    x = numbers(shape).astype(kind)
    with tf.Graph().as_default():
        reduce = getattr(tf, f"reduce_{name.lower()}")
        given_x = tf.placeholder(kind, shape)
        y = reduce(given_x, axis=axes, keepdims=keep)
        initial = {"initial": np.float32(NOTHING[name])} if name in NOTHING else {}
        expected = REDUCTIONS[name](x, axis=tuple(axes), keepdims=keep, **initial)
        assert y.shape.as_list() == list(expected.shape)
        (result,) = both_lives(y.op, [x, np.array(axes, np.int32)])
    np.testing.assert_allclose(result, expected)


@few
@given(reductions())
def test_the_gradient_of_a_sum_reaches_every_element_once(sample):
    shape, axes, keep = sample
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None] * len(shape))
        grad = tf.gradients(tf.reduce_sum(x, axis=axes, keepdims=keep), x)[0]
        assert (session.run(grad, {x: numbers(shape)}) == np.ones(shape)).all()


# -- gather and scatter ------------------------------------------------------------------------------


@st.composite
def rows_and_indices(draw):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    size = draw(st.lists(st.integers(0, 3), max_size=2))
    index = RANDOM.randint(0, shape[axis], size).astype(draw(st.sampled_from([np.int32, np.int64])))
    return numbers(shape), index, axis


@few
@given(rows_and_indices())
def test_gather_takes_what_numpy_takes(sample):
    x, index, axis = sample
    with tf.Graph().as_default():
        params, places = tf.placeholder(tf.float32, x.shape), tf.placeholder(index.dtype, index.shape)
        y = tf.gather(params, places, axis=axis)
        expected = np.take(x, index, axis=axis)
        assert y.shape.as_list() == list(expected.shape)
        (result,) = both_lives(y.op, [x, index, np.array(axis, np.int32)])
    np.testing.assert_array_equal(result, expected)


@st.composite
def places_in_arrays(draw):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    depth = draw(st.integers(1, len(shape)))
    outer = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    index = np.stack([RANDOM.randint(0, d, outer) for d in shape[:depth]], -1).astype(np.int32)
    return shape, index, numbers([*outer, *shape[depth:]])


@few
@given(places_in_arrays())
def test_scattered_updates_add_up_where_they_meet(sample):
    shape, index, updates = sample
    expected = np.zeros(shape, np.float32)
    np.add.at(expected, tuple(np.moveaxis(index, -1, 0)), updates)
    with tf.Graph().as_default():
        places, values = tf.placeholder(tf.int32, index.shape), tf.placeholder(tf.float32, updates.shape)
        y = tf.scatter_nd(places, values, shape)
        assert y.shape.as_list() == shape
        (result,) = both_lives(y.op, [index, updates, np.array(shape, np.int32)])
    np.testing.assert_allclose(result, expected)


@few
@given(places_in_arrays())
def test_gathering_what_was_scattered_without_collisions_gives_it_back(sample):
    shape, index, updates = sample
    flat = index.reshape(-1, index.shape[-1])
    _, first = np.unique(flat, axis=0, return_index=True) if len(flat) else (None, np.zeros(0, int))
    places = flat[np.sort(first)]
    values = updates.reshape(len(flat), *shape[index.shape[-1] :])[np.sort(first)]
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.scatter_nd(places, values, shape)
        np.testing.assert_array_equal(session.run(tf.gather_nd(table, places)), values)


@few
@given(places_in_arrays())
def test_the_gradient_of_gather_nd_counts_how_often_each_place_was_read(sample):
    shape, index, updates = sample
    expected = np.zeros(shape, np.float64)
    np.add.at(expected, tuple(np.moveaxis(index, -1, 0)), np.ones(updates.shape))
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, shape)
        grad = tf.convert_to_tensor(tf.gradients(tf.gather_nd(x, index), x)[0])
        np.testing.assert_array_equal(session.run(grad, {x: numbers(shape)}), expected)


@few
@given(rows_and_indices(), st.sampled_from(["scatter_add", "scatter_sub", "scatter_max", "scatter_update"]))
def test_scattering_into_a_variable_changes_the_rows_named(sample, name):
    x, index, _ = sample
    index = np.unique(index % len(x))
    updates = numbers([len(index), *x.shape[1:]])
    join = {"scatter_add": np.add, "scatter_sub": np.subtract, "scatter_max": np.maximum}
    expected = x.copy()
    expected[index] = join[name](x[index], updates) if name in join else updates
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(x)
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(getattr(tf, name)(v, index, updates)), expected)


def test_an_index_out_of_range_is_refused_in_both_lives(session):
    x, i = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int32, [1])
    y = tf.gather(x * 2, i)
    for _ in range(3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
            session.run(y, {x: [1, 2, 3], i: [3]})
