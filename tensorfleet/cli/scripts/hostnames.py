"""Scripts that find out which task they are by the name or address of their machine: each task gets one to find."""

from __future__ import annotations

import ast
import socket
from pathlib import Path
from typing import Any

from tensorfleet.base import settings
from tensorfleet.cli.scripts.flags import role_of
from tensorfleet.cli.scripts.syntax import nodes_of, text_of
from tensorfleet.cli.scripts.uses import told_by_flags

HOST = settings.HOST.name
_ASKING = {"gethostname", "gethostbyname", "getfqdn"}


def hosts_in(script: Path) -> dict[str, list[str]]:
    """The machines that a script lists for its tasks, by job, to look for its own among them; none if it does not."""
    nodes = nodes_of(script)
    names = {getattr(node, "attr", None) or getattr(node, "id", None) for node in nodes}
    if not _ASKING & names and "machine" not in told_by_flags(script):
        return {}
    by_job: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
            hosts = [text_of(element).partition(":")[0] for element in node.value.elts]
            role = role_of(getattr(node.targets[0], "id", ""))
            if role in ("ps_hosts", "worker_hosts") and hosts and all(hosts):
                by_job.setdefault(role.removesuffix("_hosts"), hosts)
    listed = [host for hosts in by_job.values() for host in hosts]
    return by_job if len(by_job) == 2 and len(set(listed)) == len(listed) else {}


def take_host() -> None:
    """Makes this process find the machine that its launcher gave it, if it did, where it asks what it runs on."""
    host = settings.HOST()
    if not host:
        return
    resolve, qualify = socket.gethostbyname, socket.getfqdn
    given: Any = socket  # its functions are replaced
    given.gethostname = lambda: host
    given.gethostbyname = lambda name: host if name == host else resolve(name)
    given.getfqdn = lambda name="": host if name in ("", host) else qualify(name)
