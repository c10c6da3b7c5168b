"""The modules of TensorFlow's inside: `from tensorfleet.python.framework import ops`, and what each of them has."""

from __future__ import annotations

import functools
import sys
from typing import Any

from tensorfleet.base.naming import publish_finder, publish_lazily, publish_module
from tensorfleet.base.protos._index import MODULE_OF
from tensorfleet.graph.raw_ops import op_function

# Modules below `tf.python` that have all names of public modules, by the public ones; "" is `tf` itself.
_MODULES = {
    "": """
        autograph.core.ag_ctx autograph.core.converter autograph.operators.control_flow
        client.pywrap_tf_session client.session compat.compat compat.v2_compat data.util.random_seed
        distribute.device_util distribute.estimator_training
        distribute.multi_worker_util distribute.shared_variable_creator
        distribute.values distribute.warm_starting_util
        eager.backprop eager.context eager.core eager.def_function eager.execute eager.execution_callbacks
        eager.function eager.tape eager.wrap_function framework.auto_control_deps
        framework.combinations framework.common_shapes framework.composite_tensor
        framework.constant_op framework.device framework.device_spec framework.dtypes
        framework.error_interpolation framework.func_graph framework.function framework.function_def_to_graph
        framework.graph_to_function_def framework.importer framework.kernels framework.load_library
        framework.meta_graph framework.op_callbacks framework.op_def_library framework.op_def_registry
        framework.ops framework.ops_internal framework.random_seed framework.registry framework.smart_cond
        framework.sparse_tensor framework.subscribe framework.tensor framework.tensor_conversion
        framework.tensor_like framework.tensor_shape framework.tensor_spec framework.tensor_util
        framework.traceable_stack framework.type_spec framework.versions
        ops.array_grad ops.array_ops
        ops.array_ops_stack ops.batch_ops ops.bincount_ops ops.boosted_trees_ops ops.check_ops
        ops.clip_ops ops.clustering_ops ops.collective_ops ops.cond ops.cond_v2 ops.confusion_matrix
        ops.control_flow_assert ops.control_flow_case ops.control_flow_grad ops.control_flow_ops
        ops.control_flow_state ops.control_flow_util ops.control_flow_util_v2 ops.control_flow_v2_toggles
        ops.critical_section_ops ops.cudnn_rnn_grad ops.custom_gradient ops.data_flow_grad ops.data_flow_ops
        ops.functional_ops ops.gradient_checker_v2 ops.gradients ops.gradients_impl ops.gradients_util
        ops.histogram_ops ops.image_grad ops.init_ops ops.init_ops_v2 ops.initializers_ns ops.inplace_ops
        ops.io_ops ops.linalg_grad ops.linalg_ops ops.linalg_ops_impl ops.list_ops ops.logging_ops
        ops.lookup_ops ops.manip_grad ops.manip_ops ops.map_fn ops.math_grad ops.math_ops ops.nccl_ops
        ops.nn_grad ops.numerics ops.partitioned_variables ops.proto_ops ops.random_grad ops.random_ops
        ops.ref_variable ops.resource_variable_ops ops.resources ops.rnn_cell_wrapper_impl ops.rnn_grad
        ops.script_ops ops.sdca_ops ops.session_ops ops.sort_ops ops.sparse_grad ops.sparse_ops
        ops.special_math_ops ops.standard_ops ops.state_grad ops.state_ops
        ops.string_ops ops.summary_op_util ops.summary_ops_v2 ops.template
        ops.tensor_array_grad ops.tensor_array_ops ops.unconnected_gradients ops.variable_scope
        ops.variable_v1 ops.variables ops.variables_util ops.weights_broadcast_ops ops.while_loop ops.while_v2
        platform.build_info platform.control_imports platform.self_check
        platform.status_bar training.distribute training.distribute_lib 
        training.quantize_training training.saveable_object training.saver_test_utils
        training.saving.functional_saver training.saving.saveable_hook training.tracking.python_state
        module.module util.all_util util.decorator_utils util.dispatch util.function_utils
        util.keyword_args util.lazy_loader util.lock_util util.memory util.object_identity util.protobuf.compare
        util.serialization util.tf_contextlib util.tf_decorator util.tf_should_use util.tf_stack
    """,
    "distribute": """
        distribute.cross_device_ops distribute.distribute_lib distribute.distribution_strategy_context
        distribute.input_lib distribute.input_ops distribute.mirrored_strategy distribute.one_device_strategy
        distribute.reduce_util training.distribution_strategy_context
    """,
    "distribute.experimental": """
        distribute.central_storage_strategy distribute.collective_all_reduce_strategy
        distribute.parameter_server_strategy
    """,
    "distribute.cluster_resolver": """
        distribute.cluster_resolver distribute.cluster_resolver.cluster_resolver
        distribute.cluster_resolver.gce_cluster_resolver
        distribute.cluster_resolver.kubernetes_cluster_resolver
        distribute.cluster_resolver.slurm_cluster_resolver
        distribute.cluster_resolver.tfconfig_cluster_resolver
    """,
    "contrib.distribute": "distribute.distribute_config",
    "autograph": "autograph.impl.api autograph.utils.ag_logging",
    "autograph.experimental": "autograph.lang.directives",
    "xla.experimental": "compiler.xla.xla",
    "config config.experimental config.threading": "framework.config",
    "random.experimental": "ops.stateful_random_ops",
    "user_ops": "user_ops.user_ops",
    "bitwise": "ops.bitwise_ops",
    "random": "ops.stateless_random_ops",
    "sets": "ops.sets ops.sets_impl",
    "nn": """
        ops.batch_norm_ops ops.candidate_sampling_ops ops.ctc_ops ops.embedding_ops ops.nn ops.nn_impl
        ops.nn_ops ops.rnn
    """,
    "nn.rnn_cell": "ops.nn.rnn_cell ops.rnn_cell ops.rnn_cell_impl",
    "train": """
        training.adadelta training.adagrad training.adagrad_da training.adam training.basic_loops
        training.basic_session_run_hooks training.checkpoint_management training.checkpoint_ops
        training.checkpoint_utils training.checkpointable.base training.checkpointable.data_structures
        training.checkpointable.tracking training.checkpointable.util training.coordinator
        training.device_setter training.evaluation training.ftrl training.gradient_descent training.input
        training.learning_rate_decay training.momentum training.monitored_session training.moving_averages
        training.optimizer training.proximal_adagrad training.proximal_gradient_descent training.queue_runner
        training.queue_runner_impl training.rmsprop training.saver training.saving.saveable_object
        training.saving.saveable_object_util training.server_lib training.session_manager
        training.session_run_hook training.supervisor training.sync_replicas_optimizer training.tracking.base
        training.tracking.data_structures training.tracking.graph_view training.tracking.tracking
        training.tracking.util training.training training.training_util training.warm_starting_util
    """,
    "errors": "framework.errors framework.errors_impl",
    "graph_util": "framework.convert_to_constants framework.graph_util framework.graph_util_impl",
    "metrics": "ops.metrics ops.metrics_impl",
    "losses": "ops.losses.loss_reduction ops.losses.losses ops.losses.losses_impl ops.losses.util",
    "image": "ops.image_ops ops.image_ops_impl",
    "io": "framework.graph_io lib.io.python_io lib.io.tf_record ops.parsing_config ops.parsing_ops",
    "strings": "ops.ragged.ragged_string_ops",
    "linalg": """
        ops.linalg.adjoint_registrations ops.linalg.cholesky_registrations ops.linalg.inverse_registrations
        ops.linalg.linalg ops.linalg.linalg_impl ops.linalg.linear_operator ops.linalg.linear_operator_addition
        ops.linalg.linear_operator_adjoint ops.linalg.linear_operator_algebra ops.linalg.linear_operator_block_diag
        ops.linalg.linear_operator_circulant ops.linalg.linear_operator_composition ops.linalg.linear_operator_diag
        ops.linalg.linear_operator_full_matrix ops.linalg.linear_operator_householder
        ops.linalg.linear_operator_identity ops.linalg.linear_operator_inversion
        ops.linalg.linear_operator_kronecker ops.linalg.linear_operator_low_rank_update
        ops.linalg.linear_operator_lower_triangular ops.linalg.linear_operator_toeplitz
        ops.linalg.linear_operator_zeros ops.linalg.matmul_registrations ops.linalg.solve_registrations
        ops.linalg_impl
    """,
    "distributions": """
        ops.distributions.bernoulli ops.distributions.beta ops.distributions.bijector
        ops.distributions.bijector_impl ops.distributions.categorical ops.distributions.dirichlet
        ops.distributions.dirichlet_multinomial ops.distributions.distribution ops.distributions.distributions
        ops.distributions.exponential ops.distributions.gamma ops.distributions.identity_bijector
        ops.distributions.kullback_leibler ops.distributions.laplace ops.distributions.multinomial
        ops.distributions.normal ops.distributions.special_math ops.distributions.student_t
        ops.distributions.transformed_distribution ops.distributions.uniform ops.distributions.util
    """,
    "signal": """
        ops.signal.dct_ops ops.signal.fft_ops ops.signal.mel_ops ops.signal.mfcc_ops
        ops.signal.reconstruction_ops ops.signal.shape_ops ops.signal.signal ops.signal.spectral_ops
        ops.signal.util_ops ops.signal.window_ops ops.spectral_ops
    """,
    "summary": """
        ops.summary_ops summary.plugin_asset summary.summary summary.summary_iterator summary.text_summary
        summary.writer.event_file_writer summary.writer.event_file_writer_v2 summary.writer.writer
        summary.writer.writer_cache
    """,
    "layers": """
        layers.base layers.convolutional layers.core layers.layers layers.normalization layers.pooling
        layers.utils
    """,
    "keras.mixed_precision.experimental": """
        keras.mixed_precision.experimental.loss_scale_optimizer keras.mixed_precision.experimental.policy
    """,
    "gfile": "platform.gfile",
    "app": "platform.app",
    "resource_loader": "platform.resource_loader",
    "sysconfig": "platform.sysconfig",
    "test": "eager.test platform.benchmark platform.googletest platform.test",
    "compat": "util.compat",
    "nest": "util.nest",
    "data": """
        data.ops.dataset_ops data.ops.iterator_ops data.ops.multi_device_iterator_ops data.ops.optional_ops
        data.ops.readers data.util.convert data.util.options data.util.sparse data.util.structure
        data.util.traverse
    """,
    "saved_model": """
        saved_model.builder saved_model.builder_impl saved_model.load saved_model.loader saved_model.loader_impl
        saved_model.main_op saved_model.main_op_impl saved_model.saved_model saved_model.simple_save
        saved_model.utils saved_model.utils_impl
    """,
    "saved_model.signature_constants": "saved_model.signature_constants",
    "saved_model.signature_def_utils": """
        saved_model.signature_def_utils saved_model.signature_def_utils_impl
    """,
    "saved_model.tag_constants": "saved_model.tag_constants",
    "data.experimental": """
        data.experimental.ops.batching data.experimental.ops.cardinality data.experimental.ops.counter
        data.experimental.ops.distribute data.experimental.ops.distribute_options
        data.experimental.ops.enumerate_ops data.experimental.ops.error_ops
        data.experimental.ops.get_single_element data.experimental.ops.grouping
        data.experimental.ops.interleave_ops data.experimental.ops.iterator_ops
        data.experimental.ops.map_defun data.experimental.ops.matching_files
        data.experimental.ops.optimization data.experimental.ops.optimization_options
        data.experimental.ops.parsing_ops data.experimental.ops.prefetching_ops
        data.experimental.ops.random_ops data.experimental.ops.readers data.experimental.ops.resampling
        data.experimental.ops.scan_ops data.experimental.ops.shuffle_ops data.experimental.ops.sleep
        data.experimental.ops.snapshot data.experimental.ops.stats_aggregator data.experimental.ops.stats_ops
        data.experimental.ops.stats_options data.experimental.ops.take_while_ops
        data.experimental.ops.threading_options data.experimental.ops.threadpool data.experimental.ops.unique
        data.experimental.ops.writers
    """,
    "feature_column": """
        feature_column.dense_features feature_column.feature_column feature_column.feature_column_lib
        feature_column.feature_column_v2
    """,
    "ragged": """
        ops.ragged.ragged_array_ops ops.ragged.ragged_batch_gather_ops ops.ragged.ragged_concat_ops
        ops.ragged.ragged_conversion_ops ops.ragged.ragged_dispatch ops.ragged.ragged_factory_ops
        ops.ragged.ragged_functional_ops ops.ragged.ragged_gather_ops ops.ragged.ragged_getitem
        ops.ragged.ragged_map_ops ops.ragged.ragged_math_ops ops.ragged.ragged_operators
        ops.ragged.ragged_squeeze_op ops.ragged.ragged_tensor ops.ragged.ragged_tensor_shape
        ops.ragged.ragged_tensor_value
        ops.ragged.ragged_util ops.ragged.ragged_where_op ops.ragged.segment_id_ops
    """,
    "profiler": """
        profiler.model_analyzer profiler.option_builder profiler.profile_context profiler.profiler
        profiler.tfprof_logger
    """,
    "estimator": """
        estimator.canned.baseline estimator.canned.dnn estimator.canned.dnn_linear_combined estimator.canned.linear
        estimator.estimator estimator.estimator_lib estimator.exporter estimator.model_fn estimator.run_config
        estimator.training
    """,
    "estimator.export": "estimator.export.export estimator.export.export_lib estimator.export.export_output",
    "estimator.inputs": "estimator.inputs.inputs estimator.inputs.numpy_io estimator.inputs.pandas_io",
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
    core.protobuf.checkpointable_object_graph_pb2 core.protobuf.graph_debug_info_pb2
    core.protobuf.cluster_pb2 core.protobuf.config_pb2 core.protobuf.control_flow_pb2 core.protobuf.debug_pb2
    core.protobuf.error_codes_pb2 core.protobuf.meta_graph_pb2
    core.protobuf.named_tensor_pb2 core.protobuf.queue_runner_pb2
    core.protobuf.rewriter_config_pb2 core.protobuf.saved_model_pb2 core.protobuf.saver_pb2
    core.protobuf.tensor_bundle_pb2 core.protobuf.tensorflow_server_pb2
    core.protobuf.trackable_object_graph_pb2 core.protobuf.verifier_config_pb2 core.util.event_pb2
    core.util.saved_tensor_slice_pb2 python.lib.core.error_codes_pb2 python.training.checkpoint_state_pb2
"""

# The modules with a function for every op: `gen_math_ops.mat_mul`.
_GENERATED = """
    array audio batch bitwise candidate_sampling checkpoint clustering collective control_flow ctc cudnn_rnn data_flow
    dataset debug decode_proto encode_proto experimental_dataset functional image io linalg list logging lookup manip
    math nccl nn parsing ragged_array ragged_conversion ragged_math random resource_variable rnn script sdca sendrecv
    set sparse spectral state stateful_random stateless_random string summary tpu training user word2vec
"""

# The modules of ops with the functions of TensorFlow's own, which have those of the generated modules too.
_WITH_OPS = """
    array bitwise candidate_sampling control_flow ctc data_flow image io linalg list logging lookup manip math nn
    parsing random resource_variable script sparse spectral state stateless_random string
"""


def message_class(name: str) -> Any:
    """The message or enum that has a name, or the value of an enum such as DT_FLOAT; None when there is none."""
    from tensorfleet.base import protos

    if name in MODULE_OF:
        return getattr(protos, name)
    return _enum_values().get(name)


@functools.cache
def _enum_values() -> dict[str, int]:
    """The values of the enums that stand outside of messages, by name."""
    from tensorfleet.base import protos

    modules = (getattr(protos, module) for module in ("types_pb2", "errors_pb2"))
    return {
        n: v.number
        for m in modules
        for e in m.DESCRIPTOR.enum_types_by_name.values()
        for n, v in e.values_by_name.items()
    }


# `from tensorflow.python import ops` was the module of the framework, and in it the folder.
publish_module("python.ops", "python.framework.ops", "")
for _lenders, _modules in _MODULES.items():
    for _module in _modules.split():
        publish_module(f"python.{_module}", *_lenders.split(), "", "math", "train", "nn")
# Scripts import the debugger for an option that is seldom given; what it lacks is told when it is used.
for _module in (
    "",
    ".lib.debug_data",
    ".wrappers.dumping_wrapper",
    ".wrappers.hooks",
    ".wrappers.local_cli_wrapper",
):
    publish_module(f"python.debug{_module}")
# How structures of tensors are written as messages: libraries import it for functions that few programs call.
for _module in ("core.protobuf.struct_pb2", "python.saved_model.nested_structure_coder"):
    publish_module(_module)
for _module in _MESSAGES.split():
    publish_finder(_module, message_class)
for _module in _GENERATED.split():
    publish_finder(f"python.ops.gen_{_module}_ops", op_function)
for _module in _WITH_OPS.split():
    publish_finder(f"python.ops.{_module}_ops", op_function)
for _module in ("training_ops", "gen_training_ops"):
    publish_finder(f"python.training.{_module}", op_function)
# Scripts that were moved to TensorFlow 2 say `tf.compat.v1.`; it is all version 1 here.
publish_lazily(lambda _: sys.modules["tensorfleet"], "compat.v1")
