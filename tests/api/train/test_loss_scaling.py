"""Losses that are scaled up for gradients of half precision."""

import numpy as np
import pytest

import tensorfleet as tf

experimental = tf.train.experimental


def test_a_fixed_scale_does_not_change_what_is_learned():
    v = tf.Variable([5.0])
    scale = experimental.FixedLossScale(10)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(2.0), scale)
    seen = []

    @tf.custom_gradient
    def watched(x):
        def back(dy):
            seen.append(dy)
            return dy

        return tf.identity(x), back

    train = optimizer.minimize(lambda: watched(tf.convert_to_tensor(v)), var_list=[v])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(seen[0]).tolist() == [10.0]
        sess.run(train)
        assert sess.run(v).tolist() == [3.0]


def test_a_dynamic_scale_grows_and_shrinks_and_a_bad_step_changes_nothing():
    v, factor = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, [])
    scale = experimental.DynamicLossScale(initial_loss_scale=2, increment_period=2, multiplier=2)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.MomentumOptimizer(1.0, 0.0), scale)
    step = tf.train.create_global_step()
    train = optimizer.minimize(v * factor, step)
    assert scale._num_good_steps in optimizer.variables()
    assert optimizer.get_slot(v, "momentum") is not None
    results = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for value in (1.0, 1.0, 1.0, np.nan, 1.0):
            sess.run(train, {factor: value})
            results.append(sess.run([v, scale(), scale._num_good_steps, step]))
    assert [f[0].tolist() for f in results] == [[0, 1], [-1, 0], [-2, -1], [-2, -1], [-3, -2]]
    assert [f[1] for f in results] == [2.0, 4.0, 4.0, 2.0, 2.0]
    assert [f[2] for f in results] == [1, 0, 1, 0, 1]
    assert [f[3] for f in results] == [1, 2, 3, 3, 4]


def test_a_scale_is_never_below_one_nor_infinite():
    scale = experimental.DynamicLossScale(1.0, increment_period=1, multiplier=1e30)
    good, apply = scale.update([tf.constant([1.0])])
    bad, refuse = scale.update([tf.constant([np.inf]), None])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(bad)
        assert sess.run([scale(), refuse, apply]) == [1.0, False, True]
        sess.run(good)
        sess.run(good)
        assert sess.run(scale()) == np.float32(1e30)


def test_gradients_of_rows_are_scaled_back():
    table = tf.Variable(tf.ones([3, 2]))
    optimizer = experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(1.0))
    train = optimizer.minimize(tf.nn.embedding_lookup(table, [1]))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run(table).tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("scale", [experimental.FixedLossScale(3.0), None])
def test_a_scale_is_made_again_from_its_configuration(scale):
    scale = scale or experimental.DynamicLossScale(4.0, 5, 6.0)
    again = type(scale).from_config(scale.get_config())
    assert again.get_config() == scale.get_config()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: experimental.FixedLossScale(0.5), "at least 1, got: 0.5"),
        (lambda: experimental.FixedLossScale("1"), "int or float"),
        (lambda: experimental.MixedPrecisionLossScaleOptimizer(3, 4), "must be an instance of Optimizer"),
        (
            lambda: experimental.enable_mixed_precision_graph_rewrite(1),
            "must be an instance of a tf.train.Optimizer",
        ),
    ],
)
def test_scales_that_make_no_sense_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_an_optimizer_is_wrapped_once_and_needs_a_scale():
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    wrapped = experimental.enable_mixed_precision_graph_rewrite(optimizer, 8)
    with pytest.raises(ValueError, match="must not already be"):
        experimental.enable_mixed_precision_graph_rewrite(wrapped)
    for scale in (None, "other"):
        with pytest.raises(ValueError, match="loss.scale"):
            experimental.MixedPrecisionLossScaleOptimizer(optimizer, scale)
    experimental.disable_mixed_precision_graph_rewrite()


def test_scales_say_what_they_are():
    assert repr(experimental.FixedLossScale(123)) == "FixedLossScale(123.0)"
    dynamic = experimental.DynamicLossScale(1, increment_period=2, multiplier=3)
    result = "DynamicLossScale(initial_loss_scale=1.0, increment_period=2, multiplier=3.0)"
    assert repr(dynamic) == result


def test_a_scale_is_updated_without_gradients_too():
    update, apply = experimental.DynamicLossScale().update([None])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        assert sess.run(apply)


def test_a_bad_gradient_of_one_replica_keeps_all_from_stepping():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    factor = tf.placeholder(tf.float32, [])
    with strategy.scope():
        v = tf.Variable(4.0)
        scale = experimental.DynamicLossScale(2.0, increment_period=1, multiplier=2)
        optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.MomentumOptimizer(1.0, 0.0), scale)

        def step():
            place = tf.distribute.get_replica_context().replica_id_in_sync_group
            mine = tf.where(tf.equal(place, 0), factor, 1.0)
            return optimizer.minimize(lambda: v * mine, var_list=[v])

        train = strategy.experimental_run_v2(step)
    run = tf.group(strategy.experimental_local_results(train))
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(run, {factor: np.nan})
        assert sess.run([v, scale()]) == [4.0, 1.0]
        sess.run(run, {factor: 1.0})
        assert sess.run([v, scale()]) == [2.0, 2.0]


def test_a_checkpoint_of_the_optimizer_holds_the_scale_and_the_slots_of_the_inner_one(tmp_path):
    v = tf.Variable([2.0])
    scale = experimental.DynamicLossScale(1.0, increment_period=2, multiplier=2.0)
    inner = tf.train.MomentumOptimizer(1.0, momentum=1.0)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(inner, scale)
    train = optimizer.minimize(v + 1.0, var_list=[v])
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, v=v)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        path = checkpoint.save(str(tmp_path / "scaled"), session=sess)
        sess.run(train)
        assert sess.run(scale()) == 2.0
        status = checkpoint.restore(path).assert_consumed()
        status.run_restore_ops(sess)
        assert sess.run([scale(), inner.get_slot(v, "momentum")]) == [1.0, [1.0]]
    names = [name for name, _ in tf.train.list_variables(path)]
    value = ".ATTRIBUTES/VARIABLE_VALUE"
    assert f"optimizer/loss_scale/current_loss_scale/{value}" in names
    assert f"optimizer/loss_scale/good_steps/{value}" in names
    assert f"v/.OPTIMIZER_SLOT/optimizer/base_optimizer/momentum/{value}" in names
