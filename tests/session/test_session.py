"""Running: fetches, feeds, callables, partial runs, threads, closing."""

import collections
import json

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments.compiled import Compiler
from tests.support.waiting import together


def test_every_nesting_of_fetches_comes_back_alike(session):
    a, b = tf.constant(1), tf.constant(2.0)
    Pair = collections.namedtuple("Pair", ["x", "y"])
    assert session.run(a) == 1
    assert session.run([a, [b]]) == [1, [2.0]]
    assert session.run((a, b)) == (1, 2.0)
    assert session.run({"k": a, "l": {"m": b}}) == {"k": 1, "l": {"m": 2.0}}
    assert session.run(Pair(a, b)) == Pair(1, 2.0)
    assert session.run([a.op, "Const_1:0", a]) == [None, 2.0, 1]
    assert session.run([]) == []


def test_scalars_come_back_as_numpy_scalars_and_strings_as_bytes(session):
    assert isinstance(session.run(tf.constant(1.5)), np.float32)
    assert session.run(tf.constant("a")) == b"a"
    strings = session.run(tf.constant(["a", "b"]))
    assert strings.dtype == object
    assert strings.tolist() == [b"a", b"b"]


def test_fetched_arrays_are_the_callers_own(session):
    v = tf.Variable(np.zeros(3, np.float32))
    session.run(v.initializer)
    got = session.run(v)
    got[:] = 7
    assert session.run(v).tolist() == [0, 0, 0]


def test_any_tensor_can_be_fed_by_tensor_or_name(session):
    a = tf.constant(1.0, name="a")
    b = a + 1.0
    assert session.run(b, {a: 5.0}) == 6
    assert session.run(b, {"a:0": 6.0}) == 7
    assert session.run(a, {a: 8.0}) == 8


def test_variable_takes_its_own_copy_of_what_is_assigned(session):
    p = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    assign = tf.assign(v, p)
    value = np.ones(2, np.float32)
    session.run(assign, {p: value})
    value[:] = 9
    assert session.run(v).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "error", "phrase"),
    [
        (
            np.ones(3, np.float32),
            ValueError,
            "Cannot feed value of shape \\(3,\\) for Tensor 'x:0', which has shape '\\(2,\\)'",
        ),
        ([[1.0], [1.0, 2.0]], ValueError, "Cannot feed"),
        (["a", "b"], ValueError, "Cannot feed"),
    ],
)
def test_wrong_feeds_are_refused(value, error, phrase):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as s, pytest.raises(error, match=phrase):
        s.run(x, {x: value})


def test_feeding_a_tensor_is_refused():
    x = tf.placeholder(tf.float32, [])
    with tf.Session() as s, pytest.raises(TypeError, match="cannot be a tf.Tensor object"):
        s.run(x, {x: tf.constant(1.0)})


def test_feeding_an_unknown_name_is_refused():
    tf.constant(1)
    with tf.Session() as s, pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        s.run(tf.constant(1), {"nope:0": 1})


@pytest.mark.parametrize(("dtype", "value"), [(tf.int32, 2**40), (tf.string, 1), (tf.string, True)])
def test_an_integer_that_the_type_does_not_hold_is_refused(dtype, value):
    x = tf.placeholder(dtype, [])
    said = f"Type of feed value {value} with type .* is not compatible with Tensor type {dtype.name}"
    with tf.Session() as s, pytest.raises(TypeError, match=said):
        s.run(x, {x: value})


def test_missing_feed_names_the_placeholder_and_its_line():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with (
        tf.Session() as s,
        pytest.raises(
            tf.errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'x'"
        ) as e,
    ):
        s.run(x + 1)
    assert "test_session.py" in str(e.value)


@pytest.mark.parametrize("fetch", [None, 3, object()])
def test_bad_fetches_are_refused(fetch):
    tf.constant(1)
    with tf.Session() as s, pytest.raises(TypeError, match="invalid type"):
        s.run(fetch)


def test_fetching_from_another_graph_is_refused():
    with tf.Graph().as_default():
        other = tf.constant(1)
    tf.constant(1)
    with tf.Session() as s, pytest.raises(ValueError, match="is not an element of this graph"):
        s.run(other)


def test_empty_graph_and_closed_session_say_so():
    with tf.Session() as s, pytest.raises(RuntimeError, match="graph is empty"):
        s.run([])
    with pytest.raises(RuntimeError, match="closed Session"):
        s.run([])


def test_eval_and_run_use_the_default_session():
    c = tf.constant(3)
    with pytest.raises(ValueError, match="No default session is registered"):
        c.eval()
    with tf.Session():
        assert c.eval() == 3
        c.op.run()


