"""Gradients of `tf.where` and its kind compute no more than they need."""

import numpy as np
import pytest

import tensorfleet as tf

FORMS = {
    "where": lambda x: tf.where(tf.constant([True, False]), x, x * 2.0),
    "sign": lambda x: tf.sign(x) + x,
    "set_diag": lambda x: tf.matrix_set_diag(tf.zeros([2, 2]) + x, x),
    "scatter": lambda x: tf.tensor_scatter_update(x, [[1]], [4.0]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_zeros_of_a_known_shape_do_not_run_what_had_the_shape(form):
    """TensorFlow's gradients have a constant there, so an update behind the value does not happen."""
    counter = tf.Variable(0.0)
    with tf.control_dependencies([tf.assign_add(counter, 1.0)]):
        x = tf.identity(tf.constant([3.0, -5.0]))
    slope = tf.gradients(form(x), x)[0]
    with tf.Session() as session:
        session.run(counter.initializer)
        assert np.shape(session.run(slope)) == (2,)
        assert session.run(counter) == 0.0
