"""The float operations and parameters of a graph are counted as TensorFlow counts them."""

import warnings

import tensorfleet


def costs(tf):
    with tf.Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = tf.placeholder(tf.float32, [8, 28, 28, 3])
        with tf.variable_scope("conv"):
            h = tf.nn.conv2d(x, tf.get_variable("w", [5, 5, 3, 16]), [1, 2, 2, 1], "SAME")
            h = tf.nn.relu(tf.nn.bias_add(h, tf.get_variable("b", [16])))
            h = tf.nn.avg_pool(tf.nn.max_pool(h, 2, 1, "SAME"), 2, 2, "VALID")
        y = tf.matmul(tf.reshape(h, [8, 784]), tf.get_variable("w", [784, 10]))
        tf.reduce_mean(tf.square(tf.nn.softmax(y)) - tf.add_n([y, y, y]), name="loss")
        tf.nn.l2_loss(y)
        builder = tf.profiler.ProfileOptionBuilder
        counts = {}
        for name, options in (
            ("flops", builder.float_operation()),
            ("parameters", builder.trainable_variables_parameter()),
        ):
            root = tf.profiler.profile(graph, options=builder(options).with_empty_output().build())
            counts[name] = (root.total_float_ops, root.total_parameters)
        return counts


def test_counts_are_the_same(tensorflow):
    ours, theirs = costs(tensorfleet), costs(tensorflow)
    assert ours["flops"][0] == theirs["flops"][0]
    assert ours["parameters"][1] == theirs["parameters"][1]
