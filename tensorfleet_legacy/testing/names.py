"""The names under `tf.test`; what needs unittest is loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import export, publish_finder, publish_lazily, publish_module
from tensorfleet_legacy.lazy_names import publish_from, publish_whole


def _from_modes(name: str) -> Any:
    modes = importlib.import_module("tensorfleet_legacy.testing.test_util_modes")
    name = name.removeprefix(_TEST_UTIL)
    if name in _AS_IT_IS.split():
        return modes.as_it_is
    return modes.no if name in _NO.split() else getattr(modes, name)


def _mock(name: str) -> Any:
    return importlib.import_module("unittest.mock")


_TEST_CASE = "TestCase StubOutForTesting main get_temp_dir assert_equal_graph_def test_src_dir_path"
publish_from("testing.test_util", _TEST_CASE, "test")
publish_from("testing.gradient_checker", "compute_gradient compute_gradient_error", "test")
publish_from("testing.benchmark", "Benchmark benchmark_config", "test")
publish_from(
    "testing.benchmark",
    "GLOBAL_BENCHMARK_REGISTRY TensorFlowBenchmark=Benchmark _run_benchmarks benchmarks_main",
    "python.platform.benchmark",
)
publish_lazily(_mock, "test.mock")
publish_from("testing.test_base", "DatasetTestBase", "python.data.kernel_tests.test_base")
publish_from("testing.test_base", "get_test_data", "python.keras.testing_utils")
_OF_KERAS = """
    experimental_run_tf_function_scope get_expected_metric_variable_names get_model_from_layers get_model_type
    get_small_functional_mlp get_small_mlp get_small_sequential_mlp get_small_subclass_mlp get_v2_optimizer layer_test
    model_type_scope run_eagerly_scope should_run_eagerly should_run_tf_function
"""
publish_from("testing.keras_parameterized", _OF_KERAS, "python.keras.testing_utils")
publish_from(
    "testing.keras_parameterized",
    "TestCase run_all_keras_modes run_with_all_model_types",
    "python.keras.keras_parameterized",
)
# Modules here, and where TensorFlow has them.
_WHOLE = {
    "test_ops": "python.framework.test_ops",
    "dataset_serialization_test_base": "python.data.experimental.kernel_tests.serialization.dataset_serialization_test_base",
    "reader_dataset_ops_test_base": "python.data.experimental.kernel_tests.reader_dataset_ops_test_base",
    "random_util": "python.kernel_tests.random.util",
    "parallel_for_test_util": "python.ops.parallel_for.test_util",
    "ragged_test_util": "python.ops.ragged.ragged_test_util",
    "linear_operator_test_util": "python.ops.linalg.linear_operator_test_util",
    "bijector_test_util": "python.ops.distributions.bijector_test_util",
    "signal_test_util": "python.kernel_tests.signal.test_util",
    "multi_worker_test_base": """
        python.distribute.multi_worker_test_base contrib.distribute.python.multi_worker_test_base
    """,
    "strategy_test_lib": "python.distribute.strategy_test_lib contrib.distribute.python.strategy_test_lib",
    "strategy_combinations": "python.distribute.strategy_combinations",
    "single_loss_example": """
        python.distribute.single_loss_example contrib.distribute.python.single_loss_example
    """,
}
for _module, _places in _WHOLE.items():
    publish_whole(f"testing.{_module}", *_places.split())

_TEST_UTIL = "python.framework.test_util."
# Decorators that choose among modes of which there is one here.
_AS_IT_IS = """
    add_graph_building_optimization_tests also_run_as_tf_function assert_no_garbage_created
    assert_no_new_pyobjects_executing_eagerly assert_no_new_tensors build_as_function_and_v1_graph
    deprecated_graph_mode_only disable_all_xla disable_asan disable_control_flow_v2 disable_cudnn_autotune
    disable_mlir_bridge disable_msan disable_tfrt disable_tsan disable_ubsan disable_xla enable_c_api enable_c_shapes enable_control_flow_v2
    enable_cond_v2 enable_while_v2 enable_eager_op_as_function enable_nested_function_shape_inference
    enable_output_all_intermediates enable_tf_xla_constant_folding no_xla_auto_jit run_without_tensor_float_32
    run_all_in_deprecated_graph_mode_only run_class_in_v1_v2 run_deprecated_v1 run_in_async_and_sync_mode
    run_all_without_tensor_float_32 run_in_v1_v2 run_v1_only set_xla_env_flag use_deterministic_cudnn with_c_api
    with_c_shapes with_control_flow_v2
    with_eager_op_as_function xla_allow_fallback
