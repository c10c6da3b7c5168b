"""How the workers of one machine share its cores."""

from __future__ import annotations

from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.transport import connection
from tensorfleet.kernels.parallel_for import core_count, use_threads


def share_cores(cluster: ClusterSpec, job: str, index: int) -> None:
    """Gives each worker on this machine its share of the cores: more threads than cores hold each other up."""
    host = connection.split_address(cluster.task_address(job, index))[0]
    tasks = [(j, i) for j in cluster.jobs if j != "ps" for i in cluster.task_indices(j)]
    workers = sum(connection.split_address(cluster.task_address(*task))[0] == host for task in tasks)
    if workers > 1:
        use_threads(max(core_count() // workers, 1), "shared")
