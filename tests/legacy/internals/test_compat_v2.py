"""`tf.compat.v2`: functions of version 2 in a graph."""

import inspect

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet_legacy.internals import compat_v2 as version_2

v2 = tf.compat.v2


@pytest.mark.parametrize("name", sorted(version_2._INNER))
def test_every_function_with_other_arguments_is_there(name):
    result = v2
    for part in name.split("."):
        result = getattr(result, part)
    assert result is not None


def test_arguments_go_by_their_places_in_version_2():
    x = tf.constant([[1.0, 5.0, 2.0]])
    assert v2.shape(x, tf.int64).dtype == tf.int64
    assert v2.argmax(x, 1, tf.int32).dtype == tf.int32
    assert v2.transpose(x, [1, 0], False, "turned").op.name == "turned"
    padded = v2.pad(x, [[0, 0], [1, 0]], "CONSTANT", 7.0)
    blocks = v2.batch_to_space(tf.ones([4, 1, 1, 1]), 2, [[0, 0], [0, 0]])
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(padded), [[7, 1, 5, 2]])
        assert sess.run(blocks).shape == (1, 2, 2, 1)


def test_conditions_and_loops_keep_the_structure_of_what_they_give():
    one = v2.cond(tf.constant(True), lambda: [tf.constant(1)], lambda: [tf.constant(2)])
    looped = v2.while_loop(lambda i: i < 3, lambda i: (i + 1,), (tf.constant(0),))
    assert isinstance(one, list)
    assert isinstance(looped, tuple)
    with tf.Session() as sess:
        assert sess.run([one, looped]) == [[1], (3,)]


def test_signatures_are_those_of_version_2():
    look = tf.python.util.tf_inspect.getfullargspec
    assert look(v2.reduce_sum) == look(lambda input_tensor, axis=None, keepdims=False, name=None: 0)
    assert look(v2.size) == look(lambda input, out_type=tf.int32, name=None: 0)
    assert look(v2.concat) == look(lambda values, axis, name="concat": 0)
    assert list(inspect.signature(v2.squeeze).parameters) == ["input", "axis", "name"]


@pytest.mark.parametrize("name", ["placeholder", "Session", "get_variable", "layers"])
def test_what_version_2_has_no_more_is_not_there(name):
    assert not hasattr(v2, name)


@pytest.mark.parametrize(
    "name", ["nn.dynamic_rnn", "train.AdamOptimizer", "image.resize_images", "sparse.merge"]
)
def test_modules_lack_what_was_taken_out_of_them(name):
    module, _, last = name.rpartition(".")
    assert not hasattr(getattr(v2, module), last)


def test_modules_that_did_not_change_are_the_same():
    assert v2.keras.layers.Dense is tf.keras.layers.Dense
    assert v2.optimizers.Optimizer is tf.keras.optimizers.Optimizer
    assert v2.linalg.LinearOperator is tf.linalg.LinearOperator
    assert v2.newaxis is None


def test_functions_and_tapes_work_inside_of_a_graph():
    @v2.function
    def slope(x):
        with v2.GradientTape() as tape:
            tape.watch(x)
            y = x * x if v2.autograph else x
        return tape.gradient(y, x)

    with tf.Session() as sess:
        assert sess.run(slope(tf.constant(3.0))) == 6.0
