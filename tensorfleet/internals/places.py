"""More modules of TensorFlow's inside, and the names by which it knows public things there."""

from __future__ import annotations

from tensorfleet import dtypes
from tensorfleet.api import find, publish, publish_finder, publish_module
from tensorfleet.devices import DeviceSpec, merge_device
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.scopes import default_session, graph_of
from tensorfleet.graph.subgraph import _node_name
from tensorfleet.layers import rnn, rnn_cells, specs
from tensorfleet.losses import weights
from tensorfleet.metrics import base as metrics
from tensorfleet.nn import sampled
from tensorfleet.ops.indexing import slice_helper
from tensorfleet.ops.session_tensors import TensorHandle
from tensorfleet.raw_ops import op_function
from tensorfleet.shapes import TensorShape
from tensorfleet.variables import initializers
from tensorfleet.variables.creation import create_variable
from tensorfleet.variables.getter import Store, store_of
from tensorfleet.variables.scope import _ReuseMode
from tensorfleet.variables.template import Template

# Modules that have the names of public ones, by the public one.
_MODULES = {
    "": """
        framework.function_def_to_graph framework.graph_to_function_def framework.error_interpolation
        framework.tensor_like framework.type_spec framework.kernels framework.device_spec
        ops.control_flow_state ops.control_flow_util_v2 ops.control_flow_v2_toggles ops.init_ops_v2
        ops.initializers_ns ops.linalg_ops_impl ops.resources ops.weights_broadcast_ops ops.critical_section_ops
        ops.batch_ops ops.collective_ops ops.nccl_ops ops.sdca_ops ops.boosted_trees_ops ops.cudnn_rnn_grad
        ops.proto_ops ops.summary_ops_v2 ops.summary_op_util ops.rnn_cell_wrapper_impl
        platform.control_imports platform.status_bar platform.self_check platform.build_info
        eager.execute eager.core eager.tape eager.execution_callbacks
        training.distribute training.distribution_strategy_context training.saveable_object
        util.tf_stack util.dispatch util.memory util.lazy_loader util.keyword_args util.all_util
        autograph.core.ag_ctx autograph.core.converter autograph.impl.api autograph.operators.control_flow
        util.protobuf.compare framework.traceable_stack data.util.random_seed
        distribute.device_util distribute.mirrored_strategy distribute.values user_ops.user_ops client.pywrap_tf_session
    """,
    "data": "data.util.structure data.util.sparse data.util.convert data.util.options data.util.traverse",
    "data.experimental": """
        data.experimental.ops.batching data.experimental.ops.cardinality data.experimental.ops.counter
        data.experimental.ops.distribute data.experimental.ops.enumerate_ops data.experimental.ops.error_ops
        data.experimental.ops.get_single_element data.experimental.ops.grouping
        data.experimental.ops.interleave_ops data.experimental.ops.iterator_ops
        data.experimental.ops.map_defun data.experimental.ops.matching_files data.experimental.ops.optimization
        data.experimental.ops.optimization_options data.experimental.ops.parsing_ops
        data.experimental.ops.prefetching_ops data.experimental.ops.random_ops data.experimental.ops.readers
        data.experimental.ops.resampling data.experimental.ops.scan_ops data.experimental.ops.shuffle_ops
        data.experimental.ops.sleep data.experimental.ops.snapshot data.experimental.ops.stats_aggregator
        data.experimental.ops.stats_ops data.experimental.ops.stats_options data.experimental.ops.take_while_ops
        data.experimental.ops.threading_options data.experimental.ops.threadpool data.experimental.ops.unique
        data.experimental.ops.writers
    """,
    "feature_column": """
        feature_column.feature_column_lib feature_column.feature_column feature_column.feature_column_v2
        feature_column.dense_features
    """,
    "losses": "ops.losses.loss_reduction",
    "distributions": """
        ops.distributions.identity_bijector ops.distributions.special_math
        ops.distributions.transformed_distribution ops.distributions.util
    """,
    "ragged": """
        ops.ragged.ragged_array_ops ops.ragged.ragged_factory_ops ops.ragged.ragged_functional_ops
        ops.ragged.ragged_math_ops ops.ragged.ragged_tensor ops.ragged.ragged_tensor_value
        ops.ragged.ragged_util ops.ragged.segment_id_ops
    """,
    "profiler": """
        profiler.model_analyzer profiler.option_builder profiler.profile_context profiler.tfprof_logger
    """,
    "summary": "summary.plugin_asset summary.writer.event_file_writer",
    "layers": """
        keras.engine.base_layer keras.engine.base_layer_utils keras.engine.input_layer keras.engine.input_spec
        keras.engine.network keras.engine.training keras.utils.tf_utils keras.utils.layer_utils
        keras.utils.generic_utils keras.utils.conv_utils keras.backend
    """,
    "train": """
        training.checkpointable.base training.checkpointable.data_structures training.checkpointable.tracking
        training.checkpointable.util training.tracking.base training.tracking.data_structures
        training.tracking.tracking training.tracking.util training.tracking.graph_view
        training.saving.saveable_object training.saving.saveable_object_util
    """,
    "estimator": """
        estimator.estimator estimator.model_fn estimator.run_config estimator.inputs.inputs
        estimator.inputs.numpy_io estimator.inputs.pandas_io estimator.export.export
    """,
}

