"""Layers: names, sharing, collections, and layers of one's own."""

import copy

import numpy as np
import pytest

import tensorfleet as tf


def x(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


class Scale(tf.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight("factor", input_shape[-1:], initializer=tf.ones_initializer())
        super().build(input_shape)

    def call(self, inputs, by=1.0):
        return inputs * self.factor * by


def test_functions_number_their_scopes():
    names = [tf.layers.dense(x(2, 4), 3).name for _ in range(2)]
    assert names == ["dense/BiasAdd:0", "dense_1/BiasAdd:0"]
    assert [v.name for v in tf.global_variables()] == [
        "dense/kernel:0",
        "dense/bias:0",
        "dense_1/kernel:0",
        "dense_1/bias:0",
    ]


def test_a_layer_called_twice_shares_its_variables():
    layer = tf.layers.Dense(3)
    names = [layer(x(2, 4)).name, layer(x(5, 4)).name]
    assert names == ["dense/BiasAdd:0", "dense/BiasAdd_1:0"]
    assert layer.scope_name == "dense" and len(tf.global_variables()) == 2
    assert layer.count_params() == 15


def test_reuse_finds_the_variables_of_the_same_name():
    tf.layers.dense(x(2, 4), 3, name="fc")
    with pytest.raises(ValueError, match="fc/kernel already exists"):
        tf.layers.dense(x(2, 4), 3, name="fc")
    tf.layers.dense(x(2, 4), 3, name="fc", reuse=True)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        tf.layers.dense(x(2, 4), 3, name="fc")
    assert len(tf.global_variables()) == 2
    with pytest.raises(ValueError, match="other/kernel does not exist"):
        tf.layers.dense(x(2, 4), 3, name="other", reuse=True)


def test_variable_scopes_name_variables_and_name_scopes_only_operations():
    with tf.variable_scope("net"), tf.name_scope("tower"):
        y = tf.layers.dense(x(2, 4), 3, name="fc")
    assert y.name == "net/tower/fc/BiasAdd:0"
    assert tf.global_variables()[0].name == "net/fc/kernel:0"


def test_a_layer_of_ones_own_builds_once_and_passes_arguments_on(session):
    layer = Scale(name="mine")
    first, second = layer(tf.ones([2, 3])), layer(tf.ones([2, 3]), by=3.0)
    assert [v.name for v in layer.trainable_weights] == ["mine/factor:0"]
    session.run(tf.global_variables_initializer())
    assert session.run([first, second])[1].sum() == 18
    layer.set_weights([np.array([1.0, 2.0, 3.0])])
    assert layer.get_weights()[0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="expecting 1 weights"):
        layer.set_weights([])


def test_a_layer_that_is_not_trainable_keeps_its_variables_out_of_training():
    layer = Scale(trainable=False)
    layer(x(2, 3))
    assert tf.trainable_variables() == [] and layer.trainable_weights == []
    assert layer.non_trainable_weights == tf.global_variables()


def test_layers_inside_a_layer_count_as_its_own():
    class Two(tf.layers.Layer):
        def build(self, input_shape):
            self.inner = tf.layers.Dense(2, name="inner")
            super().build(input_shape)

        def call(self, inputs):
            return self.inner(inputs)

    layer = Two()
    layer(x(2, 3))
    assert [v.name for v in layer.weights] == ["two/inner/kernel:0", "two/inner/bias:0"]
    assert layer.submodules == (layer.inner,)


def test_regularizers_add_losses_once():
    for reuse in (None, True):
        tf.layers.dense(x(2, 4), 3, name="fc", kernel_regularizer=tf.nn.l2_loss, reuse=reuse)
    assert [t.name for t in tf.losses.get_regularization_losses()] == ["fc/kernel/Regularizer/L2Loss:0"]


def test_activity_regularizers_average_over_the_batch(session):
    layer = tf.layers.Dense(3, kernel_initializer=tf.ones_initializer(), activity_regularizer=tf.reduce_sum)
    layer(tf.ones([5, 2]))
    session.run(tf.global_variables_initializer())
    assert session.run(tf.losses.get_regularization_loss()) == 6
    assert layer.get_losses_for(None) == layer.losses


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="Input 0 of layer .* expected min_ndim=2, found ndim=1"):
        tf.layers.dense(x(4), 3)
    layer = tf.layers.Dense(3)
    layer(x(2, 4))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 4"):
        layer(x(2, 5))
    with pytest.raises(ValueError, match="rank is undefined"):
        tf.layers.conv2d(tf.placeholder(tf.float32), 3, 3)
    with pytest.raises(TypeError, match="Keyword argument not understood: colour"):
        tf.layers.Dense(3, colour=1)


def test_a_layer_belongs_to_one_graph():
    layer = tf.layers.Dense(3)
    layer(x(2, 4))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="graph"):
        layer(x(2, 4))


def test_a_layer_can_be_made_again_from_its_configuration():
    layer = tf.layers.Conv2D(3, 5, strides=2, name="c")
    again = tf.layers.Conv2D.from_config(layer.get_config())
    assert again.compute_output_shape((None, 9, 9, 1)).as_list() == [None, 3, 3, 3]
    assert Scale().compute_output_shape((2, 3)).as_list() == [2, 3]


def test_a_name_is_known_only_after_the_first_call():
    with pytest.raises(ValueError, match="has not been used yet"):
        _ = tf.layers.Dense(3).scope_name


def test_variables_may_be_partitioned(session):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        y = tf.layers.dense(tf.ones([1, 4]), 2, kernel_regularizer=tf.nn.l2_loss)
        z = tf.layers.batch_normalization(y, training=True)
    assert [v.name for v in tf.global_variables()][:2] == [
        "p/dense/kernel/part_0:0",
        "p/dense/kernel/part_1:0",
    ]
    assert tf.global_variables()[-1].name == "p/batch_normalization/moving_variance:0"
    assert len(tf.losses.get_regularization_losses()) == 2
    session.run(tf.global_variables_initializer())
    assert session.run(z).shape == (1, 2)


def test_a_custom_getter_may_decide_against_training():
    def frozen(getter, name, *args, **kwargs):
        return getter(name, *args, **{**kwargs, "trainable": False})

    layer = tf.layers.Dense(3)
    with tf.variable_scope("s", custom_getter=frozen):
        layer(x(2, 4))
    assert layer.trainable_weights == [] and len(layer.non_trainable_weights) == 2


def test_the_scopes_initializer_is_the_default(session):
    with tf.variable_scope("s", initializer=tf.constant_initializer(2.0)):
        y = tf.layers.dense(tf.ones([1, 3]), 1)
    session.run(tf.global_variables_initializer())
    assert session.run(y) == 6


def test_a_copy_of_a_layer_shares_what_is_in_the_graph():
    layer = tf.layers.Dense(2, name="d")
    layer(tf.zeros([1, 3]))
    layer.extra = tf.constant(1.0)
    layer.options = {"rate": [1, 2]}
    result = copy.deepcopy(layer)
    assert (result.name, result.scope_name) == ("d", "d")
    assert (
        result.kernel is layer.kernel and result.extra is layer.extra and result.variables == layer.variables
    )
    result.options["rate"].append(3)
    assert layer.options == {"rate": [1, 2]}
