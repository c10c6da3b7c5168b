"""What a user sees when something is wrong: TensorFlow's class and phrase, the op, the line, what to do."""

import numpy as np
import pytest

import tensorfleet as tf


def both_lives(session, fetch, feed, error, phrase, monkeypatch):
    with pytest.raises(error, match=phrase) as in_numpy:
        session.run(fetch, feed)
    monkeypatch.setattr("tensorfleet.runtime.segments.trial._MIN_NUMPY_SECONDS", -1.0)
    monkeypatch.setattr("tensorfleet.runtime.segments.trial._SLOW_RUN_SECONDS", -1.0)
    monkeypatch.setattr("tensorfleet.runtime.segments.compiled.Compiler.wanted", lambda self: self.possible)
    with pytest.raises(error, match=phrase) as compiled:
        session.run(fetch, feed)
    assert str(in_numpy.value) == str(compiled.value)
    return str(compiled.value)


def test_uninitialized_reference_variable():
    v = tf.Variable(1.0, name="w")
    with (
        tf.Session() as s,
        pytest.raises(
            tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value w"
        ) as e,
    ):
        s.run(v + 1.0)
    assert "global_variables_initializer" in str(e.value)
    assert "test_errors.py" in str(e.value)


def test_uninitialized_resource_variable():
    v = tf.Variable(1.0, name="w", use_resource=True)
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.FailedPreconditionError, match="Error while reading resource variable w"),
    ):
        s.run(v + 1.0)


def test_gather_out_of_range_raises_in_both_lives(monkeypatch, session):
    table = tf.placeholder(tf.float32, [5, 2])
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.gather(table, ids)
    feed = {table: np.zeros((5, 2)), ids: [0, 1, 7]}
    text = both_lives(
        session,
        rows,
        feed,
        tf.errors.InvalidArgumentError,
        r"indices\[2\] = 7 is not in \[0, 5\)",
        monkeypatch,
    )
    assert "GatherV2" in text
    assert "test_errors.py" in text


def test_gather_from_a_large_variable_out_of_range(session):
    table = tf.get_variable("t", [40000, 2])
    ids = tf.placeholder(tf.int32, [None])
    session.run(table.initializer)
    for bad in (40000, -1):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"indices\[1\] = {bad} is not in \[0, 40000\)"
        ):
            session.run(tf.gather(table, ids), {ids: [3, bad]})


def test_integer_division_by_zero_raises_in_both_lives(monkeypatch, session):
    a, b = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [2])
    feed = {a: [1, 2], b: [1, 0]}
    both_lives(
        session, a // b, feed, tf.errors.InvalidArgumentError, "(?i)integer division by zero", monkeypatch
    )


def test_float_division_by_zero_is_infinite(session):
    a = tf.placeholder(tf.float32, [])
    assert np.isinf(session.run(1.0 / a, {a: 0.0}))


def test_nan_check_raises_in_both_lives(monkeypatch, session):
    x = tf.placeholder(tf.float32, [2])
    checked = tf.check_numerics(tf.log(x), "loss")
    both_lives(
        session,
        checked,
        {x: [1.0, -1.0]},
        tf.errors.InvalidArgumentError,
        "loss : Tensor had NaN",
        monkeypatch,
    )


def test_slice_out_of_range_when_building_and_when_running():
    with pytest.raises(ValueError, match="out of bounds"):
        tf.constant([1, 2, 3])[5]
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        s.run(x[5], {x: [1.0, 2.0]})


def test_incompatible_shapes_at_run_time():
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.InvalidArgumentError, match="(?i)incompatible shapes|broadcast"),
    ):
        s.run(a + b, {a: np.ones(3), b: np.ones(4)})


def test_matmul_of_wrong_shapes_at_run_time():
    a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError, match="MatMul"):
        s.run(tf.matmul(a, b), {a: np.ones((2, 3)), b: np.ones((2, 3))})


def test_variable_made_twice_shows_where_the_first_is():
    tf.get_variable("w", [1])
    with pytest.raises(ValueError, match="Variable w already exists, disallowed") as e:
        tf.get_variable("w", [1])
    assert "test_errors.py" in str(e.value)


def test_absent_device_names_what_is_there():
    with tf.device("/gpu:7"):
        a = tf.constant(1.0, name="a")
    with (
        tf.Session() as s,
        pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device for operation a") as e,
    ):
        s.run(a)
    assert "available devices are [ /job:localhost/replica:0/task:0/device:CPU:0" in str(e.value)
    assert "allow_soft_placement" in str(e.value)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as s:
        assert s.run(a) == 1


