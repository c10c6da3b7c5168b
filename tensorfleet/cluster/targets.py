"""From a session's target to what runs its steps: this process alone, a server beside it, or one far away."""

from __future__ import annotations

import atexit
import sys
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tensorfleet.base import errors, logging
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.cluster.inspection import own_task
from tensorfleet.cluster.inspection.ask import Inspector
from tensorfleet.cluster.master.master import ClusterEngine, task_parts
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.membership.address_rewriting import moved
from tensorfleet.cluster.membership.shutdown import end_script
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.messages import Ping, Reset, Stop, Welcome
from tensorfleet.cluster.process_servers import has_ended, server_at
from tensorfleet.cluster.transport.peers import Peer, peer
from tensorfleet.graph.graph import Graph
from tensorfleet.runtime.engine import CLOSED, LocalEngine
from tensorfleet.runtime.engine_protocol import Engine

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto

_AnyEngine = TypeVar("_AnyEngine", LocalEngine, ClusterEngine)
_SCHEME = "grpc://"
_STOP_SECONDS = 10.0
_LOCAL = ("", "local")
_engines: dict[
    str, weakref.WeakSet[LocalEngine | ClusterEngine]
] = {}  # of the sessions of this process, by target


def engine_for(target: str, graph: Graph, config: ConfigProto | None) -> Engine[Any]:
    """The engine behind a session's target."""
    if target in _LOCAL:
        return _remembered("", LocalEngine(graph, config))
    target = moved(target)
    server = server_at(target)
    if server is not None:
        own = config if config is not None else server.config
        cluster, task = _cluster(config, server.cluster, (server.job, server.index), target)
        return _remembered(target, ClusterEngine(graph, own, cluster, task, server))
    if has_ended(target):
        # TensorFlow's `join` never returns, so many programs go on as a worker after it. The work is done: so are they.
        logging.info("The server of this process has ended with its cluster; so does the program.")
        end_script(0)
    welcome = _contact(target, config)
    cluster, task = _cluster(config, _spec(welcome), (welcome.job, welcome.index), target)
    return _remembered(
        target, ClusterEngine(graph, config, cluster, task, dialled=target.removeprefix(_SCHEME))
    )


def _remembered(target: str, engine: _AnyEngine) -> _AnyEngine:
    _engines.setdefault(target, weakref.WeakSet()).add(engine)
    atexit.unregister(_finish_sessions)
    atexit.register(_finish_sessions)  # runs before what is registered now, which stops servers
    return engine


def engines() -> list[LocalEngine | ClusterEngine]:
    """The engines of the sessions of this process."""
    return [engine for engines in list(_engines.values()) for engine in list(engines)]


def _finish_sessions() -> None:
    """A program that ends in good order has done the work of its sessions, also of those it did not close."""
    if hasattr(sys, "last_value"):  # an error has ended it
        return
    for engine in [e for engines in _engines.values() for e in engines]:
        if isinstance(engine, ClusterEngine) and not engine.running:
            tasks = [engine.peer_of(*task_parts(task)) for task in engine.shipments]
            if all(task.is_open() for task in tasks):  # at the end of a process no connection is opened
                engine.close(errors.CancelledError(None, None, CLOSED), finished=True)


def _spec(welcome: Welcome) -> ClusterSpec:
    """The cluster that a server is part of. Over the wire, the numbers of tasks are texts."""
    return ClusterSpec(
        {
            job: tasks if isinstance(tasks, list) else {int(i): address for i, address in tasks.items()}
            for job, tasks in welcome.cluster.items()
        }
    )


def _cluster(
    config: ConfigProto | None, own: ClusterSpec, task: tuple[str, int], target: str
) -> tuple[ClusterSpec, tuple[str, int]]:
    """The cluster a session uses, and which of its tasks the target is.

    They are the server's own, unless the session's configuration brings another cluster: there the servers have the
    names that it gives them.
    """
    if config is None or not config.HasField("cluster_def") or not config.cluster_def.job:
        return own, task
    cluster = ClusterSpec(config.cluster_def)
    address = target.removeprefix(_SCHEME)
    for job in cluster.jobs:
        for index in cluster.task_indices(job):
            if cluster.task_address(job, index) == address:
                return cluster, (job, index)
    raise errors.InvalidArgumentError(
        None,
        None,
        f"The session's target {target} is not among the tasks of ConfigProto.cluster_def: {cluster.as_dict()}. Add it there, "
        "with the same address, or make the session on one of those tasks.",
    )


def _no_such_target(target: str) -> errors.OpError:
    return errors.NotFoundError(
        None,
        None,
        f"No session factory registered for the given session options: {{target: {target!r}}}. Use tf.Session() for a "
        "local session, or the `target` of a tf.train.Server (grpc://host:port).",
    )


