"""A real Ray cluster of several nodes on this machine, as a process of its own that a test talks to.

    python -m tests.engines.ray_cluster NODES [PORT]

With a port, the job server of `ray job submit` listens there. It prints the cluster's address, takes commands as lines
("add", "kill NODE", "drain NODE", "behead"), answers each with a line, and ends the cluster with its standard input: also when the tests are killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

SECONDS = 60
_MARK = "TENSORFLEET_TEST_RAY"
# Small: a machine with two cores has three of them.
_NODE = {"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False}


#: a script for TensorFlow whose workers add to one variable on the ps until it is large
TRAIN = """
import os, sys, time
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_float("until", 20.0, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        more = tf.assign_add(total, 1.0)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=FLAGS.task_index == 0) as sess:
        print("began", flush=True)
        while sess.run(more) < FLAGS.until:
            time.sleep(0.01)
        print("trained", flush=True)
"""


class RayCluster:
    """The cluster, from the outside."""

    def __init__(self, nodes: int = 3, job_port: int | None = None, **environment: str) -> None:
        # Ray's sockets are in there: a path of more than 107 bytes would be too long.
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        (self.folder / "ray").mkdir()
        self._mark = f"{_MARK}={self.folder.name}"
        own = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "TENSORFLEET_TOKEN"))}
        self.environment = {
            **own,
            "RAY_TMPDIR": str(self.folder),
            "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
            # Five refused connections tell that a node has died. A busy one has as long as ever to answer.
            "RAY_health_check_period_ms": "1000",
            _MARK: self.folder.name,
            **environment,
        }
        self._errors = (self.folder / "errors").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.ray_cluster", str(nodes), str(job_port or "")],
            cwd=Path(__file__).parents[2],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._has_head = True
        answer = self._answer()
        self.address: str = answer["address"]
        #: the nodes that can be killed: all but the first
        self.others: list[str] = answer["others"]

    def add_node(self) -> str:
        """One more node; gives its id."""
        self.others.append(self._ask("add")["node"])
        return self.others[-1]

    def kill_node(self, node_id: str) -> None:
        """Ends a node as a machine ends that loses its power."""
        self.others.remove(node_id)
        self._ask(f"kill {node_id}")

    def drain_node(self, node_id: str) -> None:
        """Tells Ray that a node is about to be taken away, as the watcher of a spot machine does."""
        self._ask(f"drain {node_id}")

    def kill_head(self) -> None:
        """Ends what has the state of the cluster. Its processes end a minute later."""
        self._ask("behead")
        self._has_head = False

    def processes(self) -> list[psutil.Process]:
        """What is there of this cluster, other than tasks of a run."""
        result = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                text = Path(f"/proc/{process.pid}/environ").read_bytes()
                if self._mark.encode() in text and process.status() != psutil.STATUS_ZOMBIE:
                    result.append(process)
        return result

    def close(self) -> None:
        """Ends every process of the cluster, and removes its folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS)
        self._process.kill()
        self._process.wait(SECONDS)
        self._process.stdout.close()
        self._errors.close()
        _, alive = psutil.wait_procs(self.processes(), timeout=10)
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(alive, timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)
        # Without a head, nobody tells them to.
        assert not (alive and self._has_head), f"Ray's own processes did not end: {alive}"

    def _ask(self, command: str) -> dict:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        limit = time.monotonic() + SECONDS
        while time.monotonic() < limit:
            if select.select([self._process.stdout], [], [], 1)[0]:
                line = self._process.stdout.readline()
                if line.startswith("{"):
                    return json.loads(line)
                if not line:
                    break
        raise AssertionError(f"no answer of the Ray cluster:\n{(self.folder / 'errors').read_text()[-3000:]}")


@contextlib.contextmanager
def ray_cluster(nodes: int = 3, job_port: int | None = None, **environment: str) -> Iterator[RayCluster]:
    """A cluster; at the end of the block nothing of it is left."""
    cluster = RayCluster(nodes, job_port, **environment)
    try:
        yield cluster
    finally:
        cluster.close()


def tasks_of(cluster):
    """The processes of tasks, and the actors that own them."""
    result = []
    for process in cluster.processes():
        with contextlib.suppress(Exception):
            command = " ".join(process.cmdline())
            if "-m tensorfleet" in command or command.startswith(("ray::TaskActor", "ray::TrainingActor")):
                result.append(command)
    return result


def pid_of(cluster, *arguments):
    """The process of a task with these arguments, None if there is none."""
    for process in cluster.processes():
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if command[1:3] == ["-m", "tensorfleet"] and set(arguments) <= set(command):
                return process.pid
    return None


def actor_of(pid):
    """The process that owns a task's."""
    return psutil.Process(pid).ppid()


def node_of(pid):
    """The id of the node that a task is on: its actor is a child of the node's raylet."""
    words = psutil.Process(actor_of(pid)).parent().cmdline()
    return next(word for word in words if word.startswith("--node_id=")).partition("=")[2]


@contextlib.contextmanager
def others_hold(cluster, cpus_per_node, nodes=3):
    """Another program of this cluster's has some of its room."""
    program = (
        f"import ray, sys\nray.init({cluster.address!r}, log_to_driver=False)\n"
        f"group = ray.util.placement_group([{{'CPU': {cpus_per_node}}}] * {nodes}, strategy='STRICT_SPREAD')\n"
        "assert group.wait(60)\nprint('has it', flush=True)\nsys.stdin.read()\n"
    )
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", program], text=True, **options) as process:
        assert process.stdout.readline() == "has it\n"
        yield
        process.stdin.close()
        process.wait(SECONDS)


def wait_until(condition, what, seconds=SECONDS):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"timed out waiting for {what}"
        time.sleep(0.05)


def main(nodes: int, job_port: str) -> None:
    from ray._raylet import GcsClient
    from ray.cluster_utils import Cluster

    def answer(**values: object) -> None:
        print(json.dumps(values), flush=True)

    jobs = {"include_dashboard": True, "dashboard_port": int(job_port)} if job_port else {}
    cluster = Cluster(initialize_head=True, head_node_args={**_NODE, **jobs})
    others = {node.node_id: node for node in (cluster.add_node(**_NODE) for _ in range(nodes - 1))}
    cluster.wait_for_nodes()
    answer(address=cluster.address, others=list(others))
    for line in sys.stdin:
        command, _, node_id = line.strip().partition(" ")
        if command == "add":
            node = cluster.add_node(**_NODE)
            others[node.node_id] = node
            answer(node=node.node_id)
        elif command == "behead":
            cluster.head_node.kill_gcs_server()
            answer()
        elif command == "drain":
            preempted, deadline = 2, int((time.time() + SECONDS) * 1000)
            assert GcsClient(address=cluster.address).drain_node(node_id, preempted, "notice", deadline)[0]
            answer()
        else:
            cluster.remove_node(others.pop(node_id), allow_graceful=False)
            answer()
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
