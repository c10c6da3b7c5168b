"""`tf.contrib.model_pruning`: small weights are masked."""

import numpy as np
import pytest

import tensorfleet as tf

P = tf.contrib.model_pruning
WEIGHTS = np.random.RandomState(0).normal(size=[10, 8]).astype(np.float32)


def spec(**changed):
    result = P.get_pruning_hparams()
    for name, value in changed.items():
        result.set_hparam(name, value)
    return result


def test_the_smallest_weights_are_masked(session):
    w = tf.get_variable("w", initializer=WEIGHTS)
    masked = P.apply_mask(w, tf.get_variable_scope())
    step = tf.train.get_or_create_global_step()
    pruning = P.Pruning(spec(target_sparsity=0.5), step, sparsity=0.25)
    update = pruning.mask_update_op()
    session.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(session.run(masked), WEIGHTS)
    session.run(update)
    left = session.run(masked)
    smallest = np.sort(np.abs(WEIGHTS).ravel())[:20]
    assert (left == 0).sum() == 20 and np.abs(left[left != 0]).min() > smallest.max()
    np.testing.assert_allclose(session.run(P.get_weight_sparsity()), [0.25])
    np.testing.assert_allclose(session.run(P.get_thresholds()), [np.sort(np.abs(WEIGHTS).ravel())[20]])
    assert P.get_weights()[0] is w and len(P.get_masked_weights()) == len(P.get_masks()) == 1


def test_more_is_masked_from_step_to_step(session):
    P.apply_mask(tf.get_variable("w", initializer=WEIGHTS), tf.get_variable_scope())
    step = tf.train.get_or_create_global_step()
    pruning = P.Pruning(
        spec(target_sparsity=0.8, sparsity_function_end_step=10, pruning_frequency=5, end_pruning_step=10),
        step,
    )
    update, count = pruning.conditional_mask_update_op(), tf.assign_add(step, 1)
    session.run(tf.global_variables_initializer())
    seen = []
    for _ in range(12):
        session.run(count)
        session.run(update)
        seen.append(round(float(session.run(P.get_weight_sparsity()[0])), 4))
    # At steps 5 and 10: 0.8 - 0.8 * (1 - step / 10) ** 3.
    assert seen == [0.0] * 4 + [0.7] * 5 + [0.8] * 3
    pruning.add_pruning_summaries()
    assert b"sparsity" in session.run(tf.summary.merge_all())


def test_blocks_are_masked_together(session):
    w = tf.get_variable("w", initializer=WEIGHTS)
    masked = P.apply_mask(w, tf.get_variable_scope())
    step = tf.train.get_or_create_global_step()
    pruning = P.Pruning(spec(block_height=5, block_width=2, block_pooling_function="MAX"), step, sparsity=0.5)
    session.run(tf.global_variables_initializer())
    session.run(pruning.mask_update_op())
    mask = session.run(masked) != 0
    blocks = mask.reshape(2, 5, 4, 2).transpose(0, 2, 1, 3).reshape(8, 10)
    assert (blocks.all(1) | ~blocks.any(1)).all() and blocks.all(1).sum() == 4


def test_weights_have_shares_of_their_own(session):
    for name in ("first", "second"):
        with tf.variable_scope(name):
            P.apply_mask(tf.get_variable("w", initializer=WEIGHTS), tf.get_variable_scope())
    step = tf.train.get_or_create_global_step()
    pruning = P.Pruning(spec(target_sparsity=0.5, weight_sparsity_map=["first:0.25"]), step, sparsity=0.5)
    session.run(tf.global_variables_initializer())
    session.run(pruning.mask_update_op())
    np.testing.assert_allclose(session.run(P.get_weight_sparsity()), [0.25, 0.5])


def test_layers_have_masks(session):
    images = tf.ones([2, 6, 6, 3])
    net = P.masked_conv2d(images, 4, 3, scope="conv")
    net = P.masked_fully_connected(tf.layers.flatten(net), 5, scope="fc")
    names = {v.op.name for v in tf.global_variables()}
    assert {"conv/weights", "conv/mask", "conv/threshold", "conv/biases", "fc/weights", "fc/mask"} <= names
    assert len(tf.trainable_variables()) == 4 and len(P.get_masks()) == 2
    session.run(tf.global_variables_initializer())
    first = session.run(net)
    session.run([m.assign(tf.zeros_like(m)) for m in P.get_masks()])
    assert np.abs(first).max() > 0
    np.testing.assert_array_equal(session.run(net), 0)


@pytest.mark.parametrize("kind", ["MaskedBasicLSTMCell", "MaskedLSTMCell"])
def test_cells_have_masks(session, kind):
    cell = getattr(P, kind)(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 5]), dtype=tf.float32)
    (mask,) = P.get_masks()
    assert mask.shape == [9, 16]
    session.run(tf.global_variables_initializer())
    assert np.abs(session.run(outputs)).max() > 0
    session.run(mask.assign(tf.zeros_like(mask)))
    np.testing.assert_array_equal(session.run(outputs), 0)


def test_masks_are_stripped_from_a_trained_graph(tmp_path):
    x = tf.placeholder(tf.float32, [None, 10], "x")
    y = tf.identity(P.masked_fully_connected(x, 3, scope="fc"), name="y")
    loss = tf.reduce_mean(
        tf.square(P.masked_fully_connected(tf.ones([4, 10]), 3, scope="fc", reuse=True) - 1.0)
    )
    step = tf.train.get_or_create_global_step()
    train = tf.contrib.slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    pruning = P.Pruning(spec(begin_pruning_step=0, pruning_frequency=1, sparsity_function_end_step=5), step)
    saver, share = tf.train.Saver(), P.get_weight_sparsity()[0]
    P.train(
        train, str(tmp_path), pruning.conditional_mask_update_op(), number_of_steps=8, log_every_n_steps=100
    )
    given = np.random.RandomState(1).normal(size=[2, 10]).astype(np.float32)
    with tf.Session() as sess:
        saver.restore(sess, tf.train.latest_checkpoint(str(tmp_path)))
        wanted, share = sess.run([y, share], {x: given})
    np.testing.assert_allclose(share, 0.5, atol=0.02)
    tf.reset_default_graph()
    whole = P.graph_def_from_checkpoint(str(tmp_path), ["y"])
    stripped = P.strip_pruning_vars_fn(whole, ["y"])
    assert any("mask" in n.name for n in whole.node)
    assert not any(n.name.endswith(("/mask", "/threshold")) for n in stripped.node)
    with tf.Graph().as_default(), tf.Session() as sess:
        (again,) = tf.import_graph_def(stripped, return_elements=["y:0"], name="")
        np.testing.assert_allclose(sess.run(again, {"x:0": given}), wanted, rtol=1e-5)


def test_parameters_are_checked():
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="target_sparsity must be in range"):
        P.Pruning(spec(target_sparsity=1.0), step)
    with pytest.raises(ValueError, match="Pruning must begin before it can end"):
        P.Pruning(spec(begin_pruning_step=5, end_pruning_step=5), step)
