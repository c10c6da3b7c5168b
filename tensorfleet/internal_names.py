"""Names that scripts import from inside TensorFlow: `from tensorfleet.python.framework import ops`."""

from __future__ import annotations

import functools
import sys
from typing import Any

from tensorfleet.api import exported_under, find, publish, publish_finder, publish_lazily, publish_module
from tensorfleet.platform import logging
from tensorfleet.protos._index import MODULE_OF
from tensorfleet.raw_ops import op_function

# Where TensorFlow 1.15 keeps public things, under `tf.python`.
_PLACES = {
    "data.ops.dataset_ops": "data.Dataset",
    "data.ops.iterator_ops": "data.Iterator",
    "data.ops.readers": "data.FixedLengthRecordDataset data.TFRecordDataset data.TextLineDataset",
    "ops.io_ops": """
        FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader WholeFileReader
        matching_files read_file write_file
    """,
    "ops.parsing_ops": """
        FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_csv decode_json_example
        decode_raw parse_example parse_single_example parse_single_sequence_example parse_tensor
    """,
    "framework.ops": """
        Graph GraphKeys IndexedSlices NoGradient NotDifferentiable Operation RegisterGradient Tensor
        add_to_collection add_to_collections colocate_with container control_dependencies convert_to_tensor
        device get_collection get_collection_ref get_default_graph get_default_session init_scope
        name_scope op_scope register_tensor_conversion_function reset_default_graph
        convert_to_tensor_or_indexed_slices
    """,
    "framework.dtypes": """
        DType as_dtype bfloat16 bool complex128 complex64 double float16 float32 float64 half int16 int32
        int64 int8 resource string uint16 uint32 uint64 uint8 variant
    """,
    "framework.constant_op": "constant",
    "framework.device": "DeviceSpec",
    "framework.importer": "import_graph_def",
    "framework.indexed_slices": "IndexedSlices",
    "framework.sparse_tensor": """
        SparseTensor SparseTensorValue convert_to_tensor_or_sparse_tensor
    """,
    "framework.random_seed": "get_seed set_random_seed",
    "framework.tensor_shape": "Dimension TensorShape",
    "framework.tensor_conversion_registry": "register_tensor_conversion_function",
    "framework.tensor_util": "make_tensor_proto make_ndarray get_static_value",
    "client.session": "InteractiveSession Session",
    "ops.array_ops": """
        boolean_mask concat constant expand_dims fill gather gather_nd identity ones ones_like pad placeholder
        placeholder_with_default rank reshape reverse shape size slice split squeeze stack stop_gradient
        strided_slice tile transpose unique unstack where zeros zeros_like one_hot
    """,
    "ops.check_ops": "assert_equal assert_greater assert_less assert_non_negative assert_positive assert_rank",
    "ops.clip_ops": "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm",
    "ops.control_flow_ops": "Assert case cond group no_op tuple while_loop",
    "ops.functional_ops": "foldl foldr map_fn scan",
    "ops.map_fn": "map_fn",
    "ops.tensor_array_ops": "TensorArray",
    "ops.rnn": """
        nn.bidirectional_dynamic_rnn nn.dynamic_rnn nn.raw_rnn nn.static_bidirectional_rnn nn.static_rnn
        nn.static_state_saving_rnn
    """,
    "ops.rnn_cell_impl": """
        nn.rnn_cell.BasicLSTMCell nn.rnn_cell.BasicRNNCell nn.rnn_cell.DeviceWrapper nn.rnn_cell.DropoutWrapper
        nn.rnn_cell.GRUCell nn.rnn_cell.LSTMCell nn.rnn_cell.LSTMStateTuple nn.rnn_cell.MultiRNNCell
        nn.rnn_cell.RNNCell nn.rnn_cell.ResidualWrapper
    """,
    "ops.embedding_ops": """
        nn.embedding_lookup nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse
    """,
    "ops.gradients": "gradients hessians AggregationMethod",
    "ops.init_ops": """
        constant_initializer glorot_normal_initializer glorot_uniform_initializer ones_initializer
        orthogonal_initializer random_normal_initializer random_uniform_initializer
        truncated_normal_initializer variance_scaling_initializer zeros_initializer
    """,
    "ops.logging_ops": "Print",
    "ops.math_ops": """
        abs add add_n argmax argmin cast ceil cos cumsum div divide equal exp floor floordiv greater
        greater_equal less less_equal log logical_and logical_not logical_or matmul maximum minimum mod
        multiply negative not_equal pow range reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean
        reduce_min reduce_prod reduce_sum round rsqrt sigmoid sign sin sqrt square subtract tanh tensordot
        to_double to_float to_int32 to_int64 truediv
    """,
    "ops.nn": "nn.relu nn.softmax nn.sigmoid nn.tanh nn.bias_add nn.conv2d nn.max_pool nn.avg_pool nn.dropout",
    "ops.nn_ops": "nn.relu nn.softmax nn.bias_add nn.conv2d nn.max_pool nn.avg_pool nn.dropout nn.xw_plus_b",
    "ops.random_ops": "multinomial random_crop random_normal random_shuffle random_uniform truncated_normal",
    "ops.script_ops": "py_func",
    "ops.sets": "sets.set_difference sets.set_intersection sets.set_size sets.set_union",
    "ops.sparse_ops": """
        deserialize_many_sparse serialize_many_sparse serialize_sparse sparse.cross sparse.cross_hashed
        sparse.from_dense sparse_add sparse_concat sparse_fill_empty_rows sparse_mask sparse_maximum sparse_merge
        sparse_minimum sparse_placeholder sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum
        sparse_reduce_sum_sparse sparse_reorder sparse_reset_shape sparse_reshape sparse_retain sparse_slice
        sparse_softmax sparse_split sparse_tensor_dense_matmul sparse_tensor_to_dense sparse_to_dense
        sparse_to_indicator sparse_transpose
    """,
    "ops.string_ops": """
        as_string decode_base64 encode_base64 reduce_join regex_replace string_join string_split string_strip
        string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong string_to_number substr
        strings.regex_full_match strings.length strings.lower strings.upper
    """,
    "ops.state_ops": "assign assign_add assign_sub scatter_add scatter_sub scatter_update",
    "ops.variable_scope": "AUTO_REUSE VariableScope get_variable get_variable_scope variable_scope",
    "ops.variables": """
        Variable all_variables global_variables global_variables_initializer initialize_all_variables
        local_variables local_variables_initializer model_variables moving_average_variables
        report_uninitialized_variables trainable_variables variables_initializer
    """,
    "training.adam": "train.AdamOptimizer",
    "training.gradient_descent": "train.GradientDescentOptimizer",
    "training.moving_averages": "train.ExponentialMovingAverage",
    "training.optimizer": "train.Optimizer",
    "training.training_util": """
        train.assert_global_step train.create_global_step train.get_global_step
        train.get_or_create_global_step train.global_step
    """,
}
# The generated modules that hold messages; each of them has all messages here.
_MESSAGES = """
    core.example.example_pb2 core.example.feature_pb2 core.framework.allocation_description_pb2
    core.framework.attr_value_pb2 core.framework.cost_graph_pb2 core.framework.device_attributes_pb2
    core.framework.function_pb2 core.framework.graph_pb2 core.framework.log_memory_pb2
    core.framework.node_def_pb2 core.framework.op_def_pb2 core.framework.resource_handle_pb2
    core.framework.step_stats_pb2 core.framework.summary_pb2 core.framework.tensor_description_pb2
    core.framework.tensor_pb2 core.framework.tensor_shape_pb2 core.framework.tensor_slice_pb2
    core.framework.types_pb2 core.framework.variable_pb2 core.framework.versions_pb2 core.lib.core.error_codes_pb2
    core.protobuf.cluster_pb2 core.protobuf.config_pb2 core.protobuf.control_flow_pb2 core.protobuf.debug_pb2
    core.protobuf.error_codes_pb2 core.protobuf.meta_graph_pb2 core.protobuf.queue_runner_pb2
    core.protobuf.rewriter_config_pb2 core.protobuf.saved_model_pb2 core.protobuf.saver_pb2
    core.protobuf.tensor_bundle_pb2 core.protobuf.tensorflow_server_pb2 core.util.event_pb2
    core.util.saved_tensor_slice_pb2 python.training.checkpoint_state_pb2
"""

