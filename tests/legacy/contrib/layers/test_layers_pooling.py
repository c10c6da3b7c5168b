"""Layers of tf.contrib.layers for volumes, sequences, single examples and few uses."""

import numpy as np
import pytest

import tensorfleet as tf

layers = tf.contrib.layers


def values(*tensors):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(tensors))


def drawn(*shape):
    return np.random.RandomState(3).normal(2.0, 3.0, shape).astype(np.float32)


@pytest.mark.parametrize(("kind", "reduce"), [("max", np.max), ("avg", np.mean)])
def test_volumes_are_pooled(kind, reduce):
    x = drawn(2, 4, 4, 4, 3)
    pool = getattr(layers, f"{kind}_pool3d")
    channels_first = pool(x.transpose(0, 4, 1, 2, 3), 2, data_format="NCDHW")
    result, other = values(pool(x, [2, 2, 2]), channels_first)
    expected = reduce(x.reshape(2, 2, 2, 2, 2, 2, 2, 3), axis=(2, 4, 6))
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    np.testing.assert_allclose(other.transpose(0, 2, 3, 4, 1), expected, rtol=1e-5)
    assert pool(x, 2, scope="mine").op.name.startswith("mine/")
    with pytest.raises(ValueError, match="NCDHW or NDHWC"):
        pool(x, 2, data_format="NHWC")


def test_pooling_takes_inputs_of_any_rank():
    x = drawn(2, 6, 3)
    (result,) = values(layers.pool(x, 2, "MAX", stride=2))
    np.testing.assert_allclose(result, x.reshape(2, 3, 2, 3).max(2))
    assert layers.pool(drawn(1, 6, 6, 2), [3, 3], "AVG", padding="SAME").shape == [1, 6, 6, 2]
    with pytest.raises(ValueError, match=">= 3"):
        layers.pool(drawn(2, 6), 2, "MAX")


def test_all_channels_are_convolved_with_one_kernel():
    x = drawn(1, 5, 5, 4)
    y = layers.conv2d_in_plane(x, [1, 2], padding="VALID", weights_initializer=tf.ones_initializer())
    (result,) = values(y)
    np.testing.assert_allclose(result, np.maximum(x[:, :, :-1] + x[:, :, 1:], 0), rtol=1e-5)
    assert [v.op.name for v in tf.contrib.framework.get_model_variables()] == [
        "ConvInPlane/weights",
        "ConvInPlane/biases",
    ]


def test_images_become_sequences_and_images_again():
    x = drawn(2, 3, 4, 5)
    columns = layers.images_to_sequence(x)
    assert columns.shape.as_list() == [4, 6, 5] or columns.shape.as_list() == [4, None, 5]
    first = layers.images_to_sequence(x.transpose(0, 3, 1, 2), "NCHW")
    again = layers.sequence_to_images(columns, 3)
    result, other, same, channels = values(
        columns, first, again, layers.sequence_to_images(columns, 3, "channels_first")
    )
    np.testing.assert_array_equal(result, x.transpose(2, 0, 1, 3).reshape(4, 6, 5))
    np.testing.assert_array_equal(result, other)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(channels, x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_each_channel_of_an_example_is_normalized(data_format):
    x = drawn(2, 4, 4, 3)
    given = x if data_format == "NHWC" else x.transpose(0, 3, 1, 2)
    (result,) = values(layers.instance_norm(given, data_format=data_format))
    result = result if data_format == "NHWC" else result.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(result.mean((1, 2)), np.zeros((2, 3)), atol=1e-5)
    np.testing.assert_allclose(result.std((1, 2)), np.ones((2, 3)), atol=1e-3)
    assert [v.op.name for v in tf.global_variables()] == ["InstanceNorm/beta", "InstanceNorm/gamma"]
    with pytest.raises(ValueError, match="NCHW or NHWC"):
        layers.instance_norm(x, data_format="other")
    with pytest.raises(ValueError, match="undefined rank"):
        layers.instance_norm(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="undefined channels dimension"):
        layers.instance_norm(tf.placeholder(tf.float32, [2, 4, 4, None]))


@pytest.mark.parametrize("near_zero", [False, True])
def test_groups_of_channels_are_normalized_together(near_zero):
    x = drawn(2, 4, 5, 6)
    (result,) = values(layers.group_norm(x, groups=2, mean_close_to_zero=near_zero))
    grouped = result.reshape(2, 4, 5, 2, 3)
    np.testing.assert_allclose(grouped.mean((1, 2, 4)), np.zeros((2, 2)), atol=1e-5)
    np.testing.assert_allclose(grouped.std((1, 2, 4)), np.ones((2, 2)), atol=1e-3)


def test_groups_are_found_in_front_and_in_any_number_of_examples():
    x = drawn(2, 6, 4, 5)
    p = tf.placeholder(tf.float32, [None, 6, 4, 5])
    y = layers.group_norm(p, groups=3, channels_axis=1, reduction_axes=[2, 3], center=False)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        result = sess.run(y, {p: x}).reshape(2, 3, 2, 4, 5)
    np.testing.assert_allclose(result.mean((2, 3, 4)), np.zeros((2, 3)), atol=1e-5)
    assert [v.op.name for v in tf.global_variables()] == ["GroupNorm/gamma"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"groups": 10}, "Invalid groups 10 for 6 channels"),
        ({"groups": 4}, "commensurate"),
        ({"channels_axis": 5, "groups": 2}, "Axis is out of bounds"),
        ({"channels_axis": -2, "groups": 2}, "mutually exclusive"),
        ({"reduction_axes": [5], "groups": 2}, "Axis is out of bounds"),
    ],
)
def test_groups_that_do_not_fit_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        layers.group_norm(drawn(2, 4, 6, 6), **options)


