"""Functions that are one operation where they are called."""

import numpy as np
import pytest
from tensorfleet.python.framework import function
from tensorfleet.python.ops import functional_ops

import tensorfleet as tf


def test_a_call_is_one_operation(session):
    @function.Defun(tf.float32, tf.float32)
    def hypotenuse(a, b):
        return tf.sqrt(a * a + b * b)

    c = hypotenuse([3.0, 5.0], [4.0, 12.0])
    assert c.op.type == "PartitionedCall" and len(tf.get_default_graph()._functions) == 1
    assert session.run(c).tolist() == [5.0, 13.0]
    hypotenuse(1.0, 2.0)
    assert len(tf.get_default_graph()._functions) == 1


def test_types_may_come_from_the_arguments_and_tensors_from_around(session):
    big = tf.constant(np.arange(5000.0))

    @function.Defun()
    def pair(x):
        return x + tf.cast(big[7], x.dtype), x * 2

    assert session.run(pair(tf.constant(1))) == (8, 2)
    assert session.run(pair(tf.constant(1.5))) == (8.5, 3.0)


def test_functions_differentiate_by_themselves_or_as_told(session):
    @function.Defun(tf.float32)
    def cube(x):
        return x * x * x

    @function.Defun(tf.float32, python_grad_func=lambda op, g: 100 * g)
    def strange(x):
        return x * x

    x = tf.constant(2.0)
    assert session.run(tf.gradients(cube(x), x)) == [12.0]
    assert session.run(tf.gradients(strange(x), x)) == [100.0]


def test_a_function_with_effects_becomes_its_operations(session):
    count = tf.get_variable("count", initializer=0.0, use_resource=True)
    session.run(count.initializer)

    @function.Defun(tf.float32)
    def checked(x):
        tf.assign_add(count, 1.0)
        with tf.control_dependencies([tf.Assert(x > 0.0, ["not positive", x])]):
            return tf.while_loop(lambda y: y < 10.0, lambda y: y * x, [x])

    x = tf.placeholder(tf.float32, [])
    y = checked(x, name="called")
    assert y.op.name == "called" and {kind for _, kind in checked.stateful_ops} >= {
        "Assert",
        "AssignAddVariableOp",
    }
    assert session.run(y, {x: 3.0}) == 27.0 and session.run(count) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
        session.run(y, {x: -1.0})
    assert session.run(tf.gradients(y, x), {x: 3.0}) == [27.0]
    before = session.run(count)
    branched = tf.cond(x > 4.0, lambda: x, lambda: checked(x))
    assert session.run(branched, {x: 5.0}) == 5.0 and session.run(count) == before
    assert session.run(branched, {x: 3.0}) == 27.0 and session.run(count) == before + 1.0


def test_what_is_drawn_inside_differs_from_call_to_call(session):
    tf.set_random_seed(7)

    @function.Defun()
    def drawn():
        return tf.random_uniform([20])

    first, second = session.run([drawn(), drawn()])
    assert drawn.definition.signature.is_stateful and (first != second).any()


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_made_inside_are_of_the_graph_around(session, use_resource):
    seen = []

    @function.Defun(tf.float32)
    def scaled(x):
        y = x * tf.get_variable("w", initializer=3.0, use_resource=use_resource)
        seen.extend([function.get_extra_vars(), function.get_extra_inputs(), function.get_extra_args()])
        return y

    with tf.variable_scope("model"):
        y = scaled(2.0)
    with tf.variable_scope("other"):
        again = scaled(4.0)
    (w,) = tf.trainable_variables()
    assert w.op.name == "model/w" and [len(s) for s in seen] == [1, 1, 1] and seen[0][0] is w
    session.run(w.initializer)
    assert session.run([y, again, tf.gradients(y, w)[0]]) == [6.0, 12.0, 2.0]


def test_effects_with_a_gradient_as_told(session):
    @function.Defun(tf.float32, tf.float32)
    def backward(x, dy):
        return x * dy * 10.0

    @function.Defun(tf.float32, grad_func=backward)
    def shown(x):
        return tf.Print(x, [])

    x = tf.constant(2.0)
    assert session.run([shown(x), *tf.gradients(shown(x) * 3.0, x)]) == [2.0, 60.0]


