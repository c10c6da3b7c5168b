"""`tf.compat.v2`: the functions of version 2, which make operations of a graph just as those of version 1 do.

Libraries written for both versions build their graphs with these. What runs without a graph is not there.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from tensorfleet.base.naming import publish, publish_finder
from tensorfleet_legacy.internals.ops.v2_signatures import reordered

# What is named in both versions and means the same.
_SAME = """
    AggregationMethod Assert CriticalSection DType DeviceSpec GradientTape Graph IndexedSlices IndexedSlicesSpec
    Module Operation OptionalSpec RaggedTensor RaggedTensorSpec RegisterGradient SparseTensor SparseTensorSpec
    Tensor TensorArray TensorArraySpec TensorShape TensorSpec TypeSpec UnconnectedGradients Variable
    VariableAggregation VariableSynchronization abs acos acosh add add_n argsort as_dtype as_string asin asinh
    atan atan2 atanh bfloat16 bitcast bool broadcast_dynamic_shape broadcast_static_shape broadcast_to cast
    clip_by_global_norm clip_by_norm clip_by_value complex complex128 complex64 concat constant
    control_dependencies cos cosh cumsum custom_gradient device divide double dynamic_partition dynamic_stitch
    edit_distance einsum ensure_shape equal executing_eagerly exp expand_dims
    extract_volume_patches eye fill fingerprint float16 float32 float64 floor foldl foldr function get_logger
    get_static_value grad_pass_through greater greater_equal group guarantee_const half histogram_fixed_width
    histogram_fixed_width_bins identity identity_n import_graph_def init_scope int16 int32 int64 int8 is_tensor
    less less_equal linspace logical_and logical_not logical_or make_ndarray
    make_tensor_proto map_fn matmul matrix_square_root maximum meshgrid minimum multiply negative
    no_gradient no_op nondifferentiable_batch_function not_equal numpy_function one_hot ones parallel_stack pow
    print py_function qint16 qint32 qint8 quint16 quint8 range rank realdiv recompute_grad reduce_all reduce_any
    reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
    register_tensor_conversion_function repeat required_space_to_batch_paddings reshape resource reverse roll
    round saturate_cast scan scatter_nd searchsorted sequence_mask shape_n sigmoid sign sin sinh slice sort
    space_to_batch_nd split sqrt square squeeze stack stop_gradient strided_slice string subtract switch_case
    tan tanh tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile timestamp
    truediv truncatediv truncatemod uint16 uint32 uint64 uint8 unique unique_with_counts unravel_index unstack
    variable_creator_scope variant vectorized_map zeros
