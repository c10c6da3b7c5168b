"""TensorArrays: what they hold, and what they refuse."""

import numpy as np
import pytest

import tensorfleet as tf


def run(*fetches, **feeds):
    with tf.Session() as s:
        return s.run(list(fetches), feeds)


def fails(fetch, text, kind=tf.errors.InvalidArgumentError):
    with tf.Session() as s, pytest.raises(kind, match=text):
        s.run(fetch)


def test_elements_come_back():
    ta = tf.TensorArray(tf.float32, 3, clear_after_read=False)
    ta = ta.write(0, 1.0).write(1, 2.0).write(2, 3.0)
    stacked, one, size = run(ta.stack(), ta.read(1), ta.size())
    assert stacked.tolist() == [1, 2, 3]
    assert (one, size) == (2, 3)


def test_gather_scatter_split_concat():
    ta = tf.TensorArray(tf.int32, 4).scatter([3, 1, 0, 2], tf.constant([[30], [10], [0], [20]]))
    assert run(ta.gather([0, 3]))[0].tolist() == [[0], [30]]
    pieces = tf.TensorArray(tf.int32, 3, infer_shape=False).split(tf.range(6), [3, 1, 2])
    assert run(pieces.read(2))[0].tolist() == [4, 5]
    pieces = tf.TensorArray(tf.int32, 3, infer_shape=False).split(tf.range(6), [3, 1, 2])
    assert run(pieces.concat())[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_strings_are_elements():
    ta = tf.TensorArray(tf.string, 2).unstack(tf.constant(["a", "b"]))
    assert run(ta.stack())[0].tolist() == [b"a", b"b"]


def test_an_element_is_written_once_and_read_once():
    ta = tf.TensorArray(tf.float32, 2)
    fails(ta.write(0, 1.0).write(0, 2.0).flow, "index 0 because it has already been written to")
    once = ta.write(0, 1.0)
    first = once.read(0)
    with tf.control_dependencies([first]):
        fails(once.read(0), "Could not read index 0 twice because it was cleared after a previous read")
        fails(once.write(0, 3.0).flow, "because it has already been read")


def test_positions_must_exist():
    ta = tf.TensorArray(tf.float32, 2)
    fails(ta.write(2, 1.0).flow, "Tried to write to index 2 but array is not resizeable and size is: 2")
    fails(ta.write(-1, 1.0).flow, "Tried to write to index -1")
    fails(ta.read(5), "Tried to read from index 5 but array size is: 2")
    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True).write(2, 1.0)
    assert run(grown.size())[0] == 3


def test_elements_have_one_shape_and_one_type():
    ta = tf.TensorArray(tf.float32, 2).write(0, [1.0, 2.0])
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        ta.write(1, [[1.0]])
    with pytest.raises(ValueError, match="TensorArray dtype is float32"):
        ta.write(1, tf.constant(1))
    x = tf.placeholder(tf.float32)
    unknown = tf.TensorArray(tf.float32, 2).write(0, x).write(1, tf.ones([3]))
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="inferred element shape"):
        s.run(unknown.flow, {x: np.ones([2])})


def test_what_was_never_written_reads_as_zeros_if_its_shape_is_known():
    assert run(tf.TensorArray(tf.float32, 2, element_shape=[2]).read(1))[0].tolist() == [0, 0]
    fails(tf.TensorArray(tf.float32, 2).read(1), "Could not read from TensorArray index 1")


def test_a_closed_array_is_of_no_use():
    ta = tf.TensorArray(tf.float32, 2).write(0, 1.0)
    with tf.control_dependencies([ta.flow]):
        close = ta.close()
    with tf.control_dependencies([close]):
        fails(ta.read(0), "has already been closed")


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="Size must be provided"):
        tf.TensorArray(tf.float32)
    with pytest.raises(TypeError, match="Handle must be a Tensor"):
        tf.TensorArray(tf.float32, handle=3, flow=None)
    ta = tf.TensorArray(tf.float32, 2, infer_shape=False)
    fails(ta.split(tf.ones([3]), [1, 1]).flow, "Expected sum of lengths to be equal to values.shape\\[0\\]")
    fails(ta.split(tf.ones([3]), [1, 1, 1]).flow, "TensorArray's size is not equal to the size of lengths")
    fails(ta.scatter([0], tf.ones([2])).flow, "Expected len\\(indices\\) == values.shape\\[0\\]")


