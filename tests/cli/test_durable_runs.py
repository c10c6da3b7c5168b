"""Runs whose parameter servers have standbys, with real processes: servers are killed, and no update is lost."""

import contextlib
import io
import json
import os
import re
import signal
import sqlite3
import sys
import threading

import pytest

from tensorfleet.cli.engines.base import RunOptions, TaskResources
from tensorfleet.cli.engines.local import ProcessEngine
from tensorfleet.cli.output import Output
from tensorfleet.cli.plan import Wishes
from tensorfleet.cli.run import Launcher
from tensorfleet.cli.run_request import RunRequest
from tensorfleet.cli.run_settings import RunSettings
from tensorfleet.cli.task_counts import Asked
from tensorfleet.testing.cluster import free_addresses
from tests.support.launching import launched, run
from tests.support.waiting import in_background, until

pytestmark = pytest.mark.slow  # left out by `make quick`

# Counts on a parameter server, and compares with its own count after each step.
COUNT = """
import os, time
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    total = tf.get_variable("total", [4], tf.float32, tf.zeros_initializer())
    more = tf.assign_add(total, tf.ones([4]))
count, said = 0, 0.0
with tf.train.MonitoredTrainingSession(server.target, is_chief=True) as sess:
    while not os.path.exists("end"):
        value = sess.run(more)
        count += 1
        assert value.tolist() == [count] * 4, (value, count)
        if time.monotonic() - said > 0.1:
            said = time.monotonic()
            print("count", count, flush=True)
        time.sleep(0.002)
print("counted all", flush=True)
"""
DURABLE = ("run", "--dashboard", "off", "--name", "r", "--replicas", "1", "--ps", "1", "--workers", "1")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "train.py").write_text(COUNT)
    return tmp_path


def tasks_of(here):
    """What is known of the tasks of the run."""
    (path,) = (here / "state").glob("*.json")
    return json.loads(path.read_text())["tasks"]


def kill(here, *labels, number=signal.SIGKILL):
    """Sends a signal to tasks of the run."""
    for pid in [tasks_of(here)[label]["pid"] for label in labels]:
        os.kill(pid, number)


