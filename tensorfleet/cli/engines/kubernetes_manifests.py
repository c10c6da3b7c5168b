"""The objects of a run on Kubernetes: a Job for each task, a Service for their names, a Secret with the token.

Pure functions from tasks and options to objects. A Job of a run that is followed starts its pod once, since the launcher
decides what a failure means; a printed Job starts it again by itself.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensorfleet.base import settings
from tensorfleet.cli.engines.base import TaskResources
from tensorfleet.cli.engines.kubernetes_arguments import Json, PodOptions
from tensorfleet.cli.engines.kubernetes_names import PORT, task_name
from tensorfleet.cli.plan import NOTICE, SERVER_JOBS, TOKEN, Task

RUN_LABEL, JOB_LABEL, INDEX_LABEL = "tensorfleet-run", "tensorfleet-job", "tensorfleet-index"
#: the Job that a pod belongs to, which is one attempt at a task
ATTEMPT_LABEL = "tensorfleet-attempt"
LAUNCHER_NOTE, RUN_NOTE = "tensorfleet/launcher", "tensorfleet/run"
CONTAINER = "task"
SHIPPED_FOLDER, TLS_FOLDER = "/tensorfleet/src", "/tensorfleet/tls"
PROBE_PORT = 2223
_DEVICES = "CUDA_VISIBLE_DEVICES"
# A seat that nobody takes back gives its room back: the launcher's machine may have died.
SEAT_SECONDS = 3600
_SEAT_LIMIT_SECONDS = 86_400  # with the time in which it waits for room
_SAVE_MARGIN_SECONDS = 5  # between the end of the notice that a task gets and SIGKILL


@dataclass(frozen=True)
class RunObjects:
    """A run, as its objects need it."""

    label: str  # its name as a DNS label
    name: str  # its name as the user knows it
    image: str
    options: PodOptions = field(default_factory=PodOptions)
    #: seconds that a pod may run
    time_limit: int | None = None
    #: what the user sets for every task
    environment: Mapping[str, str] = field(default_factory=dict)
    #: who has started the run, for whoever wants to start another one of this name
    launcher: str = ""
    #: files in the ConfigMap, by the path below SHIPPED_FOLDER, and the key there
    shipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def selector(self) -> str:
        """All objects of the run."""
        return f"{RUN_LABEL}={self.label}"


def service(run: RunObjects) -> Json:
    """The headless Service that gives each pod its name, also before it is ready."""
    spec = {
        "clusterIP": "None",
        "selector": {RUN_LABEL: run.label},
        "ports": [{"name": "grpc", "port": PORT}],
        "publishNotReadyAddresses": True,
    }
    notes = {LAUNCHER_NOTE: run.launcher, RUN_NOTE: run.name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(run, run.label, annotations={k: v for k, v in notes.items() if v}),
        "spec": spec,
    }


def secret(run: RunObjects, name: str, content: Mapping[str, bytes]) -> Json:
    """A Secret: the token, or certificates."""
    data = {key: base64.b64encode(value).decode() for key, value in sorted(content.items())}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(run, name), "data": data}


def config_map(run: RunObjects, content: Mapping[str, bytes]) -> Json:
    """The script and the files beside it."""
    data = {key: base64.b64encode(value).decode() for key, value in sorted(content.items())}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(run, f"{run.label}-src"),
        "binaryData": data,
    }


def task_job(
    run: RunObjects, name: str, task: Task, resources: TaskResources, backoff_limit: int = 0
) -> Json:
    """The Job of a task."""
    container = {
        **_container(run, task.command, resources, task.serves),
        "env": _environment(run, task, run.options),
        **_sources(run.options),
        "ports": [{"name": "grpc", "containerPort": PORT}],
        **_probes(run.options),
    }
    return _job(run, name, task.job, task.index, container, backoff_limit)


def seat_job(run: RunObjects, name: str, job: str, index: int, resources: TaskResources) -> Json:
    """A Job that holds room for a task: the same pod, which sleeps."""
    command = [run.options.python, "-c", f"import time; time.sleep({SEAT_SECONDS})"]
    container = _container(run, command, resources, job in SERVER_JOBS)
    seat = _job(run, name, job, index, container, 0)
    seat["spec"] |= {"ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": _SEAT_LIMIT_SECONDS}
    pod = seat["spec"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 0
    for key in ("hostname", "subdomain"):  # the task itself is to have the name
        pod.pop(key, None)
    return seat


def _job(run: RunObjects, name: str, job: str, index: int, container: Json, backoff_limit: int) -> Json:
    options = run.options
    own = {JOB_LABEL: _label_value(job), INDEX_LABEL: str(index), ATTEMPT_LABEL: name}
    template: Json = {
        "metadata": _metadata(run, None, own, {**options.annotations}),
        "spec": _pod(run, job, index, container),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(run, name, own),
        "spec": {
            "backoffLimit": backoff_limit,
            "ttlSecondsAfterFinished": options.ttl,
            "template": _merged(template, options.pod),
        },
    }


def _pod(run: RunObjects, job: str, index: int, container: Json) -> Json:
    options = run.options
    pod: Json = {
        "hostname": task_name(run.label, job, index),
        "subdomain": run.label,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": options.grace,
        "tolerations": [*options.tolerations, *_lost_nodes(options.lost)],
        "containers": [container],
        # A task asks nothing of Kubernetes.
        "automountServiceAccountToken": options.service_account is not None,
        "enableServiceLinks": False,
    }
    if options.is_restricted:
        pod["securityContext"] = _security(options)
    optional: Json = {
        "serviceAccountName": options.service_account,
        "imagePullSecrets": [{"name": name} for name in options.image_pull_secrets],
        "nodeSelector": dict(options.node_selector),
        "priorityClassName": options.priority_class,
        "activeDeadlineSeconds": run.time_limit,
        "volumes": [volume for volume, _ in _volumes(run)],
        "affinity": _apart(run, job) if job in SERVER_JOBS else None,
    }
    return pod | {key: value for key, value in optional.items() if value}


def _container(run: RunObjects, command: Sequence[str], resources: TaskResources, serves: bool) -> Json:
    options = run.options
    container: Json = {
        "name": CONTAINER,
        "image": run.image,
        "command": [_literal(word) for word in command],
        "resources": _resources(options, resources, serves),
    }
    if options.is_restricted:
        container["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    optional: Json = {
        "imagePullPolicy": options.image_pull_policy,
        "workingDir": options.working_directory or (SHIPPED_FOLDER if run.shipped else None),
        "volumeMounts": [mount for _, mount in _volumes(run)],
    }
    return container | {key: value for key, value in optional.items() if value}


def _environment(run: RunObjects, task: Task, options: PodOptions) -> list[Json]:
    """A task's variables. The token comes from the Secret; a device number of this machine means nothing there."""
    given = dict(task.environment)
    token = given.pop(TOKEN, "")
    if given.get(_DEVICES) and _DEVICES not in run.environment:
        del given[_DEVICES]
    given.setdefault(NOTICE, str(max(options.grace - _SAVE_MARGIN_SECONDS, 1)))
    given.setdefault("PYTHONUNBUFFERED", "1")
    if options.tls_folder or options.tls_secret:
        given.setdefault(settings.TLS.name, TLS_FOLDER)
    variables: list[Json] = []
    if token:
        variables.append({"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": run.label, "key": "token"}}})
    if options.probes and settings.METRICS.name not in given:
        variables.append({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
        variables.append({"name": settings.METRICS.name, "value": f"$(POD_IP):{PROBE_PORT}"})
    return variables + [{"name": k, "value": _literal(v)} for k, v in sorted(given.items())]


def _literal(text: str) -> str:
    """A text that Kubernetes leaves as it is: it replaces `$(NAME)` in commands and variables."""
    return text.replace("$", "$$")


def _sources(options: PodOptions) -> Json:
    return (
        {"envFrom": [dict(source) for source in options.environment_from]} if options.environment_from else {}
    )


def _probes(options: PodOptions) -> Json:
    """A pod is given up when its `/healthz` is silent for minutes: compiling a large graph is no illness."""
    if not options.probes:
        return {}
    get = {"httpGet": {"path": "/healthz", "port": PROBE_PORT}, "timeoutSeconds": 10}
    return {
        "startupProbe": {**get, "periodSeconds": 5, "failureThreshold": 120},
        "livenessProbe": {**get, "periodSeconds": 20, "failureThreshold": 15},
        "readinessProbe": {**get, "periodSeconds": 10},
    }


def _resources(options: PodOptions, resources: TaskResources, serves: bool) -> Json:
    """Processors are requested and not limited: a task may use idle ones. Memory is both."""
    requests, limits = dict(options.requests), dict(options.limits)
    if resources.cpus is not None:
        requests["cpu"] = f"{round(resources.cpus * 1000)}m"
    if resources.memory_bytes is not None:
        requests["memory"] = limits["memory"] = str(resources.memory_bytes)
    if resources.gpus and not serves:
        limits[options.gpu_resource] = str(resources.gpus)
    return {kind: amounts for kind, amounts in (("requests", requests), ("limits", limits)) if amounts}


def _security(options: PodOptions) -> Json:
    context: Json = {"seccompProfile": {"type": "RuntimeDefault"}}
    if options.user is not None:
        context |= {"runAsUser": options.user, "runAsNonRoot": options.user != 0}
    if options.group is not None:
        context["runAsGroup"] = options.group
    if options.file_group is not None:
        context["fsGroup"] = options.file_group
    return context


def _volumes(run: RunObjects) -> list[tuple[Json, Json]]:
    """Each volume of a pod with its mount."""
    options = run.options
    result = []
    for number, volume in enumerate(options.volumes):
        name = f"volume-{number}"
        mount: Json = {"name": name, "mountPath": volume.path}
        result.append(
            ({"name": name, **volume.source}, mount | ({"readOnly": True} if volume.read_only else {}))
        )
    if run.shipped:
        items = [{"key": key, "path": path} for path, key in sorted(run.shipped.items())]
        files: Json = {"configMap": {"name": f"{run.label}-src", "items": items}}
        result.append(
            ({"name": "src", **files}, {"name": "src", "mountPath": SHIPPED_FOLDER, "readOnly": True})
        )
    tls = options.tls_secret or (f"{run.label}-tls" if options.tls_folder else None)
    if tls:
        certificates: Json = {"secret": {"secretName": tls, "defaultMode": 0o400}}
        result.append(
            ({"name": "tls", **certificates}, {"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True})
        )
    return result


def _apart(run: RunObjects, job: str) -> Json:
    """Parameter servers go to different nodes, where there is room."""
    labels = {RUN_LABEL: run.label, JOB_LABEL: _label_value(job)}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _lost_nodes(seconds: int) -> list[Json]:
    """How soon a task on a node that has gone silent is lost; Kubernetes waits for five minutes."""
    return [
        {
            "key": f"node.kubernetes.io/{trouble}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        for trouble in ("not-ready", "unreachable")
    ]


def _metadata(
    run: RunObjects,
    name: str | None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    ours = {"app.kubernetes.io/name": "tensorfleet", RUN_LABEL: run.label, **(labels or {})}
    metadata: Json = {"name": name} if name else {}
    metadata["labels"] = {**run.options.labels, **ours}
    return metadata | ({"annotations": dict(annotations)} if annotations else {})


def _label_value(job: str) -> str:
    """A job as the value of a label: it may be written in ways that a label may not."""
    return "".join(c if c.isascii() and c.isalnum() else "x" for c in job)[:63]


def _merged(base: Json, more: Json) -> Json:
    """The user's part of a pod in ours: mappings are merged, lists joined, and the container is the one there is."""
    result = dict(base)
    for key, value in more.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = _merged(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            result[key] = _joined(old, value)
        else:
            result[key] = value
    return result


def _joined(old: list[Json], new: list[Json]) -> list[Json]:
    """Two lists as one; entries of the same name are merged."""
    named = {entry["name"]: entry for entry in new if isinstance(entry, dict) and "name" in entry}
    merged = [
        _merged(entry, named.pop(entry["name"]))
        if isinstance(entry, dict) and entry.get("name") in named
        else entry
        for entry in old
    ]
    kept = [entry for entry in new if not (isinstance(entry, dict) and "name" in entry)]
    return [*merged, *named.values(), *kept]
