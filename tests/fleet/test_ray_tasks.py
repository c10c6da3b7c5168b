"""The actor that owns a task's process, without Ray around it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import types

import psutil
import pytest

import tensorfleet as tf
from tensorfleet.fleet import ray_tasks
from tensorfleet.fleet.ray_tasks import TaskActor, TaskCommand, held_port, installed_version

SECONDS = 30
HOST = "127.0.0.1"


@pytest.fixture
def actor(monkeypatch):
    library = types.SimpleNamespace(util=types.SimpleNamespace(get_node_ip_address=lambda: HOST))
    monkeypatch.setattr(ray_tasks, "library", lambda: library)
    one = TaskActor()
    yield one
    one.send(signal.SIGKILL)
    if one._code is None:
        lines_of(one)
    one._held.close()


def command(program, **options):
    environment = options.pop("environment", {})
    return TaskCommand([sys.executable, "-c", program], environment, options.pop("secret", "s"), **options)


def lines_of(actor):
    """All lines until the end, and the exit code."""
    lines, number, limit = [], 1, time.monotonic() + SECONDS
    while actor._process is not None and time.monotonic() < limit:
        batch = actor.next_lines(number, 1.0)
        lines += batch.lines
        number += 1
        if batch.code is not None:
            return lines, batch.code
    return lines, None


def test_a_task_gets_its_secret_by_its_input_and_nowhere_else(actor):
    program = "import os, sys; print(sys.stdin.readline()); print('very' in str(os.environ), sys.argv)"
    actor.start(command(program, secret="very secret"))
    assert lines_of(actor) == (["very secret", "", "False ['-c']"], 0)


def test_a_task_has_the_environment_and_the_folder_that_it_is_given(actor, monkeypatch, tmp_path):
    monkeypatch.setenv("HIDDEN", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    program = "import os; print(os.getcwd(), os.environ.get('HIDDEN'), os.environ['A'], os.environ['OMP_NUM_THREADS'])"
    actor.start(command(program, environment={"A": "b"}, directory=str(tmp_path), hidden=("HIDDEN",)))
    assert lines_of(actor) == ([f"{tmp_path} None b 1"], 0)


def test_a_batch_can_be_asked_for_again(actor):
    actor.start(command("print('once')"))
    first = actor.next_lines(1, SECONDS)
    assert actor.next_lines(1, SECONDS) == first
    assert first.lines == ["once"]


def test_a_task_that_nobody_reads_waits_and_loses_nothing(actor, monkeypatch):
    monkeypatch.setattr(ray_tasks, "_MAX_WAITING_LINES", 10)
    actor.start(command("for i in range(30000): print(i)"))
    limit = time.monotonic() + SECONDS
    while len(actor._lines) < 10 and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(actor._lines) == 10
    assert lines_of(actor) == ([str(i) for i in range(30000)], 0)


@pytest.mark.parametrize(
    ("program", "code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", -15)]
)
def test_the_end_of_a_task_is_told_as_it_was(actor, program, code):
    actor.start(command(program))
    assert lines_of(actor)[1] == code


def test_a_task_can_be_started_again(actor):
    actor.start(command("raise SystemExit(1)"))
    assert lines_of(actor) == ([], 1)
    actor.start(command("print('again')"))
    assert lines_of(actor) == (["again"], 0)


def test_a_signal_reaches_what_the_task_has_started(actor):
    program = "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\nprint(child.pid)\nchild.wait()"
    actor.start(command(program))
    child = psutil.Process(int(actor.next_lines(1, SECONDS).lines[0]))
    actor.send(signal.SIGKILL)
    assert lines_of(actor)[1] == -9
    child.wait(SECONDS)
    actor.send(signal.SIGKILL)  # it has ended already


def test_a_stopped_task_ends_with_the_process_that_owns_it(tmp_path):
    """The guardian ends it: the task itself cannot notice anything."""
    program = (
        "import sys, types\n"
        "from tensorfleet.fleet import ray_tasks as t\n"
        "t.library = lambda: types.SimpleNamespace(util=types.SimpleNamespace(get_node_ip_address=lambda: '::1'))\n"
        "actor = t.TaskActor()\n"
        "print(actor.start(t.TaskCommand(['sleep', '300'], {}, '')), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        task = psutil.Process(int(owner.stdout.readline()))
        os.kill(task.pid, signal.SIGSTOP)
        owner.kill()
        owner.wait(SECONDS)
    psutil.wait_procs([task], timeout=SECONDS)
    assert not task.is_running() or task.status() == psutil.STATUS_ZOMBIE


def test_a_held_port_is_free_for_its_server_and_for_no_other_search():
    held, port = held_port(HOST)
    with held:
        for _ in range(2):  # a server that is started again, too
            with socket.create_server((HOST, port)) as server:
                assert server.getsockname()[1] == port


def test_the_installed_version_is_read_without_an_import():
    assert installed_version() == tf.fleet.__version__


def test_a_node_without_tensorfleet_has_no_version(monkeypatch):
    monkeypatch.setattr(ray_tasks.importlib.util, "find_spec", lambda name: None)
    assert installed_version() == ""


NOTICED = "import signal, sys; signal.signal(15, lambda *_: sys.exit(143)); print('began', flush=True); signal.pause()"


def test_a_task_is_told_to_save_when_its_node_is_drained(actor, monkeypatch):
    drained = []
    monkeypatch.setattr(ray_tasks, "_NODE_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ray_tasks, "node_is_drained", lambda: bool(drained))
    actor.start(command(NOTICED, saves=True))
    assert actor.next_lines(1, SECONDS).lines == ["began"]
    drained.append(True)
    batch, number, limit = actor.next_lines(2, 1.0), 2, time.monotonic() + SECONDS
    while batch.code is None and time.monotonic() < limit:
        number += 1
        batch = actor.next_lines(number, 1.0)
    assert (batch.code, batch.leaves) == (143, True)


def test_a_task_without_notice_is_left_alone_on_a_node_that_is_drained(actor, monkeypatch):
    monkeypatch.setattr(ray_tasks, "_NODE_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ray_tasks, "node_is_drained", lambda: pytest.fail("nobody asks"))
    actor.start(command("print('done')"))
    assert lines_of(actor) == (["done"], 0)
    assert not actor._leaves


def test_a_node_that_cannot_be_asked_is_not_drained(monkeypatch):
    monkeypatch.setattr(ray_tasks, "library", lambda: None)
    assert not ray_tasks.node_is_drained()
