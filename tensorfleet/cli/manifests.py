"""Kubernetes manifests for a script's tasks."""

from __future__ import annotations

import base64
from typing import Any

from tensorfleet.cli.plan import TOKEN, Place, Task, Wishes, plan

_PORT = 2222


def kubernetes(
    wishes: Wishes, name: str, image: str, counts: dict[str, int], token: str, gpus: int = 0
) -> str:
    """A Job for each task, a Service that gives each its name, and the token as a Secret: for `kubectl apply`.

    The workers' Jobs end by themselves, and the servers end with them.
    """
    cluster = {
        job: [Place(f"{name}-{job}-{i}.{name}:{_PORT}") for i in range(count)]
        for job, count in counts.items()
        if count
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name, name),
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(name, name),
        "spec": {
            "clusterIP": "None",  # names of pods, no balancing
            "selector": {"tensorfleet-run": name},
            "ports": [{"port": _PORT}],
            "publishNotReadyAddresses": True,
        },
    }
    tasks = plan(wishes, cluster, token)
    return _documents([secret, service, *(_job(name, image, task, gpus) for task in tasks)])


def _metadata(name: str, run: str) -> dict[str, Any]:
    return {"name": name, "labels": {"tensorfleet-run": run}}


def _job(run: str, image: str, task: Task, gpus: int) -> dict[str, Any]:
    name = f"{run}-{task.job}-{task.index}"
    secret = {"secretKeyRef": {"name": run, "key": "token"}}
    environment: list[dict[str, Any]] = [{"name": TOKEN, "valueFrom": secret}]
    environment += [{"name": k, "value": v} for k, v in sorted(task.environment.items()) if k != TOKEN]
    container: dict[str, Any] = {
        "name": task.job,
        "image": image,
        "command": task.command,
        "env": environment,
        "ports": [{"containerPort": _PORT}],
    }
    if gpus and not task.serves:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    pod = {"hostname": name, "subdomain": run, "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"labels": {"tensorfleet-run": run, "task": name}}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(name, run),
        "spec": {"backoffLimit": 3, "template": template},
    }


def _documents(objects: list[dict[str, Any]]) -> str:
    import yaml

    text: str = yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=False)
    return text
