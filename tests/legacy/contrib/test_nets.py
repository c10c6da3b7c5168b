"""Networks of `tf.contrib.slim.nets`: their variables, end points and sizes are those of the published ones."""

import numpy as np
import pytest

import tensorfleet as tf

slim = tf.contrib.slim
nets = slim.nets


def parameters() -> int:
    return sum(v.shape.num_elements() for v in tf.trainable_variables())


@pytest.mark.parametrize(
    ("module", "name", "scope", "size", "count"),
    [
        ("alexnet", "alexnet_v2", "alexnet_v2_arg_scope", 224, 50303912),
        ("overfeat", "overfeat", "overfeat_arg_scope", 231, 145704424),
        ("vgg", "vgg_a", "vgg_arg_scope", 224, 132863336),
        ("vgg", "vgg_16", "vgg_arg_scope", 224, 138357544),
    ],
)
def test_plain_networks_have_as_many_parameters_as_the_published_ones(module, name, scope, size, count):
    part = getattr(nets, module)
    with slim.arg_scope(getattr(part, scope)()):
        logits, ends = getattr(part, name)(tf.placeholder(tf.float32, [2, size, size, 3]))
    assert logits.shape.as_list() == [2, 1000]
    assert parameters() == count
    assert ends[f"{name}/fc8"] is logits
    assert len(tf.losses.get_regularization_losses()) == len(tf.trainable_variables()) // 2


def test_vgg_names_its_layers_by_block():
    with slim.arg_scope(nets.vgg.vgg_arg_scope()):
        _, ends = nets.vgg.vgg_16(tf.placeholder(tf.float32, [1, 224, 224, 3]), num_classes=7)
    assert list(ends)[:3] == ["vgg_16/conv1/conv1_1", "vgg_16/conv1/conv1_2", "vgg_16/pool1"]
    assert tf.global_variables()[0].op.name == "vgg_16/conv1/conv1_1/weights"


@pytest.mark.parametrize(("version", "count"), [("resnet_v1", 25557032), ("resnet_v2", 25568360)])
def test_residual_networks_have_as_many_parameters_as_the_published_ones(version, count):
    part = getattr(nets, version)
    with slim.arg_scope(part.resnet_arg_scope()):
        net, ends = getattr(part, f"{version}_50")(tf.placeholder(tf.float32, [2, 224, 224, 3]), 1000)
    assert net.shape.as_list() == [2, 1, 1, 1000]
    assert parameters() == count
    unit = f"{version}_50/block2/unit_4/bottleneck_{version[-2:]}"
    # The last unit of a block is the block's result too, and has both names.
    assert ends[unit] is ends[f"{version}_50/block2"]
    assert ends[unit].shape.as_list() == [2, 14, 14, 512]
    assert f"{unit}/conv2/weights" in {v.op.name for v in tf.global_variables()}


def test_an_output_stride_gives_convolutions_holes_instead():
    with slim.arg_scope(nets.resnet_v1.resnet_arg_scope()):
        net, _ = nets.resnet_v1.resnet_v1_50(
            tf.placeholder(tf.float32, [1, 65, 65, 3]), global_pool=False, output_stride=8
        )
    assert net.shape.as_list() == [1, 9, 9, 2048]
    with pytest.raises(ValueError, match="multiple of 4"):
        nets.resnet_v1.resnet_v1_50(tf.zeros([1, 65, 65, 3]), output_stride=6, scope="odd")


def test_inception_v3_has_auxiliary_logits_and_collects_moving_averages():
    with slim.arg_scope(nets.inception.inception_v3_arg_scope()):
        logits, ends = nets.inception.inception_v3(tf.placeholder(tf.float32, [2, 299, 299, 3]), 1001)
    assert logits.shape.as_list() == ends["AuxLogits"].shape.as_list() == [2, 1001]
    assert ends["Mixed_6a"].shape.as_list() == [2, 17, 17, 768]
    assert ends["PreLogits"].shape.as_list() == [2, 1, 1, 2048]
    assert len(tf.get_collection("moving_vars")) == 192
    assert "InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights" in {v.op.name for v in tf.global_variables()}


def test_inception_ends_where_it_is_told():
    images = tf.placeholder(tf.float32, [1, 139, 139, 3])
    net, ends = nets.inception_v3.inception_v3_base(images, final_endpoint="Mixed_5d", depth_multiplier=0.5)
    assert net is ends["Mixed_5d"] and list(ends)[-1] == "Mixed_5d"
    assert net.shape.as_list() == [1, 15, 15, 144]
    with pytest.raises(ValueError, match="Unknown final endpoint"):
        nets.inception.inception_v1_base(images, final_endpoint="Mixed_9z")


def test_a_small_residual_network_trains(session):
    block = nets.resnet_v2.resnet_v2_block
    images = tf.constant(np.random.RandomState(0).rand(4, 16, 16, 3).astype(np.float32))
    with slim.arg_scope(nets.resnet_v2.resnet_arg_scope()):
        net, _ = nets.resnet_v2.resnet_v2(images, [block("block1", 4, 2, 2)], num_classes=3)
    loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 2, 0], tf.squeeze(net, [1, 2]))
    step = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    session.run(tf.global_variables_initializer())
    losses = [session.run(step) for _ in range(10)]
    assert losses[-1] < losses[0]


def test_the_second_inception_has_its_end_points_and_as_many_weights():
    nets = tf.contrib.slim.python.slim.nets.inception_v2
    with tf.contrib.slim.arg_scope(nets.inception_v2_arg_scope()):
        net, ends = nets.inception_v2_base(tf.zeros([5, 224, 224, 3]), scope="InceptionV2")
    assert (net.op.name, net.shape.as_list()) == ("InceptionV2/Mixed_5c/concat", [5, 7, 7, 1024])
    assert len(ends) == 15 and ends["Mixed_4a"].shape.as_list() == [5, 14, 14, 576]
    assert sum(v.shape.num_elements() for v in tf.contrib.slim.get_model_variables()) == 10173112


def test_the_second_inception_may_be_narrower_and_end_earlier():
    nets = tf.contrib.slim.nets.inception
    _, ends = nets.inception_v2(tf.zeros([2, 112, 112, 3]), 10, depth_multiplier=0.5)
    assert ends["Mixed_3b"].shape.as_list()[-1] == 128 and ends["Logits"].shape.as_list() == [2, 10]
    with tf.Graph().as_default():
        _, first = nets.inception_v2_base(tf.zeros([1, 64, 64, 3]), final_endpoint="Conv2d_1a_7x7")
    assert list(first) == ["Conv2d_1a_7x7"]
    with pytest.raises(ValueError, match="depth_multiplier"):
        nets.inception_v2(tf.zeros([1, 64, 64, 3]), depth_multiplier=0.0)
