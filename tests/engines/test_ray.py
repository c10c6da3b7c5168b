"""Runs on a real Ray cluster of three nodes on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from concurrent import futures

import psutil
import pytest

from tensorfleet.cli import plan as planning
from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tests.engines.ray_cluster import (
    SECONDS,
    TRAIN,
    actor_of,
    others_hold,
    pid_of,
    ray_cluster,
    tasks_of,
    wait_until,
)

pytestmark = pytest.mark.engines
pytest.importorskip("ray")


class Recorder:
    """A listener that remembers, and waits for what it has not heard yet."""

    def __init__(self):
        self.lines, self.exits, self.places, self.notes = [], {}, {}, []
        self.all_exits = []
        self._changed = threading.Condition()

    def on_line(self, label, text):
        self._add(lambda: self.lines.append((label, text)))

    def on_exit(self, label, code, lost=None):
        self.all_exits.append((label, code, lost))
        self._add(lambda: self.exits.__setitem__(label, (code, lost)))

    def on_place(self, label, place):
        self._add(lambda: self.places.__setitem__(label, place))

    def on_note(self, text):
        self._add(lambda: self.notes.append(text))

    def until(self, condition, what):
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), SECONDS):
                raise AssertionError(
                    f"timed out waiting for {what}: {self.all_exits} {self.notes} {self.lines[-20:]}"
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


def started(engine, heard, script, wanted, *arguments):
    tasks = tasks_at(engine.reserve(wanted, heard), script, *arguments)
    return {label: engine.start(task, heard) for label, task in tasks.items()}


def began(times):
    return lambda r: sum(text == "began" for _, text in r.lines) == times


def wanted_tasks(ps=1, workers=2, **resources):
    needs = TaskResources(**resources)
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


@pytest.mark.parametrize(
    ("arguments", "host"), [([], "127.0.0.1"), (["autoscaling=1"], r"(?!127\.)\d+\.\d+\.\d+\.\d+")]
)
def test_tasks_train_to_their_end_and_leave_nothing(cluster, script, arguments, host):
    """Within one machine without its network, unless other machines may join."""
    heard = Recorder()
    with engine_at(cluster, script, engine_arguments=arguments) as engine:
        places = engine.reserve(wanted_tasks(), heard)
        assert all(re.fullmatch(rf"{host}:\d+", place.address) for place in places.values())
        tasks = tasks_at(places, script)
        running = {label: engine.start(task, heard) for label, task in tasks.items()}
        heard.until(lambda r: len(r.exits) == 2, "the workers' end")
        running["ps/0"].send(signal.SIGTERM)
        heard.until(lambda r: "ps/0" in r.exits, "the end of the ps")
    assert heard.exits["worker/0"] == heard.exits["worker/1"] == (0, None)
    assert [label for label, text in heard.lines if text == "trained"]
    assert not [text for _, text in heard.lines if "a" * 64 in text]


def test_a_fast_printer_is_followed_without_a_line_lost(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "print.py"
    script.write_text("import sys\nfor i in range(100000): print('line', i)\nsys.exit(7)\n")
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        started(engine, heard, script, wanted_tasks(0, 1))
        heard.until(lambda r: r.exits, "the end")
    assert heard.exits == {"worker/0": (7, None)}
    assert [text for _, text in heard.lines] == [f"line {i}" for i in range(100000)]


def test_a_line_arrives_when_it_is_printed(cluster, tmp_path, monkeypatch):
    """The script goes on when its line has been heard."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "print.py"
    script.write_text(
        "import os, time\n"
        "for i in range(20):\n"
        "    print(i)\n"
        "    while not os.path.exists(f'heard{i}'): time.sleep(0.01)\n"
    )
    heard = Recorder()
    monkeypatch.setattr(heard, "on_line", lambda label, text: (tmp_path / f"heard{text}").touch())
    with engine_at(cluster, script) as engine:
        started(engine, heard, script, wanted_tasks(0, 1))
        heard.until(lambda r: r.exits, "the end")
    assert heard.exits == {"worker/0": (0, None)}


