"""Training with parameter servers inside a Ray program: `tensorfleet.fleet.ray.run(train_fn, ps=2, workers=8)`."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from tensorfleet.base import settings
from tensorfleet.base.versions import FLEET_VERSION
from tensorfleet.cluster.server import Server
from tensorfleet.fleet import ray_placement, ray_tasks
from tensorfleet.fleet.ray_placement import Held, NoRoom, Seat
from tensorfleet.fleet.ray_tasks import NodePlace

__all__ = ["Context", "NoRoom", "RunError", "get_context", "run"]

R = TypeVar("R")
_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 1.0
_CAUSE_SECONDS = 5.0  # until Ray knows of an actor's end that another task tells of
_LOST = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+) \([^)]*\) was lost")
_log = logging.getLogger(__name__)


class RunError(RuntimeError):
    """A task of `run` has failed. `task` names the one that failed first, and `__cause__` is its error."""

    def __init__(self, message: str, task: str) -> None:
        super().__init__(message)
        self.task = task


class Context:
    """What a function that `run` runs may want to know of its task. `get_context` gives it."""

    def __init__(self, job: str, index: int, cluster: Mapping[str, Sequence[str]]) -> None:
        self.job = job
        self.index = index
        #: the addresses of all tasks, by job: as `tf.train.ClusterSpec` takes them
        self.cluster = {name: list(addresses) for name, addresses in cluster.items()}

    @property
    def is_chief(self) -> bool:
        """Whether this is the worker that initializes variables and saves checkpoints."""
        return self.job == "worker" and self.index == 0

    @property
    def device(self) -> str:
        """The device of this task."""
        return f"/job:{self.job}/task:{self.index}"

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.cluster["worker"])

    @functools.cached_property
    def server(self) -> Server:
        """The task's `tf.train.Server`, which is started when this is first read."""
        return Server(self.cluster, self.job, self.index)


@functools.cache
def get_context() -> Context:
    """The task that this process is. Only in a function that `run` runs."""
    told = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if "task" not in told:
        raise RuntimeError(
            "This process is not a task of tensorfleet.fleet.ray.run. Call get_context in the function that it runs."
        )
    return Context(told["task"]["type"], told["task"]["index"], told["cluster"])


def run(
    train_fn: Callable[..., R],
    config: Mapping[str, Any] | None = None,
    *,
    ps: int = 1,
    workers: int = 2,
    resources_per_worker: Mapping[str, float] | None = None,
    resources_per_ps: Mapping[str, float] | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    wait_seconds: float | None = None,
) -> list[R]:
    """Runs a function on the workers of a new cluster with parameter servers, and returns what each has returned.

    Each task is an actor of its own. `train_fn` runs in each worker, as `train_fn(config)` if there is a config, with
    `TF_CONFIG` set; `get_context()` tells it its number and has its `tf.train.Server`. Parameter servers are spread
    over nodes and end with the workers. Tasks connect to each other directly: tensors do not go through Ray.

    `resources_per_worker` and `resources_per_ps` are Ray's (`{"CPU": 4, "GPU": 1}`); one CPU each is the default.
    `runtime_env` is that of the actors. `wait_seconds` is how long to wait for room: None is until there is room.

    Raises `NoRoom`, or `RunError` with the first failure. However it ends, the actors and their room are given back.
    """
    _check(train_fn, ps, workers)
    ray = ray_tasks.library()
    ray.cloudpickle.register_pickle_by_value(ray_tasks)
    function = ray.put((train_fn, () if config is None else (config,)))
    seats = _seats("ps", ps, resources_per_ps) + _seats("worker", workers, resources_per_worker)
    held = ray_placement.reserve(seats, wait_seconds, _log.warning)
    actors: dict[str, Any] = {}
    try:
        for label, each in held.items():
            actors[label] = _actor(each, runtime_env)
        places = _places(actors)
        token = settings.TOKEN() or secrets.token_hex(32)
        cluster = _addresses(places)
        told = [actors[label].configure.remote(_environment(label, cluster, token)) for label in actors]
        _until_done(dict(zip(told, actors, strict=True)), {}, places)
        serving = {actors[label].serve.remote(): label for label in actors if held[label].seat.serves}
        training = {
            actors[label].train.remote(function): label for label in actors if label not in serving.values()
        }
        return _until_done(training, serving, places)
    finally:
        for actor in actors.values():
            with contextlib.suppress(Exception):  # the cluster is gone, and the actor with it
                ray.kill(actor)
        ray_placement.give_back(list(held.values()))


