"""Tasks started through a real ssh server, on this machine."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.launching import launched, run

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

SCRIPT = """
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
else:
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        more = tf.assign_add(total, 5.0)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=FLAGS.task_index == 0) as sess:
        print("added", sess.run(more) >= 5.0, flush=True)
"""


@pytest.fixture
def cluster_file(tmp_path, monkeypatch):
    """A cluster of one host, reached by ssh with a key of its own."""
    if not os.access(SSHD, os.X_OK) or shutil.which("ssh") is None:
        pytest.skip("there is no ssh server here")
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True, timeout=30
        )
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    settings = tmp_path / "sshd_config"
    settings.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        "StrictModes no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"
    )
    with contextlib.suppress(OSError):
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", settings], stderr=subprocess.DEVNULL)
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f"#!/bin/sh\nexec {shutil.which('ssh')} -F none -i {tmp_path}/user -o StrictHostKeyChecking=no "
        f'-o UserKnownHostsFile={tmp_path}/known -o LogLevel=ERROR "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    here = f"{getpass.getuser()}@127.0.0.1"
    for _ in range(50):
        greeting = subprocess.run(
            ["ssh", "-p", str(port), here, "echo", "hello"], capture_output=True, timeout=30
        )
        if greeting.returncode == 0 or server.poll() is not None:
            break
        time.sleep(0.1)
    if greeting.stdout != b"hello\n":
        server.kill()
        server.wait()
        pytest.skip(f"the ssh server does not let us in: {greeting.stderr.decode()[-200:]}")
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as held:
        first = held.getsockname()[1]
    path = tmp_path / "cluster.yaml"
    # The shell over there begins with an empty environment: env gives it where the package is.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={":".join(sys.path)} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    path.write_text(
        f"hosts:\n  here: {{address: 127.0.0.1, user: {getpass.getuser()}, port: {port}, python: {python}, "
        f"directory: {tmp_path}, first_port: {min(first, 60000)}}}\njobs:\n  ps: {{here: 1}}\n  worker: {{here: 2}}\n"
    )
    yield path
    server.kill()
    server.wait()


def test_tasks_over_ssh_train_and_end(cluster_file, tmp_path):
    done = run(tmp_path, "run", "--cluster", str(cluster_file), "train.py")
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.count("added True") == 2
    assert "token" not in done.stdout.lower()


def test_a_run_over_ssh_that_is_interrupted_leaves_nothing(cluster_file, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(script.read_text() + "        import time; time.sleep(300)\n")
    with launched(tmp_path, "run", "--cluster", str(cluster_file), "train.py") as tasks:
        tasks.read_until("added True", 2)
        tasks.process.send_signal(signal.SIGINT)
        assert tasks.end().code == 130

    limit = time.monotonic() + 30
    while _tasks_in(tmp_path) and time.monotonic() < limit:
        time.sleep(0.1)
    assert _tasks_in(tmp_path) == []


def _tasks_in(directory):
    """The processes at work in a directory, other than those of this test."""
    result = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                if os.readlink(process / "cwd") == str(directory):
                    result.append((process / "cmdline").read_bytes())
    return result
