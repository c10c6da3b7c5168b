"""Barriers: elements whose components arrive one by one."""

import pytest

import tensorfleet as tf
from tensorfleet.ops.state.barriers import Barrier


def two_components():
    return Barrier((tf.float32, tf.float32), shapes=((), ()), name="B")


def test_elements_are_ready_when_all_components_are_there(session):
    b = two_components()
    take = b.take_many(2)
    assert [t.shape.as_list() for t in (take.indices, take.keys, *take.values)] == [[2]] * 4
    session.run(b.insert_many(0, ["a", "b", "c"], [10.0, 20.0, 30.0]))
    assert session.run([b.ready_size(), b.incomplete_size()]) == [0, 3]
    session.run(b.insert_many(1, ["b", "a"], [200.0, 100.0]))
    assert session.run([b.ready_size(), b.incomplete_size()]) == [2, 1]
    got = session.run(take)
    pairs = dict(zip(got.keys.tolist(), zip(*(v.tolist() for v in got.values), strict=True), strict=True))
    assert pairs == {b"a": (10, 100), b"b": (20, 200)}
    assert set(got.indices.tolist()) == {-(2**63)}


def test_keys_that_came_first_leave_first(session):
    b = two_components()
    session.run(b.insert_many(0, ["first"], [1.0]))
    session.run(b.insert_many(0, ["second"], [2.0]))
    session.run(b.insert_many(1, ["second"], [2.0]))
    session.run(b.insert_many(1, ["first"], [1.0]))
    assert session.run(b.take_many(2)).keys.tolist() == [b"first", b"second"]


def test_elements_that_began_together_have_the_same_index(session):
    b = two_components()
    for keys in (["a", "b"], ["c"]):
        session.run(b.insert_many(0, keys, [1.0] * len(keys)))
        session.run(b.insert_many(1, keys, [1.0] * len(keys)))
    got = session.run(b.take_many(3))
    numbers = [i + 2**63 for i in got.indices.tolist()]
    assert dict(zip(got.keys.tolist(), numbers, strict=True)) == {b"a": 0, b"b": 0, b"c": 1}


def test_a_closed_barrier_completes_what_it_has(session):
    b = two_components()
    session.run(b.insert_many(0, ["a"], [1.0]))
    session.run(b.close())
    with pytest.raises(tf.errors.CancelledError, match="attempted to insert a brand new key: z"):
        session.run(b.insert_many(0, ["z"], [1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Key a already has a value for component 0"):
        session.run(b.insert_many(0, ["a"], [1.0]))
    session.run(b.insert_many(1, ["a"], [2.0]))
    small = b.take_many(5, allow_small_batch=True)
    assert session.run(small).keys.tolist() == [b"a"]
    with pytest.raises(tf.errors.OutOfRangeError, match=r"is closed and has insufficient elements"):
        session.run(small)
    with pytest.raises(tf.errors.CancelledError, match="is already closed"):
        session.run(b.close())


def test_cancelling_forgets_the_incomplete(session):
    b = two_components()
    session.run(b.insert_many(0, ["k"], [1.0]))
    session.run(b.close(cancel_pending_enqueues=True))
    assert session.run([b.ready_size(), b.incomplete_size()]) == [0, 0]
    with pytest.raises(tf.errors.CancelledError, match="is closed.  Pending enqueues cancelled: 1"):
        session.run(b.insert_many(1, ["k"], [1.0]))
    with pytest.raises(tf.errors.OutOfRangeError, match=r"\(requested 1, total size 0\)"):
        session.run(b.take_many(1))


def test_shapes_are_checked(session):
    with pytest.raises(ValueError, match="Empty tensors are not supported"):
        Barrier((tf.float32,), shapes=((0,),))
    b = two_components()
    with pytest.raises(ValueError, match="not compatible|must be equal"):
        b.insert_many(0, ["q", "w"], [1.0])
    x = tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch in tuple component 0"):
        session.run(b.insert_many(0, ["a"], x), {x: [[1.0, 2.0]]})
    assert session.run(b.incomplete_size()) == 0


def test_a_small_batch_of_a_closed_barrier_is_what_is_ready(session):
    b = two_components()
    small = b.take_many(3, allow_small_batch=True)
    session.run(b.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0]))
    session.run(b.insert_many(1, ["a", "b"], [1.0, 2.0]))
    session.run(b.close())
    assert sorted(session.run(small).keys.tolist()) == [b"a", b"b"]
    with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
        session.run(small)  # `c` is still incomplete
    session.run(b.insert_many(1, ["c"], [3.0]))
    assert session.run(small).keys.tolist() == [b"c"]


def test_values_without_elements_are_refused():
    b = Barrier((tf.float32, tf.float32))
    insert = b.insert_many(0, ["a", "b"], tf.zeros([2, 0]))
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="Tensors with no elements"),
    ):
        sess.run(insert)


def test_a_shared_barrier_is_one_kind_of_barrier(session):
    first = Barrier((tf.float32,), shapes=((2,),), shared_name="b")
    types = Barrier((tf.int32,), shapes=((2,),), shared_name="b")
    shapes = Barrier((tf.float32,), shared_name="b")
    session.run(first.barrier_ref.op)
    with pytest.raises(tf.errors.InvalidArgumentError, match="component types"):
        session.run(types.barrier_ref.op)
    with pytest.raises(tf.errors.InvalidArgumentError, match="component shapes"):
        session.run(shapes.barrier_ref.op)