def test_gradients_of_two_calls_are_kept_apart():
    x = tf.constant([1.0, 2.0])
    ta = tf.TensorArray(tf.float32, 2, clear_after_read=False).unstack(x)
    y = ta.read(0) * 3.0 + ta.read(1) * 5.0 + ta.read(1)
    a, b = tf.gradients(y, x)[0], tf.gradients(y * 2.0, x)[0]
    first, second = run(a, b)
    assert first.tolist() == [3, 6]
    assert second.tolist() == [6, 12]


def test_arrays_pass_through_cond(session):
    p = tf.placeholder(tf.bool, [])
    ta = tf.TensorArray(tf.float32, 1)
    out = tf.cond(p, lambda: ta.write(0, 1.0), lambda: ta.write(0, 2.0))
    assert session.run(out.stack(), {p: True}).tolist() == [1]
    assert session.run(out.stack(), {p: False}).tolist() == [2]


def test_an_array_may_be_written_before_in_and_after_a_loop(session):
    ta = tf.TensorArray(tf.float32, 5).write(0, 10.0)
    _, ta = tf.while_loop(
        lambda i, t: i < 4, lambda i, t: (i + 1, t.write(i, tf.cast(i, tf.float32))), [1, ta]
    )
    y = ta.write(4, 40.0).stack()
    for _ in range(3):
        assert session.run(y).tolist() == [10, 1, 2, 3, 40]


def test_the_gradient_of_a_split_has_no_more_than_was_split(session):
    x = tf.constant([1.0, 2.0, 3.0])
    array = tf.TensorArray(tf.float32, size=3, dynamic_size=True).split(x, [1, 1, 1])
    joined = array.write(3, [4.0]).concat()
    assert session.run(joined).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert session.run(tf.gradients(joined, x)[0]).tolist() == [1.0, 1.0, 1.0]


def test_stacking_nothing_of_unknown_shape_is_told():
    array = tf.TensorArray(tf.float32, size=0, infer_shape=False)
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.UnimplementedError, match="element shape <unknown> is not fully"),
    ):
        s.run(array.stack())


def test_elements_read_have_the_shape_that_the_maker_of_the_array_told():
    def read(handle):
        return tf.raw_ops.TensorArrayReadV3(handle=handle, index=0, flow_in=0.0, dtype=tf.float32).shape

    array = tf.TensorArray(tf.float32, 3, element_shape=[2, 3])
    longer, _ = tf.raw_ops.TensorArrayGradWithShape(
        handle=array.handle, flow_in=array.flow, shape_to_prepend=[4, 5], source="s"
    )
    assert read(array.grad("s").handle).as_list() == [2, 3]
    assert read(longer).as_list() == [None, None, 2, 3]
    pieces = tf.TensorArray(tf.float32, 2).split(tf.ones([3, 2]), [1, 2])
    assert pieces.read(0).shape.rank is None


def test_results_of_a_loop_behind_stop_gradient_have_gradients_of_zeros():
    a, b = tf.constant(2.0), tf.constant(3.0)
    x, y = tf.scan(lambda _, i: (a * i, b * i), tf.constant([1.0, 2.0]), initializer=(0.0, 0.0))
    assert run(*tf.gradients(x + tf.stop_gradient(y), [a, b])) == [3, 0]
    assert tf.gradients(x, [a, b])[1] is None


def test_a_stack_by_reference_gives_back_what_was_pushed_last():
    ops = tf.python.ops.gen_data_flow_ops
    stack = ops.stack(elem_type=tf.float32, stack_name="kept")
    pushed = ops.stack_push(stack, [[4.0, 5.0]])
    with tf.control_dependencies([pushed]):
        popped = ops.stack_pop(stack, tf.float32)
    with tf.Session() as sess:
        assert sess.run(popped).tolist() == [[4.0, 5.0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Stack\[kept\] is empty"):
            sess.run(ops.stack_pop(stack, tf.float32))
        sess.run(ops.stack_close(stack))
