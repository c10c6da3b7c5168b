"""Sessions and servers inside one process: state without a server belongs to its session."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from tensorfleet import errors
from tensorfleet.api import export
from tensorfleet.graph.graph import Graph
from tensorfleet.runtime.engine import Engine
from tensorfleet.runtime.resources import ResourceManager

_servers: dict[str, Server] = {}
_ports = itertools.count(1)
_lock = threading.Lock()


@export("train.Server", "distribute.Server")
class Server:
    """A server in this process. Sessions on its `target` share its variables and other state."""

    def __init__(self) -> None:
        with _lock:
            self._target = f"grpc://localhost:{next(_ports)}"
            _servers[self._target] = self
        self.resources = ResourceManager()
        self.config: Any = None

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A server of its own little cluster: one job `local` with one task."""
        server = Server()
        server.config = config
        return server

    @property
    def target(self) -> str:
        """What to pass to `tf.Session`."""
        return self._target


def engine_for(target: str, graph: Graph, config: Any) -> Engine:
    """The engine behind a session's target."""
    if target in ("", "local"):
        return Engine(graph, config)
    server = _servers.get(target)
    if server is None:
        raise errors.NotFoundError(
            None,
            None,
            f"There is no server at {target!r} in this process. Use tf.Session() for a local session, or the "
            "`target` of a tf.train.Server.",
        )
    used = config if config is not None else server.config
    return Engine(graph, used, server.resources, "/job:local/replica:0/task:0")


def reset(target: str, containers: Any) -> None:
    """Frees the state of a server, or some of its containers."""
    server = _servers.get(target)
    if server is None:
        raise errors.NotFoundError(None, None, f"There is no server at {target!r} in this process.")
    server.resources.clear(containers)
