"""Accumulators of gradients: mean and sum, stale gradients, waiting, rows."""

import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.shapes import TensorShape
from tensorfleet.state.accumulators import Accumulator, SparseAccumulator
from tests.support.waiting import in_background


def test_take_gives_the_mean_and_starts_again(session):
    q = tf.ConditionalAccumulator(tf.float32, shape=[2], name="q")
    for g in ([1.0, 2.0], [3.0, 5.0]):
        session.run(q.apply_grad(g))
    assert session.run(q.num_accumulated()) == 2
    taken = q.take_grad(1)
    assert taken.shape.as_list() == [2]
    assert session.run(taken).tolist() == [2.0, 3.5]
    assert session.run(q.num_accumulated()) == 0


def test_sum_reduction():
    q = tf.ConditionalAccumulator(tf.float64, reduction_type="SUM")
    with tf.Session() as sess:
        for g in (1.0, 2.0, 4.0):
            sess.run(q.apply_grad(g))
        assert sess.run(q.take_grad(2)) == 7.0
    with pytest.raises(ValueError, match="Attr 'reduction_type'"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")


def test_names_and_types_are_those_of_tensorflow(graph):
    q = tf.ConditionalAccumulator(tf.float32, name="Q")
    q.apply_grad((10.0,))
    q.take_grad(1)
    q.num_accumulated()
    q.set_global_step(1)
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("Q", "ResourceConditionalAccumulator"),
        ("Const", "Const"),
        ("Const_1", "Const"),
        ("Cast", "Cast"),
        ("ResourceAccumulatorApplyGradient", "ResourceAccumulatorApplyGradient"),
        ("ResourceAccumulatorTakeGradient/num_required", "Const"),
        ("ResourceAccumulatorTakeGradient", "ResourceAccumulatorTakeGradient"),
        ("Q_NumAccumulated", "ResourceAccumulatorNumAccumulated"),
        ("Const_2", "Const"),
        ("Cast_1", "Cast"),
        ("ResourceAccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep"),
    ]
    assert (q.name, q.dtype) == ("Q", tf.float32)


def test_stale_gradients_are_dropped_without_an_error(session):
    q = tf.ConditionalAccumulator(tf.float32, shape=[])
    step = tf.placeholder(tf.int64, [])
    add = q.apply_grad(10.0, local_step=step)
    count, take = q.num_accumulated(), q.take_grad(1)
    session.run(add, {step: 0})
    session.run(take)  # now it is step 1
    session.run(add, {step: 0})
    assert session.run(count) == 0
    session.run(add, {step: 1})
    assert session.run(count) == 1
    session.run(q.set_global_step(5))
    assert session.run(count) == 1
    session.run(add, {step: 3})
    assert session.run(count) == 1
    session.run(add, {step: 5})
    assert session.run(take) == 10.0


def test_the_dropped_are_counted_by_who_handed_them_in():
    a = Accumulator("a", TensorShape([]), "MEAN")
    a.set_step(3)
    for step, owner in ((0, "w0"), (2, "w1"), (2, "w1"), (3, "w0")):
        a.apply(step, np.float32(1), owner=owner)
    assert a.dropped == {"w0": 1, "w1": 2}
    assert a.count == 1


def test_take_waits_for_enough_gradients_and_the_first_waits_first(session):
    q = tf.ConditionalAccumulator(tf.float32, shape=[])
    x = tf.placeholder(tf.float32)
    add, take = q.apply_grad(x, local_step=100), q.take_grad(2)
    taker = in_background(session.run, take)
    session.run(add, {x: 1.0})
    session.run(add, {x: 2.0})
    assert taker.result(60) == 1.5


def test_a_waiting_take_is_cancelled_when_the_session_closes():
    q = tf.ConditionalAccumulator(tf.float32, shape=[])
    take = q.take_grad(1)
    sess = tf.Session()
    started = threading.Event()
    taker = in_background(lambda: [started.set(), sess.run(take)])
    started.wait(60)
    sess.close()
    with pytest.raises((tf.errors.CancelledError, RuntimeError)):
        taker.result(60)


def test_a_withdrawn_take_leaves_the_gradients(session):
    q = tf.ConditionalAccumulator(tf.float32, shape=[])
    session.run(q.apply_grad(1.0))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(q.take_grad(2), options=tf.RunOptions(timeout_in_ms=20))
    session.run(q.apply_grad(3.0))
    assert session.run(q.take_grad(2)) == 2.0


