"""`run_distribute_coordinator`: a strategy's worker function, run as the tasks of a cluster.

In standalone mode one process runs every worker, as threads, against servers that are running elsewhere; as an independent
worker it is one task, and starts the server of that task.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.distribute.context import ClusterLike, Function
from tensorfleet.api.distribute.coordinating import WorkerContext
from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.base import errors, logging
from tensorfleet.base.protos.config_pb2 import ConfigProto
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.transport.peers import patience
from tensorfleet.graph.graph import Graph

if TYPE_CHECKING:
    from tensorfleet.api.distribute.strategy import Strategy
    from tensorfleet.cluster.server import Server


class TaskType:
    """The jobs of a cluster."""

    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"
    CLIENT = "client"


class CoordinatorMode:
    """Whether a process speaks for the whole cluster, or is one of its tasks."""

    STANDALONE_CLIENT = "standalone_client"
    INDEPENDENT_WORKER = "independent_worker"


class WorkerBarrier:
    """Where a number of threads wait for each other, again and again."""

    def __init__(self, num_participants: int) -> None:
        self._barrier = threading.Barrier(num_participants)

    def wait(self) -> None:
        """Waits for the others, as long as one waits for tasks of a cluster."""
        try:
            self._barrier.wait(patience())
        except threading.BrokenBarrierError:
            raise errors.DeadlineExceededError(
                None,
                None,
                f"Not all {self._barrier.parties} workers came to where they wait for each other in {patience():.0f} s. "
                "One has failed, or does not wait as often as the others; TENSORFLEET_WAIT_SECONDS sets the limit.",
            ) from None


# By these names tests of this module know, and replace, its parts.
_TaskType, _Barrier, _WorkerContext = TaskType, WorkerBarrier, WorkerContext
_thread_local = threading.local()


def _run_std_server(
    cluster_spec: ClusterLike | None = None,
    task_type: str | None = None,
    task_id: int | None = None,
    session_config: ConfigProto | None = None,
    rpc_layer: str | None = None,
    environment: str | None = None,
) -> Server:
    """A started server for a task of a cluster: one for each thread, which is all that a task has."""
    if cluster_spec is None:
        raise ValueError("A server of a cluster needs its cluster_spec.")
    wanted = (ClusterSpec(cluster_spec), task_type, task_id)
    kept: tuple[object, Server] | None = getattr(_thread_local, "server", None)
    if kept is None or kept[0] != wanted:
        from tensorfleet.cluster.server import Server

        server = Server(wanted[0], task_type, task_id, rpc_layer or "grpc", session_config)
        kept = _thread_local.server = (wanted, server)
    return kept[1]


def _configured(config: ConfigProto | None, strategy: Strategy, *task: Any) -> ConfigProto:
    """A copy of a session's configuration as a strategy wants it for a task."""
    configured = copy.deepcopy(config) if config is not None else ConfigProto()
    strategy.configure(configured, *task)
    return configured


class _Run:
    """The parts that all tasks of one call share."""

    def __init__(
        self, worker_fn: Function, strategy: Strategy, cluster: ClusterSpec, rpc_layer: str | None
    ) -> None:
        self.worker_fn, self.strategy = worker_fn, strategy
        self.cluster, self.rpc_layer = cluster, rpc_layer

    def single(
        self,
        worker_fn: Function,
        strategy: Strategy,
        job: str | None,
        index: int | None,
        config: ConfigProto | None,
        barrier: WorkerBarrier | None = None,
    ) -> Any:
        """Calls a worker function as one task."""
        cluster = self.cluster if self.cluster.jobs else None
        with WorkerContext(strategy, cluster, job, index, config, self.rpc_layer, barrier):
            return worker_fn(strategy)

    def in_threads(
        self, config: ConfigProto | None, eval_fn: Function | None, eval_strategy: Strategy | None
    ) -> None:
        """Calls the worker function for every worker, each in a thread with a graph of its own."""
        jobs = [job for job in (TaskType.CHIEF, TaskType.WORKER) if job in self.cluster.jobs]
        tasks = [(job, i) for job in jobs for i in self.cluster.task_indices(job)]
        together = Coordinator()
        barrier = WorkerBarrier(len(tasks))

        def run(job: str, index: int) -> None:
            with together.stop_on_exception(), Graph().as_default():
                strategy = copy.deepcopy(self.strategy)
                session_config = _configured(config, strategy, self.cluster, job, index)
                self.single(self.worker_fn, strategy, job, index, session_config, barrier)

        threads = [threading.Thread(target=run, args=task) for task in tasks]
        for thread in threads:
            thread.start()
        evaluated = self.evaluating(config, eval_fn, eval_strategy)
        together.join(threads)
        evaluated()

    def in_graph(
        self, config: ConfigProto | None, eval_fn: Function | None, eval_strategy: Strategy | None
    ) -> Any:
        """Calls the worker function once: it builds a graph for all workers."""
        evaluated = self.evaluating(config, eval_fn, eval_strategy)
        graph_config = _configured(config, self.strategy, self.cluster)
        result = self.single(self.worker_fn, self.strategy, None, None, graph_config)
        evaluated()
        return result

    def evaluating(
        self, config: ConfigProto | None, eval_fn: Function | None, eval_strategy: Strategy | None
    ) -> Callable[[], None]:
        """Starts the evaluator, if the cluster has one; gives a function that waits for its end and raises its error."""
        if TaskType.EVALUATOR not in self.cluster.jobs:
            return lambda: None
        alone = Coordinator()

        def run() -> None:
            with alone.stop_on_exception(), Graph().as_default():
                self.evaluate(config, eval_fn, eval_strategy, 0)

        thread = threading.Thread(target=run)
        thread.start()
        return lambda: alone.join([thread])

    def evaluate(
        self, config: ConfigProto | None, eval_fn: Function | None, eval_strategy: Strategy | None, index: int
    ) -> Any:
        """Calls the function of the evaluator."""
        strategy = eval_strategy or self.strategy
        eval_config = _configured(config, strategy)
        return self.single(eval_fn or self.worker_fn, strategy, TaskType.EVALUATOR, index, eval_config)


