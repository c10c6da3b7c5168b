"""Tasks on the hosts of a cluster file, over ssh or a command that replaces it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import threading
from collections.abc import Sequence

from tensorfleet.cli.engines.base import EngineError, RunEngine, RunListener, RunningTask, RunOptions, Wanted
from tensorfleet.cli.engines.child import ChildStart, ChildTask, Guardian
from tensorfleet.cli.engines.ssh_folders import warn_of_folders
from tensorfleet.cli.hosts import Host, read_cluster, read_hosts
from tensorfleet.cli.plan import TOKEN, Place, Task
from tensorfleet.cli.scripts.bootstrap import LAUNCHER

_SSH_FAILED = 255  # its exit code where it is not that of the command over there


class _RemoteChild(ChildTask):
    """The ssh process that carries a task. The task ends with the connection."""

    @property
    def where(self) -> str:
        """The process here; the one over there has no number that we know."""
        return f"ssh, pid {self.pid}"

    def send(self, number: int) -> None:
        """Ends the connection: whatever the signal, there is no other way to reach the task."""
        if number == signal.SIGKILL:
            super().send(number)
        else:
            self.hang_up()


class SshEngine(RunEngine):
    """Starts each task on the host that the cluster file gives it."""

    name = "ssh"

    def __init__(self, options: RunOptions) -> None:
        """Reads the cluster file. Raises `ValueError` for a mistake in it."""
        super().__init__(options)
        if options.cluster_file is None:
            raise EngineError("ssh needs to know the hosts. Add --cluster cluster.yaml; see docs/launch.md.")
        self._hosts = read_cluster(options.cluster_file)
        self._file = options.cluster_file
        self._places = placed(self._hosts)
        self._extra = 0  # places beyond those of the file
        self._guardian: Guardian | None = None
        self._folders_checked = False
        self._children: dict[str, ChildTask] = {}

    def jobs(self) -> dict[str, int] | None:
        """As the file says."""
        return {job: len(tasks) for job, tasks in self._hosts.items()}

    def preview(self, wanted: Sequence[Wanted]) -> dict[str, Place]:
        """The file's places are known."""
        return {one.label: self._places[one.label] for one in wanted}

    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """The places that the file names. An evaluator has no address: it is no part of the cluster."""
        missing = [one.label for one in wanted if one.label not in self._places]
        if missing:
            raise EngineError(f"The cluster file has no host for {', '.join(missing)}. Add it under `jobs`.")
        return {one.label: self._places[one.label] for one in wanted}

    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """A connection that carries the task and its output."""
        host = self._host(task)
        # The token goes by stdin: every user of a machine can read its command lines.
        environment = {k: v for k, v in task.environment.items() if k != TOKEN}
        environment |= {"PYTHONUNBUFFERED": "1", LAUNCHER: "stdin"}
        command = host.reached(task.command, environment)
        if shutil.which(command[0]) is None:
            raise EngineError(
                f"Cannot start {task.label} on {host.shown}: {command[0]} is not installed on this machine."
            )
        self._guardian = self._guardian or Guardian()
        start = ChildStart(command, dict(os.environ), first_line=task.environment.get(TOKEN, ""))
        child = _RemoteChild(task.label, start, listener.on_line, listener.on_exit, self._guardian)
        self._children[task.label] = child
        self._check_folders(task, listener)
        return child

    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """The same host again: the file names one for each task."""
        listener.on_place(wanted.label, self._places[wanted.label])

    def place_on(self, wanted: Wanted, host: str) -> Place:
        """The next port of a host of the file, which may have been added to it since the run began."""
        try:
            hosts = read_hosts(self._file)
        except (OSError, ValueError) as error:
            raise EngineError(f"The cluster file cannot be read: {error}") from None
        named = next((one for one in hosts.values() if host in (one.name, one.address)), None)
        if named is None:
            raise EngineError(
                f"{self._file} has no host {host}. It has {', '.join(sorted(hosts))}. Add it under `hosts`."
            )
        self._extra += 1
        return Place(f"{named.address}:{named.first_port + len(self._places) + self._extra - 1}", named)

    def close(self) -> None:
        """Ends the connections, and with them the tasks."""
        for child in self._children.values():
            child.hang_up()
            child.send(signal.SIGKILL)
        if self._guardian is not None:
            self._guardian.close()
            self._guardian = None

    def advice(self, task: Task, code: int) -> list[str]:
        """How to try the connection, if it was ssh that failed."""
        host = self._host(task)
        if code != _SSH_FAILED or host.via is not None:
            return []
        return [
            f"ssh could not reach {host.destination}, or lost the connection. Test it with:",
            shlex.join(host.trial()),
        ]

    def _check_folders(self, task: Task, listener: RunListener) -> None:
        """Once: warns of folders in the arguments that are not the same on all hosts."""
        if self._folders_checked:
            return
        self._folders_checked = True
        hosts = {
            place.host.name: place.host for place in self._places.values() if isinstance(place.host, Host)
        }
        checked = (list(hosts.values()), task.command, listener.on_note)
        threading.Thread(target=warn_of_folders, args=checked, name="folders", daemon=True).start()

    def _host(self, task: Task) -> Host:
        host = task.host or self._places[task.label].host
        assert isinstance(host, Host)
        return host


def placed(hosts: dict[str, list[Host]]) -> dict[str, Place]:
    """Every task's place by label: the ports of a host are counted up."""
    used: dict[str, int] = {}
    result: dict[str, Place] = {}
    for job, tasks in hosts.items():
        for index, host in enumerate(tasks):
            if job == "evaluator":
                result[f"{job}/{index}"] = Place("", host)
                continue
            port = host.first_port + used.get(host.name, 0)
            used[host.name] = used.get(host.name, 0) + 1
            result[f"{job}/{index}"] = Place(f"{host.address}:{port}", host)
    return result
