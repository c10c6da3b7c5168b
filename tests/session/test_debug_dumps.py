"""`RunOptions.debug_options`: which tensors are written, by which debug ops, and that the step is the same."""

import numpy as np
import pytest

import tensorfleet as tf

debug = tf.python.debug


@pytest.fixture
def model(session):
    x = tf.placeholder(tf.float32, [2], name="x")
    ran = []
    with tf.name_scope("scope"):
        y = tf.multiply(x, 2.0, name="y")
    z = tf.log(y, name="z")
    tf.py_func(lambda v: ran.append(1) or v, [y], tf.float32, name="aside")
    yield session, x, z
    assert ran == []  # the debugger has nothing run that the step would not run


def options(folder, *watches):
    result = tf.RunOptions()
    for name, slot, ops in watches:
        debug.add_debug_tensor_watch(result, name, slot, ops, f"file://{folder}")
    return result


def test_a_watched_graph_is_dumped_and_the_result_is_the_same(model, tmp_path):
    session, x, z = model
    watched = tf.RunOptions()
    debug.watch_graph(watched, session.graph, debug_urls=f"file://{tmp_path}")
    result = session.run({"z": z}, {x: [1.0, -1.0]}, options=watched)
    dump = debug.DebugDumpDir(str(tmp_path))
    np.testing.assert_array_equal(dump.get_tensors("z", 0, "DebugIdentity")[0], result["z"])
    assert dump.get_tensors("scope/y", 0, "DebugIdentity")[0].tolist() == [2.0, -2.0]
    assert [d.node_name for d in dump.find(debug.has_inf_or_nan)] == ["z"]
    assert dump.core_metadata.output_names == ["z:0"] and dump.core_metadata.input_names == ["x:0"]


def test_debug_ops_count_nans_and_summarize(model, tmp_path):
    session, x, z = model
    ops = ["DebugNanCount", "DebugNumericSummary"]
    session.run(z, {x: [1.0, -1.0]}, options=options(tmp_path, ("z", 0, ops)))
    dump = debug.DebugDumpDir(str(tmp_path))
    assert dump.get_tensors("z", 0, "DebugNanCount")[0].tolist() == [1]
    log2 = float(np.float32(np.log(2)))
    summary = dump.get_tensors("z", 0, "DebugNumericSummary")[0]
    np.testing.assert_allclose(summary, [1, 2, 1, 0, 0, 0, 1, 0, log2, log2, log2, 0, 1, 1, 2], rtol=1e-6)


def test_tensors_that_the_step_does_not_compute_are_not_dumped(model, tmp_path):
    session, x, z = model
    session.run(z, {x: [1.0, 1.0]}, options=options(tmp_path, ("aside", -1, ["DebugIdentity"])))
    session.run(z, {x: [1.0, 1.0]}, options=options(tmp_path, ("nothing", 0, ["DebugIdentity"])))
    assert not list(tmp_path.rglob("*Debug*"))


def test_other_urls_and_unknown_debug_ops_are_refused(model):
    session, x, z = model
    bad = tf.RunOptions()
    debug.add_debug_tensor_watch(bad, "z", 0, "DebugIdentity", "grpc://localhost:1")
    with pytest.raises(tf.errors.UnimplementedError, match="must be file:// URLs"):
        session.run(z, {x: [1.0, 1.0]}, options=bad)
    with pytest.raises(tf.errors.InvalidArgumentError, match="No debug op 'DebugNothing'"):
        session.run(z, {x: [1.0, 1.0]}, options=options("/tmp", ("z", 0, ["DebugNothing"])))


def test_variables_of_a_cluster_are_dumped(server, tmp_path):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        w = tf.get_variable("w", initializer=[1.0, 2.0])
        loss = tf.reduce_sum(w * 3.0, name="loss")
        session.run(tf.global_variables_initializer())
        watched = tf.RunOptions()
        debug.watch_graph(
            watched, session.graph, debug_urls=f"file://{tmp_path}", node_name_regex_allowlist="w$|mul"
        )
        assert session.run(loss, options=watched) == 9.0
        dump = debug.DebugDumpDir(str(tmp_path))
        assert dump.get_tensors("mul", 0, "DebugIdentity")[0].tolist() == [3.0, 6.0]
        assert dump.get_tensors("w", 0, "DebugIdentity")[0].tolist() == [1.0, 2.0]


def test_a_callable_warns_that_it_dumps_nothing(model, tmp_path):
    session, x, z = model
    call = session.make_callable(z, [x], accept_options=True)
    with pytest.warns(UserWarning, match="use Session.run"):
        call([1.0, 1.0], options=options(tmp_path, ("z", 0, ["DebugIdentity"])))
