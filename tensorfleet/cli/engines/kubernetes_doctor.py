"""`tensorfleet doctor --on kubernetes`: the way to the cluster, and what one may do there."""

from __future__ import annotations

import importlib.metadata
import re
import threading
from collections.abc import Iterator

from tensorfleet.cli.doctor import Finding
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.kubernetes_api import INSTALL, Api, ApiError, Unreachable, connect, explained

#: what a run does: verb, group, resource, part of the resource
RIGHTS = (
    ("create", "batch", "jobs", ""),
    ("patch", "batch", "jobs", ""),
    ("delete", "batch", "jobs", ""),
    ("deletecollection", "batch", "jobs", ""),
    ("list", "batch", "jobs", ""),
    ("create", "", "services", ""),
    ("patch", "", "services", ""),
    ("delete", "", "services", ""),
    ("create", "", "secrets", ""),
    ("patch", "", "secrets", ""),
    ("delete", "", "secrets", ""),
    ("list", "", "pods", ""),
    ("watch", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("deletecollection", "", "pods", ""),
    ("get", "", "pods", "log"),
)
_HELPFUL = (("list", "", "events", ""), ("create", "", "configmaps", ""))
_OLDEST = (1, 20)


def check(address: str | None = None, namespace: str | None = None) -> Iterator[Finding]:
    """What `--on kubernetes` needs, a verdict per line. `address` is a context of the kubeconfig."""
    try:
        yield Finding("client", f"kubernetes {importlib.metadata.version('kubernetes')}", "ok")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("client", "not installed", "bad", INSTALL)
        return
    stopped = threading.Event()
    stopped.set()  # no pause between attempts
    try:
        api = connect(address, namespace, stopped)
    except EngineError as error:
        yield Finding("configuration", str(error), "bad")
        return
    try:
        yield Finding("configuration", f"{api.host}, namespace {api.namespace}", "ok")
        yield from _server(api)
    except (ApiError, Unreachable) as error:
        yield Finding("API server", str(explained(error, api, "ask")), "bad")
    finally:
        api.close()


def _server(api: Api) -> Iterator[Finding]:
    answer = api.request("GET", "/version")
    version = str(answer.get("gitVersion") or "unknown version")
    numbers = re.match(r"v(\d+)\.(\d+)", version)  # clouds write their own words behind them
    is_old = numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST
    advice = "older than 1.20, which nobody has tried" * is_old
    yield Finding("API server", version, "warning" if is_old else "ok", advice)
    refused = [right for right in RIGHTS if not _may(api, right)]
    if refused:
        wanted = ", ".join(_spoken(right) for right in refused)
        yield Finding(
            "rights", f"you may not {wanted} in {api.namespace}", "bad", "ask for a Role: docs/kubernetes.md"
        )
    else:
        yield Finding("rights", "enough to start, follow and delete a run", "ok")
    missing = [right for right in _HELPFUL if not _may(api, right)]
    if missing:
        yield Finding(
            "more rights",
            f"you may not {', '.join(map(_spoken, missing))}",
            "warning",
            "events say why pods wait",
        )
    yield _namespace(api)


def _namespace(api: Api) -> Finding:
    try:
        api.request("GET", f"/api/v1/namespaces/{api.namespace}")
    except ApiError as error:
        if error.status == 404:
            return Finding(
                "namespace",
                f"{api.namespace} does not exist",
                "bad",
                f"kubectl create namespace {api.namespace}",
            )
        return Finding("namespace", f"{api.namespace} (you may not ask whether it exists)", "ok")
    return Finding("namespace", api.namespace, "ok")


def _may(api: Api, right: tuple[str, str, str, str]) -> bool:
    verb, group, resource, part = right
    wish = {
        "namespace": api.namespace,
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": part,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {"resourceAttributes": wish},
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return bool((answer.get("status") or {}).get("allowed"))


def _spoken(right: tuple[str, str, str, str]) -> str:
    verb, _, resource, part = right
    return f"{verb} {resource}/{part}" if part else f"{verb} {resource}"
