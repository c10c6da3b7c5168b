"""Whole programs built in both libraries: the same names, the same numbers, and graphs that travel both ways."""

import numpy as np
import pytest

import tensorfleet


def mlp(tf):
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    y = tf.placeholder(tf.float32, [None, 3], name="y")
    with tf.variable_scope("hidden"):
        w = tf.get_variable("w", [6, 4], initializer=tf.glorot_uniform_initializer(seed=1))
        b = tf.get_variable("b", [4], initializer=tf.zeros_initializer())
        h = tf.nn.relu(tf.matmul(x, w) + b)
    with tf.variable_scope("out"):
        w2 = tf.get_variable("w", [4, 3], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=2))
        logits = tf.matmul(h, w2) + tf.Variable(tf.constant(0.1, shape=[3]), name="bias")
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.5, step, 2, 0.9, staircase=True)
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    r = np.random.RandomState(0)
    return train, [loss, step], {x: r.rand(5, 6), y: np.eye(3)[[0, 1, 2, 0, 1]]}


def embedding(tf):
    table = tf.Variable(tf.random_uniform([7, 3], -1.0, 1.0, seed=3), name="table")
    ids = tf.placeholder(tf.int32, [None], name="ids")
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(rows))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return train, [loss, table], {ids: [1, 2, 2, 6]}


def convolution(tf):
    images = tf.placeholder(tf.float32, [None, 8, 8, 2], name="images")
    w = tf.get_variable("w", [3, 3, 2, 4], initializer=tf.random_normal_initializer(stddev=0.1, seed=4))
    h = tf.nn.max_pool(
        tf.nn.relu(tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
    )
    flat = tf.reshape(h, [-1, 4 * 4 * 4])
    logits = tf.matmul(flat, tf.get_variable("fc", [64, 2], initializer=tf.glorot_normal_initializer(seed=5)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 1], logits=logits))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return train, [loss], {images: np.random.RandomState(1).rand(3, 8, 8, 2)}


def resource(tf):
    v = tf.get_variable("v", [3], use_resource=True, initializer=tf.constant_initializer([1.0, 2.0, 3.0]))
    loss = tf.reduce_sum(v * v)
    train = tf.train.RMSPropOptimizer(0.1).minimize(loss)
    return train, [loss, v], {}


def average(tf):
    v = tf.get_variable("v", [3], initializer=tf.constant_initializer([1.0, 2.0, 3.0]))
    loss = tf.reduce_sum(v * v)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([train]):
        both = average.apply([v])
    return both, [loss, average.average(v)], {}


def clipped(tf):
    start = tf.glorot_uniform_initializer(seed=6)
    v = tf.get_variable("v", [4, 2], initializer=start, regularizer=lambda w: 0.1 * tf.nn.l2_loss(w))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    loss = tf.add_n([tf.reduce_mean(tf.square(v - 1.0)), *losses])
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    grads, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    grads, norm = tf.clip_by_global_norm(grads, 0.3)
    return optimizer.apply_gradients(zip(grads, variables, strict=True)), [loss, norm, v], {}


PROGRAMS = [mlp, embedding, convolution, resource, clipped]


def run(tf, program, steps=4):
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(7)
        train, watched, feed = program(tf)
        init = tf.global_variables_initializer()
        with tf.Session(graph=graph) as session:
            session.run(init)
            start = session.run(tf.trainable_variables())
            history = [session.run(watched, feed)]
            for _ in range(steps):
                session.run(train, feed)
                history.append(session.run(watched, feed))
            end = session.run(tf.global_variables())
        names = [v.name for v in tf.global_variables()]
    return graph, start, history, end, names


