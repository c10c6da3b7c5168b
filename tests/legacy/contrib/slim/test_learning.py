"""Training with slim: checkpoints, traces, what needs a folder."""

import json

import pytest

import tensorfleet as tf

slim = tf.contrib.slim


def train_op():
    x = tf.get_variable("x", initializer=4.0)
    return slim.learning.create_train_op(x * x, tf.train.GradientDescentOptimizer(0.1))


def test_training_is_saved_and_goes_on_from_there(tmp_path):
    losses = []
    for steps in (2, 5):
        with tf.Graph().as_default():
            losses.append(slim.learning.train(train_op(), str(tmp_path), number_of_steps=steps))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
    assert losses[1] == pytest.approx(16.0 * 0.8**8, rel=1e-4)  # the loss before the fifth step


def test_every_so_many_steps_are_traced(tmp_path):
    slim.learning.train(train_op(), str(tmp_path), number_of_steps=5, trace_every_n_steps=2)
    traces = sorted(p.name for p in tmp_path.glob("tf_trace-*.json"))
    assert traces == ["tf_trace-1.json", "tf_trace-3.json", "tf_trace-5.json"]
    assert json.loads((tmp_path / "tf_trace-3.json").read_text())["traceEvents"]


@pytest.mark.parametrize("option", ["summary_op", "saver", "trace_every_n_steps"])
def test_what_is_written_needs_a_folder(option):
    train = train_op()
    given = {"summary_op": tf.constant(b""), "saver": tf.train.Saver(), "trace_every_n_steps": 2}
    with pytest.raises(ValueError, match="logdir=None"):
        slim.learning.train(train, None, number_of_steps=1, **{option: given[option]})


def test_multipliers_of_gradients_are_checked():
    x = tf.get_variable("x", initializer=4.0)
    pair, multiply = (tf.constant(1.0), x), slim.learning.multiply_gradients
    for grads, factors, message in (
        (pair, {x: 2.0}, "`grads_and_vars` must be a list"),
        ([pair], {}, "`gradient_multipliers` is empty"),
        ([pair], 3, "`gradient_multipliers` must be a dict"),
        ([(None, x)], {x: 2.0}, "Requested multiple of `None` gradient"),
    ):
        with pytest.raises(ValueError, match=message):
            multiply(grads, factors)


def test_queues_are_filled_in_a_with_statement():
    batch = tf.train.batch([tf.constant(3)], 2)
    with tf.Session() as sess, slim.queues.QueueRunners(sess):
        assert sess.run(batch).tolist() == [3, 3]
        with pytest.raises(slim.queues.NestedQueueRunnerError), slim.queues.QueueRunners(sess):
            pass


def test_initializers_and_regularizers_are_modules_of_slim():
    assert slim.initializers.xavier_initializer is tf.contrib.layers.xavier_initializer
    assert slim.regularizers.l2_regularizer is slim.l2_regularizer


def test_the_old_hinge_loss_is_that_of_each_logit(session):
    loss = tf.contrib.losses.hinge_loss(tf.constant([[2.0], [-1.0], [0.5]]), tf.constant([[1], [1], [0]]))
    assert session.run(loss).tolist() == [[0], [2], [1.5]]
    assert tf.losses.get_losses() == []


def test_the_variables_of_layers_are_where_the_scope_of_model_variables_says():
    slim = tf.contrib.slim
    places = [slim.model_variable, slim.variable]
    with tf.device("/job:worker/task:1"), slim.arg_scope(places, device="/job:ps/task:0"):
        outputs = slim.conv2d(tf.zeros([2, 8, 8, 3]), 4, [3, 3], normalizer_fn=slim.batch_norm)
        slim.fully_connected(slim.flatten(outputs), 3)
    assert {v.device for v in slim.get_model_variables()} == {"/job:ps/task:0"}
    assert outputs.device == "/job:worker/task:1"
