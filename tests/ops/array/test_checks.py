"""tf.Assert and the tf.assert_* functions."""

import numpy as np
import pytest

import tensorfleet as tf


def held(value):
    return tf.placeholder_with_default(value, None)


def test_assert_shows_its_data(session):
    check = tf.Assert(held(False), ["oops", held(3), [1.5, 2.5, 3, 4, 5]])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"assertion failed: \[oops\] \[3\] \[1.5 2.5 3...\]"
    ):
        session.run(check)


def test_assert_guards_what_depends_on_it(session):
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.assert_positive(x)]):
        root = tf.sqrt(x)
    for _ in range(5):
        assert session.run(root, {x: 4.0}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x > 0 did not hold"):
        session.run(root, {x: -1.0})


@pytest.mark.parametrize(
    "name, good, bad",
    [
        ("equal", ([1, 2], [1, 2]), ([1, 2], [1, 3])),
        ("none_equal", ([1, 2], [2, 1]), ([1, 2], [1, 3])),
        ("less", ([1, 2], 3), ([1, 2], 2)),
        ("less_equal", ([1, 2], 2), ([1, 2], 1)),
        ("greater", ([1, 2], 0), ([1, 2], 1)),
        ("greater_equal", ([1, 2], 1), ([1, 2], 2)),
    ],
)
def test_comparisons(session, name, good, bad):
    check = getattr(tf, f"assert_{name}")
    session.run(check(held(good[0]), good[1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not hold element-wise"):
        session.run(check(held(bad[0]), bad[1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="why not"):
        check(bad[0], bad[1], message="why not")


@pytest.mark.parametrize(
    "name, bad", [("positive", 0), ("negative", 0), ("non_negative", -1), ("non_positive", 1)]
)
def test_signs(session, name, bad):
    check = getattr(tf.debugging, f"assert_{name}")
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        session.run(check(held([bad])))
    session.run(check(held(np.zeros(0, np.float32))))


def test_ranks_are_checked_early_when_known(session):
    with pytest.raises(ValueError, match=r"Tensor Const:0 must have rank 2.  Received rank 1, shape \(1,\)"):
        tf.assert_rank(tf.constant([1]), 2)
    with pytest.raises(ValueError, match=r"must have rank in \(0, 2\)"):
        tf.assert_rank_in(tf.constant([1]), [0, 2])
    assert tf.assert_rank_at_least(tf.constant([1]), 1).type == "NoOp"
    check = tf.assert_rank(held([1, 2]), 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
        session.run(check)


def test_types_and_scalars():
    with pytest.raises(TypeError, match="must be of type"):
        tf.assert_type(tf.constant([1]), tf.float32)
    with pytest.raises(TypeError, match="to be integer type"):
        tf.assert_integer(tf.constant([1.0]))
    with pytest.raises(ValueError, match="Expected scalar shape"):
        tf.assert_scalar(tf.constant([1]))
    with pytest.raises(TypeError, match="iterable"):
        tf.assert_proper_iterable(5)
    with pytest.raises(ValueError, match="must be of the same type"):
        tf.assert_same_float_dtype([tf.constant(1.0), tf.constant(2.0, tf.float64)])
    assert tf.is_numeric_tensor(tf.constant(1)) and not tf.is_numeric_tensor(1)


def test_order(session):
    assert session.run(tf.is_non_decreasing(held([1, 2, 2])))
    assert not session.run(tf.is_strictly_increasing(held([1, 2, 2])))
    assert session.run(tf.is_strictly_increasing(held([3])))


def test_all_finite(session):
    assert session.run(tf.verify_tensor_all_finite(held([1.0, 2.0]), "bad")).tolist() == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had Inf"):
        session.run(tf.verify_tensor_all_finite(held([1.0, np.inf]), "bad"))


def test_near(session):
    session.run(tf.assert_near(held([1.0]), [1.0 + 1e-7]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to tolerance"):
        session.run(tf.assert_near(held([1.0]), [1.1]))


def test_shapes_are_compared_when_the_graph_is_made():
    x = tf.placeholder(tf.float32, [None, 3])
    tf.debugging.assert_shapes([(x, ("N", "Q")), (tf.zeros([3]), ("Q",)), (x, (None, 3))])
    with pytest.raises(ValueError, match="Specified by tensor Placeholder:0 dimension 1.  Tensor .* size 3"):
        tf.debugging.assert_shapes([(x, ("N", "Q")), (tf.zeros([4]), ("Q",))])
    with pytest.raises(ValueError, match="Specified explicitly.  Tensor Placeholder:0 dimension 1"):
        tf.debugging.assert_shapes({x: ("N", 4)})
    with pytest.raises(ValueError, match="must have rank 3.  Received rank 2"):
        tf.debugging.assert_shapes([(x, (1, 2, 4))])


def test_shapes_unknown_until_the_run_are_compared_then(session):
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None])
    same = tf.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N",))], message="lengths")
    session.run(same, {x: [[1, 2, 3]], y: [1]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="lengths.  Specified by tensor"):
        session.run(same, {x: [[1, 2, 3]], y: [1, 2]})


def test_a_tensor_equals_itself_without_a_comparison():
    x = tf.constant([1.0])
    assert tf.assert_equal(x, x).type == "NoOp"


def test_shapes_are_told_in_many_ways(session):
    x, y = tf.ones([4, 3, 2]), tf.ones([3, 5])
    session.run(tf.debugging.assert_shapes([(x, "*NQ"), (y, ("N", None)), (y, "3."), (x, None)]))
    session.run(tf.debugging.assert_shapes([(x, np.array([4, 3, 2])), (y, [..., "N", "D"])]))
    with pytest.raises(ValueError, match="dimension -2 must have size 2.  Received size 3"):
        tf.debugging.assert_shapes([(x, (..., 2, "D"))])
    with pytest.raises(ValueError, match="only allowed as the first entry"):
        tf.debugging.assert_shapes([(x, "N*Q")])
    with pytest.raises(ValueError, match="must have rank greater than or equal 3"):
        tf.debugging.assert_shapes([(y, "*NQD")])
    with pytest.raises(ValueError, match="must be an iterable.*Received specified shape: 2"):
        tf.debugging.assert_shapes([(y, 2)])


def test_a_scalar_is_as_good_as_one_number(session):
    unknown = tf.placeholder(tf.float32)
    checked = tf.debugging.assert_shapes([(tf.ones([1]), ()), (tf.constant(5), (1,)), (unknown, ("N",))])
    session.run(checked, {unknown: 3.0})
    with pytest.raises(ValueError, match="must have size 1.  Received size 2"):
        tf.debugging.assert_shapes([(tf.ones([2]), ())])
    same = tf.debugging.assert_shapes([(tf.ones([2]), "N"), (unknown, "N")])
    session.run(same, {unknown: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[must have size\] \[2\]"):
        session.run(same, {unknown: 3.0})


def test_complex_numbers_may_be_near(session):
    session.run(tf.debugging.assert_near(tf.constant(1 + 0.1j), tf.constant(1.1 + 0.1j), atol=0.0, rtol=0.5))


def test_a_rank_that_is_fed_must_be_one_number(session):
    rank = tf.placeholder(tf.int32)
    check = tf.assert_rank([1, 2], rank)
    session.run(check, {rank: 1})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Rank must be a scalar"):
        session.run(check, {rank: [1, 1]})


def test_the_common_type_of_sparse_tensors_and_of_nothing():
    sparse = tf.SparseTensor([[0]], [1.0], [1])
    assert tf.debugging.assert_same_float_dtype([None, sparse]) == tf.float32
    with pytest.raises(TypeError, match="proper"):
        tf.assert_proper_iterable(sparse)