"""
# What version 2 has under a name of version 1 with other arguments, by the module inside that has it: there it is
# called the same with `_v2` behind, or as is said after "=".
_CHANGED = """
    framework.ops: convert_to_tensor name_scope
    framework.random_seed: random.set_seed=set_seed
    ops.array_ops: batch_to_space boolean_mask gather gather_nd nn.depth_to_space nn.space_to_batch
        nn.space_to_depth ones_like pad reverse_sequence shape size space_to_batch transpose where zeros_like
    ops.check_ops: assert_equal assert_greater assert_less assert_rank debugging.assert_equal
        debugging.assert_greater debugging.assert_greater_equal debugging.assert_integer debugging.assert_less
        debugging.assert_less_equal debugging.assert_near debugging.assert_negative
        debugging.assert_non_negative debugging.assert_non_positive debugging.assert_none_equal
        debugging.assert_positive debugging.assert_rank debugging.assert_rank_at_least debugging.assert_rank_in
        debugging.assert_scalar debugging.assert_shapes debugging.assert_type
    ops.confusion_matrix: math.confusion_matrix=confusion_matrix
    ops.control_flow_ops: case cond=cond_for_tf_v2 tuple while_loop
    ops.ctc_ops: nn.ctc_beam_search_decoder nn.ctc_loss
    ops.embedding_ops: nn.embedding_lookup nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse
    ops.gradients_impl: gradients hessians=HessiansV2
    ops.image_ops_impl: image.ResizeMethod=ResizeMethod image.crop_and_resize image.draw_bounding_boxes
        image.resize=resize_images_v2
    ops.init_ops_v2: constant_initializer=Constant ones_initializer=Ones random_normal_initializer=RandomNormal
        random_uniform_initializer=RandomUniform zeros_initializer=Zeros
    ops.linalg_ops: linalg.norm norm
    ops.math_ops: argmax argmin math.argmax math.argmin math.bincount=bincount math.count_nonzero
        math.scalar_mul scalar_mul sparse.segment_mean=sparse_segment_mean_v2
        sparse.segment_sqrt_n=sparse_segment_sqrt_n_v2 sparse.segment_sum=sparse_segment_sum_v2
    ops.nn_impl: linalg.l2_normalize math.l2_normalize nn.batch_norm_with_global_normalization
        nn.depthwise_conv2d nn.l2_normalize nn.moments nn.nce_loss nn.sampled_softmax_loss nn.separable_conv2d
        nn.sigmoid_cross_entropy_with_logits nn.sufficient_statistics nn.weighted_cross_entropy_with_logits
        nn.weighted_moments
    ops.nn_ops: math.in_top_k math.log_softmax math.softmax nn.avg_pool nn.conv1d nn.conv2d nn.conv2d_transpose
        nn.conv3d nn.conv3d_transpose nn.convolution nn.crelu nn.dilation2d nn.dropout nn.erosion2d
        nn.fractional_avg_pool nn.fractional_max_pool nn.in_top_k nn.log_softmax nn.max_pool
        nn.max_pool_with_argmax nn.pool nn.softmax nn.softmax_cross_entropy_with_logits
        nn.sparse_softmax_cross_entropy_with_logits
    ops.numerics: debugging.assert_all_finite=verify_tensor_all_finite_v2
    ops.parsing_ops: io.decode_csv io.parse_example io.parse_single_example=parse_single_example_v2_unoptimized
    ops.ragged.ragged_string_ops: strings.split=string_split_v2
    ops.random_ops: random.poisson=random_poisson_v2
    ops.sparse_ops: io.serialize_many_sparse io.serialize_sparse sparse.add=sparse_add_v2
        sparse.concat=sparse_concat_v2 sparse.reduce_max=sparse_reduce_max_v2
        sparse.reduce_sum=sparse_reduce_sum_v2 sparse.split=sparse_split_v2
    ops.string_ops: strings.length=string_length_v2 strings.reduce_join strings.substr
"""
# What version 2 has without the names that version 1 has given arguments over the years.
_REDUCTIONS = (
    "reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum"
)
_SHORTER = {
    **dict.fromkeys(_REDUCTIONS.split(), "input_tensor axis keepdims:False name"),
    **dict.fromkeys(
        _REDUCTIONS.replace("reduce", "math.reduce").split(), "input_tensor axis keepdims:False name"
    ),
    "expand_dims": "input axis name",
    "squeeze": "input axis name",
}
# All that version 2 has of `tf.train`.
_TRAIN = """
    BytesList Checkpoint CheckpointManager ClusterDef ClusterSpec Coordinator Example ExponentialMovingAverage
    Feature FeatureList FeatureLists Features FloatList Int64List JobDef SequenceExample ServerDef
    checkpoints_iterator experimental get_checkpoint_state latest_checkpoint list_variables load_checkpoint
    load_variable
