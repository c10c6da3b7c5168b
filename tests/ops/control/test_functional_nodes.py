"""Branches and loops whose parts are functions."""

import pytest
from tensorfleet.python.framework.function import Defun
from tensorfleet.python.ops import functional_ops

import tensorfleet as tf


@Defun(tf.float32)
def plus_one(x):
    return x + 1.0


@Defun(tf.float32)
def tenfold(x):
    return x * 10.0


@Defun(tf.float32)
def below_fifty(x):
    return x < 50.0


def test_a_condition_chooses_between_two_functions(session):
    cond = tf.placeholder(tf.bool, [])
    (y,) = functional_ops.If(cond, [2.0], plus_one, tenfold)
    assert (y.op.type, y.dtype) == ("If", tf.float32)
    assert [session.run(y, {cond: c}) for c in (True, False, True, False)] == [3, 20, 3, 20]
    assert session.run(functional_ops.If(tf.constant(0), [2.0], plus_one, tenfold)) == [20]


def test_a_loop_goes_on_while_a_function_says_so(session):
    start = tf.placeholder(tf.float32, [])
    (y,) = functional_ops.While([start], below_fifty, tenfold)
    assert [session.run(y, {start: x}) for x in (2.0, 60.0, 2.0)] == [200, 60, 200]


def test_a_loop_over_a_range(session):
    @Defun(tf.int32, tf.float32)
    def add(i, x):
        return x + tf.cast(i, tf.float32)

    assert session.run(functional_ops.For(0, 5, 2, [1.0], add)) == [7]


def test_a_graph_with_a_branch_and_a_loop_is_imported():
    with tf.Graph().as_default() as result:
        (x,) = functional_ops.If(tf.constant(True), [2.0], plus_one, tenfold)
        functional_ops.While([x], below_fifty, tenfold, name="loop")
    with tf.Graph().as_default(), tf.Session() as s:
        (y,) = tf.import_graph_def(result.as_graph_def(), return_elements=["loop:0"])
        assert s.run(y) == 300


def test_functions_are_called_and_differentiated(session):
    assert session.run(functional_ops.remote_call("/cpu:0", [2.0], [tf.float32], plus_one)) == [3]
    assert session.run(functional_ops.symbolic_gradient([2.0, 3.0], [tf.float32], tenfold)) == [30]
    assert plus_one.definition.signature.name == plus_one.name


def test_a_branch_takes_nothing_from_around():
    outside = tf.placeholder(tf.float32, [])

    @Defun(tf.float32)
    def taking(x):
        return x + outside

    with pytest.raises(ValueError, match="uses tensors from around it"):
        functional_ops.If(tf.constant(True), [1.0], taking, plus_one)


def test_a_counted_loop_may_use_tensors_from_around_it(session):
    weight = tf.Variable(3.0)

    @Defun(tf.int32, tf.float32, tf.float32)
    def add(i, x, y):
        return x + tf.cast(i, tf.float32) * weight, y + weight

    results = functional_ops.For(1, 4, 1, [0.0, 10.0], add)
    session.run(weight.initializer)
    assert session.run(results) == [18.0, 19.0]
    session.run(weight.assign(1.0))
    assert session.run(results) == [6.0, 13.0]


@pytest.mark.parametrize(
    ("bounds", "phrase"),
    [
        (([0], 10, 1), "start must be a scalar"),
        ((0, 10, -1), "Invalid start/limit/delta: 0 10 -1"),
        ((0, 10, 0), "Invalid start/limit/delta"),
    ],
)
def test_a_counted_loop_refuses_bounds_that_it_cannot_reach(bounds, phrase):
    @Defun(tf.int32, tf.float32)
    def keep(i, x):
        return x

    results = functional_ops.For(*bounds, [0.0], keep)
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
        s.run(results)


