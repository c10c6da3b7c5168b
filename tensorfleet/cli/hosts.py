"""`cluster.yaml`: which machines there are, and which tasks run on them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FIRST_PORT = 2222
_CONNECT_SECONDS = 15  # to reach a host and to exchange keys with it
_NAME = re.compile(r"[\w.:\[\]%][\w.:\[\]%-]*")
_HOST_KEYS = {"address", "user", "port", "python", "directory", "first_port", "via"}


@dataclass(frozen=True)
class Host:
    """A machine to be reached by ssh, or by what `via` says."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    python: str = "python3"
    directory: str | None = None
    first_port: int = _FIRST_PORT
    via: str | None = None  # another way there than ssh: a command that takes a shell command at its end

    @property
    def destination(self) -> str:
        """user@address, as ssh takes it."""
        return f"{self.user}@{self.address}" if self.user else self.address

    @property
    def shown(self) -> str:
        """Its name and address, for people."""
        return self.name if self.name == self.address else f"{self.name} ({self.address})"

    def trial(self) -> list[str]:
        """A command that shows whether ssh gets there."""
        return ["ssh", *self._options(), "--", self.destination, "true"]

    def _options(self) -> list[str]:
        """Nobody can answer questions, and a host that says nothing is given up."""
        options = ["BatchMode=yes", f"ConnectTimeout={_CONNECT_SECONDS}", "ServerAliveInterval=10"]
        port = ["-p", str(self.port)] if self.port is not None else []
        return [word for o in (*options, "ServerAliveCountMax=3") for word in ("-o", o)] + port

    def reached(self, command: list[str], environment: dict[str, str]) -> list[str]:
        """The local command that runs another one over there and ends with it."""
        pairs = [f"{key}={value}" for key, value in sorted(environment.items())]
        there = f"exec env {shlex.join(pairs)} {shlex.join(command)}"
        if self.directory:
            there = f"cd {shlex.quote(self.directory)} && {there}"
        if self.via is not None:
            known = {"address": self.address, "user": self.user, "port": self.port}
            return [*(word.format(**known) for word in shlex.split(self.via)), there]
        return ["ssh", *self._options(), "--", self.destination, there]


def read_cluster(path: Path) -> dict[str, list[Host]]:
    """The host of every task, by job, from a cluster file.

    hosts:
      alpha: {address: 10.0.0.1, user: me, python: /opt/venv/bin/python, directory: /home/me/project}
      beta: 10.0.0.2
    jobs:
      ps: {alpha: 1}
      worker: {alpha: 2, beta: 2}
    """
    content = _content(path)
    hosts = _hosts(path, content)
    return {job: _tasks(path, job, entry, hosts) for job, entry in content["jobs"].items()}


def read_hosts(path: Path) -> dict[str, Host]:
    """The hosts of a cluster file by name, also those without tasks."""
    return _hosts(path, _content(path))


def _content(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("jobs"), dict):
        raise ValueError(f"{path} has no `jobs`. Add the number of tasks of each job on each host.")
    if unknown := set(content) - {"hosts", "jobs"}:
        raise ValueError(
            f"{path} has unknown keys {', '.join(sorted(unknown))}. Use only `hosts` and `jobs`."
        )
    return content


def _hosts(path: Path, content: dict[str, Any]) -> dict[str, Host]:
    return {name: _host(path, name, entry) for name, entry in (content.get("hosts") or {}).items()}


def _host(path: Path, name: str, entry: object) -> Host:
    if entry is None or isinstance(entry, str):
        return _checked(path, Host(name, entry or name))
    if not isinstance(entry, dict):
        raise ValueError(
            f"{path}: host {name!r} is {entry!r}. Give an address, or a mapping with {sorted(_HOST_KEYS)}."
        )
    if unknown := set(entry) - _HOST_KEYS:
        raise ValueError(
            f"{path}: host {name!r} has unknown keys {sorted(unknown)}. Use only {sorted(_HOST_KEYS)}."
        )
    return _checked(path, Host(name, **{"address": name, **entry}))


def _checked(path: Path, host: Host) -> Host:
    """A host whose names are names: on a command line they are not taken for anything else."""
    for key, value in (("address", host.address), ("user", host.user)):
        if value is not None and not _NAME.fullmatch(str(value)):
            raise ValueError(f"{path}: host {host.name!r} has an invalid {key} {value!r}.")
    for key, number in (("port", host.port), ("first_port", host.first_port)):
        if number is not None and not (isinstance(number, int) and 0 < number < 65536):
            raise ValueError(
                f"{path}: host {host.name!r} has an invalid {key} {number!r}. Give a number from 1 to 65535."
            )
    return host


def _tasks(path: Path, job: str, entry: object, hosts: dict[str, Host]) -> list[Host]:
    if isinstance(entry, list):
        entry = {name: entry.count(name) for name in entry}
    if not isinstance(entry, dict) or not all(isinstance(n, int) and n >= 0 for n in entry.values()):
        raise ValueError(
            f"{path}: job {job!r} is {entry!r}. Give the number of tasks per host, or a list of hosts."
        )
    if unknown := [name for name in entry if name not in hosts]:
        raise ValueError(
            f"{path}: job {job!r} names host {unknown[0]!r}, but `hosts` has only {sorted(hosts)}."
        )
    return [hosts[name] for name, count in entry.items() for _ in range(count)]