def _contact(target: str, config: ConfigProto | None, waits: bool = True) -> Welcome:
    if not target.startswith(_SCHEME):
        raise _no_such_target(target)
    address = target.removeprefix(_SCHEME)
    at = peer(f"the server at {target}", address)
    timeout = config.operation_timeout_in_ms if config is not None else 0
    deadline = time.monotonic() + timeout / 1000 if timeout > 0 else None
    at.call(Ping(), deadline, waits)
    assert at.welcome is not None  # it has answered
    return at.welcome


def _looked_at(target: str) -> Welcome:
    """Who the server at a target is, for those who only look: it does not take them for a client."""
    if not target.startswith(_SCHEME):
        raise _no_such_target(target)
    inspector = Inspector(f"the server at {target}", target.removeprefix(_SCHEME))
    try:
        inspector.ask("clock")
        assert inspector.welcome is not None  # it has answered
        return inspector.welcome
    finally:
        inspector.close()


def incarnations(engine: Engine[Any]) -> dict[str, int]:
    """The tasks that a session has used so far, with a number for the life of each: a task started again has another.

    A durable task has one life, whoever leads it. None for a session without servers, whose state ends with it.
    """
    if not isinstance(engine, ClusterEngine):
        return {}
    peers = {task: engine.peer_of(*task_parts(task)) for task in engine.shipments}
    by_task = {task: 0 if peer.places else peer.incarnation or 0 for task, peer in peers.items()}
    if engine.own is not None:
        by_task[engine.own] = engine.local.incarnation
    return by_task


def reset(target: str, containers: Sequence[str] | None, config: ConfigProto | None = None) -> None:
    """Frees the state of every task of a cluster, or some of its containers. Sessions on the target end."""
    if target in _LOCAL:  # whose state is each session's own
        for engine in list(_engines.get("", ())):
            engine.close(errors.CancelledError(None, None, "Session has been closed."))
        return
    server = server_at(target)
    welcome = server._welcome() if server is not None else _contact(target, config)
    cluster, own = _spec(welcome), (welcome.job, welcome.index)
    for engine in list(_engines.get(target, ())):
        if isinstance(engine, ClusterEngine):
            engine.lose()
    for job in cluster.jobs:
        for index in cluster.task_indices(job):
            if server is not None and (job, index) == own:
                server.worker.reset(containers, master=True)
                continue
            at: Peer = peer(task_name(job, index), _address(cluster, (job, index), own, target))
            names = list(containers) if containers else None
            at.call(Reset(names, master=(job, index) == own))


def stop(target: str, task: str | None) -> list[str]:
    """Stops some servers of the cluster behind a target; gives the names of those that were running."""
    server = server_at(target)
    welcome = server._welcome() if server is not None else _contact(target, None, waits=False)
    cluster, own = _spec(welcome), (welcome.job, welcome.index)
    stopped = []
    for job, index in sorted(_tasks_named(cluster, task, own), key=lambda one: one == own):  # itself last
        name = task_name(job, index)
        local_server = (
            server if (job, index) == own else server_at(f"{_SCHEME}{cluster.task_address(job, index)}")
        )
        if local_server is not None:
            local_server.end()
        else:
            at = Peer(name, _address(cluster, (job, index), own, target), watched=False)
            try:
                at.call(Stop(name), time.monotonic() + _STOP_SECONDS)
            except (errors.UnavailableError, errors.DeadlineExceededError):
                continue
            finally:
                at.forget()
        stopped.append(name)
    return stopped


def task_addresses(target: str) -> dict[str, str | None]:
    """Where the tasks of the cluster behind a target answer, by names such as ps/0. None: this process, without a server."""
    if target in _LOCAL:
        return {own_task.label(None): None}
    target = moved(target)
    server = server_at(target)
    welcome = server._welcome() if server is not None else _looked_at(target)
    cluster, own = _spec(welcome), (welcome.job, welcome.index)
    return {
        f"{job}/{index}": _address(cluster, (job, index), own, target)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    }


def _address(cluster: ClusterSpec, task: tuple[str, int], own: tuple[str, int], target: str) -> str:
    """Where to reach a task: the one behind the target is there where it was reached, whatever it calls itself."""
    return target.removeprefix(_SCHEME) if task == own else cluster.task_address(*task)


def _tasks_named(cluster: ClusterSpec, task: str | None, own: tuple[str, int]) -> list[tuple[str, int]]:
    if task is None:
        return [own]
    spec = DeviceSpec.from_string(task)
    matches = [
        (job, index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
        if spec.job in (None, job) and spec.task in (None, index)
    ]
    if not matches:
        raise errors.InvalidArgumentError(
            None, None, f"There is no server {task!r} in the cluster {cluster.as_dict()}."
        )
    return matches
