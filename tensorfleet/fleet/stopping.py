"""Stopping the servers of a cluster from a session or from anywhere else."""

from __future__ import annotations

from tensorfleet.base.naming import export
from tensorfleet.cluster import targets


@export("fleet.stop_server")
def stop_server(target: object, task: str | None = None) -> list[str]:
    """Stops a server: its `join()` returns, its state is freed, sessions that need it get an error at once.

    `target` is a session on the cluster or its target (`grpc://host:port`, `server.target`).
    `task` says which of the cluster's servers: `"/job:ps/task:1"` one, `"/job:ps"` all of a job, None the one at `target`.
    Returns the names of the servers that were stopped; others that are not running are left out. Raises
    `UnavailableError` when nobody answers at `target`, `InvalidArgumentError` when the cluster has no such task.
    """
    address = getattr(target, "sess_str", target)
    if not isinstance(address, str):
        raise TypeError(f"target must be a session or a string such as grpc://host:port, but got {target!r}")
    if task is not None and not isinstance(task, str):
        raise TypeError(f"task must be a name such as /job:ps/task:1, but got {task!r}")
    return targets.stop(address, task)
