"""Functions from definitions, from libraries, and by declaration."""

import pytest
from tensorfleet.python.framework import function

import tensorfleet as tf
from tensorfleet.base.protos import FunctionDefLibrary


@function.Defun(tf.float32, tf.float32)
def double_gradient(x, dy):
    return 2.0 * x * dy


@function.Defun(tf.float32, grad_func=double_gradient)
def square(x):
    return x * x


def test_a_function_has_the_same_name_in_every_graph():
    names = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.constant(1.0)
            square(tf.constant(3.0))
            names.append(square.name)
    assert names[0] == names[1] and names[0].startswith("square_")


def test_a_definition_is_a_function_again():
    result = function._from_definition(square.definition, grad_func=double_gradient)
    assert (result.name, result.definition) == (square.name, square.definition)
    assert result.grad_func_name == square.grad_func_name == double_gradient.name
    assert result.declared_input_types == (tf.float32,) and result.captured_inputs == []
    with tf.Graph().as_default():
        x = tf.constant(3.0)
        y = result(x)
        with tf.Session() as sess:
            assert sess.run([y, result(y), tf.gradients(y, x)[0]]) == [9.0, 81.0, 6.0]


def test_a_library_gives_its_functions_with_their_gradients():
    with tf.Graph().as_default() as g:
        square(tf.constant(3.0))
        library = g.as_graph_def().library
    by_name = {f.name: f for f in function.from_library(library)}
    assert set(by_name) == {square.name, double_gradient.name}
    assert by_name[square.name].grad_func_name == double_gradient.name
    assert by_name[double_gradient.name].grad_func_name is None
    assert function.from_library(FunctionDefLibrary()) == []


def test_a_library_must_be_whole():
    library = FunctionDefLibrary(function=[square.definition])
    library.gradient.add(function_name=square.name, gradient_func="other")
    with pytest.raises(ValueError, match="missing 'other' FunctionDef"):
        function.from_library(library)
    library.gradient[0].gradient_func = square.name
    with pytest.raises(ValueError, match="cyclic gradient functions"):
        function.from_library(library)


def test_a_function_may_be_declared_before_it_is_there():
    declared = function.Declare("Foo", [("x", tf.float32)], [("y", tf.float32)])
    x = tf.placeholder(tf.float32)
    y, wrong = declared(x), declared(tf.constant(2))
    assert y.op.name == "Foo" and y.dtype == tf.float32
    with tf.Session() as sess:
        with pytest.raises(tf.errors.NotFoundError, match="not registered 'Foo'"):
            sess.run(y, {x: 1.0})

        @function.Defun(tf.float32, func_name="Foo", out_names=["y"])
        def foo(x):
            return x * x + 1.0

        foo.add_to_graph(tf.get_default_graph())
        assert sess.run(y, {x: 3.0}) == 10.0
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"int32; it takes float32"):
            sess.run(wrong)
    with pytest.raises(ValueError, match="Expected number of arguments: 1, received: 2"):
        declared(1.0, 2.0)
    with pytest.raises(ValueError, match="Unknown keyword arguments: device"):
        declared(1.0, device="/cpu:0")


def test_declared_functions_with_several_results_or_none():
    two = function.Declare("Two", [("x", tf.float32)], [("y", tf.float32), ("z", tf.int32)])
    assert [t.dtype for t in two(1.0)] == [tf.float32, tf.int32]
    assert function.Declare("None", [], [])().type == "PartitionedCall"