def test_interactive_session_is_the_default_until_closed():
    s = tf.InteractiveSession()
    try:
        assert tf.constant(4).eval() == 4
        assert tf.get_default_session() is s
    finally:
        s.close()
    assert tf.get_default_session() is None


def test_make_callable_takes_feeds_in_order(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    f = session.make_callable(a - b, [b, a])
    assert f(1.0, 5.0) == 4
    with pytest.raises(ValueError, match="takes 2 feeds"):
        f(1.0)


def test_partial_run_computes_each_operation_once(session):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    count = tf.Variable(0.0)
    with tf.control_dependencies([tf.assign_add(count, 1.0)]):
        first = a + 1.0
    second = first * b
    session.run(count.initializer)
    handle = session.partial_run_setup([first, second], [a, b])
    assert session.partial_run(handle, first, {a: 2.0}) == 3
    assert session.partial_run(handle, second, {b: 4.0}) == 12
    assert session.run(count) == 1


@pytest.mark.parametrize(
    ("fetch", "feeds", "said"),
    [
        (1, "bc", r"The feed .* was not specified in partial_run_setup\.$"),
        (1, "a", r"The feed .* has already been fed\.$"),
        (0, "b", r"The fetch .* has already been fetched\.$"),
        (2, "b", r"The fetch .* was not specified in partial_run_setup\.$"),
    ],
)
def test_partial_runs_feed_and_fetch_once_what_was_declared(session, fetch, feeds, said):
    named = {name: tf.placeholder(tf.float32, []) for name in "abc"}
    a, b, _ = named.values()
    fetches = [a + 1.0, a * b, a - b]
    handle = session.partial_run_setup(fetches[:2], [a, b])
    session.partial_run(handle, fetches[0], {a: 2.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        session.partial_run(handle, fetches[fetch], {named[n]: 1.0 for n in feeds})
    assert session.partial_run(handle, fetches[1], {b: 4.0}) == 8


def test_graph_may_grow_between_runs(session):
    a = tf.constant(1)
    assert session.run(a) == 1
    assert session.run(a + 1) == 2


def test_state_belongs_to_the_session():
    v = tf.Variable(0.0)
    add = tf.assign_add(v, 1.0)
    with tf.Session() as one, tf.Session() as two:
        one.run(v.initializer)
        one.run(add)
        with pytest.raises(
            tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value Variable"
        ):
            two.run(v)
        two.run(v.initializer)
        assert (one.run(v), two.run(v)) == (1, 0)


def test_threads_share_a_session_and_lose_no_update(session):
    v = tf.Variable(0.0)
    add = tf.assign_add(v, 1.0)
    session.run(v.initializer)
    together(*[lambda: [session.run(add.op) for _ in range(200)]] * 4)
    assert session.run(v) == 800


def test_log_device_placement_prints_a_line_per_op(capsys):
    a = tf.constant(1.0, name="a")
    b = tf.identity(a, name="b")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as s:
        s.run(b)
    lines = capsys.readouterr().err.splitlines()
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    assert lines == [f"a: (Const): {device}", f"b: (Identity): {device}"]


def test_explain_placement_is_a_table_with_reasons():
    with tf.device("/cpu:1"):
        a = tf.Variable(1.0, name="a")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as s:
        s.run(a.initializer)
        s.run(a + 1.0)
        table = tf.fleet.explain_placement(s)
    assert any(
        line.startswith("a ") and "/device:CPU:1" in line and "tf.device" in line
        for line in table.splitlines()
    )
    assert any("stays with a" in line for line in table.splitlines())


def test_traced_run_gives_step_stats_and_a_chrome_trace():
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.matmul(x, tf.ones([4, 4]))
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = tf.RunMetadata()
    with tf.Session() as s:
        s.run(y, {x: np.ones((2, 4))}, options=options, run_metadata=metadata)
    device = metadata.step_stats.dev_stats[0]
    assert device.device.endswith("CPU:0")
    assert device.node_stats[0].node_name == "MatMul"
    assert metadata.partition_graphs[0].node
    trace = json.loads(tf.fleet.Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert any(e["ph"] == "X" for e in trace["traceEvents"])


def test_list_devices_shows_virtual_cpus():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as s:
        assert [d.name[-5:] for d in s.list_devices()] == ["CPU:0", "CPU:1", "CPU:2"]
        assert s.list_devices()[0].device_type == "CPU"


def test_finalized_graph_can_be_run_but_not_extended(graph, session):
    c = tf.constant(1)
    graph.finalize()
    assert session.run(c) == 1


def test_fetch_of_an_update_is_the_value_after_the_step(session):
    v = tf.Variable(1.0)
    session.run(v.initializer)
    assert session.run(tf.assign_add(v, 2.0)) == 3
    assert session.run(tf.assign(v, 10.0)) == 10


def test_nested_fetches_are_planned_once(session):
    a = tf.placeholder(tf.float32, [])
    fetches = {"x": a + 1.0, "y": [a * 2.0, (a,)]}
    for i in range(3):
        assert session.run(fetches, {a: float(i)}) == {"x": i + 1, "y": [i * 2, (i,)]}
    assert len(session._prepared) == 1


def test_missing_name_points_to_the_list_of_what_is_there():
    for module in (tf, tf.math, tf.nn):
        with pytest.raises(AttributeError, match="docs/compatibility.md"):
            module.no_such_thing  # noqa: B018


def test_waiting_for_a_fed_placeholder_does_not_run_it(session):
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([x]):
        y = tf.constant(1.0) + 2.0
    assert session.run(y, {x: 1.0}) == 3


def test_default_of_a_placeholder_is_not_a_constant(session):
    shape = tf.placeholder_with_default([2, 3], [2])
    ones = tf.ones(shape)
    assert ones.shape.as_list() == [None, None]
    assert session.run(ones).shape == (2, 3)
    assert session.run(ones, {shape: [4, 1]}).shape == (4, 1)


@pytest.mark.parametrize("compiled", [False, True])
def test_large_results_are_the_callers_to_change_and_nobody_elses(compiled, monkeypatch, session):
    monkeypatch.setattr(Compiler, "wanted", lambda self: compiled and self.possible)
    fed = np.ones((200, 200), np.float32)
    x = tf.placeholder(tf.float32, [200, 200])
    variable = tf.Variable(tf.ones([200, 200]))
    fixed = tf.constant(fed + 1)
    fetches = [
        x + variable,
        tf.identity(variable),
        tf.identity(x),
        fixed,
        tf.reshape(variable, [-1]),
        variable,
    ]
    session.run(variable.initializer)
    for _ in range(3):
        results = session.run(fetches, {x: fed})
        assert [r.flat[-1] for r in results] == [2, 1, 1, 2, 1, 1]
        for result in results:
            result[...] = 7
        session.run(fixed)[...] = 7
        session.run(variable)[...] = 7
        session.run(tf.assign(variable, fed))[...] = 7
        assert (fed == 1).all()


def test_a_session_on_a_server_logs_where_ops_of_all_tasks_are_placed(capsys, serve):
    server = serve({"local": ["localhost:0"]}, config=tf.ConfigProto(log_device_placement=True))
    total = tf.placeholder_with_default(1.0, [], name="x") + tf.constant(2.0, name="y")
    with tf.Session(server.target) as s:
        s.run(total)
        s.run(total)
    lines = capsys.readouterr().err.splitlines()
    device = "/job:local/replica:0/task:0/device:CPU:0"
    assert f"y: (Const): {device}" in lines
    assert lines.count(f"add: (AddV2): {device}") == 1


def test_the_trace_of_a_failed_op_ends_in_the_session():
    bad = tf.Assert(tf.constant(False), ["no"])
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        s.run(bad)
    assert caught.traceback[-1].path.name == "session.py"


def test_the_devices_of_a_session_are_described_by_four_things(session):
    kind = tf.python.client.session._DeviceAttributes
    device = kind("/job:worker/replica:0/task:3/cpu:1", "CPU", 1024, 7)
    assert device.name == "/job:worker/replica:0/task:3/device:CPU:1"
    assert (device.device_type, device.memory_limit_bytes, device.incarnation) == ("CPU", 1024, 7)
    assert session.list_devices()[0].device_type == "CPU"


def test_no_target_is_this_process():
    with tf.Session(None) as session:
        assert session.run(tf.constant(3.0)) == 3.0


@pytest.mark.parametrize(
    ("number", "refused"), [(-2, True), (-1, False), (0, False), (1, False), (2, True), (7, True)]
)
def test_a_thread_pool_that_the_session_does_not_have_is_refused(number, refused):
    config = tf.ConfigProto()
    config.session_inter_op_thread_pool.add(num_threads=1)
    config.session_inter_op_thread_pool.add(num_threads=2, global_name="shared")
    y = tf.random_uniform([]) * 0.0
    options = tf.RunOptions(inter_op_thread_pool=number)
    with tf.Session(config=config) as session:
        call = session.make_callable(y, accept_options=True)
        if not refused:
            assert session.run(y, options=options) == call(options=options) == 0.0
            return
        for run in (lambda: session.run(y, options=options), lambda: call(options=options)):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=f"Invalid inter_op_thread_pool: {number}"
            ):
                run()
