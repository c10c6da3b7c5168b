"""`tf.fleet.join` and `tf.fleet.local`: a program's place in a cluster with parameter servers."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import DTypeLike
from tensorfleet.cluster.membership import tf_config
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.server import Server
from tensorfleet.fleet.checking import positive_number, whole_number
from tensorfleet.fleet.jax_trees import PyTree
from tensorfleet.fleet.library.filters import Filter
from tensorfleet.fleet.library.parameters import Parameters
from tensorfleet.fleet.library.table import RowTable
from tensorfleet.fleet.library.trees import clean
from tensorfleet.graph.apply import apply
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import control_dependencies, device
from tensorfleet.ops.array.basic import placeholder
from tensorfleet.runtime.devices import types_of_program
from tensorfleet.session.session import Session

T = TypeVar("T")
R = TypeVar("R")
_TIMEOUT_SECONDS = 300.0
_here = threading.local()  # the place that `local(...).run` gives the function in this thread


@export("fleet.join")
def join(timeout: float = _TIMEOUT_SECONDS) -> Cluster:
    """Takes this process's place in its cluster: `with fleet.join() as cluster:`.

    `tensorfleet run` or `TF_CONFIG` say which place that is. In a parameter server it serves until the run is over,
    and ends the process. In a worker it returns the `Cluster`. In a function that `fleet.local(...).run` runs it
    returns that of the function's worker. `timeout` is the limit in seconds of each wait for servers and other workers.
    """
    limit = positive_number("timeout", timeout)
    place = getattr(_here, "place", None)
    is_own = place is None
    if place is None:
        told = tf_config.read()
        if told.task_type is None or told.task_index is None or told.task_type not in told.cluster.jobs:
            raise RuntimeError(
                "fleet.join() does not know its cluster, because TF_CONFIG is not set or names no task of it. Start the "
                "script with `tensorfleet run --ps 1 --workers 2 train.py`, or run a function on this machine with "
                "tf.fleet.local(ps=1, workers=2).run(main)."
            )
        server = Server(told.cluster, told.task_type, told.task_index)
        if told.task_type == tf_config.PS:
            server.join()  # until the run is over
            raise SystemExit(0)
        place = server
    return Cluster(place, limit, is_own)


@export("fleet.Cluster")
class Cluster:
    """A worker's view of its cluster. Use it in a `with` block, whose end the other workers are told of."""

    def __init__(self, server: Server, timeout: float, is_own: bool = False) -> None:
        """The server ends with the cluster if it `is_own`."""
        self._server = server if is_own else None
        spec, self.job, self.index = server.cluster, server.job, server.index
        #: the limit in seconds of each wait
        self.timeout = timeout
        jobs = [job for job in (tf_config.CHIEF, tf_config.MASTER, tf_config.WORKER) if job in spec.jobs]
        ranks = [(job, index) for job in jobs for index in spec.task_indices(job)]
        if (self.job, self.index) not in ranks:
            raise RuntimeError(
                f"fleet.join() is for workers and parameter servers, and this task is {self.job}/{self.index}. Start it as "
                "a task of the job 'worker'."
            )
        if tf_config.PS not in spec.jobs or not spec.num_tasks(tf_config.PS):
            raise RuntimeError(
                "The cluster has no parameter servers. Start it with `tensorfleet run --ps 1`, or name a job 'ps' in "
                "TF_CONFIG."
            )
        #: the number of this worker, and how many there are
        self.rank, self.workers = ranks.index((self.job, self.index)), len(ranks)
        #: the devices of the parameter servers
        self.servers = [f"/job:ps/task:{i}" for i in spec.task_indices(tf_config.PS)]
        self._graph, self._names = Graph(), set[str]()
        self._parts: list[Any] = []
        self._session: Session | None = None
        self._target = server.target
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def is_chief(self) -> bool:
        """Whether this is the worker that initializes parameters."""
        return self.rank == 0

    # -- what a program uses --------------------------------------------------------------------------

    def parameters(
        self, name: str, init: Callable[[], PyTree] | PyTree, optimizer: Any, consistency: str = "asp"
    ) -> Parameters:
        """The parameters of this name on the servers, which all workers share.

        `init` is a pytree of arrays or a function that makes it: the first worker's values are taken, the others' tell
        the shapes. `optimizer` is a transformation of Optax. Its update runs on the servers. `consistency` is "asp"
        (nobody waits), "bsp" (all workers push together), or "ssp:4" (nobody is more than 4 pushes ahead).
        """
        self._take_name("parameters", name)
        made = Parameters(self, name, init, optimizer, consistency)
        self._parts.append(made)
        return made

    def table(
        self,
        name: str,
        dim: int,
        dtype: DTypeLike = "float32",
        init: object = 0,
        merge: str | Callable[..., Any] = "sum",
        filters: Sequence[Filter] = (),
        cache_keys: bool = False,
    ) -> RowTable:
        """The table of this name on the servers, which all workers share: rows of `dim` numbers by 64-bit keys.

        `init` is the number, or the row, that a new row has. `merge` says how a pushed value changes a row: "sum",
        "max", "set", or a function of JAX from rows and values to rows. `filters` are those of this worker's pushes.
        With `cache_keys`, keys that come again in the same order are sent once.
        """
        self._take_name("table", name)
        made = RowTable(self, name, dim, dtype, init, merge, filters, cache_keys)
        self._parts.append(made)
        return made

    def shard(self, batches: Iterable[T]) -> Iterator[T]:
        """The share of this worker of batches that all go through in the same order: every n-th."""
        return itertools.islice(batches, self.rank, None, self.workers)

    def close(self) -> None:
        """Ends this worker's part: waits for pushes that are under way, and closes the session."""
        self._close(True)

    def __enter__(self) -> Cluster:
        # Graphs need JAX's 64-bit types; the program's own computations go on with the types that it expects.
        self._types = types_of_program()
        self._types.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(error is None)
        finally:
            self._types.__exit__(None, None, None)

    def _close(self, in_good_order: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            for part in self._parts:
                try:
                    part.close(in_good_order)
                except errors.OpError:
                    if in_good_order:  # else the first error is the one to see
                        raise
        finally:
            if self._session is not None:
                self._session.close()
            if self._server is not None:
                self._server.stop()

    # -- what its parts use ---------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The session that makes all requests."""
        with self._lock:
            if self._session is None:
                from tensorfleet.base.protos import ConfigProto

                filters = ["/job:ps", f"/job:{self.job}/task:{self.index}"]
                self._session = Session(self._target, self._graph, ConfigProto(device_filters=filters))
            return self._session

    def step(self, fetches: object, feeds: Sequence[Any] = ()) -> Callable[..., Any]:
        """A function that runs `fetches` within the limit of waits."""
        from tensorfleet.base.protos import RunOptions

        options = RunOptions(timeout_in_ms=int(self.timeout * 1000))
        call = self.session.make_callable(fetches, list(feeds), accept_options=True)
        return lambda *values: call(*values, options=options)

    @contextmanager
    def building(self) -> Iterator[None]:
        """Makes the private graph the default one."""
        with self._graph.as_default(), control_dependencies(None):
            yield

    def agree(
        self, name: str, told: dict[str, Any], difference: Callable[[dict[str, Any], dict[str, Any]], str]
    ) -> None:
        """Makes sure that all workers say the same of something. ValueError that tells the difference if not."""
        with self.building(), device(self.servers[0]):
            text = placeholder("string", [])
            agreed = apply("FleetAgree", text, shared_name=name)
        found = json.loads(self.session.run(agreed, {text: json.dumps(told)}))
        if found != told:
            kind, _, short = name.partition("/")
            raise ValueError(
                f"The {kind} '{short}' are on the servers already, with other arguments: {difference(found, told)}. Use "
                "the same arguments everywhere, or another name."
            )

    def _take_name(self, kind: str, name: str) -> None:
        if self._is_closed:
            raise RuntimeError("The cluster is closed. Use it inside the block of fleet.join().")
        clean(name)
        if name in self._names:
            raise ValueError(
                f"name is {name!r}, which this worker uses already. Keep what the first call returned, or choose another "
                "name."
            )
        self._names.add(name)


@export("fleet.local")
def local(ps: int = 1, workers: int = 1) -> LocalCluster:
    """A cluster in this process, for notebooks and tests: `fleet.local(ps=2, workers=4).run(main)`.

    Parameter servers and workers are threads. `main` calls `fleet.join()` as it does in a process of its own.
    """
    return LocalCluster(whole_number("ps", ps, 1), whole_number("workers", workers, 1))


class LocalCluster(AbstractContextManager["LocalCluster"]):
    """Parameter servers and workers in this process. `tf.fleet.local` makes it."""

    def __init__(self, ps: int, workers: int) -> None:
        ports = _free_ports(ps + workers)
        addresses = [f"localhost:{port}" for port in ports]
        #: the addresses of all tasks
        self.spec = ClusterSpec({"ps": addresses[:ps], "worker": addresses[ps:]})
        self._servers = [Server(self.spec, "ps", i) for i in range(ps)]
        self._workers = [Server(self.spec, "worker", i) for i in range(workers)]
        self._is_stopped = False

    def run(self, function: Callable[..., R], *args: Any) -> list[R]:
        """Runs a function once for each worker, in threads, and returns what each has returned. The servers stay.

        If one fails, its error is raised when the others have ended.
        """
        results: dict[int, R] = {}
        failures: list[BaseException] = []

        def work(number: int, server: Server) -> None:
            _here.place = server
            try:
                results[number] = function(*args)
            except BaseException as e:  # raised again below
                failures.append(e)

        threads = [
            threading.Thread(target=work, args=pair, name=f"worker {pair[0]}", daemon=True)
            for pair in enumerate(self._workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(1.0)
        if failures:
            raise failures[0]
        return [results[i] for i in range(len(threads))]

    @contextmanager
    def join(self, worker: int = 0, timeout: float = _TIMEOUT_SECONDS) -> Iterator[Cluster]:
        """The cluster as one worker sees it, for a program that plays it here: `with local.join(0) as cluster:`."""
        with Cluster(self._workers[worker], positive_number("timeout", timeout)) as cluster:
            yield cluster

    @property
    def target(self) -> str:
        """What to pass to a `tf.Session` that looks at the same state."""
        return self._workers[0].target

    def close(self) -> None:
        """Stops the servers and forgets what they hold."""
        if not self._is_stopped:
            self._is_stopped = True
            for server in [*self._workers, *self._servers]:
                server.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses now."""
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports
