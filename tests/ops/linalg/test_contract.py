"""`tf.einsum`: labels that repeat, and gradients."""

import numpy as np
import pytest

import tensorfleet as tf


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("aaa->a", [(3, 3, 3)]),
        ("aabcd->ad", [(3, 3, 5, 4, 4)]),
        ("abc->b", [(2, 3, 4)]),
        ("a...a->a...", [(2, 3, 2)]),
        ("i...,jk...k->i...j", [(3, 1), (2, 4, 1, 4)]),
        ("ij,jk...k->i...", [(3, 2), (2, 4, 1, 4)]),
    ],
)
def test_gradients_of_einsum_are_those_of_differences(session, equation, shapes):
    draw = np.random.RandomState(0)
    inputs = [tf.constant(draw.randn(*shape)) for shape in shapes]
    output = tf.einsum(equation, *inputs)
    result = tf.test.compute_gradient_error(inputs, [x.shape for x in inputs], output, output.shape)
    assert result < 1e-7


def test_an_identity_ties_labels_that_the_output_has_twice(session):
    x = np.arange(6.0).reshape(2, 3)
    result = session.run(tf.raw_ops.Einsum(inputs=[x], equation="ab->aba"))
    assert np.array_equal(result, np.einsum("ab,ac->abc", x, np.eye(2)))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->iik", [(2, 3), (3, 4)]),
        ("...ij...,jk->ik", [(2, 3), (3, 4)]),
        ("...ij,...jk->ik", [(2, 2, 3), (3, 4)]),
    ],
)
def test_equations_that_mean_nothing_are_refused(equation, shapes):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.einsum(equation, *(np.ones(shape) for shape in shapes))
