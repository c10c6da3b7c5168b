"""Tasks at other addresses than their cluster knows them by."""

import json
import os
import re
import signal
import threading

import pytest

import tensorfleet as tf
from tensorfleet.cli.engines.base import EngineNode, RunOptions, TaskResources
from tensorfleet.cli.engines.local import ProcessEngine
from tensorfleet.cli.moves import Moves, unplaced
from tensorfleet.cli.plan import Place, Task, Wishes
from tensorfleet.cli.registry import runs
from tensorfleet.cli.run import Launcher
from tensorfleet.cli.run_request import RunRequest
from tensorfleet.cli.run_settings import RunSettings
from tensorfleet.cli.task_counts import Asked
from tensorfleet.cluster.messages import Moved
from tensorfleet.cluster.transport import moved_addresses
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.testing.cluster import free_addresses
from tests.support.launching import launched
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def nothing_moved():
    moved_addresses.forget()
    yield
    moved_addresses.forget()


def test_a_task_keeps_its_name_and_listens_at_its_new_place():
    moves = Moves("", print)
    task = Task("ps", 0, "10.0.0.1:2222", ["python3", "-m", "tensorfleet"], {})
    moved = moves.to(task, Place("10.0.0.7:4000", EngineNode("n7", "/opt/python")))
    assert moved.address == "10.0.0.1:2222" and moved.command[0] == "/opt/python"
    told = moves.told(moved).environment
    assert json.loads(told["TENSORFLEET_MOVED"]) == {"10.0.0.1:2222": "10.0.0.7:4000"}
    assert told["TENSORFLEET_BIND"] == "10.0.0.7:4000"
    other = moves.told(Task("worker", 0, "10.0.0.2:2222", [], {})).environment
    assert "TENSORFLEET_BIND" not in other and "TENSORFLEET_MOVED" in other


def test_a_task_that_comes_back_to_its_first_place_is_known_to_be_there():
    moves = Moves("", print)
    task = Task("ps", 0, "10.0.0.1:2222", ["python3"], {})
    moves.to(task, Place("10.0.0.7:4000", EngineNode("n7")))
    moves.to(task, Place("10.0.0.1:2222", EngineNode("n1")))
    assert json.loads(moves.told(task).environment["TENSORFLEET_MOVED"]) == {"10.0.0.1:2222": "10.0.0.1:2222"}


def test_a_run_in_which_nothing_moves_tells_nobody():
    task = Task("ps", 0, "10.0.0.1:2222", ["python3"], {})
    assert Moves("", print).told(task) is task


def test_nobody_listens_where_a_task_without_a_place_is():
    assert unplaced("worker", 5).address == "worker-5.unplaced.invalid:2222"


def test_a_running_task_learns_where_others_are_by_a_message():
    (worker_at,) = free_addresses(worker=1)["worker"]
    worker = tf.train.Server({"worker": [worker_at]}, "worker", 0)
    peer = Peer("worker/0", worker_at, watched=False)
    peer.call(Moved({"10.0.0.9:2222": "127.0.0.1:1"}))
    peer.forget()
    assert moved_addresses.current("10.0.0.9:2222") == "127.0.0.1:1"
    assert worker.target


def test_what_is_no_object_of_addresses_is_ignored(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_MOVED", "[1]")
    assert moved_addresses.current("a:1") == "a:1"


TRAIN = """
import tensorflow as tf, os, time
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    more = tf.assign_add(step, 1)
    done = tf.get_variable("done", [], tf.int32, tf.zeros_initializer())
print("up", FLAGS.task_index, os.getpid(), flush=True)
with tf.train.MonitoredTrainingSession(server.target, is_chief=FLAGS.task_index == 0) as sess:
    while not sess.should_stop():
        value = sess.run(more)
        if value == 5:
            print("trains", flush=True)
        time.sleep(0.01)
        if os.path.exists("end"):
            break
print("left", FLAGS.task_index, flush=True)
"""


def test_elastic_workers_join_leave_and_come_back(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    with launched(tmp_path, "run", "--dashboard", "off", "--ps", "1", "--workers", "1:3", "train.py") as run:
        run.read_until("up ", 3)
        pids = dict(line.split("up ")[1].split() for line in run.stdout.splitlines() if "] up " in line)
        os.kill(int(pids["2"]), signal.SIGKILL)
        run.read_until("up 2", 2)
        (tmp_path / "end").touch()
        done = run.end()
    assert done.code == 0, done.stdout + done.stderr
    assert "worker/2 joins." in done.stdout
    assert done.stdout.count("left") == 3


def test_a_worker_that_gets_notice_saves_and_the_run_ends(tmp_path):
    script = TRAIN.replace("is_chief=FLAGS.task_index == 0)", "is_chief=True, checkpoint_dir='ckpt')")
    (tmp_path / "train.py").write_text(script)
    with launched(
        tmp_path, "run", "--dashboard", "off", "--grace", "30", "--ps", "1", "--workers", "1", "train.py"
    ) as run:
        run.read_until("up 0")
        run.read_until("trains")
        run.process.send_signal(signal.SIGTERM)
        done = run.end()
    assert done.code == 143
    assert "got SIGTERM; stopping after this step" in done.stdout and "left 0" in done.stdout
    saved = tf.train.latest_checkpoint(str(tmp_path / "ckpt"))
    assert int(saved.rpartition("-")[2]) > 0


class LosingEngine(ProcessEngine):
    """A machine for each task, which dies when the task is killed."""

    def start(self, task, listener):
        return super().start(task, _Lost(listener))


class _Lost:
    def __init__(self, listener):
        self.on_line, self.on_place, self.on_note = listener.on_line, listener.on_place, listener.on_note
        self._exit = listener.on_exit

    def on_exit(self, label, code, lost=None):
        self._exit(label, code, "its machine has died" if code == -signal.SIGKILL else None)


def test_a_lost_server_comes_back_at_another_address_and_training_goes_on_from_the_checkpoint(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    training = TRAIN.replace(
        "task_index == 0)", "task_index == 0, checkpoint_dir='ckpt', save_checkpoint_steps=1)"
    )
    training = training.replace("if value == 5:", "if value in (5, 50):")
    (tmp_path / "train.py").write_text(training)
    engine = LosingEngine(RunOptions("moving", tmp_path / "train.py", tmp_path / "logs"))
    request = RunRequest.of(Wishes("train.py"), Asked(ps=1, workers=1), engine, TaskResources())
    places = engine.reserve(request.wanted, None)
    wanted = {one.label: one for one in request.wanted}
    launcher = Launcher(
        request.tasks_at(places), engine, RunSettings("moving", "train.py", tmp_path / "logs"), wanted=wanted
    )
    codes = []
    thread = threading.Thread(target=lambda: codes.append(launcher.go()))
    thread.start()
    try:
        printed = _Printed(capsys)
        printed.until("trains", 1)
        (first,) = [entry["tasks"]["ps/0"] for entry in runs()]
        os.kill(first["pid"], signal.SIGKILL)
        printed.until("trains", 2)
        (second,) = [entry["tasks"]["ps/0"] for entry in runs()]
        (tmp_path / "end").touch()
        thread.join(60)
    finally:
        engine.close()
        thread.join(10)
    assert codes == [0]
    assert first["address"] != second["address"]
    assert "ps/0 is lost: its machine has died. Looking for another place." in printed.text


class _Printed:
    """What was printed so far."""

    def __init__(self, capsys):
        self._capsys = capsys
        self.text = ""

    def until(self, pattern, times):
        def seen():
            self.text += "".join(self._capsys.readouterr())
            return len(re.findall(pattern, self.text)) >= times

        until(seen, pattern)