def test_groups_of_unknown_sizes_are_refused():
    with pytest.raises(ValueError, match="undefined dimensions 2"):
        layers.group_norm(tf.placeholder(tf.float32, [1, 32, None, 4]))
    with pytest.raises(ValueError, match="undefined channel dimension"):
        layers.group_norm(tf.placeholder(tf.float32, [1, 32, 4, None]))


@pytest.mark.parametrize(
    ("shape", "layout", "text"),
    [((1, 2), "channels_last", "expected min_ndim=3, found ndim=2"), ((1, 2, 3), "NHWC", "data_format")],
)
def test_divisive_normalization_refuses_what_is_no_picture(shape, layout, text):
    with pytest.raises(ValueError, match=text):
        layers.gdn(tf.zeros(shape), data_format=layout)


def test_an_axis_of_layer_norm_is_one_of_the_inputs():
    with pytest.raises(ValueError, match=r"must be < rank\(inputs\)"):
        layers.layer_norm(tf.zeros([2, 3]), begin_norm_axis=2)


def test_names_of_operations_are_those_of_before():
    assert layers.instance_norm(drawn(2, 4, 4, 3)).op.name == "InstanceNorm/instancenorm/add_1"
    assert layers.max_pool3d(drawn(2, 3, 4, 4, 4), 2, data_format="NCDHW").op.name == "MaxPool3D/transpose_1"
    assert layers.l1_l2_regularizer(0.0, 1.0)(tf.ones([2])).op.name == "l1_l2_regularizer"
    assert layers.summarize_tensor(tf.constant(1.0, name="one")).op.name == "one_summary"


def test_channels_filtered_by_themselves_have_a_bias_each_wherever_they_are():
    x = tf.zeros([4, 3, 10, 12])
    y = layers.separable_conv2d(x, None, 3, depth_multiplier=2, padding="VALID", data_format="NCHW")
    assert y.shape.as_list() == [4, 6, 8, 10]


def test_updates_of_batch_norm_are_tensors_in_a_collection_of_ones_own():
    layers.batch_norm(drawn(5, 3, 3, 3), updates_collections="mine")
    names = [update.op.name for update in tf.get_collection("mine")]
    assert names == ["BatchNorm/AssignMovingAvg", "BatchNorm/AssignMovingAvg_1"]


@pytest.mark.parametrize("inverse", [False, True])
def test_channels_are_divided_by_the_root_of_their_squares(inverse):
    x = drawn(2, 3, 4)
    result, first = values(
        layers.gdn(x, inverse),
        layers.gdn(x.transpose(0, 2, 1), inverse, data_format="channels_first", name="b"),
    )
    root = np.sqrt(1 + 0.1 * x**2)
    np.testing.assert_allclose(result, x * root if inverse else x / root, rtol=1e-4)
    np.testing.assert_allclose(first.transpose(0, 2, 1), result, rtol=1e-5)
    assert [v.op.name for v in tf.trainable_variables()][:2] == ["gdn/reparam_beta", "gdn/reparam_gamma"]
    y = layers.gdn(x, name="c")
    assert all(g is not None for g in tf.gradients(y, tf.trainable_variables("c")))


def test_the_largest_of_each_group_is_kept():
    x = drawn(2, 3, 6)
    result, middle = values(layers.maxout(x, 2), layers.maxout(x, 1, axis=1))
    np.testing.assert_array_equal(result, x.reshape(2, 3, 2, 3).max(3))
    np.testing.assert_array_equal(middle, x.max(1, keepdims=True))
    with pytest.raises(ValueError, match="not a multiple"):
        layers.maxout(x, 4)