def _check(train_fn: object, ps: int, workers: int) -> None:
    if not callable(train_fn):
        raise TypeError(f"train_fn must be a function, but got {train_fn!r}.")
    if ps < 0 or workers < 1:
        raise ValueError(f"A run needs at least one worker, but got ps={ps} and workers={workers}.")


def _seats(job: str, count: int, resources: Mapping[str, float] | None) -> list[Seat]:
    bundle = ray_placement.bundle(resources or {})
    return [Seat(f"{job}/{index}", bundle, serves=job == "ps") for index in range(count)]


def _actor(held: Held, runtime_env: Mapping[str, Any] | None) -> Any:
    options = {**held.actor_options(), "max_restarts": 0}
    if runtime_env is not None:
        options["runtime_env"] = dict(runtime_env)
    return ray_tasks.library().remote(ray_tasks.TrainingActor).options(**options).remote(held.seat.label)


def _places(actors: Mapping[str, Any]) -> dict[str, NodePlace]:
    asked = {actor.place.remote(): label for label, actor in actors.items()}
    found = dict(zip(asked.values(), _until_done(asked, {}, {}), strict=True))
    for label, place in found.items():
        if place.version != FLEET_VERSION:
            has = f"TensorFleet {place.version}" if place.version else "no TensorFleet"
            raise RunError(
                f"Node {place.host} has {has}, this process {FLEET_VERSION}. Install the same there, or name it in "
                f"runtime_env: {{'pip': ['tensorfleet=={FLEET_VERSION}']}}.",
                label,
            )
    return found


def _addresses(places: Mapping[str, NodePlace]) -> dict[str, list[str]]:
    """Where the tasks are, by job: within one machine without its network, which is faster and private."""
    hosts = {place.host for place in places.values()}
    cluster: dict[str, list[str]] = {}
    for label, place in places.items():
        host = f"[{place.host}]" if ":" in place.host else place.host
        host = _LOOPBACK if len(hosts) == 1 else host
        cluster.setdefault(label.partition("/")[0], []).append(f"{host}:{place.port}")
    return cluster


def _environment(label: str, cluster: Mapping[str, Sequence[str]], token: str) -> dict[str, str]:
    job, _, index = label.partition("/")
    task = {"type": job, "index": int(index)}
    own = {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
        "CLUSTER_SPEC": json.dumps(cluster),
        "JOB_NAME": job,
        "TASK_INDEX": index,
        settings.TOKEN.name: token,
        settings.ORPHAN_SECONDS.name: "0",  # Ray ends the actors with their owner
    }
    # A server of variables on a machine with GPUs leaves them to the workers.
    return {**own, "CUDA_VISIBLE_DEVICES": ""} if job == "ps" else own


def _until_done(
    wanted: Mapping[Any, str], watched: Mapping[Any, str], places: Mapping[str, NodePlace]
) -> list[Any]:
    """The results of all that is wanted, in its order. Raises for the first failure, also of what is only watched."""
    ray = ray_tasks.library()
    labels = {**wanted, **watched}
    pending = set(wanted)
    while pending:
        ready, _ = ray.wait([*pending, *watched], timeout=_POLL_SECONDS)
        for reference in ready:
            error = _error_of(reference)
            if error is not None:
                raise _root_cause(labels, reference, error, places)
            if reference in watched:
                raise RunError(f"{labels[reference]} ended before the workers.", labels[reference])
            pending.discard(reference)
    return list(ray.get(list(wanted)))


def _error_of(reference: Any) -> Exception | None:
    ray = ray_tasks.library()
    try:
        ray.get(reference)
    except ray.exceptions.RayError as error:
        return cast(Exception, error)
    return None


def _root_cause(
    labels: Mapping[Any, str], reference: Any, error: Exception, places: Mapping[str, NodePlace]
) -> RunError:
    """The failure to report: that of another task, if this one failed because it lost the other."""
    lost = _LOST.search(str(error))
    other = next((r for r, label in labels.items() if lost and label == f"{lost[1]}/{lost[2]}"), None)
    if other is not None and ray_tasks.library().wait([other], timeout=_CAUSE_SECONDS)[0]:
        first = _error_of(other)
        if first is not None:
            return _as_run_error(labels[other], first, places)
    return _as_run_error(labels[reference], error, places)


def _as_run_error(label: str, error: Exception, places: Mapping[str, NodePlace]) -> RunError:
    place = places.get(label)
    cause = getattr(error, "cause", None)
    if cause is not None:
        where = f" on {place.host}" if place else ""
        text = f"{label}{where} failed: {type(cause).__name__}: {cause}"
    else:
        reason = ray_placement.death_of(error, place and place.host, place.node_id if place else "")
        text = f"{label} was lost: {reason}."
    result = RunError(text, label)
    result.__cause__ = error
    return result