"""
# What version 2 has no more, or has with a meaning that is not there.
_GONE = """
    data.Iterator data.get_output_classes data.get_output_shapes data.get_output_types
    data.make_initializable_iterator data.make_one_shot_iterator data.experimental.StatsAggregator
    debugging.is_finite debugging.is_inf debugging.is_nan debugging.is_non_decreasing
    debugging.is_strictly_increasing distribute.StrategyExtended distribute.get_loss_reduction dtypes.as_string
    errors.raise_exception_on_not_ok_status feature_column.categorical_column_with_vocabulary_file
    feature_column.input_layer feature_column.linear_model feature_column.shared_embedding_columns
    image.extract_glimpse image.extract_image_patches image.resize_area image.resize_bicubic
    image.resize_bilinear image.resize_image_with_crop_or_pad image.resize_image_with_pad image.resize_images
    image.resize_nearest_neighbor image.sample_distorted_bounding_box image.transpose_image io.PaddingFIFOQueue
    io.PriorityQueue io.QueueBase io.RandomShuffleQueue io.TFRecordCompressionType io.tf_record_iterator
    linalg.transpose nn.avg_pool_v2 nn.bidirectional_dynamic_rnn nn.conv2d_backprop_filter
    nn.conv2d_backprop_input nn.conv3d_backprop_filter nn.conv3d_backprop_filter_v2
    nn.ctc_beam_search_decoder_v2 nn.ctc_loss_v2 nn.depthwise_conv2d_native
    nn.depthwise_conv2d_native_backprop_filter nn.depthwise_conv2d_native_backprop_input nn.dynamic_rnn
    nn.fused_batch_norm nn.log_uniform_candidate_sampler nn.max_pool_v2 nn.quantized_avg_pool nn.quantized_conv2d
    nn.quantized_max_pool nn.quantized_relu_x nn.raw_rnn nn.relu_layer nn.rnn_cell
    nn.softmax_cross_entropy_with_logits_v2 nn.static_bidirectional_rnn nn.static_rnn nn.static_state_saving_rnn
    nn.uniform_candidate_sampler nn.xw_plus_b ragged.RaggedTensorValue ragged.constant_value ragged.placeholder
    random.get_seed random.multinomial random.set_random_seed random.stateless_multinomial sets.set_difference
    sets.set_intersection sets.set_size sets.set_union sparse.SparseConditionalAccumulator sparse.matmul
    sparse.merge sparse.placeholder sparse.reduce_max_sparse sparse.reduce_sum_sparse test.StubOutForTesting
    test.assert_equal_graph_def test.compute_gradient test.compute_gradient_error test.get_temp_dir
    test.test_src_dir_path
"""
# The modules in which some names are changed or gone, and those that are the same in both versions.
_OWN = """
    data data.experimental debugging distribute dtypes errors feature_column image io linalg math nn ragged random
    sets sparse strings test
"""
_LENT = """
    audio autograph bitwise compat config estimator experimental graph_util keras lookup nest quantization queue raw_ops saved_model
    signal sysconfig version xla
"""
# What version 2 has of Keras in the outermost module.
_KERAS = "initializers losses metrics optimizers"


def _changed() -> dict[str, str]:
    result, module = {name: f"keras.{name}" for name in _KERAS.split()}, ""
    for word in _CHANGED.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            name, _, inner = word.partition("=")
            result[name] = f"python.{module}.{inner or name.rpartition('.')[2] + '_v2'}"
    return result


_INNER = _changed()
_ABSENT = frozenset(_GONE.split())
# The modules of which only some names are there; the outermost is "".
_ONLY = {"": frozenset((_SAME + _LENT).split()), "train": frozenset(_TRAIN.split())}


def _public(name: str) -> Any:
    """The value of a name of `tf`; None if there is none."""
    place, _, last = name.rpartition(".")
    module = sys.modules["tensorfleet" + (f".{place}" if place else "")]
    return getattr(module, last, None)


def _find(place: str, last: str) -> Any:
    """The value of a name in a module of version 2."""
    name = f"{place}.{last}" if place else last
    if name in _INNER:
        return _public(_INNER[name])
    if name in _SHORTER:
        return reordered(name, _SHORTER[name].split())
    if name in _ABSENT or (place in _ONLY and last not in _ONLY[place]):
        return None
    return _public(name)


for _place in (*_ONLY, *_OWN.split()):
    publish_finder(f"compat.v2.{_place}".rstrip("."), functools.partial(_find, _place))
publish(None, "compat.v2.newaxis")  # a finder would say with it that there is no such name
