"""The names under `tf.test`; what needs unittest is loaded when first used."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import export, publish_finder, publish_lazily, publish_module


def _from_test_case(name: str) -> Any:
    return getattr(
        importlib.import_module("tensorfleet_legacy.testing.test_util"), name.removeprefix("test.")
    )


def _from_gradient_checker(name: str) -> Any:
    return getattr(
        importlib.import_module("tensorfleet_legacy.testing.gradient_checker"), name.removeprefix("test.")
    )


def _from_benchmark(name: str) -> Any:
    return getattr(
        importlib.import_module("tensorfleet_legacy.testing.benchmark"), name.removeprefix("test.")
    )


def _from_modes(name: str) -> Any:
    modes = importlib.import_module("tensorfleet_legacy.testing.test_util_modes")
    name = name.removeprefix(_TEST_UTIL)
    if name in _AS_IT_IS.split():
        return modes.as_it_is
    return modes.no if name in _NO.split() else getattr(modes, name)


def _mock(name: str) -> Any:
    return importlib.import_module("unittest.mock")


publish_lazily(_from_test_case, "test.TestCase", "test.StubOutForTesting", "test.main", "test.get_temp_dir")
publish_lazily(_from_test_case, "test.assert_equal_graph_def", "test.test_src_dir_path")
publish_lazily(_from_gradient_checker, "test.compute_gradient", "test.compute_gradient_error")
publish_lazily(_from_benchmark, "test.Benchmark", "test.benchmark_config")
publish_lazily(
    lambda name: getattr(
        importlib.import_module("tensorfleet_legacy.testing.benchmark"),
        name.rpartition(".")[2].replace("TensorFlowBenchmark", "Benchmark"),
    ),
    *(
        f"python.platform.benchmark.{name}"
        for name in ["GLOBAL_BENCHMARK_REGISTRY", "TensorFlowBenchmark", "_run_benchmarks", "benchmarks_main"]
    ),
)
publish_lazily(_mock, "test.mock")
publish_lazily(
    lambda name: getattr(
        importlib.import_module("tensorfleet_legacy.testing.test_base"), name.rpartition(".")[2]
    ),
    "python.data.kernel_tests.test_base.DatasetTestBase",
    "python.keras.testing_utils.get_test_data",
)
_OF_KERAS = """
    experimental_run_tf_function_scope get_expected_metric_variable_names get_model_from_layers get_model_type
    get_small_functional_mlp get_small_mlp get_small_sequential_mlp get_small_subclass_mlp get_v2_optimizer layer_test
    model_type_scope run_eagerly_scope should_run_eagerly should_run_tf_function
"""
publish_lazily(
    lambda name: getattr(
        importlib.import_module("tensorfleet_legacy.testing.keras_parameterized"), name.rpartition(".")[2]
    ),
    *(f"python.keras.testing_utils.{name}" for name in _OF_KERAS.split()),
    *(
        f"python.keras.keras_parameterized.{name}"
        for name in ("TestCase", "run_all_keras_modes", "run_with_all_model_types")
    ),
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.test_ops"), "python.framework.test_ops"
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.dataset_serialization_test_base"),
    "python.data.experimental.kernel_tests.serialization.dataset_serialization_test_base",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.reader_dataset_ops_test_base"),
    "python.data.experimental.kernel_tests.reader_dataset_ops_test_base",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.random_util"),
    "python.kernel_tests.random.util",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.parallel_for_test_util"),
    "python.ops.parallel_for.test_util",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.ragged_test_util"),
    "python.ops.ragged.ragged_test_util",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.linear_operator_test_util"),
    "python.ops.linalg.linear_operator_test_util",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.bijector_test_util"),
    "python.ops.distributions.bijector_test_util",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.signal_test_util"),
    "python.kernel_tests.signal.test_util",
)

publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.multi_worker_test_base"),
    "python.distribute.multi_worker_test_base",
    "contrib.distribute.python.multi_worker_test_base",
)
publish_lazily(
    lambda _: importlib.import_module("tensorfleet_legacy.testing.strategy_test_lib"),
    "python.distribute.strategy_test_lib",
    "contrib.distribute.python.strategy_test_lib",
)

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
publish_lazily(
    lambda _: _from_test_case("test.TestCase"),
    "python.framework.test_util.TensorFlowTestCase",
    "python.platform.googletest.TestCase",
)
publish_lazily(
    lambda _: _from_test_case("test.assert_equal_graph_def"),
    _TEST_UTIL + "assert_equal_graph_def_v1",
    _TEST_UTIL + "assert_equal_graph_def_v2",
)
publish_lazily(lambda _: _from_modes("disable_with_predicate"), "python.platform.test.disable_with_predicate")
publish_module("python.framework.test_util", "test")


def _module_named(file: str, name: str) -> Any:
    return importlib.import_module(f"tensorfleet_legacy.testing.{file}")


def _from_combinations(name: str) -> Any:
    """What the modules of combinations have, by the last part of its name."""
    short = name.rpartition(".")[2]
    for module in ("combinations", "strategy_combinations"):
        found = importlib.import_module(f"tensorfleet_legacy.testing.{module}")
        if hasattr(found, short):
            return getattr(found, short)
    raise AttributeError(name)


for _module in (
    "python.framework.combinations",
    "python.framework.test_combinations",
    "python.distribute.combinations",
):
    for _name in ["NamedDistribution", "NamedObject", "combine", "generate", "times"]:
        publish_lazily(_from_combinations, f"{_module}.{_name}")
for _module, _file in (
    ("python.distribute.strategy_combinations", "strategy_combinations"),
    ("python.distribute.single_loss_example", "single_loss_example"),
    ("contrib.distribute.python.single_loss_example", "single_loss_example"),
):
    publish_lazily(functools.partial(_module_named, _file), _module)
publish_finder("contrib.distribute.python.combinations", _from_combinations)
for _name in ["default_test", "graph_only", "eager_only", "v1_only", "v2_only"]:
    publish_lazily(_from_combinations, f"python.data.kernel_tests.test_base.{_name}_combinations")
publish_module("python.ops.gradient_checker", "test")


def _of_functions(name: str) -> Any:
    from tensorfleet_legacy.testing import gradient_checker_v2 as function_gradients

    called = {"compute_gradient": "compute_function_gradient", "_to_numpy": "to_numpy"}
    short = name.rpartition(".")[2]
    return getattr(function_gradients, called.get(short, short))


publish_lazily(
    _of_functions,
    *(f"python.ops.gradient_checker_v2.{name}" for name in ("compute_gradient", "max_error", "_to_numpy")),
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
