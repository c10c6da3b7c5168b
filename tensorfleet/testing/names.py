"""The names under `tf.test`; what needs unittest is loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.api import export, publish_lazily


def _from_test_case(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet.testing.test_case"), name.removeprefix("test."))


def _from_gradient_checker(name: str) -> Any:
    return getattr(
        importlib.import_module("tensorfleet.testing.gradient_checker"), name.removeprefix("test.")
    )


def _from_benchmark(name: str) -> Any:
    return getattr(importlib.import_module("tensorfleet.testing.benchmark"), name.removeprefix("test."))


def _mock(name: str) -> Any:
    return importlib.import_module("unittest.mock")


publish_lazily(_from_test_case, "test.TestCase", "test.StubOutForTesting", "test.main", "test.get_temp_dir")
publish_lazily(_from_test_case, "test.assert_equal_graph_def", "test.test_src_dir_path")
publish_lazily(_from_gradient_checker, "test.compute_gradient", "test.compute_gradient_error")
publish_lazily(_from_benchmark, "test.Benchmark", "test.benchmark_config")
publish_lazily(_mock, "test.mock")


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