# The modules of ops with the functions of TensorFlow's own, which have those of the generated modules too.
_WITH_OPS = """
    array bitwise candidate_sampling control_flow ctc data_flow image io linalg list logging lookup manip math nn
    parsing random resource_variable script sparse spectral state stateless_random string
"""

# Inner names of what is public: "public name: inner names".
_ALIASES = """
    metrics.mean: ops.metrics_impl.mean
    image.ResizeMethod: ops.image_ops_impl.ResizeMethodV1 ops.image_ops.ResizeMethodV1
    lookup.StaticHashTable: ops.lookup_ops.StaticHashTableV1
    lookup.StaticVocabularyTable: ops.lookup_ops.StaticVocabularyTable ops.lookup_ops.StaticVocabularyTableV1
    lookup.experimental.DenseHashTable: ops.lookup_ops.DenseHashTable
    contrib.lookup.MutableHashTable: ops.lookup_ops.MutableHashTable
    random.categorical: ops.random_ops.categorical
    sparse.cross: ops.sparse_ops.sparse_cross
    sparse.cross_hashed: ops.sparse_ops.sparse_cross_hashed
    sparse.eye: ops.sparse_ops.sparse_eye
    sparse.expand_dims: ops.sparse_ops.sparse_expand_dims
    strings.length: ops.string_ops.string_length
    strings.lower: ops.string_ops.string_lower
    strings.upper: ops.string_ops.string_upper
    strings.format: ops.string_ops.string_format
    substr: ops.string_ops.substr_deprecated
    bitwise.bitwise_and: ops.bitwise_ops.bitwise_and
    bitwise.bitwise_or: ops.bitwise_ops.bitwise_or
    bitwise.bitwise_xor: ops.bitwise_ops.bitwise_xor
    bitwise.invert: ops.bitwise_ops.invert
    bitwise.left_shift: ops.bitwise_ops.left_shift
    bitwise.right_shift: ops.bitwise_ops.right_shift
    sets.difference: ops.sets_impl.set_difference
    sets.intersection: ops.sets_impl.set_intersection
    sets.size: ops.sets_impl.set_size
    sets.union: ops.sets_impl.set_union
    random.stateless_categorical: ops.stateless_random_ops.stateless_categorical
    random.stateless_multinomial: ops.stateless_random_ops.stateless_multinomial
    random.stateless_truncated_normal: ops.stateless_random_ops.stateless_truncated_normal
    quantization.quantize_and_dequantize: ops.array_ops.quantize_and_dequantize
    linalg.tensor_diag: ops.array_ops.tensor_diag
    squeeze: ops.array_ops.squeeze_v2
    expand_dims: ops.array_ops.expand_dims_v2
    argmax: ops.math_ops.argmax_v2
    argmin: ops.math_ops.argmin_v2
    keras.initializers.Initializer: ops.init_ops.Initializer
    layers.experimental.keras_style_scope: layers.base.keras_style_scope
    layers.experimental.set_keras_style: layers.base.set_keras_style
    layers.Dense: layers.core.FullyConnected
    layers.dense: layers.core.fully_connected
    layers.Conv1D: layers.convolutional.Convolution1D
    layers.Conv2D: layers.convolutional.Convolution2D
    layers.Conv3D: layers.convolutional.Convolution3D
    layers.conv1d: layers.convolutional.convolution1d
    layers.conv2d: layers.convolutional.convolution2d
    layers.conv3d: layers.convolutional.convolution3d
    layers.Conv2DTranspose: layers.convolutional.Convolution2DTranspose layers.convolutional.Deconvolution2D
    layers.Conv3DTranspose: layers.convolutional.Convolution3DTranspose layers.convolutional.Deconvolution3D
    layers.conv2d_transpose: layers.convolutional.convolution2d_transpose layers.convolutional.deconvolution2d
    layers.conv3d_transpose: layers.convolutional.convolution3d_transpose layers.convolutional.deconvolution3d
    layers.SeparableConv2D: layers.convolutional.SeparableConvolution2D
    layers.separable_conv2d: layers.convolutional.separable_convolution2d
    layers.MaxPooling2D: layers.pooling.MaxPool2D
    layers.AveragePooling2D: layers.pooling.AvgPool2D
    layers.BatchNormalization: layers.normalization.BatchNorm
    layers.batch_normalization: layers.normalization.batch_norm
    data.Dataset: data.ops.dataset_ops.DatasetV1 data.ops.dataset_ops.DatasetV2
    nest.is_nested: data.util.nest.is_sequence util.nest.is_sequence_or_composite
"""

