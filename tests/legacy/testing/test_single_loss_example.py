"""Models of one layer, trained with a strategy."""

import pytest
from tensorfleet.python.distribute import single_loss_example, strategy_combinations

import tensorfleet as tf


@pytest.fixture
def strategy():
    """Everything on one CPU."""
    return strategy_combinations.one_device_strategy.strategy


@pytest.mark.parametrize("optimizer_fn", strategy_combinations.optimizers_v1_and_v2, ids=repr)
@pytest.mark.parametrize("callable_loss", [True, False])
def test_a_layer_learns_to_answer_one(strategy, optimizer_fn, callable_loss):
    with strategy.scope():
        model_fn, dataset_fn, layer = single_loss_example.minimize_loss_example(
            optimizer_fn(), use_bias=True, use_callable_loss=callable_loss
        )
        iterator = strategy.make_input_fn_iterator(lambda _: dataset_fn())
        step = strategy.extended.call_for_each_replica(model_fn, args=(iterator.get_next(),))
        answer = tf.squeeze(layer.kernel) + tf.squeeze(layer.bias)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), iterator.initialize()])
        before = abs(sess.run(answer) - 1.0)
        for _ in range(3):
            sess.run(step)
        assert abs(sess.run(answer) - 1.0) < before


def test_a_step_of_several_elements(strategy):
    optimizer_fn = strategy_combinations.gradient_descent_optimizer_v1_fn
    step, layer = single_loss_example.single_loss_example(optimizer_fn, strategy, iterations_per_step=2)
    op = step()
    assert step.distribution is strategy
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), step.initialize()])
        before = sess.run(layer.kernel)[0][0]
        sess.run(op)
        assert sess.run(layer.kernel)[0][0] - 1.0 == pytest.approx((before - 1.0) * 0.6**2, abs=1e-5)


@pytest.mark.parametrize("in_replica", [True, False])
def test_the_mean_of_batches_is_kept(strategy, in_replica):
    with strategy.scope():
        model_fn, dataset_fn, normalize = single_loss_example.batchnorm_example(
            strategy_combinations.gradient_descent_optimizer_v1_fn,
            momentum=0.5,
            update_ops_in_replica_mode=in_replica,
        )
        element = strategy.make_input_fn_iterator(lambda _: dataset_fn())
        step = strategy.extended.call_for_each_replica(model_fn, args=(element.get_next(),))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), element.initialize()])
        sess.run([step, *updates])
        assert sess.run(normalize.moving_mean)[0] == pytest.approx(30.0)
