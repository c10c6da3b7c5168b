"""Small parts of `tensorflow.python.distribute`: device names, tasks of a cluster, variables made once for all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tensorfleet.base.devices import DeviceSpec, canonical_name
from tensorfleet.base.naming import export, find, publish
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.graph.scopes import get_default_graph

_DEVICES = "python.distribute.device_util"
_WORKERS = "python.distribute.multi_worker_util"
_SHARED = "python.distribute.shared_variable_creator"
for _place in ("cluster_resolver", "cluster_resolver.cluster_resolver"):
    publish(
        find("distribute.cluster_resolver.UnionResolver"), f"python.distribute.{_place}.UnionClusterResolver"
    )


@export(f"{_DEVICES}.canonicalize")
def canonicalize(d: str, default: str | None = None) -> str:
    """A device's name with all its parts: what it lacks is a default's, or the first replica and task."""
    own = DeviceSpec.from_string(d)
    if own.device_type not in (None, "CPU", "GPU", "TPU", "*") and not own.device_type.startswith("XLA"):
        raise ValueError(f"Expected a device of type CPU, GPU, TPU or XLA, got {own.device_type} in {d}.")
    result = DeviceSpec(replica=0, task=0)
    if default is not None:
        result = result.make_merged_spec(DeviceSpec.from_string(default))
    return result.make_merged_spec(own).to_string()


class _Nothing:
    """Stands for an operation that is about to be made."""

    name, type, inputs, device = "", "", (), ""

    def _set_device(self, device: Any) -> None:
        self.device = canonical_name(device or "")


@export(f"{_DEVICES}.current")
def current() -> str:
    """The device of the block this is in."""
    graph, nothing = get_default_graph(), _Nothing()
    graph._apply_device_functions(nothing)
    return nothing.device


@export(f"{_DEVICES}.resolve")
def resolve(d: str) -> str:
    """A device's name with all its parts: what it lacks is that of the block this is in."""
    return canonicalize(d, default=current())


@export(f"{_DEVICES}.get_host_for_device")
def get_host_for_device(device: str) -> str:
    """The CPU of the task that a device belongs to."""
    spec = DeviceSpec.from_string(device)
    return DeviceSpec(
        job=spec.job, replica=spec.replica, task=spec.task, device_type="CPU", device_index=0
    ).to_string()


@export(f"{_WORKERS}.normalize_cluster_spec")
def normalize_cluster_spec(cluster_spec: Any) -> ClusterSpec:
    """A cluster given as a dict, a `ClusterDef` or a `ClusterSpec`."""
    if isinstance(cluster_spec, ClusterSpec):
        return cluster_spec
    if isinstance(cluster_spec, dict) or hasattr(cluster_spec, "job"):
        return ClusterSpec(cluster_spec)
    raise ValueError(
        "`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a `tf.train.ClusterDef` object"
    )


def _tasks(cluster_spec: Any) -> dict[str, Any]:
    return normalize_cluster_spec(cluster_spec).as_dict()


@export(f"{_WORKERS}._validate_cluster_spec")
def validate(cluster_spec: Any, task_type: str | None, task_id: int | None) -> None:
    """ValueError for a cluster that no strategy could use, or for a task it does not have."""
    tasks = _tasks(cluster_spec)
    if set(tasks) - {"chief", "worker", "evaluator", "ps", None}:
        raise ValueError(
            "Disallowed task type found in cluster spec. Allowed types are chief, worker, ps and evaluator."
        )
    if task_type is not None and task_type not in tasks:
        raise ValueError(f"`task_type` {task_type!r} not found in cluster_spec.")
    for alone in ("chief", "evaluator"):
        if len(tasks.get(alone, [])) > 1:
            raise ValueError(f"There must be at most one {alone!r} job.")
    if task_type is not None and task_id is not None and task_id >= len(tasks[task_type]):
        raise ValueError(f"The `task_id` {task_id} exceeds the maximum id of {task_type}.")


@export(f"{_WORKERS}.is_chief")
def is_chief(cluster_spec: Any = None, task_type: str | None = None, task_id: int | None = None) -> bool:
    """Whether a task is the chief: the one of that name, the first worker without one, or an evaluator."""
    validate(cluster_spec, task_type, task_id)
    tasks = _tasks(cluster_spec)
    if task_type in ("chief", "evaluator"):
        return True
    return "chief" not in tasks and task_type == "worker" and task_id == 0


@export(f"{_WORKERS}.collective_leader")
def collective_leader(cluster_spec: Any, task_type: str | None, task_id: int) -> str:
    """The task that leads what workers do together; empty for one that works alone."""
    tasks = _tasks(cluster_spec)
    if not tasks:
        return ""
    validate(tasks, task_type, task_id)
    if task_type == "evaluator":
        return ""
    return f"/job:{'chief' if 'chief' in tasks else 'worker'}/replica:0/task:0"


@export(f"{_WORKERS}.worker_count")
def worker_count(cluster_spec: Any, task_type: str | None) -> int:
    """How many tasks train, or how many evaluate."""
    validate(cluster_spec, task_type, 0)
    tasks = _tasks(cluster_spec)
    if task_type not in ("chief", "worker", "evaluator"):
        raise ValueError(f"Unexpected `task_type` {task_type!r}")
    if task_type == "evaluator":
        return len(tasks["evaluator"])
    return len(tasks.get("chief", [])) + len(tasks.get("worker", []))


@export(f"{_WORKERS}.id_in_cluster")
def id_in_cluster(cluster_spec: Any, task_type: str, task_id: int) -> int:
    """The number of a task among those that train, the chief first, or among those that evaluate."""
    validate(cluster_spec, task_type, task_id)
    if task_type in ("chief", "evaluator"):
        return 0 if task_type == "chief" else task_id
    if task_type == "worker":
        return task_id + len(_tasks(cluster_spec).get("chief", []))
    raise ValueError(f"There is no id for task_type {task_type!r}")


@export(f"{_WORKERS}.has_worker")
def has_worker(cluster_spec: Any) -> bool:
    """Whether a cluster has workers."""
    return "worker" in _tasks(cluster_spec)


@export(f"{_SHARED}._canonicalize_variable_name")
def canonicalize_variable_name(name: str | None) -> str:
    """A variable's name without the numbers that tell copies apart."""
    return "Variable" if name is None else re.sub(r"_\d+(/|$)", r"\1", name)


@export(f"{_SHARED}.make_fn")
def make_fn(shared_variable_store: dict, device_id: int) -> Callable:
    """A creator of variables: the first device makes them, the others get those of the same name and turn."""
    counts: dict[str, int] = {}

    def create(next_creator: Callable, **kwargs: Any) -> Any:
        name = canonicalize_variable_name(kwargs.get("name"))
        turn = counts.get(name, 0)
        counts[name] = turn + 1
        if device_id == 0:
            result = next_creator(**kwargs)
            shared_variable_store.setdefault(name, []).append(result)
            return result
        return shared_variable_store[name][turn]

    return create
