"""The names that TensorFlow has inside for what is public, or elsewhere, here."""

from __future__ import annotations

import collections.abc
import contextlib

import numpy as np

from tensorfleet.api.layers import rnn, rnn_cells, specs
from tensorfleet.api.losses import weights
from tensorfleet.api.metrics import base as metrics
from tensorfleet.api.nn import sampled
from tensorfleet.api.train import slots
from tensorfleet.api.variables import initializers
from tensorfleet.api.variables.base import Variable, VariableAggregation
from tensorfleet.api.variables.creation import create_variable
from tensorfleet.api.variables.getter import Store, store_of
from tensorfleet.api.variables.guard import guarded
from tensorfleet.api.variables.partitioned import PartitionedVariable, PartitionInfo
from tensorfleet.api.variables.scope import _ReuseMode
from tensorfleet.api.variables.template import Template
from tensorfleet.api.variables.variable import RefVariable, ResourceVariable
from tensorfleet.base import dtypes
from tensorfleet.base.devices import DeviceSpec, canonical_name, merge_device
from tensorfleet.base.naming import find, publish, publish_lazily
from tensorfleet.base.shapes import TensorShape, as_dimension, as_shape
from tensorfleet.graph.constant import constant_value_as_shape
from tensorfleet.graph.gradients import gradients
from tensorfleet.graph.graphdef import prepend_scope, strip_scope
from tensorfleet.graph.indexed_slices import CompositeTensor, IndexedSlicesValue
from tensorfleet.graph.meta_graph import from_proto_function, register_proto_function, to_proto_function
from tensorfleet.graph.scopes import default_session
from tensorfleet.graph.subgraph import _node_name
from tensorfleet.ops.array.indexing import slice_helper
from tensorfleet.ops.state.queues import type_list
from tensorfleet.ops.state.session_tensors import TensorHandle
from tensorfleet.ops.type_specs import IndexedSlicesSpec

# Inner names of what is public: "public name: inner names".
_ALIASES = """
    image.ResizeMethod: ops.image_ops_impl.ResizeMethodV1 ops.image_ops.ResizeMethodV1
    lookup.StaticHashTable: ops.lookup_ops.StaticHashTableV1
    lookup.StaticVocabularyTable: ops.lookup_ops.StaticVocabularyTable ops.lookup_ops.StaticVocabularyTableV1
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
    quantization.quantize_and_dequantize: ops.array_ops.quantize_and_dequantize
    linalg.tensor_diag: ops.array_ops.tensor_diag
    squeeze: ops.array_ops.squeeze_v2
    expand_dims: ops.array_ops.expand_dims_v2
    print: ops.logging_ops.print_v2
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
    layers.Conv2DTranspose: layers.convolutional.Convolution2DTranspose layers.convolutional.Deconvolution2D layers.convolutional.Deconv2D
    layers.Conv3DTranspose: layers.convolutional.Convolution3DTranspose layers.convolutional.Deconvolution3D layers.convolutional.Deconv3D
    layers.conv2d_transpose: layers.convolutional.convolution2d_transpose layers.convolutional.deconvolution2d layers.convolutional.deconv2d
    layers.conv3d_transpose: layers.convolutional.convolution3d_transpose layers.convolutional.deconvolution3d layers.convolutional.deconv3d
    layers.SeparableConv2D: layers.convolutional.SeparableConvolution2D
    layers.separable_conv2d: layers.convolutional.separable_convolution2d
    layers.MaxPooling2D: layers.pooling.MaxPool2D
    layers.AveragePooling2D: layers.pooling.AvgPool2D
    layers.BatchNormalization: layers.normalization.BatchNorm
    layers.batch_normalization: layers.normalization.batch_norm
    data.Dataset: data.ops.dataset_ops.DatasetV1Adapter data.ops.dataset_ops.DatasetV2
    nest.is_nested: util.nest.is_sequence_or_composite
    device: framework.ops.device_v2
    set_random_seed: framework.random_seed.set_seed
    get_static_value: framework.tensor_util.constant_value
    make_ndarray: framework.tensor_util.MakeNdarray
    logging.TaskLevelStatusMessage: platform.tf_logging.TaskLevelStatusMessage
    contrib.stateless.stateless_random_uniform: ops.stateless_random_ops.stateless_random_uniform
    contrib.stateless.stateless_random_normal: ops.stateless_random_ops.stateless_random_normal
    summary.FileWriterCache: training.summary_io.SummaryWriterCache
    summary.FileWriter: training.summary_io.SummaryWriter
    train.summary_iterator: training.summary_io.summary_iterator
    IndexedSlices: framework.indexed_slices.IndexedSlices
    convert_to_tensor_or_indexed_slices: framework.indexed_slices.convert_to_tensor_or_indexed_slices
    linalg.expm: ops.linalg.linalg_impl.matrix_exponential
    linalg.matvec: ops.math_ops.matvec
    linalg.tensor_diag_part: ops.array_ops.tensor_diag_part
    register_tensor_conversion_function: framework.tensor_conversion_registry.register_tensor_conversion_function
    sparse.from_dense: ops.sparse_ops.from_dense
    strings.regex_full_match: ops.string_ops.regex_full_match
    autograph.to_graph: autograph.impl.api.to_graph_v1
    autograph.to_code: autograph.impl.api.to_code_v1
    data.experimental.from_variant: data.ops.dataset_ops.from_variant
    data.experimental.to_variant: data.ops.dataset_ops.to_variant
    distribute.experimental.CollectiveCommunication: distribute.cross_device_ops.CollectiveCommunication
    config.experimental.VirtualDeviceConfiguration: eager.context.VirtualDeviceConfiguration
    debugging.get_log_device_placement: eager.context.get_log_device_placement
    debugging.set_log_device_placement: eager.context.set_log_device_placement
    experimental.function_executor_type: eager.context.function_executor_type
    config.experimental_run_functions_eagerly: eager.def_function.run_functions_eagerly
    set_random_seed: eager.context.set_global_seed
    feature_column.make_parse_example_spec: feature_column.feature_column_v2.make_parse_example_spec_v2
    config.optimizer.get_jit: framework.config.get_optimizer_jit
    config.optimizer.set_jit: framework.config.set_optimizer_jit
    config.optimizer.get_experimental_options: framework.config.get_optimizer_experimental_options
    config.optimizer.set_experimental_options: framework.config.set_optimizer_experimental_options
    colocate_with: framework.ops._colocate_with
    nondifferentiable_batch_function: ops.batch_ops.batch_function
    experimental.output_all_intermediates: ops.control_flow_v2_toggles.output_all_intermediates
    io.decode_proto: ops.proto_ops.decode_proto
    io.encode_proto: ops.proto_ops.encode_proto
    random.experimental.get_global_generator: ops.stateful_random_ops.global_generator
    train.experimental.PythonState: training.tracking.python_state.PythonState
"""

