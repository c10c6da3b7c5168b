"""What a session dumps, read by TensorFlow's debugger."""

import numpy as np

import tensorfleet as tf


def test_tensorflows_debugger_reads_the_dump(tensorflow, tmp_path):
    from tensorflow.python.debug.lib.debug_data import DebugDumpDir

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.name_scope("scope"):
            y = tf.multiply(x, 2.0, name="y")
        z = tf.add(y, 1.0, name="z")
        with tf.python.debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path)) as sess:
            sess.run(z, {x: [1.0, 2.0]})
    (run,) = tmp_path.iterdir()
    read = DebugDumpDir(str(run))
    assert read.get_tensors("z", 0, "DebugIdentity")[0].tolist() == [3.0, 5.0]
    assert read.get_tensors("scope/y", 0, "DebugIdentity")[0].tolist() == [2.0, 4.0]
    assert read.core_metadata.output_names == ["z:0"] and read.core_metadata.input_names == ["x:0"]
    assert sorted(read.node_inputs("z")) == ["scope/y", "z/y"]


def test_tensorflows_debugger_reads_what_run_options_dump(tensorflow, tmp_path):
    from tensorflow.python.debug.lib.debug_data import DebugDumpDir

    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [3], name="x")
        z = tf.log(tf.multiply(x, 2.0, name="y"), name="z")
        options = tf.RunOptions()
        ops = ["DebugIdentity", "DebugNanCount", "DebugNumericSummary"]
        tf.python.debug.watch_graph(options, graph, ops, f"file://{tmp_path}")
        session.run(z, {x: [1.0, -1.0, 0.0]}, options=options)
    read = DebugDumpDir(str(tmp_path))
    own = tf.python.debug.DebugDumpDir(str(tmp_path))
    assert read.core_metadata.output_names == own.core_metadata.output_names == ["z:0"]
    for name in ops:
        np.testing.assert_array_equal(read.get_tensors("z", 0, name)[0], own.get_tensors("z", 0, name)[0])


def test_we_read_what_tensorflow_dumps_and_its_debug_ops_agree(tensorflow, tmp_path):
    from tensorflow.python.debug.lib import debug_utils
    from tensorflow.python.debug.lib.debug_data import DebugDumpDir

    values = [1.0, -1.0, 0.0, 5.0]
    ops = ["DebugIdentity", "DebugNanCount", "DebugNumericSummary"]
    for oracle, folder, watch in (
        (tensorflow, tmp_path / "theirs", debug_utils.watch_graph),
        (tf, tmp_path / "ours", tf.python.debug.watch_graph),
    ):
        with oracle.Graph().as_default() as graph, oracle.Session() as session:
            x = oracle.placeholder(oracle.float32, [4], name="x")
            with oracle.name_scope("scope"):
                y = oracle.multiply(x, 2.0, name="y")
            z = oracle.log(y, name="z")
            options = oracle.RunOptions()
            watch(options, graph, debug_ops=ops, debug_urls=f"file://{folder}")
            session.run(z, {x: values}, options=options)
    theirs, ours = (tf.python.debug.DebugDumpDir(str(tmp_path / name)) for name in ("theirs", "ours"))
    for node in ("scope/y", "z"):
        for op in ops:
            expected = DebugDumpDir(str(tmp_path / "theirs")).get_tensors(node, 0, op)[0]
            np.testing.assert_array_equal(theirs.get_tensors(node, 0, op)[0], expected)
            np.testing.assert_allclose(ours.get_tensors(node, 0, op)[0], expected, rtol=1e-6)
    assert theirs.core_metadata.output_names == ["z:0"]
    assert theirs.node_op_type("z") == "Log"
    assert [d.node_name for d in theirs.find(tf.python.debug.has_inf_or_nan)] == ["z"]
