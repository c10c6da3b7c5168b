"""Runs on a real Ray cluster of three nodes on this machine."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

import pytest

from tensorfleet.cli import plan as planning
from tensorfleet.cli.engines.base import Resources, RunOptions, Wanted
from tests.engines.ray_cluster import ray_cluster

pytestmark = pytest.mark.engines
pytest.importorskip("ray")

SECONDS = 60

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


class Recorder:
    """A listener that remembers, and waits for what it has not heard yet."""

    def __init__(self):
        self.lines, self.exits, self.places, self.notes = [], {}, {}, []
        self._changed = threading.Condition()

    def on_line(self, label, text):
        self._add(lambda: self.lines.append((label, text)))

    def on_exit(self, label, code, lost=None):
        self._add(lambda: self.exits.__setitem__(label, (code, lost)))

    def on_place(self, label, place):
        self._add(lambda: self.places.__setitem__(label, place))

    def on_note(self, text):
        self._add(lambda: self.notes.append(text))

    def until(self, condition, what):
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), SECONDS):
                raise AssertionError(
                    f"timed out waiting for {what}: {self.exits} {self.notes} {self.lines[-20:]}"
                )

    def _add(self, act):
        with self._changed:
            act()
            self._changed.notify_all()


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as cluster:
        yield cluster


@contextlib.contextmanager
def engine_at(cluster, script, **options):
    """An engine; at the end of the block the cluster is as empty as before."""
    from tensorfleet.cli.engines.ray import RayEngine

    engine = RayEngine(RunOptions("test", script, address=cluster.address, **options))
    try:
        yield engine
    finally:
        engine.close()
        engine.close()
    wait_until(lambda: not tasks_of(cluster), "the end of all tasks")


def tasks_of(cluster):
    """The processes of tasks, and the actors that own them."""
    result = []
    for process in cluster.processes():
        with contextlib.suppress(Exception):
            command = " ".join(process.cmdline())
            if "-m tensorfleet" in command or command.startswith("ray::TaskActor"):
                result.append(command)
    return result


def wait_until(condition, what, seconds=SECONDS):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"timed out waiting for {what}"
        time.sleep(0.05)


def wanted_tasks(ps=1, workers=2, **resources):
    needs = Resources(**resources)
    servers = [Wanted("ps", i, True, needs) for i in range(ps)]
    return servers + [Wanted("worker", i, False, needs) for i in range(workers)]


def tasks_at(places, script, *arguments):
    cluster = {}
    for label, place in places.items():
        cluster.setdefault(label.partition("/")[0], []).append(place)
    return {
        t.label: t for t in planning.plan(planning.Wishes(str(script), list(arguments)), cluster, "a" * 64)
    }


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def test_tasks_train_to_their_end_and_leave_nothing(cluster, script):
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        places = engine.reserve(wanted_tasks(), heard)
        tasks = tasks_at(places, script)
        running = {label: engine.start(task, heard) for label, task in tasks.items()}
        heard.until(lambda r: len(r.exits) == 2, "the workers' end")
        running["ps/0"].send(signal.SIGTERM)
        heard.until(lambda r: "ps/0" in r.exits, "the end of the ps")
    assert heard.exits["worker/0"] == heard.exits["worker/1"] == (0, None)
    assert [label for label, text in heard.lines if text == "trained"]
    assert not [text for _, text in heard.lines if "a" * 64 in text]
