"""Updates of variables by rows: duplicates, scalars, errors, and what a failed update leaves behind."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.kernels.rows import accumulate

START = np.arange(10, dtype=np.float32).reshape(5, 2)


@pytest.fixture(params=[False, True], ids=["ref", "resource"])
def table(request):
    with tf.Graph().as_default():
        yield tf.get_variable("table", initializer=START, use_resource=request.param)


def run(variable, *updates):
    with tf.Session() as session:
        session.run(variable.initializer)
        for update in updates:
            session.run(update)
        return session.run(variable.read_value())


def test_update_replaces_rows_and_the_last_of_equal_indices_wins(table):
    value = run(table, tf.scatter_update(table, [3, 0, 3], [[1.0, 1.0], [2.0, 2.0], [9.0, 9.0]]))
    assert value[3].tolist() == [9, 9] and value[0].tolist() == [2, 2]
    assert value[[1, 2, 4]].tolist() == START[[1, 2, 4]].tolist()


@pytest.mark.parametrize(
    "update, expected",
    [
        (tf.scatter_add, [7, 8]),
        (tf.scatter_sub, [-3, -2]),
        (tf.scatter_mul, [12, 18]),
        (tf.scatter_div, [2 / 6, 3 / 6]),
        (tf.scatter_min, [2, 2]),
        (tf.scatter_max, [3, 3]),
    ],
)
def test_repeated_indices_take_effect_one_after_the_other(table, update, expected):
    rows = [[3.0, 3.0], [2.0, 2.0]]
    np.testing.assert_allclose(run(table, update(table, [1, 1], rows))[1], expected, rtol=1e-6)


def test_a_scalar_goes_to_every_row(table):
    value = run(table, tf.scatter_add(table, [0, 4, 4], 10.0))
    assert value[:, 0].tolist() == [10, 2, 4, 6, 28]


def test_a_scalar_index_takes_one_row(table):
    assert run(table, tf.scatter_update(table, 2, [7.0, 8.0]))[2].tolist() == [7, 8]


def test_the_result_is_the_updated_variable(table):
    after = tf.scatter_add(table, [1], [[1.0, 1.0]])
    with tf.Session() as session:
        session.run(table.initializer)
        assert session.run(after)[1].tolist() == [3, 4]


@pytest.mark.parametrize("index", [7, -1])
def test_an_index_out_of_range_is_named_and_changes_nothing(table, index):
    chosen = tf.placeholder(tf.int32, [2])
    update = tf.scatter_update(table, chosen, [[1.0, 1.0], [2.0, 2.0]])
    with tf.Session() as session:
        session.run(table.initializer)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"indices\[1\] = {index} is not in \[0, 5\)"
        ):
            session.run(update, {chosen: [0, index]})
        assert session.run(table.read_value()).tolist() == START.tolist()


def test_rows_of_the_wrong_shape_are_refused_when_the_graph_is_built():
    table = tf.get_variable("table", initializer=START)
    with pytest.raises(ValueError, match="Dimension 1 in both shapes must be equal, but are 3 and 2"):
        tf.scatter_add(table, [0, 1], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])


def test_rows_of_the_wrong_shape_are_refused_by_a_step(table):
    rows = tf.placeholder(tf.float32)
    update = tf.scatter_add(table, [0, 1], rows)
    with tf.Session() as session:
        session.run(table.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Must have updates.shape = indices.shape"):
            session.run(update, {rows: [[1.0]]})


def test_nd_updates_point_at_elements(table):
    value = run(
        table,
        tf.scatter_nd_update(table, [[0, 1], [4, 0]], [50.0, 60.0]),
        tf.scatter_nd_add(table, [[0, 1], [0, 1]], [1.0, 2.0]),
        tf.scatter_nd_sub(table, [[2]], [[1.0, 1.0]]),
    )
    assert value[0].tolist() == [0, 53] and value[4].tolist() == [60, 9] and value[2].tolist() == [3, 4]


def test_an_nd_index_out_of_range_is_named(table):
    chosen = tf.placeholder(tf.int32, [1, 2])
    update = tf.scatter_nd_update(table, chosen, [1.0])
    with tf.Session() as session:
        session.run(table.initializer)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices\[0\] = \[1, 2\] does not index into"
        ):
            session.run(update, {chosen: [[1, 2]]})


def test_batch_scatter_updates_each_item_of_the_batch():
    with tf.Graph().as_default():
        variable = tf.get_variable("v", initializer=np.zeros((2, 4), np.float32))
        value = run(variable, tf.batch_scatter_update(variable, [[0, 3], [1, 2]], [[1.0, 2.0], [3.0, 4.0]]))
    assert value.tolist() == [[1, 0, 0, 2], [0, 3, 4, 0]]


def test_integers_divide_towards_zero():
    variable = tf.get_variable("v", initializer=np.array([-7, 7], np.int32))
    assert run(variable, tf.scatter_div(variable, [0, 1], [2, -2])).tolist() == [-3, -3]


def test_strings_can_be_replaced():
    rows = np.array([b"a", b"b", b"c"], object)
    registry.get("ScatterUpdate").kernel(np, rows, np.array([1]), np.array([b"z"], object))
    assert rows.tolist() == [b"a", b"z", b"c"]


def test_a_variable_is_no_tensor():
    with tf.Graph().as_default(), pytest.raises((TypeError, AttributeError)):
        tf.scatter_update(tf.constant([1.0]), [0], [2.0])


@pytest.mark.parametrize("top", [3, 50])
def test_accumulate_equals_a_loop(top):
    random = np.random.RandomState(0)
    flat = random.randint(0, top, 200)
    updates = random.rand(200, 3)
    for combine in (np.add, np.multiply, np.maximum):
        rows, expected = np.ones((top, 3)), np.ones((top, 3))
        accumulate(combine, rows, flat, updates)
        for i, u in zip(flat, updates, strict=True):
            expected[i] = combine(expected[i], u)
        np.testing.assert_allclose(rows, expected)


def test_shapes_of_scattered_updates_are_compared_part_by_part():
    cube = tf.Variable(tf.zeros([2, 2, 2], tf.int32))
    outer = r"The outer 2 dimensions of indices.shape=\[3,2,2\] must match the outer 2 dimensions of updates.shape"
    inner = r"The inner 2 dimensions of (input|output).shape=\[2,2,2\] must match the inner 0 dimensions"
    cases = [([3, 2, 2], [2, 2, 2], outer), ([2, 2, 1], [2, 2], inner)]
    for indices, updates, phrase in cases:
        places, values = tf.zeros(indices, tf.int32), tf.zeros(updates, tf.int32)
        with pytest.raises(ValueError, match=phrase):
            tf.scatter_nd_update(cube, places, values)
        with pytest.raises(ValueError, match=phrase):
            tf.scatter_nd(places, values, [2, 2, 2])
        with pytest.raises(ValueError, match=phrase):
            tf.tensor_scatter_add(tf.zeros([2, 2, 2], tf.int32), places, values)


def test_nothing_is_scattered_into_what_is_empty_or_a_scalar(session):
    places = tf.placeholder(tf.int32)
    with pytest.raises(ValueError, match="Indices and updates specified for empty output shape"):
        tf.scatter_nd(tf.zeros([2, 1], tf.int32), tf.zeros([2]), tf.constant([0]))
    number = tf.Variable(0.0)
    session.run(number.initializer)
    with pytest.raises(tf.errors.InvalidArgumentError, match="specified for empty output"):
        session.run(tf.scatter_nd(places, tf.to_float(places), [0]), {places: [[0], [0]]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Output must be at least 1-D, got shape:"):
        session.run(tf.scatter_nd_update(number, [[0]], [0.5]))
