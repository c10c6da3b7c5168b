"""Clusters of real processes for tests: tasks that can be killed, stopped, continued and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import psutil

from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.testing import fork_server as nursery
from tensorfleet.testing.fork_server import Child
from tensorfleet.testing.proxy import Proxy

if TYPE_CHECKING:
    from tensorfleet.api.train.session_run_hook import SessionRunContext

_START_SECONDS = 60.0


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses now."""
    held = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def free_addresses(**jobs: int) -> dict[str, list[str]]:
    """A cluster at free ports of this machine: `free_addresses(ps=1, worker=2)`."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"localhost:{next(ports)}" for _ in range(n)] for job, n in jobs.items()}


def _is_stopped(pid: int) -> bool:
    """Whether a signal has stopped a process that is there still."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return True


class ProcessCluster:
    """Servers in separate processes, which always end with the `with` block.

        with ProcessCluster(ps=1, worker=2) as cluster:
            with tf.Session(cluster.target("worker", 0)) as sess:
                ...
                cluster.kill("ps", 0)

    `here` names tasks that the test itself plays, or starts later: no process is started for them. `proxied` names tasks
    that everybody else reaches through a network with faults: `cluster.network("ps", 0)`. What is done to tasks is printed.
    """

    def __init__(
        self,
        here: Iterable[tuple[str, int]] = (),
        env: dict[str, str] | None = None,
        proxied: Iterable[tuple[str, int]] = (),
        seed: int = 0,
        **jobs: int,
    ) -> None:
        self._addresses = free_addresses(**jobs)  # where tasks listen
        self._env = {**os.environ, **(env or {})}
        self._here = set(here)
        self._processes: dict[tuple[str, int], Child] = {}
        self._scripts: list[Child] = []
        self._networks: dict[tuple[str, int], Proxy] = {}
        for job, index in proxied:
            name = f"{job}/{index}"
            self._networks[job, index] = Proxy(self._addresses[job][index], seed + len(self._networks), name)
        #: where tasks are reached
        self.cluster = {
            job: [self._reached(job, index) for index in range(len(addresses))]
            for job, addresses in self._addresses.items()
        }

    def _reached(self, job: str, index: int) -> str:
        network = self._networks.get((job, index))
        return self._addresses[job][index] if network is None else network.address

    def __enter__(self) -> ProcessCluster:
        try:
            for job, addresses in self.cluster.items():
                for index in range(len(addresses)):
                    if (job, index) not in self._here:
                        self.start(job, index, wait=False)
            for job, index in list(self._processes):
                self.wait_until_up(job, index)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def target(self, job: str, index: int) -> str:
        """The target of a `tf.Session` on that task."""
        return f"grpc://{self.cluster[job][index]}"

    def spec(self, job: str, index: int) -> dict[str, list[str]]:
        """The cluster as one task sees it: its own listening address, and the addresses it reaches the others at."""
        result = {name: list(addresses) for name, addresses in self.cluster.items()}
        result[job][index] = self._addresses[job][index]
        return result

    def network(self, job: str, index: int) -> Proxy:
        """The network before a task that was named in `proxied`."""
        return self._networks[job, index]

    def start(self, job: str, index: int, wait: bool = True) -> None:
        """Starts a task, or starts it again."""
        self._processes[job, index] = nursery.start(
            f"{job}/{index}", cluster=self.spec(job, index), job=job, index=index, env=self._env
        )
        if wait:
            self.wait_until_up(job, index)

    def script(self, path: str | os.PathLike[str], *arguments: str) -> Child:
        """Runs a Python script in a process of its own, which ends with the cluster at the latest."""
        child = nursery.start(str(path), script=str(path), arguments=list(arguments), env=self._env)
        self._scripts.append(child)
        return child

    def wait_until_up(self, job: str, index: int) -> None:
        """Waits until a task accepts connections."""
        host, port = self._addresses[job][index].rsplit(":", 1)
        limit = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                process = self._processes[job, index]
                if process.poll() is not None:
                    raise RuntimeError(f"{job}/{index} ended with code {process.returncode}.") from None
                if time.monotonic() > limit:
                    raise TimeoutError(f"{job}/{index} did not start in {_START_SECONDS:.0f} s.") from None
                time.sleep(0.02)

    def process(self, job: str, index: int) -> Child:
        """The process of a task."""
        return self._processes[job, index]

    def signal(self, job: str, index: int, number: int) -> None:
        """Sends a task a signal."""
        self._processes[job, index].send_signal(number)

    def stop(self, job: str, index: int) -> None:
        """Makes a task silent with SIGSTOP: its connections stay open, and nobody answers."""
        print(f"[cluster] stops {job}/{index}", flush=True)
        self.signal(job, index, signal.SIGSTOP)
        pid = self._processes[job, index].pid
        limit = time.monotonic() + _START_SECONDS
        while not _is_stopped(pid) and time.monotonic() < limit:
            time.sleep(0.002)

    def resume(self, job: str, index: int) -> None:
        """Lets a silent task go on where it was, with SIGCONT."""
        print(f"[cluster] resumes {job}/{index}", flush=True)
        self.signal(job, index, signal.SIGCONT)

    def kill(self, job: str, index: int) -> None:
        """Kills a task with SIGKILL and waits until it is gone."""
        print(f"[cluster] kills {job}/{index}", flush=True)
        process = self._processes.pop((job, index))
        process.kill()
        process.wait(60)

    def close(self) -> None:
        """Ends every task."""
        processes = [*self._processes.values(), *self._scripts]
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
        self._processes.clear()
        for network in self._networks.values():
            network.close()


class FaultHook(SessionRunHook):
    """Injects a fault into a cluster at a step: `FaultHook({10: lambda: cluster.kill("ps", 0)})` before the tenth run.

    For `tf.train.MonitoredTrainingSession(hooks=[...])`. Each is done once, whatever happens to the session afterwards.
    """

    def __init__(self, faults: dict[int, Callable[[], None]]) -> None:
        self._faults = dict(faults)
        self.runs = 0

    def before_run(self, run_context: SessionRunContext) -> None:
        """Counts the runs, and injects the faults that are due."""
        self.runs += 1
        for step in sorted(s for s in self._faults if s <= self.runs):
            print(f"[cluster] at step {self.runs}:", flush=True)
            self._faults.pop(step)()