def test_training_goes_on_when_the_parameter_server_and_then_its_successor_are_killed(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("ps/0 leads with ps-standby/0 as its standby (epoch 1).")
        launch.read_until("count ", 3)
        listed = run(here, "ps").stdout
        assert re.search(r"ps-standby/0\s+running\s+pid \d+\s+127.0.0.1:", listed)
        kill(here, "ps/0")
        launch.read_until(
            "ps/0 died (signal 9); ps-standby/0 leads it now (epoch 2); starting a new standby."
        )
        launch.read_until("ps-standby/0 leads with ps/0 as its standby (epoch 3).")
        kill(here, "ps-standby/0")
        launch.read_until("ps-standby/0 died (signal 9); ps/0 leads it now (epoch 4)")
        launch.read_until("ps/0 leads with ps-standby/0 as its standby (epoch 5).")
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0, done.stdout + done.stderr
    assert "counted all" in done.stdout and "FAILED" not in done.stderr
    assert (here / "runs" / "r" / "ps-standby-0.log").exists()


def test_a_parameter_server_that_is_stopped_is_replaced(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        launch.read_until("count ", 3)
        kill(here, "ps/0", number=signal.SIGSTOP)
        launch.read_until("ps-standby/0 leads it now (epoch 2)")
        launch.read_until("ps-standby/0 leads with ps/0 as its standby (epoch 3).")
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr


def test_the_primary_goes_on_without_its_standby(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        launch.read_until("count ", 3)
        kill(here, "ps-standby/0")
        launch.read_until(
            "ps-standby/0 died (signal 9); ps/0 goes on alone (epoch 2); starting a new standby."
        )
        launch.read_until("ps/0 leads with ps-standby/0 as its standby (epoch 3).")
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr


def test_the_run_fails_when_both_servers_are_gone(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        launch.read_until("count ", 3)
        kill(here, "ps/0", "ps-standby/0")
        done = launch.end()
    assert done.code == 137, done.stdout + done.stderr
    assert "ps/0 and its standby are both gone: updates since the last checkpoint are lost." in done.stdout
    assert "was killed by SIGKILL" in done.stderr


def test_an_error_in_the_script_of_the_parameter_server_fails_the_run(here):
    script = COUNT.replace("    server.join()", "    raise ValueError('out of luck')")
    (here / "train.py").write_text(script)
    done = run(here, *DURABLE, "train.py")
    assert done.code == 1, done.stdout + done.stderr
    assert "FAILED: ps/0 exited with code 1" in done.stderr and "out of luck" in done.stderr
    assert "are both gone" not in done.stdout


def test_an_interrupt_ends_a_run_with_standbys(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("count ", 3)
        launch.process.send_signal(signal.SIGINT)
        done = launch.end()
    assert done.code == 130, done.stdout + done.stderr
    assert "leads it now" not in done.stdout


class MovingEngine(ProcessEngine):
    """Each task has a machine of its own, which dies with it."""

    def start(self, task, listener):
        return super().start(task, _Losing(listener))


class _Losing:
    """Says of each task that was killed that its machine has died."""

    def __init__(self, listener):
        self.on_line, self.on_place, self.on_note = listener.on_line, listener.on_place, listener.on_note
        self._listener = listener

    def on_exit(self, label, code, lost=None):
        self._listener.on_exit(label, code, "its machine has died" if code == -signal.SIGKILL else None)


class _Lines(Output):
    """Keeps what a run prints."""

    def __init__(self, labels, logs):
        super().__init__(labels, io.StringIO(), logs)

    def until(self, text, times=1):
        until(lambda: self._stream.getvalue().count(text) >= times, text)


def test_servers_whose_machines_die_come_back_at_other_addresses(here, monkeypatch):
    monkeypatch.chdir(here)
    monkeypatch.setenv("TENSORFLEET_STATE", str(here / "state"))
    engine = MovingEngine(RunOptions("moving", here / "train.py", here / "logs"))
    request = RunRequest.of(Wishes("train.py"), Asked(ps=1, workers=1), engine, TaskResources(), durable=True)
    tasks, pairs = request.planned_at(engine.reserve(request.wanted, None))
    lines = _Lines([task.label for task in tasks], here / "logs")
    wanted = {one.label: one for one in request.wanted}
    settings = RunSettings("moving", "train.py", here / "logs")
    launcher = Launcher(tasks, engine, settings, lines, wanted=wanted, pairs=pairs)
    running = in_background(launcher.go)
    try:
        lines.until("as its standby (epoch 1).")
        lines.until("count ", 3)
        before = tasks_of(here)
        kill(here, "ps/0")
        lines.until("ps/0 is lost (its machine has died); ps-standby/0 leads it now (epoch 2)")
        lines.until("as its standby (epoch 3).")
        kill(here, "ps-standby/0")
        lines.until("ps/0 leads it now (epoch 4)")
        lines.until("as its standby (epoch 5).")
        after = tasks_of(here)
        (here / "end").touch()
        assert running.result(60) == 0
    finally:
        engine.close()
    lines.until("counted all")
    for label in ("ps/0", "ps-standby/0"):
        assert before[label]["address"] != after[label]["address"]


def test_a_cluster_that_was_started_by_hand_is_guarded(here):
    ps, standby, worker = [at for found in free_addresses(ps=2, worker=1).values() for at in found]
    cluster = json.dumps({"ps": [ps], "worker": [worker]})
    secret = {"TENSORFLEET_TOKEN": "a token of this test alone"}
    places = {**secret, "TENSORFLEET_PLACES": json.dumps([ps, standby])}
    flags = (f"--ps_hosts={ps}", f"--worker_hosts={worker}")
    stand_by = ("standby", "--task", "ps/0", "--cluster", cluster, "--listen")
    guard = ("guard", "--cluster", cluster, "--task", f"ps/0={ps},{standby}")
    with (
        launched(here, "train.py", *flags, "--job_name=ps", **places) as first,
        launched(here, *stand_by, standby, **secret) as second,
        launched(here, *guard, **secret) as guarding,
        launched(here, "train.py", *flags, "--job_name=worker", **secret) as working,
    ):
        guarding.read_until("ps/0 leads with ps-standby/0 as its standby (epoch 1).")
        working.read_until("count ", 3)
        first.kill_all()
        guarding.read_until("ps-standby/0 leads it now (epoch 2); start another standby there.")
        guarding.read_until(f"ps/0 needs a standby at {ps}.")
        with launched(here, *stand_by, ps, **secret) as third:
            guarding.read_until("ps-standby/0 leads with ps/0 as its standby (epoch 3).")
            second.kill_all()
            guarding.read_until("ps/0 leads it now (epoch 4)")
            ended = threading.Thread(target=working.end)
            ended.start()
            (here / "end").touch()
            ended.join(60)
            assert working.code == 0 and "counted all" in working.stdout, working.stdout + working.stderr
            third.kill_all()
        guarding.process.send_signal(signal.SIGINT)
        assert guarding.end().code == 0
    assert "Nobody guards the tasks now" in guarding.stdout


def goes_on(launch):
    """Waits until the worker has counted further."""
    launch.read_until("count ", launch.stdout.count("count ") + 3)


def moved(here, *arguments):
    """What `tensorfleet move` prints."""
    done = run(here, "move", "r", "ps/0", *arguments)
    assert done.code == 0, done.stdout + done.stderr
    return done.stdout


def test_a_parameter_server_is_moved_to_its_standby_and_back(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        goes_on(launch)
        before = tasks_of(here)
        text = "ps/0 hands over; ps-standby/0 leads it now with ps/0 as its standby (epoch 3)."
        told = moved(here)
        assert text in told
        assert told.endswith(f"ps/0 is led by ps-standby/0 at {before['ps-standby/0']['address']} now.\n")
        launch.read_until(text)
        goes_on(launch)
        moved(here)
        launch.read_until(
            "ps-standby/0 hands over; ps/0 leads it now with ps-standby/0 as its standby (epoch 5)."
        )
        goes_on(launch)
        assert tasks_of(here) == before
        kill(here, "ps/0")
        launch.read_until("ps-standby/0 leads it now (epoch 6)")
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr


def test_a_parameter_server_is_moved_to_a_new_process(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        goes_on(launch)
        before = tasks_of(here)
        told = moved(here, "--to", "localhost")
        after = tasks_of(here)
        assert "ps-standby/0 moves; ps/0 goes on alone (epoch 2); starting a new standby." in told
        assert after["ps-standby/0"]["address"] != before["ps-standby/0"]["address"]
        assert after["ps/0"]["address"] == before["ps-standby/0"]["address"]
        assert f"ps/0 is led by ps-standby/0 at {after['ps-standby/0']['address']} now." in told
        assert all(after[label]["pid"] != before[label]["pid"] for label in ("ps/0", "ps-standby/0"))
        goes_on(launch)
        kill(here, "ps-standby/0")
        launch.read_until("ps-standby/0 died (signal 9); ps/0 leads it now")
        goes_on(launch)
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr


def test_a_move_is_an_event_of_the_page(here):
    durable = ["0" if option == "off" else option for option in DURABLE]
    with launched(here, *durable, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        moved(here)
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0, done.stdout + done.stderr
    with contextlib.closing(sqlite3.connect(next((here / "runs" / "r").glob("*.sqlite")))) as store:
        events = store.execute("SELECT task, text FROM events WHERE kind = 'decision'").fetchall()
    assert [task for task, _ in events] == ["ps/0"] * len(events)
    assert [text for _, text in events] == [
        "ps/0 leads with ps-standby/0 as its standby (epoch 1).",
        "ps/0 hands over; ps-standby/0 leads it now with ps/0 as its standby (epoch 3).",
    ]


def test_moves_that_cannot_be_are_refused_and_the_run_goes_on(here):
    with launched(here, *DURABLE, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        for arguments, text in (
            (("r", "ps/7"), "The run has no parameter server ps/7. It has ps/0."),
            (("r", "worker/0"), "The run has no parameter server worker/0. It has ps/0."),
            (("r", "ps/0", "--to", "mars"), "ps-standby/0 cannot be placed on mars. Write --to localhost."),
            (("other", "ps/0"), "No run named other on this machine."),
        ):
            done = run(here, "move", *arguments)
            assert done.code != 0
            assert text in " ".join(done.stderr.replace("│", " ").split()), done.stderr
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr


def test_a_run_without_standbys_says_how_to_get_them(here):
    with launched(
        here, "run", "--dashboard", "off", "--name", "r", "--ps", "1", "--workers", "1", "train.py"
    ) as launch:
        launch.read_until("count ", 1)
        done = run(here, "move", "r", "ps/0")
        assert done.code == 1
        assert "have no standbys" in done.stderr and "Start the run with --replicas 1." in done.stderr
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0, done.stdout + done.stderr


def test_a_move_whose_new_process_does_not_come_up_is_given_up(here):
    """On a host that is not there: the standby comes back to where it was."""
    hosts = "hosts:\n  here: {address: 127.0.0.1, python: PYTHON, via: 'env sh -c'}\n"
    hosts += "  gone: {address: 127.0.0.2, via: 'false'}\n"
    jobs = "jobs:\n  ps: {here: 1}\n  ps-standby: {here: 1}\n  worker: {here: 1}\n"
    port = free_addresses(ps=1)["ps"][0].rpartition(":")[2]
    hosts = hosts.replace("PYTHON", f"{sys.executable}, first_port: {port}")
    (here / "cluster.yaml").write_text(hosts + jobs)
    durable = ("run", "--dashboard", "off", "--name", "r", "--replicas", "1", "--cluster", "cluster.yaml")
    with launched(here, *durable, "train.py") as launch:
        launch.read_until("as its standby (epoch 1).")
        goes_on(launch)
        before = tasks_of(here)
        done = run(here, "move", "r", "ps/0", "--to", "gone", "--timeout", "3")
        assert done.code == 1 and "ps/0 was not moved within 3 s." in done.stderr, done.stderr
        launch.read_until("ps/0 leads with ps-standby/0 as its standby", 2)
        after = tasks_of(here)
        assert {label: task["address"] for label, task in after.items()} == {
            label: task["address"] for label, task in before.items()
        }
        moved(here, "--to", "here")
        goes_on(launch)
        (here / "end").touch()
        done = launch.end()
    assert done.code == 0 and "counted all" in done.stdout, done.stdout + done.stderr
