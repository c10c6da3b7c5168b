"""Names that scripts import from inside TensorFlow: `from tensorfleet.python.framework import ops`."""

from __future__ import annotations

from tensorfleet.api import exported_under, find, publish, publish_lazily

# Where TensorFlow 1.15 keeps public things, under `tf.python`.
_PLACES = {
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
    "ops.control_flow_ops": "Assert group no_op tuple",
    "ops.embedding_ops": "nn.embedding_lookup",
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
# Messages, under the generated modules that hold them.
_MESSAGES = {
    "core.framework.attr_value_pb2": "AttrValue",
    "core.framework.graph_pb2": "GraphDef",
    "core.framework.node_def_pb2": "NodeDef",
    "core.framework.summary_pb2": "Summary",
    "core.protobuf.config_pb2": "ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions",
    "core.protobuf.meta_graph_pb2": "MetaGraphDef",
    "core.util.event_pb2": "Event SessionLog LogMessage",
}

for _place, _names in _PLACES.items():
    for _name in _names.split():
        publish(find(_name), f"python.{_place}.{_name.rpartition('.')[2]}")
for _name in exported_under("errors"):
    publish(find(_name), f"python.framework.{_name}")
for _name in exported_under("logging"):
    publish(find(_name), f"python.platform.tf_{_name}")
for _place, _names in _MESSAGES.items():
    publish_lazily(lambda full: find(full.rpartition(".")[2]), *(f"{_place}.{_n}" for _n in _names.split()))
