"""A scheduler and a node agent for a real Kubernetes API server: pods are processes of this machine.

Each pod has an address of its own (127.0.N.N), a view of this machine's files of its own (an overlay, in a mount
namespace), and `/etc/hosts` with the names of all pods of its Service. Jobs, ownership and lost nodes are the business of
the real controllers. Tests break things by the methods below `# -- trouble`.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

urllib3 = pytest.importorskip("urllib3")  # it comes with the extra [kubernetes]
_HEARTBEAT_SECONDS = 1.0
_ENTER = """
import os, subprocess, sys
spec = __import__("json").loads(sys.argv[1])
def mount(*words):
    subprocess.run(["mount", *words], check=True, stdout=subprocess.DEVNULL)
root = spec["root"]
mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={root}/upper,workdir={root}/work", f"{root}/merged")
for folder in ("/proc", "/dev", "/sys", "/tmp"):
    mount("--rbind", folder, f"{root}/merged{folder}")
mount("--bind", spec["hosts"], f"{root}/merged/etc/hosts")
for source, path in spec["mounts"]:
    os.makedirs(f"{root}/merged{path}", exist_ok=True)
    mount("--bind", source, f"{root}/merged{path}")
os.chroot(f"{root}/merged")
os.chdir(spec["directory"])
os.execvpe(spec["command"][0], spec["command"], spec["environment"])
"""


def now() -> str:
    """The time as Kubernetes writes it."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


