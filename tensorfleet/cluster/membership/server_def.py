"""What a server is made from: the cluster, and which of its tasks it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.membership import address_rewriting
from tensorfleet.cluster.membership.spec import ClusterSpec

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto, ServerDef


def server_def_of(
    server_or_cluster_def: Any,
    job: str | None,
    index: int | None,
    protocol: str | None,
    config: ConfigProto | None,
) -> ServerDef:
    """The `ServerDef` of a task. Ends a process that was started as a task which the script's cluster does not have."""
    from tensorfleet.base.protos import ServerDef

    server_def = ServerDef()
    if type(server_or_cluster_def).__name__ == "ServerDef":
        server_def.MergeFromString(server_or_cluster_def.SerializeToString())
        if job is not None:
            server_def.job_name = job
        if index is not None:
            server_def.task_index = index
    else:
        try:
            cluster = ClusterSpec(server_or_cluster_def)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`."
            ) from None
        server_def.cluster.CopyFrom(cluster.as_cluster_def())
        server_def.job_name, server_def.task_index = _which(cluster, job, index)
    if protocol is not None:
        server_def.protocol = protocol
    elif not server_def.protocol:
        server_def.protocol = "grpc"
    if config is not None:
        server_def.default_session_config.MergeFrom(config)
    if not server_def.job_name or server_def.task_index < 0:
        raise ValueError("A server needs a job name and a task index: pass job_name and task_index.")
    cluster = ClusterSpec(server_def.cluster)
    address_rewriting.end_if_needless(cluster, server_def.job_name, server_def.task_index)
    known_cluster = f": the cluster is {cluster.as_dict()}."
    if server_def.job_name not in cluster.jobs:
        raise errors.InternalError(
            None, None, f'Job "{server_def.job_name}" was not defined in cluster{known_cluster}'
        )
    if server_def.task_index not in cluster.task_indices(server_def.job_name):
        missing = (
            f'Task {server_def.task_index} was not defined in job "{server_def.job_name}"{known_cluster}'
        )
        raise errors.InvalidArgumentError(None, None, missing)
    return server_def


def _which(cluster: ClusterSpec, job: str | None, index: int | None) -> tuple[str, int]:
    if job is None:
        if len(cluster.jobs) != 1:
            raise ValueError(
                f"Must specify an explicit `job_name`: the cluster has {', '.join(cluster.jobs)}."
            )
        job = cluster.jobs[0]
    if index is None:
        indices = cluster.task_indices(job)
        if len(indices) != 1:
            raise ValueError(f"Must specify an explicit `task_index`: job {job!r} has tasks {indices}.")
        index = indices[0]
    return job, index
