"""Requests to a Kubernetes API server, in its own JSON.

The official client brings the configuration: the kubeconfig or the pod's service account, certificates, plugins that get
credentials, proxies. Its models know one version of Kubernetes each; objects as dicts fit every version.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.kubernetes_arguments import Json

_REQUEST_SECONDS = 20.0
_CONNECT_SECONDS = 10.0
_RETRIES = 4
_RETRY_SECONDS = 0.5
_PASSING = (429, 500, 502, 503, 504)  # an API server that restarts, or that is asked for too much
_CONNECTIONS = 64  # that are kept: each task's log is one
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
INSTALL = "pip install 'tensorfleet[kubernetes]'"


class ApiError(Exception):
    """An answer of the API server that is an error."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def message(self) -> str:
        """What the server says."""
        return str(self)


class Unreachable(Exception):
    """No answer: the server is down, or there is no way to it."""


@dataclass(frozen=True)
class Api:
    """A connection to an API server, for one namespace."""

    host: str
    namespace: str
    #: sends a request: method, URL, body, headers, seconds to read; gives a urllib3 response
    send: Callable[[str, str, bytes | None, dict[str, str], float], Any]
    stopped: threading.Event
    #: answers that are being read
    _open_answers: set[Any] = field(default_factory=set)

    def close(self) -> None:
        """Ends what is being read. `stopped` is set before."""
        for response in list(self._open_answers):
            with contextlib.suppress(Exception):  # it may have ended meanwhile
                response.shutdown()

    def path(self, kind: str, name: str = "", part: str = "") -> str:
        """The path of the objects of a kind in the namespace, or of one."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        return "/".join(filter(None, (f"{group}/namespaces/{self.namespace}/{kind}", name, part)))

    def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> Json:
        """The answer to a request. Tries again after failures that pass."""
        content = json.dumps(body).encode() if body is not None else None
        headers = {"Accept": "application/json", "Content-Type": kind}
        for attempt in range(_RETRIES):
            last = attempt == _RETRIES - 1
            try:
                with self._open(method, path, content, headers, query, _REQUEST_SECONDS) as response:
                    return dict(json.loads(response.read()))
            except ApiError as error:
                # What was created before the answer was lost is ours: names are used once.
                if error.status == 409 and error.reason == "AlreadyExists" and attempt and body:
                    return self.request("GET", f"{path}/{body['metadata']['name']}")
                if last or error.status not in _PASSING:
                    raise
            except Unreachable:
                if last:
                    raise
            self.stopped.wait(_RETRY_SECONDS * 2**attempt)
        raise AssertionError("the last attempt gives an answer or raises")

    @contextlib.contextmanager
    def lines(self, path: str, query: Mapping[str, str], read_seconds: float) -> Iterator[Iterator[bytes]]:
        """The lines of an answer that goes on."""
        with self._open("GET", path, None, {"Accept": "*/*"}, query, read_seconds) as response:
            yield _lines_of(response)

    @contextlib.contextmanager
    def _open(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: dict[str, str],
        query: Mapping[str, str] | None,
        read_seconds: float,
    ) -> Iterator[Any]:
        import urllib3.exceptions

        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            response = self.send(method, url, content, headers, read_seconds)
            self._open_answers.add(response)
            try:
                if response.status >= 400:
                    raise _error_of(response)
                yield response
            finally:
                self._open_answers.discard(response)
                response.close()  # what was not read is not waited for
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unreachable(_words(error)) from None


def connect(context: str | None, namespace: str | None, stopped: threading.Event) -> Api:
    """The API server of a context of the kubeconfig, else of the pod that this is. Raises EngineError."""
    try:
        import kubernetes
        from kubernetes.config import ConfigException
    except ImportError:
        raise EngineError(f"The Kubernetes client is not installed. Install it with: {INSTALL}") from None
    configuration = kubernetes.client.Configuration()
    configuration.connection_pool_maxsize = _CONNECTIONS
    try:
        own = _configure(kubernetes.config, configuration, context)
    except ConfigException as error:
        raise EngineError(_unusable(context, str(error))) from None
    client = kubernetes.client.ApiClient(configuration)
    if (
        not configuration.verify_ssl
    ):  # the kubeconfig says so: a warning for each request would hide the tasks' output
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return Api(configuration.host.rstrip("/"), namespace or own or "default", _sender(client), stopped)


def _configure(config: Any, configuration: Any, context: str | None) -> str | None:
    """Fills in a configuration; gives the namespace that it names."""
    if context is None and not _files() and os.environ.get("KUBERNETES_SERVICE_HOST"):
        config.load_incluster_config(client_configuration=configuration)
        with contextlib.suppress(OSError):
            return (_SERVICE_ACCOUNT / "namespace").read_text().strip()
        return None
    # The client would read KUBECONFIG when it is imported.
    given = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    config.load_kube_config(given, context, client_configuration=configuration, persist_config=False)
    contexts, active = config.list_kube_config_contexts(given)
    chosen = next((c for c in contexts if c["name"] == context), active) if context else active
    namespace = (chosen.get("context") or {}).get("namespace")
    return str(namespace) if namespace else None


def _files() -> list[str]:
    """The kubeconfig files that exist."""
    given = os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")
    return [name for name in given.split(os.pathsep) if name and os.path.isfile(name)]


def _unusable(context: str | None, error: str) -> str:
    files = _files()
    if not files:
        given = os.environ.get("KUBECONFIG")
        where = f"KUBECONFIG={given} names no file" if given else "there is no ~/.kube/config"
        return (
            f"No Kubernetes configuration: {where}, and this is not a pod. Get the kubeconfig of your cluster, and set "
            "KUBECONFIG to its path."
        )
    if context is not None and "context" in error.lower():
        return f"{files[0]} has no context named {context}. `kubectl config get-contexts` lists them."
    return f"Cannot use the Kubernetes configuration {files[0]}: {error}"


def _sender(client: Any) -> Callable[[str, str, bytes | None, dict[str, str], float], Any]:
    import urllib3

    pool = client.rest_client.pool_manager
    configuration = client.configuration

    def send(
        method: str, url: str, content: bytes | None, headers: dict[str, str], read_seconds: float
    ) -> Any:
        # Asked for each time: tokens are renewed.
        for setting in configuration.auth_settings().values():
            if setting["in"] == "header" and setting["value"]:
                headers = {**headers, setting["key"]: setting["value"]}
        return pool.request(
            method,
            url,
            body=content,
            headers=headers,
            preload_content=False,
            retries=False,
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds),
        )

    return send


def _lines_of(response: Any) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(1 << 16, decode_content=False):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _error_of(response: Any) -> ApiError:
    text = response.read()
    try:
        status = json.loads(text)
        return ApiError(response.status, status.get("reason") or "", status.get("message") or response.reason)
    except (ValueError, AttributeError):
        return ApiError(response.status, "", text.decode(errors="replace").strip()[:500] or response.reason)


def _words(error: Exception) -> str:
    """A connection's failure without the classes around it."""
    text = str(getattr(error, "reason", None) or error)
    return text.partition("object at 0x")[2].partition(": ")[2] or text


def explained(error: ApiError | Unreachable, api: Api, doing: str) -> EngineError:
    """A sentence for the user about a request that failed."""
    if isinstance(error, Unreachable):
        return EngineError(
            f"Cannot reach the Kubernetes API server {api.host}: {error}. Is the cluster up, and is there a way to it? "
            "`kubectl cluster-info` tests it."
        )
    if error.status == 401:
        return EngineError(
            f"The Kubernetes API server {api.host} refused your credentials. Log in again; `kubectl get pods` tests them."
        )
    if error.status == 403 and error.reason == "Forbidden" and "quota" not in error.message:
        return EngineError(
            f"You may not {doing} in namespace {api.namespace}: {error.message}. Ask for a Role with these rights "
            "(docs/kubernetes.md lists them), or choose another --namespace."
        )
    if error.status == 404 and "namespaces" in error.message:
        return EngineError(
            f"There is no namespace {api.namespace}. Create it with `kubectl create namespace {api.namespace}`, or choose "
            "another --namespace."
        )
    return EngineError(f"Kubernetes refused to {doing}: {error.message}")