def test_shapes_are_checked_in_the_graph_and_when_running(session):
    q = tf.ConditionalAccumulator(tf.float32, shape=[2])
    with pytest.raises(ValueError, match="incompatible"):
        q.apply_grad([1.0, 2.0, 3.0])
    x = tf.placeholder(tf.float32)
    free = tf.ConditionalAccumulator(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shape mismatch: expected \[2\], got \[3\]"):
        session.run(q.apply_grad(x), {x: [1, 2, 3]})
    add = free.apply_grad(x, local_step=9)
    session.run(add, {x: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Shape mismatch: expected \[2\], got \[3\]"):
        session.run(add, {x: [1, 2, 3]})
    assert session.run(free.take_grad(1)).tolist() == [1, 2]
    session.run(add, {x: [[1, 2, 3]]})  # a new sum may have a new shape
    for n in (0, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_required must be positive"):
            session.run(free.take_grad(n))


def test_gradients_are_the_accumulators_own(session):
    """The caller may change the array it fed."""
    q = tf.ConditionalAccumulator(tf.float32, shape=[2])
    x = tf.placeholder(tf.float32)
    fed = np.array([1, 2], np.float32)
    session.run(q.apply_grad(x), {x: fed})
    fed[:] = 7
    assert session.run(q.take_grad(1)).tolist() == [1, 2]


def test_accumulators_of_one_shared_name_are_one(session):
    a = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="same")
    b = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="same")
    session.run(a.apply_grad(4.0))
    assert session.run(b.take_grad(1)) == 4.0


# -- rows ----------------------------------------------------------------------------------------------


def slices(values, indices, shape=None):
    return tf.IndexedSlices(
        tf.constant(values, tf.float32),
        tf.constant(indices, tf.int64),
        None if shape is None else tf.constant(shape, tf.int64),
    )


def test_rows_are_averaged_over_the_gradients_that_had_them(session):
    q = tf.SparseConditionalAccumulator(tf.float32, name="S")
    session.run(q.apply_grad([0, 2], [[0.0, 1.0], [2.0, 3.0]], [3, 2]))
    session.run(q.apply_indexed_slices_grad(slices([[10, 1], [20, 3]], [0, 1], [3, 2])))
    taken = session.run(q.take_grad(1))
    assert taken.indices.tolist() == [0, 1, 2]
    assert taken.values.tolist() == [[5, 1], [20, 3], [2, 3]]
    assert taken.shape.tolist() == [-1, 2]


def test_rows_come_back_as_indexed_slices_with_the_declared_shape(session):
    q = tf.SparseConditionalAccumulator(tf.float32, shape=[3, 1], reduction_type="SUM")
    session.run(q.apply_indexed_slices_grad(slices([[1], [2], [4]], [2, 0, 2])))
    session.run(q.apply_indexed_slices_grad(slices([[8]], [0])))
    got = session.run(q.take_indexed_slices_grad(2))
    assert got.indices.tolist() == [0, 2]
    assert got.values.tolist() == [[10], [5]]
    assert got.dense_shape.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("indices", "values", "shape", "text"),
    [
        ([[0]], [[0, 1]], [3, 2], "Input indices should be vector but received shape"),
        ([0], 1.0, [3, 2], "Values cannot be 0-dimensional"),
        ([0], [[0, 1], [1, 2]], [3, 2], "Expected 1 non-empty input values, got 2"),
        ([0], [[0, 1, 2]], [3, 2], "Shape mismatch: expected values dim 1 to be 2, got 3"),
        ([0], [[0, 1]], [3, 3], "Shape mismatch: expected shape dim 1 to be 2, got 3"),
        ([0], [[0, 1]], [3], "Shape mismatch: expected shape rank at least 2, got 1"),
        ([5], [[0, 1]], [3, 2], "exceeded limits of shape"),
    ],
)
def test_rows_are_checked(indices, values, shape, text, session):
    q = tf.SparseConditionalAccumulator(tf.float32, shape=[None, 2])
    i, v, s = tf.placeholder(tf.int64), tf.placeholder(tf.float32), tf.placeholder(tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        session.run(q.apply_grad(i, v, s), {i: indices, v: values, s: shape})
    assert session.run(q.num_accumulated()) == 0


def test_rows_agree_with_dense_sums():
    random = np.random.RandomState(0)
    q = SparseAccumulator("q", TensorShape([20, 3]), "SUM")
    dense = np.zeros((20, 3))
    for _ in range(30):
        rows = random.randint(0, 20, random.randint(0, 6))
        values = random.randn(len(rows), 3)
        np.add.at(dense, rows, values)
        q.apply(0, rows, values, None)
    rows, values, _ = q.finish()
    assert (np.diff(rows) > 0).all()
    full = np.zeros((20, 3))
    full[rows] = values
    np.testing.assert_allclose(full, dense)


def test_rows_of_a_sparse_accumulator_have_the_shape_of_the_gradients(session):
    for shape, dense in (([], [-1, 2]), ([4, None], [4, 2]), ([None, 2], [-1, 2])):
        q = tf.SparseConditionalAccumulator(tf.float32, shape=shape)
        session.run(q.apply_grad([1, 3], [[1.0, 2.0], [3.0, 4.0]]))
        assert session.run(q.take_indexed_slices_grad(1)).dense_shape.tolist() == dense


def test_rows_beyond_a_sparse_accumulator_and_rows_of_another_rank_are_refused(session):
    q = tf.SparseConditionalAccumulator(tf.float32, shape=[2, None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="index is 3 exceeded 2"):
        session.run(q.apply_grad([0, 3], [[1.0], [2.0]]))
    session.run(q.apply_grad([0], [[1.0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected values rank 2, got 3"):
        session.run(q.apply_grad([0], [[[1.0]]]))
