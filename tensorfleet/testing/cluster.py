"""Clusters of real processes for tests: tasks that can be killed, stopped, continued and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

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


class ProcessCluster:
    """Servers in processes of their own, ended with the `with` block, whatever happens inside.

        with ProcessCluster(ps=1, worker=2) as cluster:
            with tf.Session(cluster.target("worker", 0)) as sess:
                ...
                cluster.kill("ps", 0)

    `here` names tasks that the test itself plays: no process is started for them.
    """

    def __init__(self, here: Any = (), env: dict[str, str] | None = None, **jobs: int) -> None:
        self.cluster = free_addresses(**jobs)
        self._env = {**os.environ, **(env or {})}
        self._here = set(here)
        self._processes: dict[tuple[str, int], subprocess.Popen] = {}

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
        """What to pass to `tf.Session` for a session on that task."""
        return f"grpc://{self.cluster[job][index]}"

    def start(self, job: str, index: int, wait: bool = True) -> None:
        """Starts a task, or starts it again."""
        command = [
            sys.executable,
            "-m",
            "tensorfleet.testing.task",
            json.dumps(self.cluster),
            job,
            str(index),
        ]
        # The pipe's other end closes with this process: a task never outlives its test.
        self._processes[job, index] = subprocess.Popen(command, stdin=subprocess.PIPE, env=self._env)
        if wait:
            self.wait_until_up(job, index)

    def wait_until_up(self, job: str, index: int) -> None:
        """Waits until a task accepts connections."""
        host, port = self.cluster[job][index].rsplit(":", 1)
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

    def process(self, job: str, index: int) -> subprocess.Popen:
        """The process of a task."""
        return self._processes[job, index]

    def signal(self, job: str, index: int, number: int) -> None:
        """Sends a task a signal: SIGSTOP and SIGCONT make it silent for a while."""
        self._processes[job, index].send_signal(number)

    def kill(self, job: str, index: int) -> None:
        """Kills a task with SIGKILL and waits until it is gone."""
        process = self._processes.pop((job, index))
        process.kill()
        process.wait(10)
        if process.stdin is not None:
            process.stdin.close()

    def close(self) -> None:
        """Ends every task."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for job, index in list(self._processes):
            process = self._processes[job, index]
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
            self.kill(job, index)
