"""`tf.train.ClusterSpec`: which jobs a cluster has, and where their tasks listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base.naming import export

if TYPE_CHECKING:
    from tensorfleet.base.protos import ClusterDef


#: The tasks of a job: their addresses, or the addresses by number where numbers are left out.
Tasks: TypeAlias = list[str] | dict[int, str]
#: What makes a `ClusterSpec`. Addresses and names may also be bytes.
ClusterLike: TypeAlias = "ClusterSpec | ClusterDef | dict[str, Any]"


@export("train.ClusterSpec")
class ClusterSpec:
    """A cluster as a set of jobs, each a list of task addresses numbered from 0.

    Made from `{"ps": ["host:port", ...], "worker": {1: "host:port"}}` (a dict numbers tasks itself, and may
    leave some out), from a `ClusterDef`, or from another ClusterSpec.
    """

    def __init__(self, cluster: ClusterLike) -> None:
        self._jobs: dict[str, dict[int, str]] = {}
        if isinstance(cluster, ClusterSpec):
            self._jobs = {name: dict(cluster._jobs[name]) for name in sorted(cluster._jobs)}
        elif isinstance(cluster, dict):
            for name, tasks in cluster.items():
                self._jobs[_text(name, "Job name")] = _tasks(name, tasks)
        elif type(cluster).__name__ == "ClusterDef":
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                "addresses, or a `ClusterDef` protocol buffer"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks, in order."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Where a task listens."""
        job = self._job(job_name)
        if task_index not in job:
            raise ValueError(
                f"No task with index {task_index!r} in job {job_name!r}; it has {self.task_indices(job_name)}."
            )
        return job[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks; None where a number is not taken."""
        job = self._job(job_name)
        if not job:
            return []
        return [job.get(i) for i in range(max(job) + 1)]

    def as_dict(self) -> dict[str, Tasks]:
        """Job names to lists of addresses; to dicts by number where numbers are left out."""
        by_job: dict[str, Tasks] = {}
        for name, tasks in self._jobs.items():
            indices = sorted(tasks)
            dense = bool(indices) and indices == list(range(len(indices)))
            by_job[name] = [tasks[i] for i in indices] if dense else dict(tasks)
        return by_job

    def as_cluster_def(self) -> ClusterDef:
        """The cluster as a `ClusterDef`."""
        from tensorfleet.base.protos import ClusterDef

        proto = ClusterDef()
        for name in sorted(self._jobs):
            job = proto.job.add(name=name)
            for i, address in sorted(self._jobs[name].items()):
                job.tasks[i] = address
        return proto

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            raise ValueError(f"No such job in cluster: {name!r}; it has {', '.join(self._jobs) or 'none'}.")
        return self._jobs[name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        inner = ", ".join(f"{name!r}: {self.as_dict()[name]!r}" for name in sorted(self._jobs))
        return f"ClusterSpec({{{inner}}})"


def _tasks(name: object, tasks: object) -> dict[int, str]:
    if isinstance(tasks, (list, tuple)):
        return {i: _text(address, "Task address") for i, address in enumerate(tasks)}
    if isinstance(tasks, dict):
        try:
            return {int(i): _text(address, "Task address") for i, address in tasks.items()}
        except ValueError:
            raise TypeError(
                f"The task numbers of job {name!r} must be integers, but are {list(tasks)}."
            ) from None
    raise TypeError(
        f"The tasks for job {name!r} must be a list or a dictionary from integers to strings, not {tasks!r}."
    )


def _text(value: object, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"{what} {value!r} must be bytes or unicode.")
    return value
