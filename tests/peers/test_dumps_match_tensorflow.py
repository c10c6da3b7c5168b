"""What a session dumps, read by TensorFlow's debugger."""

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