# The modules with a function for every op: `gen_math_ops.mat_mul`.
_GENERATED = """
    array audio batch bitwise candidate_sampling control_flow ctc data_flow dataset experimental_dataset
    functional image io linalg list logging lookup manip math nn parsing random resource_variable script sdca
    sendrecv set sparse spectral state stateless_random string training user
"""

# Modules of TensorFlow's inside, with the public modules whose names each of them has.
_BORROWERS = {
    "": """
        framework.constant_op framework.device framework.dtypes framework.function framework.importer
        framework.meta_graph framework.ops framework.random_seed framework.sparse_tensor framework.tensor_shape
        framework.tensor_util framework.op_def_library framework.tensor_spec client.session ops.array_ops
        ops.check_ops ops.clip_ops ops.confusion_matrix ops.control_flow_ops ops.data_flow_ops
        ops.functional_ops ops.gradients ops.gradients_impl ops.histogram_ops ops.init_ops ops.io_ops
        ops.linalg_ops ops.logging_ops ops.lookup_ops ops.map_fn ops.math_ops ops.numerics
        ops.partitioned_variables ops.random_ops ops.resource_variable_ops ops.script_ops ops.special_math_ops
        ops.session_ops ops.sparse_ops ops.state_ops ops.string_ops ops.template ops.tensor_array_ops
        ops.variable_scope ops.variables ops.while_v2 ops.cond_v2 ops.standard_ops
        ops.gradients_util ops.array_ops_stack ops.cond ops.while_loop ops.control_flow_assert
        ops.control_flow_case ops.control_flow_util ops.ref_variable ops.variable_v1 ops.sort_ops
        ops.stateless_random_ops ops.gradient_checker_v2 ops.manip_ops ops.bitwise_ops ops.inplace_ops ops.list_ops
        ops.sets_impl ops.clustering_ops ops.custom_gradient ops.variables_util framework.tensor
        framework.tensor_conversion framework.versions framework.common_shapes framework.composite_tensor
        framework.smart_cond framework.load_library framework.config framework.func_graph framework.auto_control_deps
        framework.op_callbacks framework.registry framework.op_def_registry framework.ops_internal compat.compat
        ops.bincount_ops ops.stateful_random_ops ops.unconnected_gradients
        ops.array_grad ops.control_flow_grad ops.data_flow_grad ops.image_grad ops.linalg_grad ops.manip_grad
        ops.math_grad ops.nn_grad ops.random_grad ops.rnn_grad ops.sparse_grad ops.state_grad ops.tensor_array_grad
        util.tf_contextlib util.tf_decorator util.tf_should_use util.object_identity util.function_utils
        util.decorator_utils util.serialization eager.backprop eager.context eager.def_function eager.function
        eager.test eager.wrap_function distribute.distribution_strategy_context distribute.distribute_lib
        distribute.reduce_util platform.benchmark distribute.collective_all_reduce_strategy
        distribute.distribute_coordinator distribute.estimator_training distribute.cluster_resolver
        training.distribute training.distribute_lib training.distribution_strategy_context
        framework.device_spec framework.combinations framework.error_interpolation ops.control_flow_v2_toggles
        ops.control_flow_util_v2 training.quantize_training training.saving.functional_saver
        training.saving.saveable_hook training.saving.saveable_object training.saving.saveable_object_util
        training.tracking.base training.tracking.python_state training.tracking.tracking training.tracking.util
        training.checkpointable.base training.checkpointable.tracking training.checkpointable.util
        training.saver_test_utils keras.engine.training keras.engine.sequential
    """,
    "nn": """
        ops.nn ops.nn_ops ops.nn_impl ops.embedding_ops ops.candidate_sampling_ops ops.ctc_ops ops.rnn
        ops.batch_norm_ops
    """,
    "nn.rnn_cell": "ops.rnn_cell ops.rnn_cell_impl ops.nn.rnn_cell",
    "train": """
        training.adadelta training.adagrad training.adagrad_da training.adam training.basic_loops
        training.basic_session_run_hooks training.checkpoint_management training.checkpoint_ops
        training.checkpoint_utils training.coordinator training.device_setter training.evaluation
        training.ftrl training.gradient_descent training.input training.learning_rate_decay
        training.momentum training.monitored_session training.moving_averages training.optimizer
        training.proximal_adagrad training.proximal_gradient_descent training.queue_runner
        training.queue_runner_impl training.rmsprop training.saver training.server_lib
        training.session_manager training.session_run_hook training.supervisor
        training.sync_replicas_optimizer training.training training.training_util
        training.warm_starting_util
    """,
    "errors": "framework.errors framework.errors_impl",
    "graph_util": "framework.graph_util framework.graph_util_impl framework.convert_to_constants",
    "metrics": "ops.metrics ops.metrics_impl",
    "losses": "ops.losses.losses ops.losses.losses_impl ops.losses.util",
    "image": "ops.image_ops ops.image_ops_impl",
    "io": "ops.parsing_ops lib.io.python_io lib.io.tf_record framework.graph_io",
    "linalg": "ops.linalg.linalg ops.linalg.linalg_impl ops.linalg_impl",
    "distributions": """
        ops.distributions.bernoulli ops.distributions.beta ops.distributions.bijector ops.distributions.bijector_impl
        ops.distributions.categorical ops.distributions.dirichlet ops.distributions.dirichlet_multinomial
        ops.distributions.distribution ops.distributions.distributions ops.distributions.exponential
        ops.distributions.gamma ops.distributions.kullback_leibler ops.distributions.laplace
        ops.distributions.multinomial ops.distributions.normal ops.distributions.student_t ops.distributions.uniform
    """,
    "signal": """
        ops.signal.dct_ops ops.signal.fft_ops ops.signal.mel_ops ops.signal.mfcc_ops ops.signal.reconstruction_ops
        ops.signal.shape_ops ops.signal.signal ops.signal.spectral_ops ops.signal.util_ops ops.signal.window_ops
        ops.spectral_ops
    """,
    "summary": """
        summary.summary_iterator summary.summary summary.writer.writer summary.writer.writer_cache ops.summary_ops
        summary.writer.event_file_writer summary.plugin_asset summary.text_summary
    """,
    "layers": """
        layers.base layers.convolutional layers.core layers.layers layers.normalization layers.pooling
        layers.utils keras.layers.core
    """,
    "gfile": "platform.gfile",
    "app": "platform.app",
    "resource_loader": "platform.resource_loader",
    "sysconfig": "platform.sysconfig",
    "test": "platform.test platform.googletest",
    "compat": "util.compat",
    "nest": "util.nest data.util.nest",
    "data": """
        data.ops.dataset_ops data.ops.iterator_ops data.ops.readers data.ops.optional_ops
        data.ops.multi_device_iterator_ops
    """,
    "saved_model": """
        saved_model.builder saved_model.builder_impl saved_model.loader saved_model.loader_impl
        saved_model.main_op saved_model.main_op_impl saved_model.saved_model saved_model.simple_save
        saved_model.utils saved_model.utils_impl
    """,
    "saved_model.signature_constants": "saved_model.signature_constants",
    "saved_model.signature_def_utils": "saved_model.signature_def_utils saved_model.signature_def_utils_impl",
    "saved_model.tag_constants": "saved_model.tag_constants",
}