def test_what_is_outside_of_the_unit_ball_is_brought_inside():
    x = np.array([[0.3, 0.4], [3.0, 4.0]], np.float32)
    (result,) = values(layers.poincare_normalize(x))
    np.testing.assert_allclose(result, [[0.3, 0.4], [0.6, 0.8]], rtol=1e-4)


def test_a_gradient_is_scaled_and_the_value_is_not():
    x = tf.constant([1.0, 2.0])
    y = layers.scale_gradient(x, 0.5)
    result, gradient = values(y, tf.gradients(tf.square(y), x)[0])
    assert result.tolist() == [1.0, 2.0]
    assert gradient.tolist() == [1.0, 2.0]


def test_the_place_of_the_largest_value_is_found_between_minus_one_and_one():
    x = np.full((1, 5, 3, 2), -100.0, np.float32)
    x[0, 4, 0, 0] = x[0, 2, 1, 1] = 100.0
    result, first = values(
        layers.spatial_softmax(x), layers.spatial_softmax(x.transpose(0, 3, 1, 2), 1.0, data_format="NCHW")
    )
    np.testing.assert_allclose(result, [[1.0, -1.0, 0.0, 0.0]], atol=1e-5)
    np.testing.assert_allclose(first, result, atol=1e-5)
    names = [v.op.name for v in tf.global_variables()]
    assert names == ["spatial_softmax/temperature", "spatial_softmax_1/temperature"]


def test_early_fully_connected_layers():
    x = drawn(3, 4)
    y = layers.legacy_relu(x, 5, weight_init=tf.ones_initializer())
    (result,) = values(y)
    np.testing.assert_allclose(result, np.maximum(x.sum(1, keepdims=True), 0) * np.ones((1, 5)), rtol=1e-5)
    assert [v.op.name for v in tf.get_collection("weights")] == ["fully_connected/weights"]
    assert tf.get_collection("activations") == [y]
    assert layers.legacy_linear(drawn(2, 3, 4), 5, bias_init=None).shape == [2, 3, 5]
    with pytest.raises(ValueError, match="rank of x must be at least 2"):
        layers.legacy_fully_connected(drawn(3), 2)


def test_the_embeddings_of_words_are_averaged():
    ids = [[0, 1], [2, 2]]
    start = tf.constant_initializer(np.arange(6.0).reshape(3, 2))
    dense = layers.bow_encoder(ids, 3, 2, sparse_lookup=False, initializer=start, scope="a")
    sparse = layers.bow_encoder(ids, 3, 2, initializer=start, scope="b")
    for item in values(dense, sparse):
        assert item.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    with pytest.raises(TypeError, match="expected to be dense"):
        layers.bow_encoder(layers.dense_to_sparse(ids), 3, 2, sparse_lookup=False)


def test_the_innermost_axes_are_flattened(session):
    flatten = tf.contrib.layers.python.layers.layers._inner_flatten
    dense = flatten(np.arange(24.0).reshape(2, 3, 4), 2)
    assert dense.shape.as_list() == [2, 12]
    assert session.run(dense).tolist() == np.arange(24.0).reshape(2, 12).tolist()
    assert flatten(tf.placeholder(tf.float32, [None, 3, 4]), 2).shape.as_list() == [None, 12]
    sparse = flatten(tf.SparseTensor([[1, 2, 3]], [5], [2, 3, 4]), 2)
    assert session.run(sparse).indices.tolist() == [[1, 11]]
    with pytest.raises(ValueError, match="rank less than new_rank"):
        flatten(tf.SparseTensor([[1]], [5], [2]), 2)


def test_a_stack_of_relus_has_the_scopes_of_full_connections():
    out = tf.contrib.layers.stack(tf.zeros([1, 3]), tf.contrib.layers.relu, [2, 4])
    assert out.op.name == "Stack/fully_connected_2/Relu"
    assert [v.op.name for v in tf.model_variables()][:1] == ["Stack/fully_connected_1/weights"]


def test_arguments_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="data_format has to be either NCHW or NHWC"):
        tf.contrib.layers.conv2d_transpose(tf.zeros([1, 3, 3, 1]), 2, 3, data_format="CHWN")
    with pytest.raises(ValueError, match="input rank must be known"):
        tf.contrib.layers.unit_norm(tf.placeholder(tf.float32), dim=1)
    with pytest.raises(ValueError, match="smaller than the input rank"):
        tf.contrib.layers.unit_norm(tf.zeros([2, 2]), dim=2)