class Client:
    """Requests to the API server."""

    def __init__(self, host: str, token: str, authority: Path) -> None:
        self._host = host
        self._headers = {"Authorization": f"Bearer {token}"}
        # The server writes its certificate when it starts.
        self._pool = urllib3.PoolManager(ca_certs=str(authority), maxsize=32, retries=False)

    def ask(self, method: str, path: str, body=None, kind: str = "application/json"):
        """The answer; LookupError for 404, RuntimeError for other errors."""
        content = None if body is None else json.dumps(body)
        answer = self._pool.request(
            method,
            self._host + path,
            body=content,
            headers={**self._headers, "Content-Type": kind},
            timeout=20,
        )
        if answer.status >= 400:
            error = LookupError if answer.status == 404 else RuntimeError
            raise error(f"{method} {path}: {answer.status} {answer.data.decode()[:300]}")
        return json.loads(answer.data)

    def patch(self, path: str, body):
        """A strategic merge."""
        return self.ask("PATCH", path, body, "application/strategic-merge-patch+json")

    def watch(self, path: str, version: str):
        """Events, until the server ends them."""
        url = f"{self._host}{path}?watch=true&resourceVersion={version}&timeoutSeconds=30"
        answer = self._pool.request("GET", url, headers=self._headers, preload_content=False, timeout=40)
        rest = b""
        for chunk in answer.stream(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in filter(None, lines):
                yield json.loads(line)


class PodProcess:
    """A pod that runs here."""

    def __init__(self, pod, address: str) -> None:
        self.pod = pod
        self.name = pod["metadata"]["name"]
        self.uid = pod["metadata"]["uid"]
        self.namespace = pod["metadata"]["namespace"]
        self.node = pod["spec"]["nodeName"]
        self.address = address
        self.lines: list[tuple[str, bytes]] = []
        self.more = threading.Condition()
        self.process: subprocess.Popen | None = None
        self.ended = False
        self.reason = ""  # that its end is reported with
        self.terminating = False

    def add(self, line: bytes) -> None:
        """Keeps a line of output with its time."""
        stamp = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"
        with self.more:
            self.lines.append((stamp, line))
            self.more.notify_all()

    def send(self, number: int) -> None:
        """A signal to the container's processes."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Agent:
    """All nodes of the cluster."""

    def __init__(self, client: Client, folder: Path, nodes: int = 3, cpus: int = 4) -> None:
        self.client = client
        self.folder = folder
        self.cpus = dict.fromkeys((f"n{i}" for i in range(1, nodes + 1)), cpus)
        self.pods: dict[str, PodProcess] = {}  # by uid
        self.silent: set[str] = set()  # nodes that have died
        self.broken_logs = 0  # connections to logs that were cut
        self.known: dict[str, dict] = {}
        self._stopped = threading.Event()
        self._lock = threading.RLock()
        self._next = 1
        self._followers: list = []
        self._server = _serve_logs(self, folder)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Registers the nodes and begins to watch pods."""
        for name, cpus in self.cpus.items():
            self.add_node(name, cpus)
        for work in (self._heartbeats, self._follow):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)

    def add_node(self, name: str, cpus: int) -> None:
        """One more machine."""
        self.cpus[name] = cpus
        self.client.ask(
            "POST", "/api/v1/nodes", {"metadata": {"name": name}, "kind": "Node", "apiVersion": "v1"}
        )
        self._beat(name)

    def close(self) -> None:
        """Ends every pod's process."""
        self._stopped.set()
        for pod in list(self.pods.values()):
            pod.send(signal.SIGKILL)
        for pod in list(self.pods.values()):
            if pod.process is not None:
                pod.process.wait(20)
        self._server.shutdown()
        self._server.server_close()

    def called(self, start: str) -> list[PodProcess]:
        """The running pods whose name begins so."""
        return [pod for pod in list(self.pods.values()) if pod.name.startswith(start) and not pod.ended]

    # -- trouble -------------------------------------------------------------------------------------

    def kill_node(self, name: str) -> None:
        """A machine loses its power."""
        self.silent.add(name)
        for pod in list(self.pods.values()):
            if pod.node == name:
                pod.send(signal.SIGKILL)

    def preempt(self, pod: PodProcess) -> None:
        """The scheduler takes a pod's room away."""
        self.client.ask(
            "DELETE", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", {"gracePeriodSeconds": 10}
        )

    def evict(self, pod: PodProcess, message: str) -> None:
        """The node ends a pod because it lacks something."""
        pod.reason = f"Evicted:{message}"
        pod.send(signal.SIGKILL)

    def out_of_memory(self, pod: PodProcess) -> None:
        """The kernel kills a container that has used too much memory."""
        pod.reason = "OOMKilled"
        pod.send(signal.SIGKILL)

    def cut_logs(self) -> None:
        """Ends all connections over which logs are followed."""
        with self._lock:
            followers, self._followers = self._followers, []
        for connection in followers:
            self.broken_logs += 1
            with contextlib.suppress(OSError):
                connection.shutdown(2)

    # -- the node's work -----------------------------------------------------------------------------

    def _heartbeats(self) -> None:
        while not self._stopped.wait(_HEARTBEAT_SECONDS):
            for name in list(self.cpus):
                if name not in self.silent:
                    with contextlib.suppress(Exception):
                        self._beat(name)
            with contextlib.suppress(Exception):
                self._schedule()

    def _beat(self, name: str) -> None:
        amounts = {"cpu": str(self.cpus[name]), "memory": "16Gi", "pods": "110"}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        }
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_port}},
        }
        self.client.patch(f"/api/v1/nodes/{name}/status", {"status": status})

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                answer = self.client.ask("GET", "/api/v1/pods")
                for pod in answer["items"]:
                    self._seen(pod)
                for event in self.client.watch("/api/v1/pods", answer["metadata"]["resourceVersion"]):
                    if self._stopped.is_set():
                        return
                    if event["type"] == "ERROR":
                        break
                    self._seen(event["object"], event["type"] == "DELETED")
            except Exception as error:
                if not self._stopped.is_set():
                    print("agent:", repr(error)[:300], flush=True)
                self._stopped.wait(0.2)

    def _seen(self, pod, is_gone: bool = False) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            if is_gone:
                self.known.pop(uid, None)
                running = self.pods.pop(uid, None)
            else:
                self.known[uid] = pod
                running = self.pods.get(uid)
        if is_gone:
            if running is not None:
                running.ended = True
                running.send(signal.SIGKILL)
            self._schedule()
            return
        node = pod["spec"].get("nodeName")
        phase = (pod.get("status") or {}).get("phase")
        if not node:
            self._schedule()
        elif node in self.silent:
            return
        elif running is None and phase == "Pending" and not pod["metadata"].get("deletionTimestamp"):
            self._run(pod)
        elif pod["metadata"].get("deletionTimestamp"):
            self._terminate(pod, running)

    def _schedule(self) -> None:
        """Binds pods without a node to the emptiest node with room for them; apart from their like."""
        with self._lock:
            waiting = [p for p in self.known.values() if _waits(p)]
            for pod in waiting:
                fits = {n: free for n, free in self._free().items() if free >= _cpus(pod)}
                metadata = pod["metadata"]
                path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                with contextlib.suppress(LookupError, RuntimeError):
                    if not fits:
                        self._tell_unschedulable(path, pod)
                        continue
                    node = min(fits, key=lambda n: (self._likes(pod, n), -fits[n], n))
                    self.client.ask(
                        "POST",
                        f"{path}/binding",
                        {
                            "apiVersion": "v1",
                            "kind": "Binding",
                            "metadata": {"name": metadata["name"]},
                            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                        },
                    )
                    pod["spec"]["nodeName"] = node

    def _tell_unschedulable(self, path: str, pod) -> None:
        count = len(self.cpus) - len(self.silent)
        message = f"0/{count} nodes are available: {count} Insufficient cpu."
        told = [c.get("message") for c in (pod.get("status") or {}).get("conditions") or []]
        if message not in told:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
            }
            self.client.patch(f"{path}/status", {"status": {"conditions": [condition]}})

    def _free(self) -> dict[str, float]:
        free = {name: float(cpus) for name, cpus in self.cpus.items() if name not in self.silent}
        for pod in self.known.values():
            node = pod["spec"].get("nodeName")
            if node in free and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                free[node] -= _cpus(pod)
        return free

    def _likes(self, pod, node: str) -> int:
        """How many pods are there that this one would rather not be beside."""
        affinity = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(
            "preferredDuringSchedulingIgnoredDuringExecution"
        ) or []
        count = 0
        for term in affinity:
            wanted = term["podAffinityTerm"]["labelSelector"]["matchLabels"].items()
            for other in self.known.values():
                labels = (other["metadata"].get("labels") or {}).items()
                count += other["spec"].get("nodeName") == node and wanted <= labels
        return count

    def _run(self, pod) -> None:
        number, self._next = self._next, self._next + 1
        process = PodProcess(pod, f"127.1.{number // 250}.{number % 250 + 1}")
        with self._lock:
            self.pods[process.uid] = process
        threading.Thread(target=self._live, args=(process,), daemon=True).start()

    def _live(self, pod: PodProcess) -> None:
        """The life of a pod, from its image to its end."""
        image = pod.pod["spec"]["containers"][0]["image"]
        self._status(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}})
        if image.startswith("missing/"):
            message = (
                f'rpc error: code = NotFound desc = failed to resolve reference "{image}": {image}: not found'
            )
            self._status(pod, "Pending", {"waiting": {"reason": "ErrImagePull", "message": message}})
            return
        try:
            self._start(pod)
        except LookupError as error:
            self._status(
                pod, "Pending", {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
            )
            return
        assert pod.process is not None and pod.process.stdout is not None
        self._status(pod, "Running", {"running": {"startedAt": now()}})
        with pod.process.stdout:
            for line in pod.process.stdout:
                pod.add(line.rstrip(b"\n"))
        code = pod.process.wait()
        if pod.node in self.silent or self._stopped.is_set():
            return
        with pod.more:
            already, pod.ended = pod.ended, True
            pod.more.notify_all()
        if not already:
            self._report_end(pod, code)

    def _report_end(self, pod: PodProcess, code: int) -> None:
        shown = 128 - code if code < 0 else code
        reason = "OOMKilled" if pod.reason == "OOMKilled" else "Error" if shown else "Completed"
        terminated = {"exitCode": shown, "reason": reason, "startedAt": now(), "finishedAt": now()}
        kind, _, message = pod.reason.partition(":")
        extra = {"reason": kind, "message": message} if kind == "Evicted" else {}
        self._status(pod, "Failed" if shown else "Succeeded", {"terminated": terminated}, extra)
        if pod.terminating:
            self._remove(pod)

    def _start(self, pod: PodProcess) -> None:
        container = pod.pod["spec"]["containers"][0]
        home = self.folder / pod.uid
        for part in ("upper", "work", "merged", "volumes"):
            (home / part).mkdir(parents=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/root",
            "HOSTNAME": pod.pod["spec"].get("hostname", pod.name),
        }
        for variable in container.get("env") or []:
            environment[variable["name"]] = self._value(pod, variable, environment)
        spec = {
            "root": str(home),
            "hosts": str(self._hosts(pod)),
            "mounts": self._mounts(pod, container, home),
            "directory": container.get("workingDir") or str(self.folder),
            "command": [_expanded(word, environment) for word in container["command"]],
            "environment": environment,
        }
        pod.process = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--propagation",
                "private",
                shutil.which("python3") or "python3",
                "-c",
                _ENTER,
                json.dumps(spec),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _value(self, pod: PodProcess, variable, environment) -> str:
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            return {"status.podIP": pod.address}[source["fieldRef"]["fieldPath"]]
        if "secretKeyRef" in source:
            name = source["secretKeyRef"]["name"]
            try:
                secret = self.client.ask("GET", f"/api/v1/namespaces/{pod.namespace}/secrets/{name}")
            except LookupError:
                raise LookupError(f'secret "{name}" not found') from None
            return base64.b64decode(secret["data"][source["secretKeyRef"]["key"]]).decode()
        return _expanded(variable.get("value", ""), environment)

    def _hosts(self, pod: PodProcess) -> Path:
        """A file with the names of all pods of the namespace: written in place, since it is mounted."""
        service = pod.pod["spec"].get("subdomain")
        path = self.folder / f"hosts-{pod.namespace}"
        if service:
            with self._lock:
                name = f"{pod.pod['spec']['hostname']}.{service}"
                old = path.read_text().splitlines() if path.exists() else ["127.0.0.1 localhost"]
                kept = [line for line in old if line.split()[1] != name]
                with path.open("r+" if path.exists() else "w") as file:
                    file.write("\n".join([*kept, f"{pod.address} {name}"]) + "\n")
                    file.truncate()
        path.touch()
        return path

    def _mounts(self, pod: PodProcess, container, home: Path) -> list[tuple[str, str]]:
        volumes = {volume["name"]: volume for volume in pod.pod["spec"].get("volumes") or []}
        mounts = []
        for mount in container.get("volumeMounts") or []:
            volume = volumes[mount["name"]]
            folder = home / "volumes" / mount["name"]
            folder.mkdir()
            if "hostPath" in volume:
                folder = Path(volume["hostPath"]["path"])
            elif "configMap" in volume:
                name = volume["configMap"]["name"]
                content = self.client.ask("GET", f"/api/v1/namespaces/{pod.namespace}/configmaps/{name}")[
                    "binaryData"
                ]
                for item in volume["configMap"]["items"]:
                    (folder / item["path"]).parent.mkdir(parents=True, exist_ok=True)
                    (folder / item["path"]).write_bytes(base64.b64decode(content[item["key"]]))
            elif "secret" in volume:
                name = volume["secret"]["secretName"]
                for key, value in self.client.ask(
                    "GET", f"/api/v1/namespaces/{pod.namespace}/secrets/{name}"
                )["data"].items():
                    (folder / key).write_bytes(base64.b64decode(value))
                    (folder / key).chmod(volume["secret"].get("defaultMode", 0o644))
            mounts.append((str(folder), mount["mountPath"]))
        return mounts

    def _terminate(self, pod, running: PodProcess | None) -> None:
        if running is None or running.ended or running.process is None:
            self._remove_pod(pod)
            return
        if running.terminating:
            return
        running.terminating = True
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.process.pid, signal.SIGTERM)
        timer = threading.Timer(grace, running.send, [signal.SIGKILL])
        timer.daemon = True
        timer.start()

    def _remove(self, pod: PodProcess) -> None:
        self._remove_pod(pod.pod)

    def _remove_pod(self, pod) -> None:
        metadata = pod["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        with contextlib.suppress(LookupError, RuntimeError):
            self.client.ask(
                "DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", body
            )

    def _status(self, pod: PodProcess, phase: str, state, extra=None) -> None:
        container = pod.pod["spec"]["containers"][0]
        ready = "running" in state
        status = {
            "phase": phase,
            "podIP": pod.address,
            "startTime": now(),
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "ContainersReady", "status": str(ready)},
                {"type": "Ready", "status": str(ready)},
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": ready,
                    "restartCount": 0,
                    "state": {kind: None for kind in ("waiting", "running", "terminated")} | state,
                }
            ],
            **(extra or {}),
        }
        with contextlib.suppress(LookupError):
            self.client.patch(
                f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status", {"status": status}
            )

    def log_of(self, namespace: str, name: str) -> PodProcess | None:
        """The pod whose log is asked for."""
        found = [p for p in list(self.pods.values()) if (p.namespace, p.name) == (namespace, name)]
        return found[0] if found else None

    def following(self, connection) -> None:
        """A connection over which a log is followed."""
        with self._lock:
            self._followers.append(connection)


