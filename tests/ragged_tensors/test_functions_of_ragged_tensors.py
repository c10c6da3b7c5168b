"""Ordinary functions take ragged tensors: brackets, sums, joining, arithmetic with dense tensors."""

import pytest

import tensorfleet as tf

ROWS = [[1, 2, 3], [], [4]]
CASES = {
    "row": (lambda r: r[0], [1, 2, 3]),
    "last row": (lambda r: r[-1], [4]),
    "element": (lambda r: r[0, 1], 2),
    "rows": (lambda r: r[1:], [[], [4]]),
    "columns": (lambda r: r[:, :2], [[1, 2], [], [4]]),
    "last columns": (lambda r: r[:, -1:], [[3], [], [4]]),
    "backwards": (lambda r: r[:, ::-1], [[3, 2, 1], [], [4]]),
    "sum of rows": (lambda r: tf.reduce_sum(r, 1), [6, 0, 4]),
    "sum of columns": (lambda r: tf.reduce_sum(r, 0), [5, 2, 3]),
    "sum": (lambda r: tf.reduce_sum(r), 10),
    "side by side": (lambda r: tf.concat([r, r], 1), [[1, 2, 3, 1, 2, 3], [], [4, 4]]),
    "below": (lambda r: tf.concat([r, [[9]]], 0), [[1, 2, 3], [], [4], [9]]),
    "gathered": (lambda r: tf.gather(r, [2, 0]), [[4], [1, 2, 3]]),
    "square": (lambda r: tf.square(r), [[1, 4, 9], [], [16]]),
    "a number per row": (lambda r: r * [[1], [2], [3]], [[1, 2, 3], [], [12]]),
    "masked": (
        lambda r: tf.ragged.boolean_mask(r, tf.ragged.constant([[True, False, True], [], [False]])),
        [[1, 3], [], []],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case, session):
    function, wanted = CASES[case]
    got = session.run(function(tf.ragged.constant(ROWS)))
    assert (got.to_list() if hasattr(got, "to_list") else got.tolist()) == wanted


def test_rows_of_other_lengths_are_not_added():
    rows, others = tf.ragged.constant([[1, 2], [3]]), tf.ragged.constant([[1], [2, 3]])
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="Unable to broadcast"):
        sess.run(rows + others)


def test_functions_keep_their_names_and_arguments():
    assert tf.square is tf.math.square
    assert tf.reduce_sum.__name__ == "reduce_sum"