def test_signals_reach_a_task_and_what_it_started(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "wait.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)', '-m tensorfleet'])\n"
        "print('waits', flush=True)\ntime.sleep(300)\n"
    )
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        running = started(engine, heard, script, wanted_tasks(0, 3))
        heard.until(lambda r: len(r.lines) == 3, "the tasks")
        # An actor, a task and its child each.
        wait_until(lambda: len(tasks_of(cluster)) == 9, "the children")
        for label, number in (("worker/0", signal.SIGTERM), ("worker/1", signal.SIGKILL)):
            running[label].send(number)
        heard.until(lambda r: len(r.exits) == 2, "two ends")
        assert heard.exits == {"worker/0": (-15, None), "worker/1": (-9, None)}
        running["worker/0"].send(signal.SIGTERM)  # it has ended already


def test_a_stopped_task_ends_with_its_actor(cluster, script):
    """It cannot end itself when its lifeline is cut."""
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        started(engine, heard, script, wanted_tasks(), "--until=1e9")
        heard.until(began(2), "the workers")
        stopped = pid_of(cluster, "--job_name=worker", "--task_index=1")
        os.killpg(stopped, signal.SIGSTOP)
        os.kill(actor_of(stopped), signal.SIGKILL)
        heard.until(lambda r: "worker/1" in r.exits, "the loss of the worker")
        code, lost = heard.exits["worker/1"]
        assert code == -9
        assert re.fullmatch(r"its Ray actor on node [\d.]+ is dead: its worker process has died", lost)
        wait_until(lambda: not psutil.pid_exists(stopped), "the task's end")


def test_a_killed_task_can_be_started_again_at_its_place(cluster, script):
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        places = engine.reserve(wanted_tasks(), heard)
        tasks = tasks_at(places, script, "--until=1e9")
        for task in tasks.values():
            engine.start(task, heard)
        heard.until(began(2), "the workers")
        for job in ("--job_name=worker", "--job_name=ps"):
            os.kill(pid_of(cluster, job, "--task_index=0"), signal.SIGKILL)
        heard.until(lambda r: {"worker/0", "ps/0"} <= r.exits.keys(), "the ends")
        assert heard.exits["worker/0"] == heard.exits["ps/0"] == (-9, None)
        for label in ("ps/0", "worker/0"):
            engine.start(tasks[label], heard)
        heard.until(began(3), "the worker again")


def test_tasks_of_a_dead_node_get_another_place(script):
    heard = Recorder()
    with ray_cluster(3) as cluster, engine_at(cluster, script) as engine:
        places = engine.reserve(wanted_tasks(2, 2), heard)
        homes = {label: place.host.node_id for label, place in places.items()}
        assert homes["ps/0"] != homes["ps/1"]
        for task in tasks_at(places, script, "--until=1e9").values():
            engine.start(task, heard)
        heard.until(began(2), "the workers")
        node = next(homes[ps] for ps in ("ps/0", "ps/1") if homes[ps] in cluster.others)
        victims = {label for label, home in homes.items() if home == node}
        cluster.kill_node(node)
        heard.until(lambda r: victims <= r.exits.keys(), "the loss of the node")
        for label in victims:
            assert heard.exits[label] == (-9, f"node {places[label].host.name} has died"), label
            job, _, index = label.partition("/")
            engine.seek(Wanted(job, int(index), job == "ps"), heard)
        heard.until(lambda r: victims == r.places.keys(), "new places")
        for label in victims:
            assert heard.places[label].host.node_id not in (node, "")
            engine.start(tasks_at({**places, **heard.places}, script)[label], heard)
        assert len(tasks_of(cluster)) >= 4


def test_one_more_task_gets_a_place_when_there_is_room(cluster, script):
    heard = Recorder()
    with engine_at(cluster, script) as engine:
        engine.reserve(wanted_tasks(1, 1), heard)
        with others_hold(cluster, 1):
            engine.seek(Wanted("worker", 1, False, TaskResources(cpus=1.5)), heard)
            engine.seek(Wanted("worker", 2, False, TaskResources(cpus=0.25)), heard)
            heard.until(lambda r: "worker/2" in r.places, "a small place")
            assert "worker/1" not in heard.places
        heard.until(lambda r: "worker/1" in r.places, "a larger place")


def test_what_can_never_fit_is_refused_at_once(cluster, script):
    with engine_at(cluster, script) as engine:
        with pytest.raises(EngineError, match="each needs 3 CPU, and the largest node has 2 CPU"):
            engine.reserve(wanted_tasks(1, 1, cpus=3.0), Recorder())
    with engine_at(cluster, script) as engine:
        with pytest.raises(
            EngineError, match="never hold this run: 4 worker .1.5 CPU each.* room for 3 of the 4"
        ):
            engine.reserve(wanted_tasks(0, 4, cpus=1.5), Recorder())
    with engine_at(cluster, script) as engine:
        with pytest.raises(EngineError, match="together 7 CPU; it has 6 CPU"):
            engine.reserve(wanted_tasks(3, 4), Recorder())


