"""Layers of `tf.contrib.layers` and `slim`: names, collections, values."""

import numpy as np
import pytest

import tensorfleet as tf

slim = tf.contrib.slim
layers = tf.contrib.layers


def evaluate(*fetches, feeds=None):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return sess.run(fetches, feeds)


def test_variables_have_slims_names():
    x = tf.zeros([2, 8, 8, 3])
    y = slim.conv2d(x, 4, [3, 3], scope="c1")
    y = slim.conv2d(y, 4, 3, normalizer_fn=slim.batch_norm)
    y = slim.max_pool2d(y, [2, 2], scope="pool")
    y = slim.flatten(y)
    y = slim.fully_connected(y, 5, weights_regularizer=slim.l2_regularizer(0.1))
    y = layers.linear(y, 3, scope="logits")
    wanted = """
        c1/weights c1/biases Conv/weights Conv/BatchNorm/beta Conv/BatchNorm/moving_mean
        Conv/BatchNorm/moving_variance fully_connected/weights fully_connected/biases logits/weights logits/biases
    """
    assert [v.op.name for v in tf.global_variables()] == wanted.split()
    assert tf.model_variables() == tf.global_variables()
    assert y.shape.as_list() == [2, 3] and y.op.type == "BiasAdd"
    assert len(tf.losses.get_regularization_losses()) == 1
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2


def test_variables_and_outputs_go_to_the_users_collections():
    y = slim.fully_connected(
        tf.zeros([1, 2]),
        3,
        scope="fc",
        variables_collections={"weights": ["w"]},
        outputs_collections="points",
    )
    assert [v.op.name for v in tf.get_collection("w")] == ["fc/weights"]
    assert slim.utils.convert_collection_to_dict("points") == {"fc": y}


def test_a_scope_can_be_reused():
    x = tf.ones([2, 4])
    a = slim.fully_connected(x, 3, scope="fc")
    b = slim.fully_connected(x, 3, scope="fc", reuse=True)
    assert len(tf.global_variables()) == 2
    assert np.array_equal(*evaluate(a, b))


def test_batch_norm_keeps_averages_where_it_is_told():
    x = np.random.RandomState(0).normal(3.0, 2.0, [64, 4]).astype(np.float32)
    y = slim.batch_norm(tf.constant(x), decay=0.0, updates_collections=None, scope="bn")
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        out = sess.run(y)
        np.testing.assert_allclose(out.mean(0), 0, atol=1e-5)
        mean = sess.run(slim.get_variables_by_name("moving_mean", "bn")[0])
        np.testing.assert_allclose(mean, x.mean(0), rtol=1e-5)
    slim.batch_norm(tf.constant(x), updates_collections="mine")
    assert len(tf.get_collection("mine")) == 2
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


def test_stacks_and_repetitions_number_their_scopes():
    y = slim.stack(tf.zeros([1, 4]), slim.fully_connected, [5, 6], scope="fc")
    slim.repeat(y, 2, slim.fully_connected, 6, scope="r")
    items = [v.op.name for v in tf.global_variables() if v.op.name.endswith("weights")]
    assert items == ["fc/fc_1/weights", "fc/fc_2/weights", "r/r_1/weights", "r/r_2/weights"]


def test_small_layers_compute_what_they_say():
    x = tf.constant([[3.0, 4.0], [0.0, 5.0]])
    unit, soft, hot = slim.unit_norm(x, 1), slim.softmax(x), slim.one_hot_encoding([1, 0], 3)
    normed, kept = slim.layer_norm(x), slim.dropout(x, 0.5, is_training=False)
    unit, soft, hot, normed, kept = evaluate(unit, soft, hot, normed, kept)
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 1]], rtol=1e-5)
    np.testing.assert_allclose(soft.sum(1), [1, 1], rtol=1e-6)
    assert hot.tolist() == [[0, 1, 0], [1, 0, 0]]
    np.testing.assert_allclose(normed, [[-1, 1], [-1, 1]], rtol=1e-5)
    assert kept.tolist() == [[3, 4], [0, 5]]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_images_keep_their_layout(data_format):
    shape = [2, 8, 8, 3] if data_format == "NHWC" else [2, 3, 8, 8]
    y = slim.conv2d(tf.zeros(shape), 4, 3, data_format=data_format)
    y = slim.avg_pool2d(y, 2, data_format=data_format)
    assert y.shape.as_list() == [2, 4, 4, 4]


