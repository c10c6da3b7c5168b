"""`SlurmClusterResolver`: the cluster of the tasks that Slurm started together."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from typing import TYPE_CHECKING

from tensorfleet.base.naming import publish
from tensorfleet.cluster.membership.resolvers import OwnTaskResolver, _names
from tensorfleet.cluster.membership.spec import ClusterSpec

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto

_ASK_SECONDS = 60


class SlurmClusterResolver(OwnTaskResolver):
    """Tasks of jobs, in the order of their names, on the nodes of a Slurm allocation.

    Each node has `tasks_per_node` of them at ports from `port_base` on, each with its `gpus_per_task`.
    """

    def __init__(
        self,
        jobs: dict[str, int],
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank, count = _place()
        self._jobs = dict(sorted(jobs.items()))
        self._port_base = port_base
        self._gpus_per_node = gpus_per_node
        self._gpus_per_task = gpus_per_task
        self._auto_set_gpu = auto_set_gpu
        self.rpc_layer = rpc_layer
        if tasks_per_node is None and "SLURM_NTASKS_PER_NODE" not in os.environ:
            raise RuntimeError(
                "Neither `tasks_per_node` or SLURM_NTASKS_PER_NODE is set. Start the tasks with "
                "`srun --ntasks-per-node`, or say how many each node has."
            )
        self._tasks_per_node = int(tasks_per_node or os.environ["SLURM_NTASKS_PER_NODE"])
        if self._tasks_per_node * gpus_per_task > gpus_per_node:
            raise RuntimeError(
                "Requested more GPUs per node then available: give fewer to each task, or run fewer tasks on a node."
            )
        if sum(self._jobs.values()) != count:
            raise RuntimeError(
                f"Requested more tasks then assigned tasks: the jobs have {sum(self._jobs.values())}, Slurm started {count}."
            )

    def _resolve_hostnames(self) -> list[str]:
        """The nodes of the allocation, in order."""
        listed = os.environ.get("SLURM_JOB_NODELIST") or os.environ.get("SLURM_NODELIST")
        if listed:
            return expanded(listed)
        process = subprocess.run(
            ["scontrol", "show", "hostname"], check=True, capture_output=True, text=True, timeout=_ASK_SECONDS
        )
        return process.stdout.split()

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; this task learns its place in it and, if that was asked for, is given its GPUs."""
        addresses, gpus = [], []
        for host in self._resolve_hostnames():
            for i in range(self._tasks_per_node):
                first = i * self._gpus_per_task
                addresses.append(f"{host}:{self._port_base + i}")
                gpus.append(",".join(map(str, range(first, first + self._gpus_per_task))))
        rest, cluster = iter(addresses), {}
        start = 0
        for job, count in self._jobs.items():
            cluster[job] = list(itertools.islice(rest, count))
            if start <= self._rank < start + count:
                self.task_type, self.task_id = job, self._rank - start
            start += count
        if self._auto_set_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpus[self._rank]
        return ClusterSpec(cluster)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job and number of this task; None before `cluster_spec` was asked for."""
        return self.task_type, self.task_id

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: ConfigProto | None = None,
    ) -> dict[str, int]:
        """The GPUs of each node."""
        return {"GPU": self._gpus_per_node}


publish(SlurmClusterResolver, *_names("SlurmClusterResolver"))


def _place() -> tuple[int, int]:
    """The number of this task and how many there are, as mpirun or Slurm says."""
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    raise RuntimeError(
        "SLURM_PROCID is not set: this program was not started by Slurm. Start it with `srun`."
    )


def expanded(nodes: str) -> list[str]:
    """The names in a list such as `t02n[13,41,43-44],login`."""
    names = []
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes):
        parts = re.split(r"\[([^\]]*)\]", name)
        choices = [_numbers(part) if i % 2 else [part] for i, part in enumerate(parts)]
        names += ["".join(each) for each in itertools.product(*choices)]
    return names


def _numbers(ranges: str) -> list[str]:
    numbers = []
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last or first) + 1)]
    return numbers