_INITIALIZERS = """
    Zeros Ones Constant RandomUniform RandomNormal TruncatedNormal UniformUnitScaling VarianceScaling GlorotUniform
    GlorotNormal Orthogonal Identity he_normal he_uniform lecun_normal lecun_uniform
"""

for _line in _ALIASES.strip().splitlines():
    _public, _, _inner = _line.strip().partition(": ")
    for _name in _inner.split():
        publish(find(_public), f"python.{_name}")

for _name in _INITIALIZERS.split():
    publish(getattr(initializers, _name), f"python.ops.init_ops.{_name}")
publish(initializers.Identity, "python.ops.init_ops.identity_initializer")
publish(initializers._fans, "python.ops.init_ops._compute_fans", "python.ops.init_ops_v2._compute_fans")
publish(0xDECAFCAFFE, "python.ops.sparse_ops._DEFAULT_HASH_KEY")
publish(initializers._float, "python.ops.init_ops._assert_float_dtype")

for _dtype in dtypes._BY_ENUM.values():
    publish(_dtype, f"python.framework.dtypes.{_dtype.name}")
publish(dtypes._BY_ENUM, "python.framework.dtypes._INTERN_TABLE")
publish(dtypes.bfloat16.as_numpy_dtype, "python.framework.dtypes._np_bfloat16")
publish("plugins", "python.summary.writer.writer._PLUGINS_DIR")
publish(
    {
        d.as_datatype_enum: d.name
        for d in dtypes._BY_ENUM.values()
        if d.base_dtype.name not in dtypes._LATER.split()
    },
    "python.framework.dtypes._TYPE_TO_STRING",
)
publish(
    {d.as_datatype_enum: d.as_numpy_dtype for d in dtypes._BY_ENUM.values()},
    "python.framework.dtypes._TF_TO_NP",
)
publish(
    frozenset(d for d in dtypes._BY_ENUM.values() if not d._is_ref_dtype),
    "python.framework.dtypes.TF_VALUE_DTYPES",
)

for _name in ("DeviceSpecV1", "DeviceSpecV2"):
    publish(DeviceSpec, f"python.framework.device.{_name}", f"python.framework.device_spec.{_name}")
