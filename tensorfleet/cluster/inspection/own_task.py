"""Which task this process is, for those who look into it, also where it has no `tf.train.Server`."""

from __future__ import annotations

import functools
import os
import secrets
from typing import TYPE_CHECKING

from tensorfleet.base import settings
from tensorfleet.base.devices import DeviceSpec
from tensorfleet.cluster.master.master import ClusterEngine
from tensorfleet.cluster.process_servers import servers
from tensorfleet.runtime.engine import LocalEngine

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server
    from tensorfleet.cluster.transport.peers import Peer
    from tensorfleet.runtime.resources import ResourceManager

_ALONE = "main/0"


def label_of(name: str) -> str:
    """A task as people call it: worker/1 for /job:worker/replica:0/task:1. Any other name stays as it is."""
    try:
        spec = DeviceSpec.from_string(name)
    except ValueError:
        return name
    return name if spec.job is None or spec.task is None else f"{spec.job}/{spec.task}"


def label_of_peer(peer: Peer) -> str:
    """The name of a task that this process has reached: by what it says it is, where it was reached by address alone."""
    label = label_of(peer.name)
    if label == peer.name and peer.welcome is not None:
        return f"{peer.welcome.job}/{peer.welcome.index}"
    return label


def server_here(server: Server | None) -> Server | None:
    """The server that was asked, or else one of this process."""
    if server is not None:
        return server
    return next(iter(servers()), None)


def label(server: Server | None) -> str:
    """The name of this task."""
    if server is not None:
        return f"{server.job}/{server.index}"
    return settings.INSPECT().partition("@")[0] or _ALONE


@functools.cache
def _incarnation(pid: int) -> int:
    return secrets.randbits(53)


def incarnation(server: Server | None) -> int:
    """A number for the life of this task."""
    return _incarnation(os.getpid()) if server is None else server.incarnation


@functools.cache
def _started(pid: int) -> float:
    import psutil

    return psutil.Process(pid).create_time()


def started() -> float:
    """When this process began."""
    return _started(os.getpid())


def engines() -> list[LocalEngine | ClusterEngine]:
    """The engines of the sessions of this process."""
    from tensorfleet.cluster import targets

    return targets.engines()


def session_name(engine: LocalEngine | ClusterEngine) -> str:
    """What a session of this process is called in reports."""
    return engine.handle if isinstance(engine, ClusterEngine) else f"local-{id(engine):x}"


def resources(server: Server | None) -> list[ResourceManager]:
    """Where the variables and queues of this task are: the server's, and those of sessions without one."""
    result = {} if server is None else dict.fromkeys([server.resources])
    found = [engine if isinstance(engine, LocalEngine) else engine.local_engine for engine in engines()]
    found += [] if server is None else [engine for _, engine in server.worker.engines()]
    for local in found:
        if local is not None:
            # The private ones have the queues without a shared name.
            result |= dict.fromkeys([local.resources, local.private])
    return list(result)
