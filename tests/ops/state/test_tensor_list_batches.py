"""Tensors of lists."""

import pytest
from tensorfleet.python.ops import list_ops

import tensorfleet as tf


def _lists():
    first = list_ops.tensor_list_from_tensor([1.0, 2.0], element_shape=[])
    second = list_ops.tensor_list_from_tensor([-1.0], element_shape=[])
    return tf.stack([first, second])


def _values(session, lists):
    parts = [list_ops.tensor_list_stack(each, tf.float32) for each in tf.unstack(lists)]
    return [value.tolist() for value in session.run(parts)]


def test_lists_are_joined_in_pairs(session):
    lists = _lists()
    joined = list_ops.tensor_list_concat_lists(lists, lists[::-1], element_dtype=tf.float32)
    assert _values(session, joined) == [[1, 2, -1], [-1, 1, 2]]
    assert _values(session, lists) == [[1, 2], [-1]]


def test_each_list_gets_an_element(session):
    lists = _lists()
    assert _values(session, list_ops.tensor_list_push_back_batch(lists, [3.0, 4.0])) == [[1, 2, 3], [-1, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible shape to a list at index 0"):
        session.run(list_ops.tensor_list_push_back_batch(lists, [[3.0], [4.0]]))


def test_lists_of_other_elements_are_refused():
    lists = _lists()
    with pytest.raises(ValueError, match="wrong element dtype"):
        list_ops.tensor_list_push_back_batch(lists, [3, 4])
    numbers = tf.stack([list_ops.tensor_list_from_tensor([1], element_shape=[])] * 2)
    with pytest.raises(ValueError, match="input_b.type != element_dtype"):
        list_ops.tensor_list_concat_lists(lists, numbers, element_dtype=tf.float32)
    rows = tf.stack([list_ops.tensor_list_from_tensor([[1.0]], element_shape=[1])] * 2)
    with pytest.raises(ValueError, match="Shapes must be equal rank"):
        list_ops.tensor_list_concat_lists(lists, rows, element_dtype=tf.float32)


def test_a_variable_holds_lists(session):
    v = tf.get_variable("lists", initializer=tf.unstack(_lists()), use_resource=True)
    session.run(v.initializer)
    assert _values(session, v) == [[1, 2], [-1]]


def test_lists_of_lists_are_added_and_zeroed(session):
    inner = list_ops.tensor_list_from_tensor([1.0, 2.0], element_shape=[])
    outer = list_ops.tensor_list_push_back(list_ops.empty_tensor_list([], tf.variant), inner)
    for one, wanted in ((tf.add_n([outer, outer]), [2, 4]), (tf.zeros_like(outer), [0, 0])):
        item = list_ops.tensor_list_get_item(one, 0, element_dtype=tf.variant)
        assert session.run(list_ops.tensor_list_stack(item, tf.float32)).tolist() == wanted