publish(merge_device, "python.framework.device.merge_device")
publish(TensorShape, "python.framework.tensor_shape.TensorShapeV1")
publish(default_session, "python.framework.ops.default_session")
publish(gradients, "python.ops.gradients_util._GradientsHelper")
publish(87654321, "python.framework.random_seed.DEFAULT_GRAPH_SEED")
publish(_node_name, "python.framework.graph_util_impl._node_name")
publish(slice_helper, "python.ops.array_ops._slice_helper")
publish(sampled.compute_sampled_logits, "python.ops.nn_impl._compute_sampled_logits")
publish(sampled._sum_rows, "python.ops.nn_impl._sum_rows")
publish(rnn.transpose_batch_time, "python.ops.rnn._transpose_batch_time")
publish(rnn._batch_size, "python.ops.rnn._best_effort_input_batch_size")
publish(rnn_cells.zero_state_tensors, "python.ops.rnn_cell_impl._zero_state_tensors")
publish("is not an RNNCell", "python.ops.rnn_cell_impl.ASSERT_LIKE_RNNCELL_ERROR_REGEXP")
publish("kernel", "python.ops.rnn_cell_impl._WEIGHTS_VARIABLE_NAME")
publish("bias", "python.ops.rnn_cell_impl._BIAS_VARIABLE_NAME")
publish(metrics.metric_variable, "python.ops.metrics_impl.metric_variable")
publish(weights.broadcast_weights, "python.ops.weights_broadcast_ops.broadcast_weights")
publish(
    create_variable,
    "python.ops.variable_scope.default_variable_creator",
    "python.ops.variable_scope.variable",
)
publish(
    lambda name, initial_value: guarded(initial_value, name),
    "python.ops.variables._try_guard_against_uninitialized_dependencies",
)
publish(VariableAggregation, "python.ops.variables.VariableAggregationV2")
publish(lambda source_t, target_t: None, "python.ops.custom_gradient.copy_handle_data")
publish("critical_sections", "python.ops.critical_section_ops.CRITICAL_SECTIONS")
publish("critical_section_executions", "python.ops.critical_section_ops.CRITICAL_SECTION_EXECUTIONS")
publish(PartitionInfo, "python.ops.variable_scope._PartitionInfo")
publish(False, "python.ops.variable_scope._DEFAULT_USE_RESOURCE")
publish(collections.abc, "python.util.compat.collections_abc")
publish_lazily(lambda _: find("test.get_temp_dir"), "python.platform.googletest.GetTempDir")
publish(Store, "python.ops.variable_scope._VariableStore")
publish(store_of, "python.ops.variable_scope._get_default_variable_store")
publish(_ReuseMode, "python.ops.variable_scope._ReuseMode")
publish(TensorHandle, "python.ops.session_ops.TensorHandle")
publish(Template, "python.ops.template.Template")
publish(specs.data_format_of, "python.layers.utils.normalize_data_format")
publish(specs.padding_of, "python.layers.utils.normalize_padding")
publish(specs.tuple_of, "python.layers.utils.normalize_tuple")
publish(specs.known_bool, "python.layers.utils.constant_value")
publish(
    IndexedSlicesValue,
    "python.framework.ops.IndexedSlicesValue",
    "python.framework.indexed_slices.IndexedSlicesValue",
)
publish(IndexedSlicesSpec, "python.framework.indexed_slices.IndexedSlicesSpec")
publish(CompositeTensor, "python.framework.composite_tensor.CompositeTensor")
publish(Variable, "python.ops.variables.VariableV1", "python.ops.variable_v1.VariableV1")
publish(RefVariable, "python.ops.variables.RefVariable", "python.ops.ref_variable.RefVariable")
publish(PartitionedVariable, "python.ops.variables.PartitionedVariable")
publish(ResourceVariable, "python.ops.resource_variable_ops.ResourceVariable")
publish(constant_value_as_shape, "python.framework.tensor_util.constant_value_as_shape")
# Of floats it is the range of images.
_RANGES: dict = {np.bool_: (False, True), np.float32: (-1, 1), np.float64: (-1, 1)}
for _bits in (8, 16, 32, 64):
    for _integer in (dtypes.as_dtype(f"int{_bits}"), dtypes.as_dtype(f"uint{_bits}")):
        _RANGES[_integer.as_numpy_dtype] = (_integer.min, _integer.max)
publish(_RANGES, "python.framework.dtypes.dtype_range")
publish(as_shape, "python.framework.tensor_shape.as_shape")
publish(as_dimension, "python.framework.tensor_shape.as_dimension")
publish(canonical_name, "python.framework.device.canonical_name")
publish(strip_scope, "python.framework.ops.strip_name_scope")
publish(prepend_scope, "python.framework.ops.prepend_name_scope")
publish(contextlib.nullcontext, "python.framework.ops.NullContextmanager")
publish(contextlib.contextmanager, "python.util.tf_contextlib.contextmanager")
for _create in (slots.create_slot, slots.create_slot_with_initializer, slots.create_zeros_slot):
    publish(_create, f"python.training.slot_creator.{_create.__name__}")
publish(register_proto_function, "python.framework.ops.register_proto_function")
publish(to_proto_function, "python.framework.ops.get_to_proto_function")
publish(from_proto_function, "python.framework.ops.get_from_proto_function")
publish(type_list, "python.ops.data_flow_ops._as_type_list")
