"""Scripts that look for their machine in a list of machines."""

import socket

import pytest

from tensorfleet.cli.plan import Place, Wishes, is_for_clusters, is_one_task, jobs_of, plan
from tensorfleet.cli.scripts.hostnames import HOST, hosts_in, take_host
from tests.support import launching

SCRIPT = """
import socket
import settings
import tensorflow as tf

mine = socket.gethostbyname(socket.gethostname())
jobs = {"ps": settings.PS_HOSTS, "worker": settings.WORKER_HOSTS}
job = "ps" if mine in settings.PS_HOSTS else "worker"
addresses = {name: [host + ":2222" for host in hosts] for name, hosts in jobs.items()}
server = tf.train.Server(tf.train.ClusterSpec(addresses), job, jobs[job].index(mine))
if job == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    ready = tf.FIFOQueue(2, tf.int32, shared_name="ready")
with tf.Session(server.target) as session:
    if mine == "10.0.0.2":
        session.run(ready.enqueue(7))
    else:
        print("found", session.run(ready.dequeue()))
"""
SETTINGS = 'PS_HOSTS = ["10.0.0.1"]\nWORKER_HOSTS = ["10.0.0.2", "10.0.0.3"]\n'


@pytest.fixture
def script(tmp_path):
    def write(text=SCRIPT, settings=SETTINGS):
        (tmp_path / "settings.py").write_text(settings)
        (tmp_path / "train.py").write_text(text)
        return tmp_path / "train.py"

    return write


def test_each_task_is_told_one_of_the_machines(script):
    path = script()
    assert is_for_clusters(path) and jobs_of(path) == {"ps": 1, "worker": 2}
    cluster = {"ps": [Place("h:1")], "worker": [Place("h:2"), Place("h:3"), Place("h:4")]}
    tasks = plan(Wishes(str(path)), cluster, "")
    assert [t.environment.get(HOST) for t in tasks] == ["10.0.0.1", "10.0.0.2", "10.0.0.3", None]


def test_the_machine_may_be_the_default_of_a_flag(script):
    asked = "mine = socket.gethostbyname(socket.gethostname())"
    flag = "flags.DEFINE_string('ip', socket.gethostbyname(socket.gethostname()), '')\nmine = FLAGS.ip"
    path = script(SCRIPT.replace(asked, flag))
    tasks = plan(Wishes(str(path)), {"ps": [Place("h:1")], "worker": [Place("h:2")]}, "")
    assert [t.environment.get(HOST) for t in tasks] == ["10.0.0.1", "10.0.0.2"]
    assert [t.command[-1] for t in tasks] == ["--ip=10.0.0.1", "--ip=10.0.0.2"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (SCRIPT, SETTINGS.replace("10.0.0.3", "10.0.0.1")),  # nobody could tell two tasks apart
        (SCRIPT.replace("gethost", "inet_"), SETTINGS),  # it does not ask
        (SCRIPT, SETTINGS.partition("\n")[0]),
    ],
)
def test_other_lists_of_machines_are_left_alone(script, text, settings):
    assert not hosts_in(script(text, settings))


def test_a_script_with_flags_for_its_task_keeps_its_machine(script):
    path = script(
        SCRIPT + "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')\n"
    )
    cluster = {"ps": [Place("h:1")], "worker": [Place("h:2")]}
    assert not any(HOST in task.environment for task in plan(Wishes(str(path)), cluster, ""))


def test_a_process_finds_the_machine_it_was_told(monkeypatch):
    for name in ("gethostname", "gethostbyname", "getfqdn"):
        monkeypatch.setattr(socket, name, getattr(socket, name))
    monkeypatch.setenv(HOST, "10.0.0.7")
    take_host()
    assert socket.gethostbyname(socket.gethostname()) == socket.getfqdn() == "10.0.0.7"
    assert socket.gethostbyname("127.0.0.1") == "127.0.0.1"


def test_such_a_script_runs_on_one_machine(script):
    path = script()
    done = launching.run(path.parent, "run", path.name)
    assert done.code == 0, done.stderr
    assert "found 7" in done.stdout


def test_a_flag_that_is_looked_up_among_the_machines_is_told_one(script):
    result = "flags.DEFINE_string('ip', '', '')\nmine = flags.FLAGS.ip\n"
    path = script(SCRIPT.replace("mine = socket.gethostbyname(socket.gethostname())\n", result))
    assert is_for_clusters(path) and jobs_of(path) == {"ps": 1, "worker": 2}
    cluster = {"ps": [Place("h:1")], "worker": [Place("h:2"), Place("h:3")]}
    tasks = plan(Wishes(str(path)), cluster, "")
    assert [t.command[-1] for t in tasks] == ["--ip=10.0.0.1", "--ip=10.0.0.2", "--ip=10.0.0.3"]
    assert is_one_task(Wishes(str(path), ["--ip=10.0.0.2"]))
    assert not is_one_task(Wishes(str(path), ["--steps=3"]))