def test_loops_refuse_functions_with_another_number_of_results(session):
    @Defun(tf.float32)
    def two(x):
        return x, x

    @Defun(tf.int32, tf.float32)
    def counted(i, x):
        return x, x

    cases = [
        (functional_ops.While([1.0], two, plus_one), "Expected a single scalar return value.*got 2 tensors"),
        (functional_ops.While([1.0], below_fifty, two), "While loop body returned 2 arguments. Expected: 1"),
        (functional_ops.For(0, 2, 1, [1.0], counted), "For loop body returned 2 arguments. Expected: 1"),
    ]
    for results, phrase in cases:
        with pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
            session.run(results)


def test_the_gradient_of_a_function_inside_another(session):
    @Defun(tf.float32)
    def cube(x):
        return x * x * x

    @Defun(tf.float32)
    def slope(x):
        return functional_ops.Gradient([x, 1.0], cube)[0]

    assert session.run(slope(tf.constant(2.0))) == 12.0


def test_a_name_chosen_for_a_function_is_kept():
    @Defun(tf.float32, func_name="Doubled")
    def f(x):
        return x * 2.0

    f(tf.constant(1.0))
    names = [g.signature.name for g in tf.get_default_graph().as_graph_def().library.function]
    assert "Doubled" in names


def test_a_loop_takes_values_from_around_it(session):
    around = tf.placeholder(tf.float32, [])

    @Defun(tf.float32, tf.float32)
    def step(n, x):
        return n + 1.0, x + n + around

    @Defun(tf.float32, tf.float32)
    def below_ten(n, x):
        return n < 10.0

    results = functional_ops.While([1.0, 0.0], below_ten, step)
    assert len(results) == 2
    assert [session.run(results, {around: a}) for a in (1.0, 0.0)] == [[10, 54], [10, 45]]


def test_a_function_whose_name_is_no_node_name_can_be_called_elsewhere(session):
    @Defun(tf.float32)
    def _hidden(x):
        return x * 2.0

    (y,) = functional_ops.remote_call("/cpu:0", [3.0], [tf.float32], _hidden)
    assert session.run(y) == 6
    assert session.run(functional_ops.partitioned_call([4.0], _hidden)) == [8]


def test_a_number_chooses_among_functions(session):
    from tensorfleet.python.ops import gen_functional_ops

    which = tf.placeholder(tf.int32, [])
    (y,) = gen_functional_ops.case(which, input=[2.0], Tout=[tf.float32], branches=[plus_one, tenfold])
    assert [session.run(y, {which: i}) for i in (0, 1, -1, 7)] == [3, 20, 20, 20]


def test_a_loop_over_a_range_may_become_one_with_a_condition(session):
    v = tf.Variable(1.0)

    @Defun(tf.int32, tf.float32, func_name="Round")
    def one_round(i, x):
        return x + tf.cast(i, tf.float32) + v

    results = [
        functional_ops.For(*numbers, [0.0], one_round, rewrite_with_while=True)[0]
        for numbers in ((1, 10, 1), (3, 0, -1), (0, 0, 1))
    ]
    session.run(v.initializer)
    assert session.run(results) == [54, 9, 0]
    names = {f.signature.name for f in tf.get_default_graph().as_graph_def().library.function}
    assert {"Round", "Round_Cond", "Round_Body"} <= names


def test_what_a_function_takes_from_around_it_may_be_given_again(session):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    @Defun()
    def count():
        v.assign_add(2.0)

    session.run(v.initializer)
    session.run(functional_ops.partitioned_call(args=count.captured_inputs, f=count))
    assert session.run(v) == 3


def test_the_device_of_a_remote_call_may_be_a_constant(session):
    (y,) = functional_ops.remote_call(tf.constant("/cpu:0"), [2.0], [tf.float32], plus_one)
    assert session.run(y) == 3
    with pytest.raises(ValueError, match="must be known when the graph is built"):
        functional_ops.remote_call(tf.placeholder(tf.string, []), [2.0], [tf.float32], plus_one)
