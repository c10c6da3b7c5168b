"""The objects of one run in a namespace: made, owned by the run's Jobs, and deleted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable, explained
from tensorfleet.cli.engines.kubernetes_arguments import Json
from tensorfleet.cli.engines.kubernetes_manifests import LAUNCHER_NOTE, RUN_NOTE, RunObjects

_DELETE_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_KINDS = {"Service": "services", "Secret": "secrets", "ConfigMap": "configmaps", "Job": "jobs"}
_JSON, _MERGE = "application/json", "application/merge-patch+json"


class ClusterObjects:
    """What the run has in the cluster.

    Service, Secret and ConfigMap are owned by all Jobs of the run. Kubernetes deletes Jobs some time after their end, and
    with the last of them the rest: nothing stays behind if this machine dies.
    """

    def __init__(self, api: Api, run: RunObjects, on_note: Callable[[str], None]) -> None:
        self._api = api
        self._run = run
        self._on_note = on_note
        self._owned: list[Json] = []
        self._owners: dict[str, str] = {}  # uid by name
        self._adopted: dict[str, str] = {}
        self._retired: list[str] = []  # Jobs to delete when there are other owners
        self._lock = threading.Lock()
        self._adopting = threading.Lock()
        self._told = False

    def claim(self, service: Json) -> None:
        """Creates the run's Service: whoever comes second with a name is refused. Raises EngineError."""
        try:
            self._create(service)
        except ApiError as error:
            if error.status != 409:
                raise explained(error, self._api, "create services") from None
            raise EngineError(self._taken(service["metadata"]["name"])) from None
        except Unreachable as error:
            raise explained(error, self._api, "create services") from None
        self._owned.append(service)

    def add(self, thing: Json) -> None:
        """Creates a Secret or ConfigMap, or replaces that of a run that has left it. Raises ApiError, Unreachable."""
        try:
            self._create(thing)
        except ApiError as error:
            if error.status != 409:
                raise
            self._api.request("DELETE", self._path(thing))
            self._create(thing)
        with self._lock:
            self._owned.append(thing)

    def add_job(self, job: Json) -> None:
        """Creates a Job, which owns the rest from now on."""
        created = self._create(job)
        with self._lock:
            self._owners[created["metadata"]["name"]] = created["metadata"]["uid"]
        self._adopt()

    def retire_job(self, name: str, pod: str) -> None:
        """Ends a Job's pod at once. The Job itself stays until another one owns the rest of the run."""
        # Without this it would replace the pod.
        self._quietly("PATCH", "jobs", name, {"spec": {"parallelism": 0}})
        if pod:
            self._quietly("DELETE", "pods", pod, {"gracePeriodSeconds": 0})
        with self._lock:
            uid = self._owners.pop(name, None)
            if uid is not None:
                self._retired.append(name)
        self._adopt()

    def end_pod(self, name: str, pod: str, grace: int) -> None:
        """Tells a task to end: its pod gets SIGTERM, and SIGKILL after so many seconds."""
        # First the Job: it would replace a pod that is deleted.
        self._quietly("DELETE", "jobs", name, {"propagationPolicy": "Foreground"})
        if pod:
            self._quietly("DELETE", "pods", pod, {"gracePeriodSeconds": grace})

    def remove_all(self) -> str:
        """Deletes all objects of the run; gives what could not be deleted, and why."""
        problems: list[str] = []
        selected = {"labelSelector": self._run.selector}
        for kind, options in (
            ("jobs", {"propagationPolicy": "Background"}),
            ("pods", {"gracePeriodSeconds": 0}),
        ):
            self._try(problems, "DELETE", self._api.path(kind), options, selected)
        for thing in self._owned:
            self._try(problems, "DELETE", self._path(thing), {}, {})
        if problems:
            return "; ".join(dict.fromkeys(problems))
        return self._wait_until_gone()

    def _wait_until_gone(self) -> str:
        deadline = time.monotonic() + _DELETE_SECONDS
        never = threading.Event()
        while time.monotonic() < deadline:
            left: list[str] = []
            for kind in ("pods", "jobs"):
                try:
                    answer = self._api.request(
                        "GET", self._api.path(kind), query={"labelSelector": self._run.selector}
                    )
                except (ApiError, Unreachable) as error:
                    return str(error)
                left += [f"{kind} {item['metadata']['name']}" for item in answer.get("items") or []]
                # One that came into being while the others were deleted.
                if left and kind == "pods":
                    options, selected = {"gracePeriodSeconds": 0}, {"labelSelector": self._run.selector}
                    self._try([], "DELETE", self._api.path(kind), options, selected)
            if not left:
                return ""
            never.wait(_LOOK_SECONDS)
        return f"{', '.join(left)} still there after {_DELETE_SECONDS:.0f} s"

    def _adopt(self) -> None:
        """Makes the run's Jobs the owners of the rest, and then deletes those that have served."""
        with self._adopting:  # whoever waits here finds that it has been done with the others
            with self._lock:
                owners, owned = dict(self._owners), list(self._owned)
                retired = self._retired if owners else []
                if owners:
                    self._retired = []
            if owners and owners != self._adopted:
                self._adopted = owners
                references = [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
                    for name, uid in owners.items()
                ]
                for thing in owned:
                    self._give(thing, references)
            for name in retired:
                self._quietly("DELETE", "jobs", name, {"propagationPolicy": "Background"})

    def _give(self, thing: Json, references: list[Json]) -> None:
        metadata = {"ownerReferences": references}
        try:
            self._api.request("PATCH", self._path(thing), {"metadata": metadata}, kind=_MERGE)
        except (ApiError, Unreachable) as error:
            if (
                isinstance(error, ApiError) and error.status == 404
            ):  # collected with its last owner, just before there was another one
                self._create({**thing, "metadata": {**thing["metadata"], **metadata}})
            elif not self._told:
                self._told = True
                self._on_note(
                    f"If this machine dies, the {thing['kind']} of the run stays: {error}. Then delete it with "
                    f"`{deletion(self._api, self._run)}`."
                )

    def _taken(self, name: str) -> str:
        """Who owns the run of this name, and how to end it."""
        who = ""
        try:
            answer = self._api.request("GET", self._api.path("services", name))
        except (ApiError, Unreachable):
            answer = {"metadata": {}}
        notes = answer["metadata"].get("annotations") or {}
        if LAUNCHER_NOTE in notes:
            who = f", started by {notes[LAUNCHER_NOTE]}"
        elif RUN_NOTE not in notes and answer["metadata"]:
            return f"Namespace {self._api.namespace} has a Service {name} that is none of ours. Give the run another --name."
        return (
            f"There is a run {self._run.name} in namespace {self._api.namespace}{who}. Stop it there with `tensorfleet stop "
            f"{self._run.name}`, delete it with `{deletion(self._api, self._run)}`, or give this run another --name."
        )

    def _create(self, thing: Json) -> Json:
        return self._api.request("POST", self._api.path(_KINDS[thing["kind"]]), thing)

    def _path(self, thing: Json) -> str:
        return self._api.path(_KINDS[thing["kind"]], thing["metadata"]["name"])

    def _quietly(self, method: str, kind: str, name: str, body: Json) -> None:
        """A request about an object that may be gone already."""
        try:
            self._api.request(
                method, self._api.path(kind, name), body, kind=_MERGE if method == "PATCH" else _JSON
            )
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.status == 404) and not self._api.stopped.is_set():
                verb = "stop" if method == "PATCH" else "delete"
                self._on_note(f"Cannot {verb} {kind} {name}: {error}")

    def _try(self, problems: list[str], method: str, path: str, body: Json, query: dict[str, str]) -> None:
        try:
            self._api.request(method, path, body, query)
        except (ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.status == 404):
                problems.append(str(error))


def deletion(api: Api, run: RunObjects) -> str:
    """The command that deletes a run."""
    return f"kubectl delete -n {api.namespace} -l {run.selector} job,service,secret,configmap"
