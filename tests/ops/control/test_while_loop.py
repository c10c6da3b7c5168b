"""Shape invariants of loops, told as shapes and as specs."""

import pytest

import tensorfleet as tf

ROWS = [[1, 2], [3], [4, 5, 6]]


def _doubled(axis):
    return lambda i, x: [i + 1, tf.concat([x, x], axis=axis)]


@pytest.mark.parametrize(
    "invariant", [tf.TensorShape([None, None]), tf.RaggedTensorSpec([None, None], tf.int32)]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_ragged_tensor_grows_within_its_invariant(session, invariant, axis):
    i, x = tf.constant(0), tf.ragged.constant(ROWS)
    _, y = tf.while_loop(lambda i, _: i < 2, _doubled(axis), [i, x], [i.shape, invariant])
    wanted = [row * 4 for row in ROWS] if axis else ROWS * 4
    assert session.run(y).to_list() == wanted


def test_a_ragged_tensor_keeps_its_rows_without_an_invariant():
    i, x = tf.constant(0), tf.ragged.constant(ROWS)
    with pytest.raises(ValueError, match="shape_invariants"):
        tf.while_loop(lambda i, _: i < 2, _doubled(0), [i, x])


def test_a_spec_of_another_kind_or_type_is_refused():
    invariants = [tf.TensorSpec([], tf.int32), tf.SparseTensorSpec([None])]
    body = lambda i, x: (i + 1, x)  # noqa: E731
    sparse = tf.SparseTensor([[0]], [1.0], [10])
    tf.while_loop(lambda i, _: i < 2, body, [tf.constant(0), sparse], invariants)
    for wrong in ([tf.constant(0), tf.constant([1])], [tf.constant(0.0), sparse]):
        with pytest.raises(TypeError, match="is not compatible with the loop variable"):
            tf.while_loop(lambda i, _: i < 2, body, wrong, invariants)


def test_a_list_of_tensors_is_cast_to_the_type_asked_for(session):
    i = tf.constant(3)
    wide = tf.convert_to_tensor([[i, 4]], dtype=tf.int64)
    assert wide.dtype == tf.int64
    assert session.run(tf.concat([wide, [[i, i]]], 0)).tolist() == [[3, 4], [3, 3]]
    with pytest.raises(TypeError, match="Cannot convert a list containing a tensor"):
        tf.convert_to_tensor([i, tf.constant(2.5)])


def test_one_tensor_comes_alone_and_more_come_in_their_structure():
    a, b = tf.constant(0), tf.constant(1)
    pair = tf.while_loop(lambda p: p[0] < 3, lambda p: [(p[0] + 1, p[1])], [(a, b)])
    assert isinstance(pair, list) and isinstance(pair[0], tuple) and len(pair) == 1
    alone = tf.while_loop(lambda i, rest: i < 3, lambda i, rest: [i + 1, []], [a, []])
    assert isinstance(alone, tf.Tensor)
