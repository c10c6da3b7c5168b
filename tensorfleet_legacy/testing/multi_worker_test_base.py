"""`multi_worker_test_base`: tests of several workers, as threads of one process, each with a server of its own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from unittest import SkipTest, mock

from tensorfleet.api.distribute import coordinator
from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.base import errors
from tensorfleet.base.naming import find
from tensorfleet.cluster.server import Server
from tensorfleet.graph.graph import Graph
from tensorfleet.session.session import Session
from tensorfleet.testing.cluster import free_addresses
from tensorfleet_legacy.testing.test_util import TestCase

original_run_std_server = coordinator._run_std_server
_servers: list[Server] = []  # for as long as the process: they are of no test in particular


def pick_unused_port() -> int:
    """A port of this machine that nobody listens at."""
    return int(free_addresses(one=1)["one"][0].rpartition(":")[2])


def create_cluster_spec(
    has_chief: bool = False, num_workers: int = 1, num_ps: int = 0, has_eval: bool = False
) -> dict[str, list[str]]:
    """Addresses for the tasks of a cluster on this machine."""
    counts = {"chief": int(has_chief), "worker": num_workers, "ps": num_ps, "evaluator": int(has_eval)}
    return free_addresses(**{job: count for job, count in counts.items() if count})


def create_in_process_cluster(
    num_workers: int, num_ps: int, has_chief: bool = False, has_eval: bool = False, rpc_layer: str = "grpc"
) -> dict[str, list[str]]:
    """Starts a server for each task of a cluster, all in this process; gives their addresses."""
    cluster = create_cluster_spec(has_chief, num_workers, num_ps, has_eval)
    try:
        for job, addresses in cluster.items():
            _servers.extend(Server(cluster, job, i, rpc_layer) for i in range(len(addresses)))
    except errors.UnknownError as e:
        raise SkipTest(f"Cannot start servers here: {e.message}") from None
    return cluster


@contextmanager
def skip_if_grpc_server_cant_be_started(test_obj: TestCase) -> Iterator[None]:
    """A block that ends the test as skipped when a server in it finds its port taken."""
    try:
        yield
    except errors.UnknownError as e:
        if "Could not start gRPC server" not in e.message:
            raise
        test_obj.skipTest("Cannot start servers here.")


class MultiWorkerTestBase(TestCase):
    """A test whose sessions are on a cluster: two workers and a parameter server, unless `setUpClass` makes another."""

    _cluster_spec: dict[str, list[str]]
    _default_target: str

    @classmethod
    def setUpClass(cls, num_workers: int = 2, num_ps: int = 1) -> None:
        """Starts the cluster."""
        cls._cluster_spec = create_in_process_cluster(num_workers, num_ps)
        cls._default_target = f"grpc://{cls._cluster_spec['worker'][0]}"

    def setUp(self) -> None:
        """Every test, and every thread of it, has a session of its own."""
        super().setUp()
        self._thread_local = threading.local()
        self._coord = Coordinator()

    @contextmanager
    def session(  # type: ignore[override]
        self, graph: Graph | None = None, config: Any = None, target: str | None = None
    ) -> Iterator[Session]:
        """A new session on a task of the cluster, by default on the first worker."""
        with Session(target or self._default_target, graph, self._create_config(config)) as session:
            yield session

    @contextmanager
    def cached_session(  # type: ignore[override]
        self, graph: Graph | None = None, config: Any = None, target: str | None = None
    ) -> Iterator[Session]:
        """The session of this thread, made at its first call."""
        session = getattr(self._thread_local, "cached_session", None)
        if session is None:
            where = self._default_target if target is None else target
            session = self._thread_local.cached_session = Session(where, config=self._create_config(config))
        with session.graph.as_default(), session.as_default():
            yield session

    def test_session(  # type: ignore[override]
        self, graph: Graph | None = None, config: Any = None, target: str | None = None
    ) -> Any:
        """`cached_session` when no graph is given, else `session`."""
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        return (self.cached_session if graph is None else self.session)(graph, config, target)

    test_session.__test__ = False  # type: ignore[attr-defined]

    def _create_config(self, config: Any) -> Any:
        result = find("ConfigProto")(allow_soft_placement=True)
        if config is not None:
            result.CopyFrom(config)
        return result

    def _run_client(self, client_fn: Callable, *args: Any, **kwargs: Any) -> None:
        with self._coord.stop_on_exception():
            client_fn(*args, **kwargs)

    def _run_between_graph_clients(
        self, client_fn: Callable, cluster_spec: dict, num_gpus: int, *args: Any, **kwargs: Any
    ) -> None:
        """Calls `client_fn(job, number, gpus, ...)` in a thread for each task that trains; raises what they raise."""
        threads = [
            threading.Thread(
                target=self._run_client, args=(client_fn, job, i, num_gpus, *args), kwargs=kwargs
            )
            for job in ("chief", "worker")
            for i in range(len(cluster_spec.get(job, [])))
        ]
        for thread in threads:
            thread.start()
        self._coord.join(threads)


class SingleWorkerTestBaseGraph(MultiWorkerTestBase):
    """A test on a cluster of one worker."""

    @classmethod
    def setUpClass(cls, num_workers: int = 1, num_ps: int = 1) -> None:
        """Starts the cluster."""
        super().setUpClass(num_workers, num_ps)


class MockOsEnv(MutableMapping):
    """An environment in which each thread has a TF_CONFIG of its own."""

    def __init__(self) -> None:
        self._shared: dict[str, str] = dict(os.environ)
        self._shared.pop("TF_CONFIG", None)
        self._own = threading.local()

    def _of(self, key: str) -> dict[str, str]:
        return self._own.__dict__ if key == "TF_CONFIG" else self._shared

    def __getitem__(self, key: str) -> str:
        return self._of(key)[key]

    def __setitem__(self, key: str, val: str) -> None:
        self._of(key)[key] = val

    def __delitem__(self, key: str) -> None:
        del self._of(key)[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own.__dict__, *self._shared])

    def __len__(self) -> int:
        return len(self._own.__dict__) + len(self._shared)


class IndependentWorkerTestBase(TestCase):
    """A test whose workers are threads, each with the TF_CONFIG of a process of its own."""

    def setUp(self) -> None:
        """Puts an environment for threads in the place of the process's."""
        super().setUp()
        self._mock_os_env = MockOsEnv()
        self._mock_context = mock.patch.object(os, "environ", self._mock_os_env)
        self._coord = Coordinator()
        self._thread_local = threading.local()
        self._mock_context.__enter__()

    def tearDown(self) -> None:
        """Puts the process's environment back."""
        self._mock_context.__exit__(None, None, None)
        super().tearDown()

    def _make_mock_run_std_server(self) -> Callable:
        """Starts a worker's server and waits, the first time, until all workers of `_barrier` have theirs."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with skip_if_grpc_server_cant_be_started(self):
                server = original_run_std_server(*args, **kwargs)
            if not getattr(self._thread_local, "server_started", False):
                self._barrier.wait()  # type: ignore[attr-defined]
            self._thread_local.server_started = True
            return server

        return run

    def _task_thread(self, task_fn: Callable, tf_config: dict, *args: Any, **kwargs: Any) -> None:
        with self._coord.stop_on_exception():
            os.environ["TF_CONFIG"] = json.dumps(tf_config)
            with Graph().as_default():
                task_fn(*args, **kwargs)

    def _run_task_in_thread(
        self, task_fn: Callable, cluster_spec: Any, task_type: Any, task_id: Any, *args: Any, **kwargs: Any
    ) -> threading.Thread:
        """Starts `task_fn(...)` as one task of a cluster."""
        config = kwargs.pop("tf_config", None) or _tf_config(cluster_spec, task_type, task_id)
        thread = threading.Thread(target=self._task_thread, args=(task_fn, config, *args), kwargs=kwargs)
        thread.start()
        return thread

    def run_multiple_tasks_in_threads(
        self, task_fn: Callable, cluster_spec: dict, *args: Any, **kwargs: Any
    ) -> dict[str, list[threading.Thread]]:
        """Starts `task_fn(...)` for every task of a cluster; gives the threads by job."""
        return {
            job: [
                self._run_task_in_thread(task_fn, cluster_spec, job, i, *args, **kwargs)
                for i in range(len(tasks))
            ]
            for job, tasks in cluster_spec.items()
        }

    def join_independent_workers(self, worker_threads: Any) -> None:
        """Waits for workers, and raises what one of them raised."""
        with skip_if_grpc_server_cant_be_started(self):
            self._coord.join(worker_threads)


class MultiWorkerMultiProcessTest(TestCase):
    """A test whose workers are processes."""

    def run_multiple_tasks_in_processes(self, cmd_args: list[str], cluster_spec: dict) -> dict[str, list]:
        """Runs a command once for every task of a cluster, each with its TF_CONFIG; gives the processes by job."""

        def started(job: str, i: int) -> subprocess.Popen:
            config = json.dumps(_tf_config(cluster_spec, job, i))
            return subprocess.Popen(
                cmd_args,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "TF_CONFIG": config},
            )

        return {job: [started(job, i) for i in range(len(tasks))] for job, tasks in cluster_spec.items()}

    def join_independent_workers(self, worker_processes: Any) -> None:
        """Waits for processes; all must end well."""
        for process in find("nest.flatten")(worker_processes):
            process.communicate()
            self.assertEqual(process.returncode, 0)


def _tf_config(cluster: Any, job: Any, index: Any) -> dict:
    by_name = {"cluster": cluster}
    return {**by_name, "task": {"type": job, "index": index}} if job else by_name


def get_tf_config_task() -> dict:
    """This worker's task, as TF_CONFIG tells it."""
    return json.loads(os.environ["TF_CONFIG"])["task"]


def get_tf_config_cluster_spec() -> dict:
    """The cluster, as TF_CONFIG tells it."""
    return json.loads(os.environ["TF_CONFIG"])["cluster"]


def get_task_type() -> str:
    """The job of this worker."""
    return get_tf_config_task()["type"]


def get_task_index() -> int:
    """The number of this worker."""
    return get_tf_config_task()["index"]


def is_chief() -> bool:
    """Whether this is the first worker of a cluster without a chief."""
    alone = "chief" not in get_tf_config_cluster_spec()
    return alone and get_task_type() == "worker" and get_task_index() == 0