"""
_NO = """
    CudaSupportsHalfMatMulAndConv GpuSupportsHalfMatMulAndConv IsBuiltWithROCm IsBuiltWithXLA
    IsGoogleCudaEnabled IsMklEnabled is_asan_enabled is_mlir_bridge_enabled is_msan_enabled is_tsan_enabled
    is_ubsan_enabled is_xla_enabled
"""
_MODES = """
    NCHWToNHWC NCHW_VECT_CToNHWC NHWCToNCHW NHWCToNCHW_VECT_C assert_meta_graph_protos_equal
    assert_ops_in_graph device for_all_test_methods
    force_cpu force_gpu generate_combinations_with_testcase_name get_node_def_from_graph pick_unused_port
    py_func_if_in_function run_all_in_graph_and_eager_modes run_cuda_only
    run_gpu_only run_in_graph_and_eager_modes run_v2_only set_producer_version skip_if skip_if_error use_gpu
    with_forward_compatibility_horizons
"""
publish_lazily(_from_modes, *(_TEST_UTIL + name for name in f"{_AS_IT_IS} {_NO} {_MODES}".split()))
publish_lazily(
    lambda _: _from_modes(_TEST_UTIL + "pick_unused_port"), "python.util.net_lib.pick_unused_port_or_die"
)
_OF_TEST_CASE = """
    TensorFlowTestCase=TestCase assert_equal_graph_def_v1=assert_equal_graph_def
    assert_equal_graph_def_v2=assert_equal_graph_def
"""
publish_from("testing.test_util", _OF_TEST_CASE, "python.framework.test_util")
publish_from("testing.test_util", "TestCase", "python.platform.googletest")
publish_lazily(lambda _: _from_modes("disable_with_predicate"), "python.platform.test.disable_with_predicate")
publish_module("python.framework.test_util", "test")


def _from_combinations(name: str) -> Any:
    """The contents of the modules of combinations, by the last part of the name."""
    short = name.rpartition(".")[2]
    for module in ("combinations", "strategy_combinations"):
        imported = importlib.import_module(f"tensorfleet_legacy.testing.{module}")
        if hasattr(imported, short):
            return getattr(imported, short)
    raise AttributeError(name)


for _module in (
    "python.framework.combinations",
    "python.framework.test_combinations",
    "python.distribute.combinations",
):
    for _name in ["NamedDistribution", "NamedObject", "combine", "generate", "times"]:
        publish_lazily(_from_combinations, f"{_module}.{_name}")
publish_finder("contrib.distribute.python.combinations", _from_combinations)
for _name in ["default_test", "graph_only", "eager_only", "v1_only", "v2_only"]:
    publish_lazily(_from_combinations, f"python.data.kernel_tests.test_base.{_name}_combinations")
publish_module("python.ops.gradient_checker", "test")


publish_from(
    "testing.gradient_checker_v2",
    "compute_gradient=compute_function_gradient max_error _to_numpy=to_numpy",
    "python.ops.gradient_checker_v2",
)


@export("test.create_local_cluster")
def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list, list]:
    """Servers of a small cluster inside this process: `(workers, parameter servers)`."""
    from tensorfleet.cluster.server import Server
    from tensorfleet.testing.cluster import free_addresses

    cluster = free_addresses(worker=num_workers, ps=num_ps)
    workers = [Server(cluster, "worker", i, protocol, worker_config) for i in range(num_workers)]
    return workers, [Server(cluster, "ps", i, protocol, ps_config) for i in range(num_ps)]


def _gpu_names() -> list[str]:
    from tensorfleet.session.session import Session

    with Session() as session:
        return [d.name for d in session.list_devices() if d.device_type == "GPU"]


@export("test.is_gpu_available")
def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether a session has a GPU to place operations on."""
    return bool(_gpu_names())


@export("test.gpu_device_name")
def gpu_device_name() -> str:
    """The name of the first GPU as `tf.device` takes it, or an empty string."""
    names = _gpu_names()
    return "/device:GPU:" + names[0].rpartition(":")[2] if names else ""


@export("test.is_built_with_cuda")
def is_built_with_cuda() -> bool:
    """False: GPUs, where there are any, come from JAX."""
    return False


@export("test.is_built_with_rocm")
def is_built_with_rocm() -> bool:
    """False: GPUs, where there are any, come from JAX."""
    return False


@export("test.is_built_with_gpu_support")
def is_built_with_gpu_support() -> bool:
    """Whether it was built for CUDA or ROCm."""
    return is_built_with_cuda() or is_built_with_rocm()