def test_other_convolutions():
    x = tf.zeros([2, 8, 8, 3])
    assert slim.separable_conv2d(x, 5, 3).shape.as_list() == [2, 8, 8, 5]
    assert slim.separable_conv2d(x, None, [3, 3], 2, scope="dw").shape.as_list() == [2, 8, 8, 6]
    assert slim.conv2d_transpose(x, 4, 3, stride=2).shape.as_list() == [2, 16, 16, 4]
    assert [v.op.name for v in slim.get_variables("dw")] == ["dw/depthwise_weights", "dw/biases"]
    with pytest.raises(ValueError, match="rank 4, got 3"):
        slim.conv2d(tf.zeros([2, 3, 3]), 4, 3)


def test_losses_take_their_arguments_in_the_old_order():
    logits, labels = tf.constant([[2.0, 0.0]]), tf.constant([[1.0, 0.0]])
    old = slim.losses.softmax_cross_entropy(logits, labels, weight=2.0)
    new = tf.losses.softmax_cross_entropy(labels, logits, weights=2.0)
    assert np.array_equal(*evaluate(old, new))
    assert len(slim.losses.get_losses()) == 2
    assert tf.contrib.losses.log_loss is slim.losses.log_loss


def test_streaming_metrics_take_the_predictions_first(session):
    predictions, labels = tf.constant([1.0, 0.0, 1.0]), tf.constant([1.0, 0.0, 0.0])
    value, update = tf.contrib.metrics.streaming_accuracy(predictions, labels)
    values, updates = tf.contrib.metrics.aggregate_metric_map({"a": (value, update)})
    session.run(tf.local_variables_initializer())
    session.run(updates)
    assert session.run(values)["a"] == pytest.approx(2 / 3)
    recall = tf.contrib.metrics.streaming_recall(predictions, labels)
    session.run(tf.local_variables_initializer())
    assert session.run(recall[1]) == 1.0


@pytest.mark.parametrize(
    "optimizer", ["SGD", tf.train.GradientDescentOptimizer, lambda rate: tf.train.AdamOptimizer(rate)]
)
def test_optimize_loss_trains(optimizer, session):
    w = tf.get_variable("w", initializer=[4.0])
    loss = tf.reduce_sum(w * w)
    step = tf.train.get_or_create_global_step()
    train = layers.optimize_loss(loss, step, 0.1, optimizer, clip_gradients=5.0)
    session.run(tf.global_variables_initializer())
    losses = [session.run(train) for _ in range(5)]
    assert session.run(step) == 5
    assert losses[-1] < losses[0]


def test_optimize_loss_names_what_it_does_not_know():
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="Optimizer name should be one of"):
        layers.optimize_loss(tf.constant(1.0), step, 0.1, "Best")
    with pytest.raises(ValueError, match="Summaries should be one of"):
        layers.optimize_loss(tf.constant(1.0), step, 0.1, "SGD", summaries=["all"])


def test_a_train_op_runs_updates_and_scales_gradients(session):
    w = tf.get_variable("w", initializer=[1.0])
    count = tf.get_variable("count", initializer=0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, count.assign_add(1).op)
    train = slim.learning.create_train_op(
        tf.reduce_sum(w), tf.train.GradientDescentOptimizer(1.0), gradient_multipliers={"w": 0.5}
    )
    session.run(tf.global_variables_initializer())
    assert session.run(train) == 1.0
    assert session.run([w, count]) == [[0.5], 1]
    assert session.run(tf.train.get_global_step()) == 1
