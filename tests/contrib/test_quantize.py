"""Graphs rewritten to compute with few bits."""

import numpy as np
import pytest

import tensorfleet as tf

Q = tf.contrib.quantize
X = np.random.RandomState(0).uniform(-1, 1, [4, 8, 8, 3]).astype(np.float32)


def network(training):
    """A convolution with batch normalization, one of each channel, and a dense layer."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], "x")
    slim = tf.contrib.slim
    with slim.arg_scope([slim.batch_norm], is_training=training, decay=0.5, scale=True):
        h = slim.conv2d(x, 4, 3, normalizer_fn=slim.batch_norm, activation_fn=tf.nn.relu6, scope="one")
        h = slim.separable_conv2d(h, None, 3, 2, normalizer_fn=slim.batch_norm, scope="two")
        return slim.fully_connected(slim.flatten(h), 2, activation_fn=None, scope="three")


def rounded(x, low, high, bits=8, narrow=False):
    """What TensorFlow's fake quantization gives."""
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.fake_quant_with_min_max_args(x, low, high, bits, narrow))


def test_weights_and_activations_are_rounded_to_their_ranges():
    x = tf.constant(X.reshape([4, -1]))
    y = tf.layers.dense(x, 5, tf.nn.relu, name="d")
    doubled = y * 2
    Q.create_training_graph()
    names = {v.op.name for v in tf.global_variables()}
    for what in ("weights_quant", "act_quant"):
        assert {f"d/{what}/min", f"d/{what}/max"} <= names
    assert {v.op.name for v in tf.trainable_variables()} == {"d/kernel", "d/bias"}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kernel = session.run("d/kernel:0")
        got = session.run(doubled) / 2
    weights = rounded(kernel, kernel.min(), kernel.max(), narrow=True)
    plain = np.maximum(X.reshape([4, -1]) @ weights, 0)
    np.testing.assert_allclose(got, rounded(plain, 0.0, plain.max()), atol=1e-4)
    assert len(np.unique(got)) < 256


def test_ranges_found_in_training_are_used_in_evaluation(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        logits = network(True)
        Q.create_training_graph(quant_delay=2)
        loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 0, 1], logits)
        step = tf.train.get_or_create_global_step()
        train = tf.contrib.slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.05), global_step=step)
        session.run(tf.global_variables_initializer())
        losses = [session.run(train, {"x:0": X}) for _ in range(25)]
        assert losses[-1] < losses[0] / 4
        assert session.run("one/act_quant/max:0") < 6.0
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        logits = network(False)
        Q.create_eval_graph()
        tf.train.Saver().restore(session, path)
        assert session.run(logits, {"x:0": X}).argmax(1).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("training", [True, False])
def test_before_its_delay_a_graph_gives_what_it_gave(training):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        logits = network(training)
        out = tf.identity(logits, "out")
        session.run(tf.global_variables_initializer())
        before = session.run(out, {"x:0": X})
        values = {v.op.name: session.run(v) for v in tf.global_variables()}
        Q.experimental_create_training_graph(quant_delay=1000)
        old = [v for v in tf.global_variables() if v.op.name in values]
        session.run(tf.global_variables_initializer())
        for v in old:
            v.load(values[v.op.name], session)
        assert session.graph.get_tensor_by_name("one/fold/Conv2D:0") is not None
        np.testing.assert_allclose(session.run(out, {"x:0": X}), before, rtol=1e-3, atol=1e-4)


def test_bits_and_scopes_are_chosen():
    x = tf.constant(X.reshape([4, -1]))
    with tf.variable_scope("a"):
        y = tf.identity(tf.layers.dense(x, 5, tf.nn.relu, name="d"))
    with tf.variable_scope("b"):
        tf.identity(tf.layers.dense(x, 5, tf.nn.relu, name="d"))
    Q.experimental_create_training_graph(weight_bits=4, activation_bits=3, symmetric=True, scope="a")
    assert not [v for v in tf.global_variables() if v.op.name.startswith("b/") and "quant" in v.op.name]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert len(np.unique(session.run(y))) <= 8
        low, high = session.run(["a/d/weights_quant/min:0", "a/d/weights_quant/max:0"])
        assert low == -high


@pytest.mark.parametrize("delay", [0, 3])
def test_a_graph_rewritten_with_its_defaults_is_trained(session, delay):
    tf.set_random_seed(1)
    x = tf.constant(X)
    y = tf.contrib.layers.conv2d(x, 4, 3, normalizer_fn=tf.contrib.layers.batch_norm)
    y = tf.layers.dense(tf.layers.flatten(y), 1)
    loss = tf.reduce_mean(tf.square(y - tf.reduce_mean(x, [1, 2, 3], keepdims=False)[:, None] - 1.0))
    Q.create_training_graph(**({"quant_delay": delay} if delay else {}))
    slopes = tf.gradients(loss, tf.trainable_variables())
    assert all(g is not None for g in slopes)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        optimizer = tf.train.GradientDescentOptimizer(0.003)
        train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    session.run(tf.global_variables_initializer())
    losses = [session.run([train, loss])[1] for _ in range(60)]
    assert min(losses[-5:]) < losses[0] / 4
