"""Lists of tensors."""

import numpy as np
import pytest

import tensorfleet as tf

lists = tf.python.ops.list_ops
raw = tf.python.ops.gen_list_ops


def _run(x):
    with tf.Session() as sess:
        return sess.run(x)


def _stacked(handle, dtype=tf.float32, **how):
    return _run(lists.tensor_list_stack(handle, dtype, **how)).tolist()


def _fails(text, make):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        _run(make())


def test_what_is_pushed_is_popped_and_the_first_list_stays():
    empty = lists.empty_tensor_list([], tf.float32)
    one = lists.tensor_list_push_back(empty, 1.0)
    two = lists.tensor_list_push_back(one, 2.0)
    rest, last = lists.tensor_list_pop_back(two, tf.float32)
    assert _run(last) == 2 and _stacked(rest) == [1] and _stacked(two) == [1, 2]
    assert _run([lists.tensor_list_length(x) for x in (empty, one, two)]) == [0, 1, 2]
    assert lists.tensor_list_stack(two, tf.float32).shape.as_list() == [None]


def test_a_full_list_takes_no_more_and_an_empty_one_gives_nothing():
    full = lists.tensor_list_push_back(lists.empty_tensor_list([], tf.float32, 1), 1.0)
    _fails("Tried to push item into a full list", lambda: lists.tensor_list_push_back(full, 2.0))
    empty = lists.empty_tensor_list([], tf.float32)
    _fails("Trying to pop from an empty list", lambda: lists.tensor_list_pop_back(empty, tf.float32)[1])


def test_elements_that_were_never_set_are_zeros_where_their_shape_is_known():
    known = lists.tensor_list_reserve([2, 3], 2, tf.float32)
    assert _stacked(known) == np.zeros((2, 2, 3)).tolist()
    partly = lists.tensor_list_reserve([None, 2], 3, tf.float32)
    assert _run(raw.tensor_list_get_item(partly, 0, [4, 2], tf.float32)).shape == (4, 2)
    _fails(
        "uninitialized tensor but element_shape", lambda: lists.tensor_list_get_item(partly, 0, tf.float32)
    )
    _fails("which only contains uninitialized", lambda: lists.tensor_list_stack(partly, tf.float32))
    with pytest.raises(ValueError, match="shapes"):
        raw.tensor_list_get_item(partly, 0, [1, 3], tf.float32)
    _fails(
        r"Incompatible shapes during merge: \[1,3\] vs. \[\?,2\]",
        lambda: raw.tensor_list_pop_back(partly, [1, 3], tf.float32)[1],
    )
    filled = lists.tensor_list_set_item(partly, 1, [[1.0, 2.0]])
    assert _stacked(filled) == [[[0, 0]], [[1, 2]], [[0, 0]]]


def test_what_does_not_fit_a_list_is_told():
    result = lists.tensor_list_from_tensor([1.0, 2.0], [])
    _fails("incompatible shape to a list", lambda: lists.tensor_list_push_back(result, [1.0]))
    _fails("incompatible shape at a list index", lambda: lists.tensor_list_set_item(result, 0, [1.0]))
    _fails("access element 2 in a list with 2", lambda: lists.tensor_list_get_item(result, 2, tf.float32))
    _fails("modify element -1 in a list with 2", lambda: lists.tensor_list_set_item(result, -1, 0.0))
    _fails("op elements int32 but list elements float32", lambda: lists.tensor_list_stack(result, tf.int32))
    _fails("expected a list with 3 elements", lambda: lists.tensor_list_stack(result, tf.float32, 3))
    uneven = lists.tensor_list_push_back(lists.tensor_list_from_tensor([1.0], None), [2.0])
    _fails("Incompatible ranks during merge: 0 vs. 1", lambda: lists.tensor_list_stack(uneven, tf.float32))
    empty = lists.empty_tensor_list(None, tf.float32)
    _fails("non-fully-defined", lambda: lists.tensor_list_gather(empty, [], tf.float32))


def test_rows_are_scattered_and_gathered():
    result = lists.tensor_list_scatter([1.0, 2.0], [3, 0], [], num_elements=4)
    assert _stacked(result) == [2, 0, 0, 1]
    more = lists.tensor_list_scatter([5.0], [1], [], result)
    assert _run(lists.tensor_list_gather(more, [1, 3], tf.float32)).tolist() == [5, 1]
    _fails(
        "scatter at index 3 in list with size 2",
        lambda: lists.tensor_list_scatter([1.0], [3], [], num_elements=2),
    )
    _fails("must all be non-negative", lambda: lists.tensor_list_scatter([1.0], [-1], []))
    assert _run(lists.tensor_list_element_shape(result)).tolist() == []
    assert _stacked(lists.tensor_list_resize(result, 2)) == [2, 0]