@pytest.mark.parametrize("program", [*PROGRAMS, average], ids=lambda p: p.__name__)
def test_program_gives_tensorflows_numbers(tensorflow, program):
    _, start, history, end, names = run(tensorfleet, program)
    _, start2, history2, end2, names2 = run(tensorflow, program)
    assert names == names2
    for a, b in zip(start, start2, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg="initial values differ")
    for a, b in zip(history, history2, strict=True):
        for p, q in zip(a, b, strict=True):
            np.testing.assert_allclose(p, q, rtol=2e-4, atol=1e-5)
    for a, b in zip(end, end2, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def names_and_types(graph):
    return [(op.name, op.type) for op in graph.get_operations()]


@pytest.mark.parametrize("program", [mlp, embedding, convolution, resource], ids=lambda p: p.__name__)
def test_forward_graph_has_tensorflows_names(tensorflow, program):
    ours, theirs = tensorfleet.Graph(), tensorflow.Graph()
    for tf, graph in ((tensorfleet, ours), (tensorflow, theirs)):
        with graph.as_default():
            program(tf)
    mine = [n for n in names_and_types(ours) if not n[0].startswith("gradients/")]
    other = [n for n in names_and_types(theirs) if not n[0].startswith("gradients/")]
    assert mine == other


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graph_made_here_trains_in_tensorflow(tensorflow, program):
    graph, _, history, _, _ = run(tensorfleet, program)
    proto = tensorflow.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    ours = tensorfleet.Graph()
    with ours.as_default():
        train, watched, feed = program(tensorfleet)
    with tensorflow.Graph().as_default() as copy:
        tensorflow.import_graph_def(proto, name="")
        feed = {k.name: v for k, v in feed.items()}
        watched = [w.name if not hasattr(w, "_graph_element") else w._graph_element.name for w in watched]
        with tensorflow.Session(graph=copy) as session:
            session.run("init")
            values = [session.run(watched, feed)]
            for _ in range(4):
                session.run(train.name, feed)
                values.append(session.run(watched, feed))
    for a, b in zip(history, values, strict=True):
        for p, q in zip(a, b, strict=True):
            np.testing.assert_allclose(p, q, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graph_made_in_tensorflow_trains_here(tensorflow, program):
    graph, _, history, _, _ = run(tensorflow, program)
    with tensorflow.Graph().as_default():
        train, watched, feed = program(tensorflow)
    watched = [w.name if not hasattr(w, "_graph_element") else w._graph_element.name for w in watched]
    with tensorfleet.Graph().as_default() as copy:
        tensorfleet.import_graph_def(graph.as_graph_def(), name="")
        feed = {k.name: v for k, v in feed.items()}
        with tensorfleet.Session(graph=copy) as session:
            session.run("init")
            values = [session.run(watched, feed)]
            for _ in range(4):
                session.run(train.name, feed)
                values.append(session.run(watched, feed))
    for a, b in zip(history, values, strict=True):
        for p, q in zip(a, b, strict=True):
            np.testing.assert_allclose(p, q, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("both", [(1, 2), (0, 5), (123456789, 987654321)])
@pytest.mark.parametrize(
    "make",
    [
        lambda tf, s: tf.random_uniform_initializer(-2.0, 3.0, seed=s),
        lambda tf, s: tf.random_normal_initializer(1.0, 0.5, seed=s),
        lambda tf, s: tf.truncated_normal_initializer(0.0, 0.1, seed=s),
        lambda tf, s: tf.glorot_uniform_initializer(seed=s),
        lambda tf, s: tf.glorot_normal_initializer(seed=s),
        lambda tf, s: tf.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=s),
        lambda tf, s: tf.uniform_unit_scaling_initializer(1.5, seed=s),
        lambda tf, s: tf.orthogonal_initializer(seed=s),
        lambda tf, s: tf.constant_initializer([1.0, 2.0]),
        lambda tf, s: tf.initializers.identity(2.0),
    ],
)
def test_initializer_with_both_seeds_set_gives_tensorflows_numbers(tensorflow, make, both):
    values = []
    for tf in (tensorfleet, tensorflow):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(both[0])
            v = tf.get_variable("v", [6, 4], initializer=make(tf, both[1]))
            session.run(v.initializer)
            values.append(session.run(v))
    np.testing.assert_allclose(values[0], values[1], rtol=2e-5, atol=2e-6)


def test_meta_graph_travels_both_ways(tensorflow, tmp_path):
    with tensorfleet.Graph().as_default():
        tensorfleet.get_variable("v", [2], initializer=tensorfleet.ones_initializer())
        tensorfleet.add_to_collection("numbers", 3)
        tensorfleet.train.export_meta_graph(str(tmp_path / "ours.meta"))
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        tensorflow.train.import_meta_graph(str(tmp_path / "ours.meta"))
        assert [v.name for v in tensorflow.trainable_variables()] == ["v:0"]
        assert tensorflow.get_collection("numbers") == [3]
        session.run(tensorflow.global_variables_initializer())
        assert session.run("v:0").tolist() == [1, 1]
    with tensorflow.Graph().as_default():
        tensorflow.get_variable("v", [2], initializer=tensorflow.ones_initializer())
        tensorflow.train.export_meta_graph(str(tmp_path / "theirs.meta"))
    with tensorfleet.Graph().as_default(), tensorfleet.Session() as session:
        tensorfleet.train.import_meta_graph(str(tmp_path / "theirs.meta"))
        (v,) = tensorfleet.trainable_variables()
        session.run(v.initializer)
        assert session.run(v).tolist() == [1, 1]