def test_nothing_runs_while_an_operation_has_an_absent_device():
    fine = tf.constant(2.0) + 1.0
    with tf.Session() as s:
        assert s.run(fine) == 3.0
        with tf.device("/job:ps/task:3"):
            tf.add(1.0, 2.0, name="lost")
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Cannot assign a device for operation lost:"
        ):
            s.run(fine)
        with pytest.raises(tf.errors.InvalidArgumentError, match="/job:ps/task:3"):
            s.make_callable(fine)
    pruned = tf.ConfigProto(graph_options=tf.GraphOptions(place_pruned_graph=True))
    for s in tf.Session(config=pruned), tf.InteractiveSession():
        assert s.run(fine) == 3.0
        s.close()


def test_soft_placement_finds_another_device_but_no_other_task():
    soft = tf.ConfigProto(allow_soft_placement=True)
    fine = tf.constant(2.0) + 1.0
    with tf.device("/gpu:7"):
        tf.add(1.0, 2.0)
    with tf.Session(config=soft) as s:
        assert s.run(fine) == 3.0
        with tf.device("/job:ps"):
            tf.add(1.0, 2.0, name="lost")
        with pytest.raises(tf.errors.InvalidArgumentError, match="operation lost:"):
            s.run(fine)


def test_failed_step_assigns_nothing(monkeypatch, session):
    v = tf.Variable(1.0)
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.check_numerics(x, "x")]):
        update = tf.assign_add(v, 1.0)
    other = tf.assign(tf.Variable(0.0), 5.0)
    session.run(tf.global_variables_initializer())
    for wanted in (False, True):
        monkeypatch.setattr(
            "tensorfleet.runtime.segments.compiled.Compiler.wanted",
            lambda self, w=wanted: w and self.possible,
        )
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([update, other], {x: float("nan")})
        assert session.run(v) == 1


def test_assigning_the_wrong_shape():
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="compatible|equal|Shape"):
        tf.assign(v, [1.0, 2.0, 3.0])
    with (
        tf.Session() as s,
        pytest.raises(
            tf.errors.InvalidArgumentError, match="Assign requires shapes of both tensors to match"
        ),
    ):
        s.run(tf.assign(v, x), {x: [1.0, 2.0, 3.0]})


def test_out_of_memory_is_resource_exhausted():
    n = tf.placeholder(tf.int64, [])
    huge = tf.fill(tf.stack([n, n, n]), 1.0) + tf.placeholder_with_default(1.0, [])
    with tf.Session() as s, pytest.raises(tf.errors.ResourceExhaustedError, match="OOM"):
        s.run(huge.op, {n: 1 << 17})


def test_count_up_to_raises_out_of_range_at_the_limit(session):
    v = tf.Variable(0)
    count = v.count_up_to(2)
    session.run(v.initializer)
    assert [session.run(count), session.run(count)] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
        session.run(count)


def test_codes_and_classes_belong_together():
    for code in range(1, 17):
        cls = tf.errors.exception_type_from_error_code(code)
        assert tf.errors.error_code_from_exception_type(cls) == code
        assert cls(None, None, "m").error_code == code
        assert cls(None, None, "m").message == "m"


def test_error_carries_op_and_node_def():
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.Session() as s, pytest.raises(tf.errors.OpError) as e:
        s.run(x)
    assert e.value.op is x.op
    assert e.value.node_def.name == "x"
    assert e.value.error_code == tf.errors.INVALID_ARGUMENT


def test_kernel_bug_is_an_internal_error_with_the_op():
    def broken(x):
        raise KeyError("oops")

    y = tf.py_func(broken, [tf.constant(1.0)], tf.float32, name="mine")
    with tf.Session() as s, pytest.raises(tf.errors.OpError, match="oops") as e:
        s.run(y)
    assert e.value.op.name == "mine"


@pytest.mark.parametrize("shape", [[2], [1], [None]])
def test_a_predicate_that_is_no_scalar_is_refused_when_the_graph_is_built(shape):
    pred = tf.placeholder(tf.bool, shape)
    for build in (
        lambda: tf.cond(pred, lambda: 1, lambda: 2),
        lambda: tf.case([(pred, lambda: 1)], default=lambda: 2),
        lambda: tf.while_loop(lambda i: pred, lambda i: i + 1, [0]),
    ):
        with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
            build()