def test_definitions_carry_what_they_were_told():
    @function.Defun(tf.float32, noinline=True, out_names=["half"], experimental_tag="t")
    def halved(x):
        """Half of x."""
        return x / 2.0

    result = halved.definition
    assert result.signature.description == "Half of x." and result.attr["_noinline"].b
    assert result.signature.output_arg[0].name == "half" and result.attr["experimental_tag"].s == b"t"
    assert halved.instantiate([tf.float64]).declared_input_types == (tf.float64,)


@pytest.mark.parametrize(
    ("types", "call", "args", "said"),
    [
        ([], lambda: 1.0, (1,), "arguments: 0, received: 1"),
        ([tf.float32], lambda x: x, (), "arguments: 1, received: 0"),
        ([tf.float32], lambda x, y: x, (1.0,), "specified input types"),
        ([], lambda x=1: x, (), "are not supported"),
        ([], lambda: (None, None), (), "can not return None"),
    ],
)
def test_what_does_not_fit_a_function_is_refused(types, call, args, said):
    with pytest.raises(ValueError, match=said):
        function.Defun(*types)(call)(*args)


def test_calls_travel_in_a_graph_def(session):
    @function.Defun(tf.float32)
    def square(x):
        return x * x

    tf.identity(square(3.0), name="result")
    graph_def = tf.get_default_graph().as_graph_def()
    tf.import_graph_def(graph_def, name="")
    assert session.run("result:0") == 9.0


def test_gradients_of_a_function_known_by_its_name(session):
    @function.Defun(tf.float32, func_name="Squared")
    def squared(x):
        return x * x

    squared(1.0)
    (dx,) = functional_ops.symbolic_gradient([tf.constant(3.0), tf.constant(0.5)], [tf.float32], "Squared")
    assert session.run(dx) == 3.0


def test_named_operations_with_a_state_are_captured_by_value(session):
    drawn = tf.random_uniform([3], minval=5, maxval=9, dtype=tf.int32)
    options = {"capture_by_value": True, "func_name": "shifted"}
    with pytest.raises(ValueError, match="Cannot capture a stateful node"):
        function.Defun(**options)(lambda: drawn + 1)()
    allowed = function.Defun(whitelisted_stateful_ops={drawn.op}, **options)(lambda: drawn + 1)
    assert (session.run(allowed()) > 5).all()


def test_operations_inside_are_where_the_function_was_defined():
    with tf.Graph().as_default() as graph, tf.device("/cpu:0"):

        @function.Defun(tf.float32)
        def doubled(x):
            return tf.add(x, x)

        with tf.device("/cpu:1"):
            doubled(1.0)
        (result,) = graph.as_graph_def().library.function
    assert [n.device for n in result.node_def] == ["/device:CPU:0"]
    assert doubled._signature.name == result.signature.name


def test_two_functions_cannot_have_one_name():
    def call(make):
        return function.Defun(tf.float32, func_name="same")(make)(1.0)

    with tf.Graph().as_default():
        call(lambda x: x * 2.0)
        call(lambda x: x * 2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot add function 'same'"):
            call(lambda x: x * 3.0)


def test_arguments_declared_by_the_type_of_a_variable_are_its_values():
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=False)

    @function.Defun(v.dtype)
    def doubled(x):
        return 2 * x

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(doubled(v)).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("inside_first", [True, False])
@pytest.mark.parametrize("resource", [True, False])
def test_a_template_has_the_same_variables_inside_a_function_and_around_it(inside_first, resource):
    results = []

    def model(x):
        results.append(tf.get_variable("w", [], initializer=tf.ones_initializer(), use_resource=resource))
        return x * results[-1]

    with tf.Graph().as_default():
        template = tf.make_template("model", model, create_scope_now_=True)

        @function.Defun()
        def inside(x):
            return template(x)

        items = [
            call(tf.constant(3.0)) for call in ([inside, template] if inside_first else [template, inside])
        ]
        assert results[0] is results[1]
        assert [v.name for v in tf.global_variables()] == ["model/w:0"]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(items) == [3.0, 3.0]