def run_distribute_coordinator(
    worker_fn: Function,
    strategy: Strategy,
    eval_fn: Function | None = None,
    eval_strategy: Strategy | None = None,
    mode: str = CoordinatorMode.STANDALONE_CLIENT,
    cluster_spec: ClusterLike | None = None,
    task_type: str | None = None,
    task_id: int | None = None,
    session_config: ConfigProto | None = None,
    rpc_layer: str | None = "grpc",
) -> Any:
    """Calls `worker_fn(strategy)` where a strategy wants it: here, once for a cluster, or for every worker of it.

    The cluster, and which of its tasks this is, are those given or those of TF_CONFIG. In each call
    `get_current_worker_context()` tells which task it is for.
    """
    config = tf_config.read(os.environ)
    rpc_layer = config.rpc_layer or rpc_layer
    cluster = ClusterSpec(cluster_spec) if cluster_spec else config.cluster
    if not cluster_spec:
        task_type, task_id = config.task_type, config.task_index
    run = _Run(worker_fn, strategy, cluster, rpc_layer)
    if not cluster.jobs:
        return run.single(worker_fn, strategy, None, None, _configured(session_config, strategy))
    if mode == CoordinatorMode.STANDALONE_CLIENT:
        every = run.in_threads if strategy.extended.experimental_between_graph else run.in_graph
        return every(session_config, eval_fn, eval_strategy)
    if mode != CoordinatorMode.INDEPENDENT_WORKER:
        raise ValueError(f"Unexpected coordinator mode: {mode!r}. Use one of CoordinatorMode.")
    if not task_type:
        raise ValueError("An independent worker needs its task type: pass task_type, or set it in TF_CONFIG.")
    return _as_task(run, task_type, task_id or 0, session_config, eval_fn, eval_strategy, config.environment)


def _as_task(
    run: _Run,
    job: str,
    index: int,
    config: ConfigProto | None,
    eval_fn: Function | None,
    eval_strategy: Strategy | None,
    environment: str | None,
) -> Any:
    """One task of a cluster, with its server."""
    strategy = copy.deepcopy(run.strategy)
    evaluates = job == TaskType.EVALUATOR
    own = (eval_strategy or strategy) if evaluates else strategy
    task_config = _configured(config, copy.deepcopy(own), *(() if evaluates else (run.cluster, job, index)))
    del task_config.device_filters[:]  # the server is for other sessions too; each has its own
    server = _run_std_server(
        cluster_spec=run.cluster,
        task_type=job,
        task_id=index,
        session_config=task_config,
        rpc_layer=run.rpc_layer,
        environment=environment,
    )
    if evaluates:
        return run.evaluate(task_config, eval_fn, eval_strategy, index)
    if job not in (TaskType.CHIEF, TaskType.WORKER, TaskType.PS):
        raise ValueError(f"Unexpected task_type: {job!r}. It can be chief, worker, ps or evaluator.")
    if job != TaskType.PS and strategy.extended.experimental_between_graph:
        return run.single(
            run.worker_fn, strategy, job, index, _configured(task_config, strategy, run.cluster, job, index)
        )
    leads = WorkerContext(strategy, run.cluster, job, index).is_chief and job != TaskType.PS
    if leads:  # the first worker builds the graph of all
        return run.single(
            run.worker_fn, strategy, None, None, _configured(task_config, strategy, run.cluster)
        )
    logging.info("The server of /job:%s/task:%d waits for the others to end.", job, index)
    server.join()
    return server


def run_standard_tensorflow_server(session_config: ConfigProto | None = None) -> Server:
    """A started server for the task that TF_CONFIG describes."""
    config = tf_config.read(os.environ)
    if not config.cluster.jobs:
        raise ValueError("A server needs a cluster: set TF_CONFIG to one with this task in it.")
    server_config = copy.deepcopy(session_config) if session_config is not None else ConfigProto()
    if "worker" in config.cluster.jobs or "chief" in config.cluster.jobs:
        job = "chief" if "chief" in config.cluster.jobs else "worker"
        server_config.experimental.collective_group_leader = f"/job:{job}/replica:0/task:0"
    server = _run_std_server(
        cluster_spec=config.cluster,
        task_type=config.task_type,
        task_id=config.task_index or 0,
        session_config=server_config,
        rpc_layer=config.rpc_layer or "grpc",
    )
    server.start()
    return server
