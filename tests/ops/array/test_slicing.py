"""`tensor[...]`, `tf.slice` and `tf.strided_slice` against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorfleet as tf
from tensorfleet.graph.kernels import Kernel, run_numpy
from tensorfleet.runtime.devices import load_jax
from tests.support.sessions import run


def types_and_names(graph, start=0):
    return [(o.name, o.type) for o in graph.get_operations()[start:]]


# -- brackets ----------------------------------------------------------------------------------------


@st.composite
def arrays_and_keys(draw):
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    bound = st.none() | st.integers(-6, 6)
    step = st.none() | st.integers(-3, 3).filter(bool)
    key: list = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            key.append(draw(st.integers(-size, size - 1)))
        else:
            key.append(slice(draw(bound), draw(bound), draw(step)))
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()):
        key.append(Ellipsis)
    return array, tuple(key)


@settings(max_examples=80, deadline=None)
@given(arrays_and_keys())
def test_brackets_give_what_numpy_gives_in_both_lives(sample):
    array, key = sample
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, array.shape)
        y = x[key]
        spec = [tf.make_ndarray(t.op.get_attr("value")) for t in y.op.inputs[1:]]
        (plain,) = run_numpy(y.op, [array, *spec])
        jax, jnp = load_jax()
        (compiled,) = jax.jit(lambda v: Kernel(y.op).call(jnp, [v, *spec]))(array)
    assert y.shape.as_list() == list(array[key].shape)
    np.testing.assert_array_equal(plain, array[key])
    np.testing.assert_array_equal(compiled, array[key])


@settings(max_examples=40, deadline=None)
@given(arrays_and_keys())
def test_gradient_of_brackets_lands_where_the_elements_came_from(sample):
    array, key = sample
    expected = np.zeros_like(array)
    expected[key] += 1 + np.arange(array[key].size, dtype=np.float32).reshape(array[key].shape)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, array.shape)
        y = x[key]
        weights = 1 + np.arange(array[key].size, dtype=np.float32).reshape(array[key].shape)
        (dx,) = tf.gradients(y, x, grad_ys=[tf.constant(weights)])
        spec = [tf.make_ndarray(t.op.get_attr("value")) for t in dx.op.inputs[:4]]
        (plain,) = run_numpy(dx.op, [*spec, weights])
        jax, jnp = load_jax()
        (compiled,) = jax.jit(lambda v: Kernel(dx.op).call(jnp, [*spec, v]))(weights)
    assert dx.op.type == "StridedSliceGrad"
    np.testing.assert_array_equal(plain, expected)
    np.testing.assert_array_equal(compiled, expected)


def test_bracket_names_are_tensorflows(graph):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    x[1]
    assert types_and_names(graph, 1) == [
        ("strided_slice/stack", "Const"),
        ("strided_slice/stack_1", "Const"),
        ("strided_slice/stack_2", "Const"),
        ("strided_slice", "StridedSlice"),
    ]


def test_tensors_may_be_indices():
    x = tf.placeholder(tf.float32, [3, 4])
    i = tf.placeholder(tf.int32, [])
    long = tf.placeholder(tf.int64, [])
    value = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert x[i].shape.as_list() == [4]
    assert x[i:, 0].shape.as_list() == [None]
    row, rest, wide = run([x[i], x[i:, 0], x[long : long + 1]], {x: value, i: 1, long: 2})
    np.testing.assert_array_equal(row, value[1])
    np.testing.assert_array_equal(rest, value[1:, 0])
    np.testing.assert_array_equal(wide, value[2:3])


def test_unknown_dimensions_stay_unknown_but_masked_ones_are_kept():
    u = tf.placeholder(tf.float32, [None, 3])
    assert u[:2].shape.as_list() == [None, 3]
    assert u[:, 1:].shape.as_list() == [None, 2]
    assert u[..., tf.newaxis].shape.as_list() == [None, 3, 1]
    assert tf.placeholder(tf.float32)[0].shape.rank is None


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, "slice index 5 of dimension 0 out of bounds."),
        ((0, 5), "slice index 5 of dimension 1 out of bounds."),
        (-3, "slice index -1 of dimension 0 out of bounds."),
        ((0, 0, 0), "Index out of range using input dim 2; input has only 2 dims"),
        (slice(None, None, 0), r"strides\[0\] must be non-zero"),
        ((..., ...), "Multiple ellipses in slice spec not allowed"),
    ],
)
def test_impossible_brackets_fail_when_the_graph_is_built(key, message):
    x = tf.placeholder(tf.float32, [2, 3])
    with pytest.raises(ValueError, match=message):
        x[key]


@pytest.mark.parametrize("key", [1.5, "a", np.array([0, 1])])
def test_only_integers_slices_and_newaxis_are_indices(key):
    x = tf.placeholder(tf.float32, [2, 3])
    with pytest.raises(TypeError, match="Only integers, slices"):
        x[key]


def test_index_out_of_range_at_run_time():
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 5 of dimension 0 out of bounds"):
        run(x[5], {x: np.ones(3)})


def test_bool_tensor_in_brackets_is_a_mask():
    x = tf.placeholder(tf.float32, [2, 3])
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    picked = x[x > 2]
    assert picked.shape.as_list() == [None]
    np.testing.assert_array_equal(run(picked, {x: value}), value[value > 2])
    np.testing.assert_array_equal(run(x[np.array([False, True])], {x: value}), value[1:])
    with pytest.raises(ValueError, match="mask cannot be scalar"):
        x[True]


def test_string_tensors_slice():
    words = tf.constant([["a", "b"], ["c", "d"]])
    assert run(words[1, 0]) == b"c"
    assert run(words[:, ::-1]).tolist() == [[b"b", b"a"], [b"d", b"c"]]


# -- tf.slice ----------------------------------------------------------------------------------------


def test_slice_size_minus_one_means_the_rest():
    u = tf.placeholder(tf.float32, [None, 3])
    y = tf.slice(u, [1, 1], [-1, -1])
    assert y.shape.as_list() == [None, 2]
    np.testing.assert_array_equal(run(y, {u: np.arange(9.0).reshape(3, 3)}), [[4, 5], [7, 8]])


def test_slice_out_of_range_fails_at_run_time():
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected size\[0\] in \[0, 3\], but got 5"):
        run(tf.slice(x, [0], [5]), {x: np.ones(3)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected begin\[0\] in \[0, 3\], but got 7"):
        run(tf.slice(x, [7], [1]), {x: np.ones(3)})


def test_slice_of_impossible_size_fails_when_the_graph_is_built():
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 3 from 2"):
        tf.slice(tf.zeros([2, 3]), [3, 0], [-1, 1])


def test_slice_gradient_is_a_pad():
    x = tf.placeholder(tf.float32, [2, 3])
    (dx,) = tf.gradients(tf.slice(x, [0, 1], [2, 1]), x)
    assert dx.op.type == "Pad"
    np.testing.assert_array_equal(run(dx, {x: np.zeros((2, 3))}), [[0, 1, 0], [0, 1, 0]])


def test_strided_slice_function_takes_ones_for_strides():
    x = tf.constant([1, 2, 3, 4])
    np.testing.assert_array_equal(run(tf.strided_slice(x, [1], [3])), [2, 3])


# -- boolean_mask ------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_boolean_mask_gives_what_numpy_gives(data):
    rank = data.draw(st.integers(1, 3))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    axis = data.draw(st.integers(0, rank - 1))
    width = data.draw(st.integers(1, rank - axis))
    count = int(np.prod(shape[axis : axis + width]))
    flags = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    mask = np.array(flags).reshape(shape[axis : axis + width])
    with tf.Graph().as_default():
        got = run(tf.boolean_mask(tf.constant(value), mask, axis=axis))
    np.testing.assert_array_equal(got, value[(slice(None),) * axis + (mask,)])


def test_boolean_mask_refuses_masks_that_do_not_fit():
    x = tf.zeros([2, 3])
    with pytest.raises(ValueError, match="incompatible"):
        tf.boolean_mask(x, [True])
    with pytest.raises(ValueError, match="Number of mask dimensions must be specified"):
        tf.boolean_mask(x, tf.placeholder(tf.bool))


@pytest.mark.parametrize(("use_resource", "kind"), [(False, TypeError), (True, ValueError)])
def test_what_is_assigned_to_a_slice_has_the_type_of_the_variable(use_resource, kind):
    v = tf.Variable([1, 2], use_resource=use_resource)
    with pytest.raises(kind, match="int64"):
        v[:].assign(tf.constant([3, 4], tf.int64))


def test_only_slices_of_variables_are_assigned_to():
    part = tf.constant([1, 2, 3])[:2]
    with pytest.raises(ValueError, match="Sliced assignment is only supported for variables"):
        part.assign([4, 5])


def test_what_is_assigned_to_a_slice_fits_it(session):
    v = tf.get_variable("v", initializer=np.zeros([2, 3], np.float32), use_resource=True)
    wrong = v[0].assign([1.0, 2.0])
    session.run(v.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[2\] into final shape \[3\]"):
        session.run(wrong)


@pytest.mark.parametrize("use_resource", [False, True])
def test_assign_writes_into_a_slice(use_resource, session):
    variable = tf.get_variable("v", initializer=[1, 2, 3], use_resource=use_resource)
    write = tf.assign(variable[1:], [7, 8])
    session.run(variable.initializer)
    assert session.run(write).tolist() == [1, 7, 8]
    assert session.run(variable).tolist() == [1, 7, 8]
