"""Sums of operators: `tensorflow.python.ops.linalg.linear_operator_addition`."""

import numpy as np
import pytest
from tensorfleet.python.ops.linalg import linear_operator_addition as addition

import tensorfleet as tf

diag, triangle = tf.linalg.LinearOperatorDiag, tf.linalg.LinearOperatorLowerTriangular


def value(operator):
    with tf.Session() as sess:
        return sess.run(operator.to_dense())


@pytest.mark.parametrize(
    ("terms", "kind", "expected"),
    [
        (
            lambda: [tf.linalg.LinearOperatorIdentity(2), tf.linalg.LinearOperatorScaledIdentity(2, 0.5)],
            tf.linalg.LinearOperatorScaledIdentity,
            [[1.5, 0], [0, 1.5]],
        ),
        (lambda: [diag([1.0, 2.0]), tf.linalg.LinearOperatorIdentity(2)], diag, [[2, 0], [0, 3]]),
        (lambda: [triangle([[1.0, 0], [4, 1]]), diag([1.0, 2.0])], triangle, [[2, 0], [4, 3]]),
        (
            lambda: [tf.linalg.LinearOperatorFullMatrix([[1.0, 2], [3, 4]]), triangle([[1.0, 0], [4, 1]])],
            tf.linalg.LinearOperatorFullMatrix,
            [[2, 2], [7, 5]],
        ),
    ],
)
def test_a_sum_is_of_the_simplest_kind_that_holds_it(terms, kind, expected):
    (result,) = addition.add_operators(terms())
    assert type(result) is kind
    np.testing.assert_allclose(value(result), expected)


def test_promises_of_both_terms_hold_for_the_sum():
    a, b = (diag([1.0], is_positive_definite=True, name=n) for n in "AB")
    (result,) = addition.add_operators([a, b])
    assert result.is_positive_definite and result.is_non_singular and result.name == "Add/B__A/"
    (loose,) = addition.add_operators([a, diag([1.0], is_non_singular=True)])
    assert loose.is_positive_definite is None and loose.is_non_singular is None


def test_what_the_ways_of_adding_do_not_allow_stays_apart():
    terms = [diag([1.0]), diag([2.0]), triangle([[5.0]])]
    left = addition.add_operators(terms, addition_tiers=[[addition._AddAndReturnDiag()]])
    assert sorted(float(value(o)[0, 0]) for o in left) == [3, 5]


def test_operators_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="at least one operator"):
        addition.add_operators([])
    with pytest.raises(TypeError, match="only LinearOperator"):
        addition.add_operators([diag([1.0]), 2])
    with pytest.raises(ValueError, match="same domain dimension"):
        addition.add_operators([diag([1.0]), diag([1.0, 2.0])])
    with pytest.raises(ValueError, match="Incompatible shapes"):
        addition.add_operators([diag(np.ones((2, 3))), diag(np.ones((4, 3)))])