def test_no_room_is_told_with_numbers_and_waited_for(cluster, script):
    heard = Recorder()
    with others_hold(cluster, 1):
        with engine_at(cluster, script, wait_seconds=0) as engine:
            with pytest.raises(
                EngineError,
                match=r"no room. Asked for 2 ps .1 CPU each. and 2 worker.*; free: \d CPU of 6 CPU",
            ):
                engine.reserve(wanted_tasks(2, 2), heard)
        with engine_at(cluster, script, wait_seconds=4) as engine:
            with pytest.raises(EngineError, match="no room after 4 s"):
                engine.reserve(wanted_tasks(2, 2), heard)
    assert heard.notes[0].startswith("Waiting for room on Ray. Asked for 2 ps")


def test_a_run_begins_when_others_give_room_back(cluster, script):
    heard, release = Recorder(), threading.Event()

    def hold():
        with others_hold(cluster, 2):
            held.set()
            assert release.wait(SECONDS)

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(SECONDS)
    with engine_at(cluster, script) as engine:
        heard.on_note = lambda text: release.set()
        assert len(engine.reserve(wanted_tasks(), heard)) == 3
    holder.join(SECONDS)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "127.0.0.1:1",
            "Cannot reach a Ray cluster at 127.0.0.1:1: Connection refused. Start one with `ray start",
        ),
        ("http://127.0.0.1:8265", "ray job submit --address http://127.0.0.1:8265"),
        ("nonsense", "'nonsense' is not the address of a Ray cluster"),
    ],
)
def test_a_wrong_address_is_told(address, message, script):
    from tensorfleet.cli.engines.ray import RayEngine

    engine = RayEngine(RunOptions("test", script, address=address))
    with pytest.raises(EngineError, match=message):
        engine.reserve(wanted_tasks(), Recorder())
    engine.close()


def test_another_grpc_server_is_not_taken_for_a_cluster(cluster):
    grpc = pytest.importorskip("grpc")
    from tensorfleet.cli.engines.ray_probe import is_head

    host, port = cluster.address.split(":")
    assert is_head(host, int(port), SECONDS)
    with futures.ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        assert not is_head("127.0.0.1", port, SECONDS)
        server.stop(0).wait(SECONDS)


def test_a_script_that_is_not_there_is_told(cluster, tmp_path):
    with engine_at(cluster, tmp_path / "train.py") as engine:
        with pytest.raises(EngineError, match="No file .*train.py"):
            engine.reserve(wanted_tasks(), Recorder())


def test_a_folder_travels_with_the_modules_in_it(cluster, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / "runs" / "test").mkdir(parents=True)
    (folder / "runs" / "test" / "log").write_text("a log")
    (folder / "beside.py").write_text("WORD = 'beside'\n")
    script = folder / "train.py"
    script.write_text("import os, beside\nprint(beside.WORD, os.getcwd(), os.path.exists('runs'))\n")
    monkeypatch.chdir(tmp_path)
    heard = Recorder()
    options = {"engine_arguments": [f"runtime_env.working_dir={folder}"], "log_dir": folder / "runs" / "test"}
    with engine_at(cluster, script.relative_to(tmp_path), **options) as engine:
        started(engine, heard, script.relative_to(tmp_path), wanted_tasks(0, 1))
        heard.until(lambda r: r.exits, "the end")
    assert heard.exits == {"worker/0": (0, None)}, heard.lines
    word, where, has_logs = heard.lines[0][1].split()
    assert (word, has_logs) == ("beside", "False")
    assert str(tmp_path) not in where
    assert heard.notes == [
        f"Ray sends a copy of {folder} to the nodes. Save checkpoints elsewhere, in a folder that all nodes share."
    ]


def test_findings_tell_of_the_cluster_and_of_each_node(cluster):
    from tensorfleet.cli.engines.ray import check

    findings = list(check(cluster.address))
    assert [finding.what for finding in findings] == ["Ray", "cluster", "room", "node", "node", "node"]
    assert {finding.verdict for finding in findings} == {"ok"}, findings
    assert "6 CPU" in findings[2].found
    assert [finding.verdict for finding in check("127.0.0.1:1")] == ["ok", "bad"]
