"""What a server is made from: the cluster, and which of its tasks it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.membership import address_rewriting
from tensorfleet.cluster.membership.spec import ClusterSpec

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto, ServerDef


def server_def_of(
    given: Any,
    job: str | None,
    index: int | None,
    protocol: str | None,
    config: ConfigProto | None,
) -> ServerDef:
    """The `ServerDef` of a task. Ends a process that was started as a task which the script's cluster does not have."""
    from tensorfleet.base.protos import ServerDef

    made = ServerDef()
    if type(given).__name__ == "ServerDef":
        made.MergeFromString(given.SerializeToString())
        if job is not None:
            made.job_name = job
        if index is not None:
            made.task_index = index
    else:
        try:
            cluster = ClusterSpec(given)
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`."
            ) from None
        made.cluster.CopyFrom(cluster.as_cluster_def())
        made.job_name, made.task_index = _which(cluster, job, index)
    if protocol is not None:
        made.protocol = protocol
    elif not made.protocol:
        made.protocol = "grpc"
    if config is not None:
        made.default_session_config.MergeFrom(config)
    if not made.job_name or made.task_index < 0:
        raise ValueError("A server needs a job name and a task index: pass job_name and task_index.")
    cluster = ClusterSpec(made.cluster)
    address_rewriting.end_if_needless(cluster, made.job_name, made.task_index)
    there = f": the cluster is {cluster.as_dict()}."
    if made.job_name not in cluster.jobs:
        raise errors.InternalError(None, None, f'Job "{made.job_name}" was not defined in cluster{there}')
    if made.task_index not in cluster.task_indices(made.job_name):
        missing = f'Task {made.task_index} was not defined in job "{made.job_name}"{there}'
        raise errors.InvalidArgumentError(None, None, missing)
    return made


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