def _waits(pod) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return (
        not pod["spec"].get("nodeName")
        and phase == "Pending"
        and not pod["metadata"].get("deletionTimestamp")
    )


def _cpus(pod) -> float:
    requests = (pod["spec"]["containers"][0].get("resources") or {}).get("requests") or {}
    text = requests.get("cpu", "0")
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def _expanded(text: str, environment) -> str:
    """`$(NAME)` and `$$`, as Kubernetes replaces them."""

    def one(match):
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", one, text)


class _Logs(BaseHTTPRequestHandler):
    agent: Agent

    def do_GET(self) -> None:
        """/containerLogs/NAMESPACE/POD/CONTAINER, as a kubelet answers it."""
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        _, kind, namespace, name, _ = parts.path.split("/")
        pod = self.agent.log_of(namespace, name) if kind == "containerLogs" else None
        if pod is None or pod.node in self.agent.silent:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.agent.following(self.connection)
        since = query.get("sinceTime", "")[:19]
        sent = 0
        while True:
            with pod.more:
                while len(pod.lines) == sent and not pod.ended and query.get("follow") == "true":
                    pod.more.wait(1.0)
                lines, over = pod.lines[sent:], pod.ended or query.get("follow") != "true"
            sent += len(lines)
            for stamp, line in lines:
                if stamp[:19] >= since:
                    prefix = f"{stamp} ".encode() if query.get("timestamps") == "true" else b""
                    try:
                        self.wfile.write(prefix + line + b"\n")
                    except OSError:
                        return
            if over and len(pod.lines) == sent:
                return

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def _serve_logs(agent: Agent, folder: Path) -> ThreadingHTTPServer:
    """The kubelet's port, with a certificate that nobody checks."""
    certificate, key = folder / "kubelet.pem", folder / "kubelet.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=node"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
        timeout=60,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Logs", (_Logs,), {"agent": agent}))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
