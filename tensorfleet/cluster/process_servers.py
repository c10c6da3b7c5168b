"""The servers that this process has, by their targets."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_servers: dict[str, Server] = {}
_ended: set[str] = set()  # targets of servers whose `join` has returned
_lock = threading.Lock()


def add(server: Server) -> None:
    """A server was made."""
    with _lock:
        _servers[server.target] = server


def remove(server: Server) -> None:
    """A server was stopped."""
    with _lock:
        if _servers.get(server.target) is server:
            del _servers[server.target]


def end(server: Server) -> None:
    """The `join` of a server returns."""
    _ended.add(server.target)


def server_at(target: str) -> Server | None:
    """The server with that target."""
    return _servers.get(target)


def servers() -> list[Server]:
    """All of them."""
    return list(_servers.values())


def any_has_ended() -> bool:
    """Whether the `join` of a server of this process has returned, and no server at another target was made since."""
    return bool(_ended) and _ended.issuperset(_servers)


def has_ended(target: str) -> bool:
    """Whether the server with that target was of this process, and its `join` has returned."""
    return target in _ended and target not in _servers


def _forked() -> None:
    """A forked process has no servers: it reaches those of the one that forked it as any other does."""
    global _lock
    _lock = threading.Lock()
    for server in _servers.values():
        server._abandon_after_fork()
    _servers.clear()


os.register_at_fork(after_in_child=_forked)