for _lender, _names in _MODULES.items():
    for _module in _names.split():
        publish_module(f"python.{_module}", _lender, "", "math", "train", "nn")
for _module in _WITH_OPS.split():
    publish_finder(f"python.ops.{_module}_ops", op_function)
for _module in ("stateful_random", "summary", "ragged_array", "ragged_math", "ragged_conversion"):
    publish_finder(f"python.ops.gen_{_module}_ops", op_function)
for _line in _ALIASES.strip().splitlines():
    _public, _, _inner = _line.strip().partition(": ")
    for _name in _inner.split():
        publish(find(_public), f"python.{_name}")

for _name in [
    "Zeros",
    "Ones",
    "Constant",
    "RandomUniform",
    "RandomNormal",
    "TruncatedNormal",
    "UniformUnitScaling",
    "VarianceScaling",
    "GlorotUniform",
    "GlorotNormal",
    "Orthogonal",
    "Identity",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
]:
    publish(getattr(initializers, _name), f"python.ops.init_ops.{_name}")
publish(initializers.Identity, "python.ops.init_ops.identity_initializer")
publish(initializers._fans, "python.ops.init_ops._compute_fans")
publish(initializers._float, "python.ops.init_ops._assert_float_dtype")

for _dtype in dtypes._BY_ENUM.values():
    publish(_dtype, f"python.framework.dtypes.{_dtype.name}")
publish(dtypes._BY_ENUM, "python.framework.dtypes._INTERN_TABLE")
publish(
    {d.as_datatype_enum: d.name for d in dtypes._BY_ENUM.values()}, "python.framework.dtypes._TYPE_TO_STRING"
)
publish(
    {d.as_datatype_enum: d.as_numpy_dtype for d in dtypes._BY_ENUM.values()},
    "python.framework.dtypes._TF_TO_NP",
)
publish(
    frozenset(d for d in dtypes._BY_ENUM.values() if not d._is_ref_dtype),
    "python.framework.dtypes.TF_VALUE_DTYPES",
)

publish(DeviceSpec, "python.framework.device.DeviceSpecV1", "python.framework.device_spec.DeviceSpecV1")
publish(merge_device, "python.framework.device.merge_device")
publish(TensorShape, "python.framework.tensor_shape.TensorShapeV1")
publish(default_session, "python.framework.ops.default_session")
publish(find("name_scope"), "python.framework.ops.name_scope_v1")
publish(find("device"), "python.framework.ops.device_v2")
publish(gradients, "python.ops.gradients_util._GradientsHelper")
publish(graph_of, "python.framework.ops._get_graph_from_inputs")
publish(87654321, "python.framework.random_seed.DEFAULT_GRAPH_SEED")
publish(_node_name, "python.framework.graph_util_impl._node_name")
publish(slice_helper, "python.ops.array_ops._slice_helper")
publish(sampled.compute_sampled_logits, "python.ops.nn_impl._compute_sampled_logits")
publish(sampled._sum_rows, "python.ops.nn_impl._sum_rows")
publish(rnn.transpose_batch_time, "python.ops.rnn._transpose_batch_time")
publish(rnn._batch_size, "python.ops.rnn._best_effort_input_batch_size")
publish(rnn_cells.LayerCell, "python.ops.rnn_cell_impl.LayerRNNCell")
publish(rnn_cells.zero_state_tensors, "python.ops.rnn_cell_impl._zero_state_tensors")
publish("kernel", "python.ops.rnn_cell_impl._WEIGHTS_VARIABLE_NAME")
publish("bias", "python.ops.rnn_cell_impl._BIAS_VARIABLE_NAME")
publish(metrics.metric_variable, "python.ops.metrics_impl.metric_variable")
publish(weights.broadcast_weights, "python.ops.weights_broadcast_ops.broadcast_weights")
publish(
    create_variable,
    "python.ops.variable_scope.default_variable_creator",
    "python.ops.variable_scope.variable",
)
publish(Store, "python.ops.variable_scope._VariableStore")
publish(store_of, "python.ops.variable_scope._get_default_variable_store")
publish(_ReuseMode, "python.ops.variable_scope._ReuseMode")
publish(TensorHandle, "python.ops.session_ops.TensorHandle")
publish(Template, "python.ops.template.Template")
publish(specs.data_format_of, "python.layers.utils.normalize_data_format")
publish(specs.padding_of, "python.layers.utils.normalize_padding")
publish(specs.tuple_of, "python.layers.utils.normalize_tuple")
publish(specs.known_bool, "python.layers.utils.constant_value")
