"""Operators on tensors: which operations they make, and with what on the other side."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.ops.operators import install_on_variable
from tests.support.sessions import run


@pytest.mark.parametrize(
    ("f", "name", "kind"),
    [
        (lambda x: x + 1, "add", "AddV2"),
        (lambda x: 1 - x, "sub", "Sub"),
        (lambda x: 2 * x, "mul", "Mul"),
        (lambda x: x / 2, "truediv", "RealDiv"),
        (lambda x: x // 2, "floordiv", "FloorDiv"),
        (lambda x: x % 2, "mod", "FloorMod"),
        (lambda x: x**2, "pow", "Pow"),
        (lambda x: -x, "Neg", "Neg"),
        (lambda x: abs(x), "Abs", "Abs"),
        (lambda x: x < 1, "Less", "Less"),
        (lambda x: x >= 1, "GreaterEqual", "GreaterEqual"),
        (lambda x: 3 > x, "Less", "Less"),  # noqa: SIM300
    ],
)
def test_operator_makes_the_operation_tensorflow_makes(f, name, kind):
    result = f(tf.constant([1.0, 2.0]))
    assert (result.op.name, result.op.type) == (name, kind)


def test_constants_are_named_inside_the_operation(graph):
    x = tf.constant([1.0])
    _ = x + 1, 2 - x
    names = {o.name for o in graph.get_operations()}
    assert {"add/y", "sub/x"} <= names


def test_logic_on_bools():
    x, y = tf.constant([True, True, False]), tf.constant([True, False, False])
    np.testing.assert_array_equal(run(x & y), [True, False, False])
    np.testing.assert_array_equal(run(x | y), [True, True, False])
    np.testing.assert_array_equal(run(x ^ y), [False, True, False])
    np.testing.assert_array_equal(run(~x), [False, False, True])


def test_numpy_on_the_left_makes_one_operation():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for result in (np.ones((2, 2), np.float32) + x, np.float32(3) * x, np.eye(2, dtype=np.float32) @ x):
        assert isinstance(result, tf.Tensor)
        assert result.shape.as_list() == [2, 2]


def test_equality_is_identity():
    x, y = tf.constant(1), tf.constant(1)
    assert x == x
    assert x != y
    assert len({x, y}) == 2


def test_mixed_types_are_refused():
    with pytest.raises(TypeError, match="has type float32 that does not match type int32 of argument 'x'"):
        tf.constant(1) + tf.constant(1.0)
    with pytest.raises(TypeError):
        tf.constant(1) + 1.5
    with pytest.raises(TypeError):
        tf.constant(1) / tf.constant(1.0)


def test_strings_join():
    assert run(tf.constant("a") + "b") == b"ab"


def test_a_class_that_converts_to_a_tensor_gets_the_operators():
    class Box:
        def __init__(self, tensor):
            self._tensor = tensor
            self.dtype, self.graph = tensor.dtype, tensor.graph

        def _as_graph_element(self):
            return self._tensor

    install_on_variable(Box)
    tf.register_tensor_conversion_function(
        Box, lambda value, dtype=None, name=None, as_ref=False: value._tensor
    )
    box = Box(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(run(1 - box), [0, -1])
    np.testing.assert_array_equal(run(box * box), [1, 4])
    np.testing.assert_array_equal(run(np.array([1, 1], np.float32) + box), [2, 3])