def message_class(name: str) -> Any:
    """The message or enum that has a name, or the value of an enum such as DT_FLOAT; None when there is none."""
    from tensorfleet import protos

    if name in MODULE_OF:
        return getattr(protos, name)
    return _enum_values().get(name)


@functools.cache
def _enum_values() -> dict[str, int]:
    """The values of the enums that stand outside of messages, by name."""
    from tensorfleet import protos

    modules = (getattr(protos, module) for module in ("types_pb2", "errors_pb2"))
    return {
        n: v.number
        for m in modules
        for e in m.DESCRIPTOR.enum_types_by_name.values()
        for n, v in e.values_by_name.items()
    }


for _lender, _modules in _BORROWERS.items():
    for _module in _modules.split():
        publish_module(f"python.{_module}", _lender, "", "math", "train", "nn")
for _place, _names in _PLACES.items():
    for _name in _names.split():
        publish(find(_name), f"python.{_place}.{_name.rpartition('.')[2]}")
for _kind in ("uniform", "normal"):
    for _place in ("contrib.stateless", "python.ops.stateless_random_ops"):
        publish(find(f"random.stateless_{_kind}"), f"{_place}.stateless_random_{_kind}")
for _name, _old in {"FileWriterCache": "SummaryWriterCache", "FileWriter": "SummaryWriter"}.items():
    publish(find(f"summary.{_name}"), f"python.training.summary_io.{_old}")
for _name in exported_under("errors"):
    publish(find(_name), f"python.framework.{_name}")
# The module that this package logs with, so that a test which replaces a function in it sees what is logged.
publish(logging, "python.platform.tf_logging")
sys.modules["tensorfleet.python.platform.tf_logging"] = logging
publish(find("logging.TaskLevelStatusMessage"), "python.platform.tf_logging.TaskLevelStatusMessage")
for _place in _MESSAGES.split():
    publish_finder(_place, message_class)
for _place in _GENERATED.split():
    publish_finder(f"python.ops.gen_{_place}_ops", op_function)
for _place in ("training_ops", "gen_training_ops"):
    publish_finder(f"python.training.{_place}", op_function)
# Scripts that were moved to TensorFlow 2 say `tf.compat.v1.`; it is all version 1 here.
publish_lazily(lambda _: sys.modules["tensorfleet"], "compat.v1")
