"""A Kubernetes cluster on this machine: etcd, the real API server and controllers, and our agent for the nodes."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.kubernetes_agent import Agent, Client

urllib3 = pytest.importorskip("urllib3")  # it comes with the extra [kubernetes]

BIN = Path(__file__).parents[2] / "build" / "kubernetes" / "bin"
ADMIN, STRANGER = "admin-token-of-the-tests", "stranger-token-of-the-tests"
_START_SECONDS = 120
_CONTROLLERS = "job,garbagecollector,ttl-after-finished,nodelifecycle,podgc,namespace"
_GATES = "TTLAfterFinished=true"


class KubernetesCluster:
    """The cluster, and the ways to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self._etcd_port, self._peer_port = _free_ports(3)
        self.host = f"https://127.0.0.1:{self.port}"
        self.authority = folder / "certificates" / "apiserver.crt"
        self.client = Client(self.host, ADMIN, self.authority)
        self._processes: list[subprocess.Popen] = []
        self.agent: Agent | None = None

    def start(self) -> None:
        """Starts everything, and waits until it answers."""
        self._start_etcd()
        self._start_api_server()
        self._wait_for_answer()
        self._start_controllers()
        pods = self.folder / "pods"
        pods.mkdir()
        self.agent = Agent(self.client, pods)
        self.agent.start()

    def close(self) -> None:
        """Ends everything."""
        if self.agent is not None:
            self.agent.close()
        for process in reversed(self._processes):
            process.send_signal(signal.SIGKILL)
            process.wait(20)

    def kubeconfig(self, name: str = "config", token: str = ADMIN, host: str | None = None) -> Path:
        """A kubeconfig for the cluster."""
        path = self.folder / name
        path.write_text(
            f"""apiVersion: v1
kind: Config
current-context: tests
clusters: [{{name: here, cluster: {{server: "{host or self.host}", certificate-authority: {self.authority}}}}}]
users: [{{name: me, user: {{token: {token}}}}}]
contexts: [{{name: tests, context: {{cluster: here, user: me}}}}]
"""
        )
        return path

    def objects(self, kind: str, run: str) -> list[str]:
        """The names of a run's objects of a kind."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        path = f"{group}/namespaces/default/{kind}?labelSelector=tensorfleet-run%3D{run}"
        return [item["metadata"]["name"] for item in self.client.ask("GET", path)["items"]]

    def left_of(self, run: str) -> list[str]:
        """Everything that a run has in the cluster."""
        kinds = ("pods", "jobs", "services", "secrets", "configmaps")
        return [f"{kind}/{name}" for kind in kinds for name in self.objects(kind, run)]

    def restart_api_server(self) -> None:
        """The API server dies and comes back."""
        server = self._processes.pop(1)
        server.kill()
        server.wait(20)
        self._start_api_server()
        self._processes.insert(1, self._processes.pop())
        self._wait_for_answer()

    def _start_etcd(self) -> None:
        mine = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        self._run(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls={mine}",
            f"--advertise-client-urls={mine}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _start_api_server(self) -> None:
        key = self.folder / "accounts.key"
        if not key.exists():
            subprocess.run(
                ["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=60
            )
        (self.folder / "tokens.csv").write_text(
            f'{ADMIN},admin,1,"system:masters"\n{STRANGER},stranger,2,"nobody"\n'
        )
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={self.folder}/certificates",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://tests",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--feature-gates={_GATES}",
        )

    def _start_controllers(self) -> None:
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('controllers')}",
            f"--controllers={_CONTROLLERS}",
            "--leader-elect=false",
            "--port=0",
            "--secure-port=0",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=4s",
            "--pod-eviction-timeout=2s",
            f"--feature-gates={_GATES}",
        )

    def _run(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(BIN / program), *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)

    def _wait_for_answer(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(RuntimeError, LookupError, urllib3.exceptions.HTTPError):
                self.client.ask("GET", "/api/v1/namespaces/default")
                return
            dead = [p.args[0] for p in self._processes if p.poll() is not None]
            assert not dead and time.monotonic() < deadline, (
                f"the API server does not start: {dead}, {self.folder}"
            )
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as sockets:
        opened = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in opened:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in opened]


@contextlib.contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """A cluster for the tests of a block."""
    cluster = KubernetesCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