def test_pieces_are_split_and_joined():
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    result = lists.tensor_list_split(x, [None, 2], [1, 3])
    assert _run(lists.tensor_list_length(result)) == 2
    np.testing.assert_array_equal(_run(lists.tensor_list_concat(result, tf.float32)), x)
    _fails("sum of lengths is 3", lambda: lists.tensor_list_split(x, [None, 2], [1, 2]))
    _fails("Invalid value in lengths: -1", lambda: lists.tensor_list_split(x, [None, 2], [5, -1]))
    scalars = lists.tensor_list_from_tensor([1.0], None)
    _fails("at least vectors", lambda: lists.tensor_list_concat(scalars, tf.float32))


def test_lists_go_through_loops_and_branches():
    start = lists.empty_tensor_list([], tf.int32)
    _, result = tf.while_loop(
        lambda i, _: i < 4, lambda i, made: (i + 1, lists.tensor_list_push_back(made, i)), [0, start]
    )
    assert _stacked(result, tf.int32) == [0, 1, 2, 3]
    chosen = tf.cond(lists.tensor_list_length(result) > 3, lambda: start, lambda: result)
    assert _run(lists.tensor_list_length(chosen)) == 0


def test_lists_are_elements_and_summands():
    child = lists.tensor_list_from_tensor([1.0, 2.0], [])
    parent = lists.tensor_list_push_back(lists.empty_tensor_list([], tf.variant), child)
    _, again = lists.tensor_list_pop_back(parent, tf.variant)
    assert _stacked(again) == [1, 2]
    assert _stacked(tf.add_n([child, child])) == [2, 4]
    assert _stacked(tf.zeros_like(child)) == [0, 0]
    longer = lists.tensor_list_from_tensor([1.0, 2.0, 3.0], [])
    _fails("different lengths", lambda: lists.tensor_list_length(tf.add_n([child, longer])))


@pytest.mark.parametrize(
    "through",
    [
        lambda x: lists.tensor_list_from_tensor(x, []),
        lambda x: lists.tensor_list_scatter(x, [1, 0, 2], []),
        lambda x: lists.tensor_list_scatter(x[:2], [1, 0], [], lists.tensor_list_from_tensor(x, [])),
        lambda x: lists.tensor_list_push_back(lists.tensor_list_from_tensor(x[:2], []), x[2]),
        lambda x: lists.tensor_list_set_item(lists.tensor_list_from_tensor(x, []), 1, x[0] * x[1]),
        lambda x: lists.tensor_list_resize(lists.tensor_list_from_tensor(x, []), 2),
        lambda x: lists.tensor_list_pop_back(lists.tensor_list_from_tensor(x, []), tf.float32)[0],
    ],
)
def test_gradients_go_through_lists(through):
    x = tf.constant([2.0, 3.0, 5.0])
    result = through(x)
    values = lists.tensor_list_stack(result, tf.float32, element_shape=[])
    first = lists.tensor_list_get_item(result, 0, tf.float32)
    both = lists.tensor_list_gather(result, [1, 0], tf.float32, [])
    total = tf.reduce_sum(values * values) * first + both[0] * both[1]
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [3], total, []) < 0.1


def test_gradients_go_through_pieces():
    x = tf.constant([2.0, 3.0, 5.0])
    result = lists.tensor_list_split(x, [None], [1, 2])
    whole = lists.tensor_list_concat(result, tf.float32, [None])
    assert _run(tf.gradients(whole * whole, x)[0]).tolist() == [4, 6, 10]


def test_as_many_rows_are_scattered_as_there_are_places():
    result = tf.raw_ops.TensorListScatterV2(
        tensor=[1.0, 2.0], indices=[1, 0, 2], element_shape=tf.constant([], tf.int32), num_elements=-1
    )
    with (
        tf.Session() as sess,
        pytest.raises(
            tf.errors.InvalidArgumentError, match="number of rows in input tensor. Expected: 3 Actual: 2"
        ),
    ):
        sess.run(tf.raw_ops.TensorListLength(input_handle=result))
