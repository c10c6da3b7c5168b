"""Where tasks are whose address in the ClusterSpec is no longer, or not yet, the one to connect to.

The address in the ClusterSpec stays the name of a task for as long as the cluster lives: sessions, servers and the
script keep it. When an engine starts a task at another place, the launcher tells the others where it is (`Moved`), and
those that it starts later by an environment variable. Only a connection that is opened looks here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from tensorfleet.base import logging, settings

_lock = threading.Lock()
_moved: dict[str, str] | None = None


def current(address: str) -> str:
    """The address to connect to for a task with this one in the ClusterSpec."""
    return _known().get(address, address)


def learn(addresses: Mapping[str, str]) -> None:
    """Takes over where tasks are now; what is known of other tasks stays."""
    news = {old: new for old, new in addresses.items() if current(old) != new}
    with _lock:
        _known().update(news)
    for old, new in news.items():
        logging.info("The task at %s is at %s now.", old, new)


def forget() -> None:
    """Goes back to what the environment says. For tests."""
    global _moved
    _moved = None


def _known() -> dict[str, str]:
    global _moved
    if _moved is None:
        _moved = _from_environment()
    return _moved


def _from_environment() -> dict[str, str]:
    try:
        told = json.loads(settings.MOVED() or "{}")
    except ValueError:
        told = None
    if not isinstance(told, dict) or not all(isinstance(new, str) for new in told.values()):
        logging.warning("%s is not a JSON object of addresses. It is ignored.", settings.MOVED.name)
        return {}
    return dict(told)
