"""`tensorfleet run` with real processes: their output, their end, what is left of them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.launching import launched, run

pytestmark = pytest.mark.slow  # left out by `make quick`

# Stands for any script with the customary flags; what it does is in `what`.
SCRIPT = """
import argparse, atexit, json, os, signal, subprocess, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
parser.add_argument("--ps_hosts")
parser.add_argument("--what", default="")
args = parser.parse_args()
me = "%s %d" % (args.job_name, args.task_index)
print("started", me, flush=True)
def fail():
    raise ValueError("out of luck")
if args.job_name == "ps":
    open("ps_is_up", "w").close()
    if args.what == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
if args.what == "grandchild":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
if args.what in ("wait", "grandchild"):
    print("waiting", flush=True)
    time.sleep(300)
if args.what == "slow" and args.task_index == 1:
    atexit.register(lambda: (open("failed", "w").close(), time.sleep(300)))
if args.what in ("fail", "slow") and args.task_index == 1:
    fail()
if args.what == "slow":
    while not os.path.exists("failed"):
        time.sleep(0.01)
    raise RuntimeError("/job:worker/replica:0/task:1 (h:1) was lost: Socket closed.")
if args.what == "die" and args.task_index == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if args.what == "once" and not os.path.exists("died"):
    open("died", "w").close()
    sys.exit(3)
if args.what == "fail":
    time.sleep(300)
limit = time.monotonic() + 60
while not os.path.exists("ps_is_up") and time.monotonic() < limit:
    time.sleep(0.01)
print("done", me, os.environ.get("EXTRA"), json.loads(os.environ["TF_CONFIG"])["task"])
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


CLUSTER = ("run", "--ps", "1", "--workers", "2", "--name", "r")


def test_the_run_ends_when_its_workers_have_ended(here):
    done = run(here, *CLUSTER, "--env", "EXTRA=x=y", "train.py")
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "[ps/0]     started ps 0" in lines
    assert "[worker/0] done worker 0 x=y {'type': 'worker', 'index': 0}" in lines
    assert "[worker/1] done worker 1 x=y {'type': 'worker', 'index': 1}" in lines
    assert done.stderr == "tensorfleet: logs are in runs/r\n"
    log = (here / "runs" / "r" / "worker-1.log").read_text()
    assert log.splitlines()[0] == "started worker 1"


def test_a_server_that_will_not_end_is_killed_and_the_run_has_succeeded(here):
    done = run(here, *CLUSTER, "train.py", "--", "--what", "stubborn")
    assert done.code == 0, done.stderr


def test_the_last_block_names_the_first_failure(here):
    done = run(here, *CLUSTER, "train.py", "--", "--what", "fail")
    assert done.code == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("FAILED: worker/1 exited with code 1, ")
    assert lines[1] == "  ValueError: out of luck"
    number = SCRIPT.splitlines().index('    raise ValueError("out of luck")') + 1
    assert lines[2] == f'  at train.py:{number}:  raise ValueError("out of luck")'
    assert lines[3] == "  Log: runs/r/worker-1.log"


def test_a_task_that_others_have_lost_is_the_first_failure_also_when_it_ends_later(here):
    done = run(here, *CLUSTER, "train.py", "--", "--what", "slow")
    assert done.code == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("FAILED: worker/1 exited with code 1, ")
    assert lines[1] == "  ValueError: out of luck"
    assert "  Failed later: worker/0." in lines


def test_a_task_killed_by_a_signal_gives_its_shell_code(here):
    done = run(here, "run", "--ps", "0", "--workers", "2", "train.py", "--", "--what", "die")
    assert done.code == 128 + signal.SIGKILL
    assert "FAILED: worker/1 was killed by SIGKILL" in done.stderr


def test_a_task_that_died_is_started_again(here):
    done = run(
        here, "run", "--ps", "1", "--workers", "1", "--restart", "1", "train.py", "--", "--what", "once"
    )
    assert done.code == 0, done.stderr
    assert "worker/0 died; restarting it." in done.stdout
    assert "done worker 0" in done.stdout


FAILS_LATE = """
import os, sys, time
import tensorflow as tf
for name in ("job_name", "ps_hosts", "worker_hosts"):
    tf.app.flags.DEFINE_string(name, "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
cluster = {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    kept = tf.get_variable("kept", initializer=7)
with tf.Session(server.target) as session:
    if FLAGS.task_index == 0:
        session.run(kept.initializer)
        open("ready", "w").close()
        sys.exit()
    status = os.environ["TENSORFLEET_ALONE"]  # there once the other worker has ended
    while not os.path.exists(status):
        time.sleep(0.01)
    if not os.path.exists("again"):
        open("again", "w").close()
        raise ValueError("the first time")
    print("kept", session.run(kept))
"""


def test_a_worker_started_again_after_the_others_have_finished_finds_its_parameter_servers(tmp_path):
    (tmp_path / "train.py").write_text(FAILS_LATE)
    limit = {"TENSORFLEET_WAIT_SECONDS": "20"}
    done = run(tmp_path, "run", "--ps", "1", "--workers", "2", "--restart", "1", "train.py", **limit)
    assert done.code == 0, done.stdout + done.stderr
    assert "worker/1 died; restarting it." in done.stdout and "[worker/1] kept 7" in done.stdout


def test_an_interrupt_stops_everything(here):
    with launched(here, *CLUSTER, "train.py", "--", "--what", "wait") as launch:
        launch.read_until("waiting", 2)
        launch.process.send_signal(signal.SIGINT)
        assert launch.end().code == 130
        assert "Traceback" not in launch.stdout


def test_nothing_is_left_when_the_launcher_is_killed(here):
    with launched(here, *CLUSTER, "train.py", "--", "--what", "grandchild") as launch:
        launch.read_until("waiting", 2)
        assert len(launch.left()) >= 6  # launcher, guardian, three tasks, what they started
        launch.process.send_signal(signal.SIGKILL)


def test_a_run_that_takes_too_long_is_stopped(here):
    done = run(
        here, "run", "--ps", "0", "--workers", "1", "--timeout", "3", "train.py", "--", "--what", "wait"
    )
    assert done.code == 124
    assert "Timed out after 3 s; stopping." in done.stdout


def test_runs_are_listed_and_can_be_stopped(here):
    with launched(here, *CLUSTER, "train.py", "--", "--what", "wait") as launch:
        launch.read_until("waiting", 2)
        listed = run(here, "ps").stdout
        assert listed.startswith("r  train.py  (on local, launcher ")
        assert "worker/1" in listed and "running" in listed
        stopped = run(here, "stop", "r")
        assert (stopped.code, stopped.stdout) == (0, "r: stopped\n")
        assert launch.end().code == 143
    assert run(here, "stop").code == 1
    assert run(here, "ps").stdout == "No runs.\n"


def test_a_reader_that_goes_away_ends_the_run(here):
    (here / "talk.py").write_text("import itertools\nfor i in itertools.count():\n    print('line', i)\n")
    with launched(here, "run", "talk.py") as launch:
        launch.read_until("line 3")
        launch.process.stdout.close()
        assert launch.process.wait(60) == 141
        assert "Traceback" not in launch.process.stderr.read()


def test_a_dry_run_prints_and_starts_nothing(here):
    done = run(here, "run", "--ps", "1", "--workers", "1", "--dry-run", "train.py", "--", "--what", "wait")
    assert done.code == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("[ps/0] ") and "--job_name=ps --task_index=0 --what wait" in first
    assert "JOB_NAME=worker" in second and "TF_CONFIG=" in second
    assert not (here / "runs").exists()


def test_a_script_for_clusters_gets_one_without_asking(here):
    done = run(here, "run", "train.py")
    assert done.code == 0
    assert "written for a cluster. Starting 1 ps and 2 workers" in done.stderr
    assert done.stdout.count("done worker") == 2


def test_workers_alone_get_a_parameter_server_that_their_script_needs(here):
    done = run(here, "run", "--workers", "3", "--dry-run", "train.py")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "[ps/0]",
        *(f"[worker/{i}]" for i in range(3)),
    ]
    assert "train.py has a job ps. Starting 1 ps (choose with --ps)." in done.stderr


def test_counts_behind_the_script_are_the_launchers_where_the_script_has_no_such_flags(here):
    done = run(here, "run", "--dry-run", "train.py", "--ps", "1", "--what", "wait", "--workers=1")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["[ps/0]", "[worker/0]"]
    assert "--what wait" in done.stdout and "--workers" not in done.stdout
    assert "using --ps 1 --workers 1 as an option of the launcher" in done.stderr


def test_counts_behind_a_script_that_has_such_flags_are_its_own(tmp_path):
    (tmp_path / "own.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--workers')\n"
    )
    for arguments in (["--workers", "3"], ["--", "--ps", "3"]):
        done = run(tmp_path, "run", "--dry-run", "own.py", *arguments)
        assert " ".join(arguments[-2:]) in done.stdout and "taken as ours" not in done.stderr


def test_a_script_that_is_told_its_task_by_the_user_is_that_task_alone(here):
    done = run(here, "run", "--dry-run", "train.py", "--", "--job_name=worker", "--task_index=1")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["[main/0]"]
    assert "TF_CONFIG" not in done.stdout and "written for a cluster" not in done.stderr


def test_a_script_whose_arguments_name_its_task_gets_a_cluster(tmp_path):
    (tmp_path / "both.py").write_text(
        "import sys\nimport tensorflow as tf\ntask = sys.argv[1].split('=')[1]\n"
        "cluster = tf.train.ClusterSpec({'keeper': ['localhost:1'], 'worker': ['localhost:2', 'localhost:3']})\n"
    )
    done = run(tmp_path, "run", "--dry-run", "both.py", "--", "--task={job_name}:{task_index}")
    assert [line.split("--task=")[1] for line in done.stdout.splitlines()] == [
        "keeper:0",
        "worker:0",
        "worker:1",
    ]


def test_jobs_by_other_names_are_started_by_name(here):
    done = run(here, "run", "--job", "learner=1", "--job", "actor=2", "--dry-run", "train.py")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["[actor/0]", "[actor/1]", "[learner/0]"]
    assert "actor=two is not a number of tasks" in run(here, "run", "--job", "actor=two", "train.py").stderr


# Its cluster has one more of each job than it is told, at addresses that nothing in it tells beforehand.
MORE = """
import argparse
import tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument("--num_ps", type=int)
parser.add_argument("--num_workers", type=int)
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
args = parser.parse_args()
hosts = lambda count, net: ["240.0.%d.%d:2222" % (net, i) for i in range(count + 1)]
jobs = {"ps": hosts(args.num_ps, 1), "worker": hosts(args.num_workers, 2)}
server = tf.train.Server(tf.train.ClusterSpec(jobs), args.job_name, args.task_index)
if args.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:1"):
    last = tf.constant(args.task_index)
print("reached", tf.Session(server.target).run(last))
"""


def test_a_run_whose_tasks_were_guessed_starts_again_with_all_of_its_cluster(tmp_path):
    (tmp_path / "train.py").write_text(MORE)
    done = run(tmp_path, "run", "train.py")
    assert done.code == 0, done.stderr
    assert "train.py creates a cluster of 2 ps and 3 workers" in done.stderr and "FAILED" not in done.stderr
    assert {line for line in done.stdout.splitlines() if "reached" in line} == {
        f"[worker/{i}] reached {i}" for i in range(3)
    }


def test_another_script_runs_alone_with_its_own_output(tmp_path):
    (tmp_path / "alone.py").write_text("import os, sys; print(sys.argv[1:], 'TF_CONFIG' in os.environ)")
    done = run(tmp_path, "run", "alone.py", "--steps", "3")
    assert (done.code, done.stdout) == (0, "['--steps', '3'] False\n")


def test_a_client_of_other_servers_is_told_that_they_must_be_there(tmp_path):
    (tmp_path / "client.py").write_text(
        "import tensorflow as tf\ntf.train.ClusterSpec({'local': ['localhost:1']})\n"
    )
    done = run(tmp_path, "run", "--ps", "1", "--workers", "2", "client.py")
    assert done.code == 0
    assert done.stderr.startswith("tensorfleet: client.py starts no server, and runs once. Start the servers")


def test_mistakes_on_the_command_line_are_explained(here):
    assert "No file nowhere.py" in " ".join(run(here, "run", "nowhere.py").stderr.split())
    assert "'K' does not have the form NAME=VALUE" in " ".join(
        run(here, "run", "--env", "K", "train.py").stderr.split()
    )


SSH = """#!/usr/bin/env python3
# Stands for ssh: what is to run there runs here, out of our reach but for its stdin, output and exit code.
import json, os, subprocess, sys
with open(os.environ["SSH_LOG"], "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
command = sys.argv[-1].replace("exec env", "exec env THERE=1", 1)
sys.exit(subprocess.run(["sh", "-c", command], start_new_session=True).returncode)
"""


@pytest.fixture
def two_hosts(here):
    ssh = here / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    host = f"{{address: 127.0.0.1, user: me, python: {sys.executable}, directory: {here}, first_port: 21000}}"
    (here / "cluster.yaml").write_text(
        f"hosts:\n  alpha: {host}\n  beta: {host}\njobs:\n  ps: {{alpha: 1}}\n  worker: {{alpha: 1, beta: 1}}\n"
    )
    return {"PATH": f"{ssh.parent}:{os.environ['PATH']}", "SSH_LOG": str(here / "ssh.log")}


def test_a_script_by_itself_reads_what_is_typed(tmp_path):
    (tmp_path / "ask.py").write_text("print('hello', input())\n")
    command = [sys.executable, "-m", "tensorfleet", "run", "ask.py"]
    done = subprocess.run(
        command, cwd=tmp_path, input="Ada\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "hello Ada\n"


COPIES = """
import os, subprocess, sys, time
flags.DEFINE_integer("task_index", -1, "")
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable] + sys.argv + ["--task_index=" + str(os.getpid())])
    sys.exit()
starter, limit = int(sys.argv[1].partition("=")[2]), time.monotonic() + 60
while os.getppid() == starter and time.monotonic() < limit:
    time.sleep(0.01)
print("still here:", os.getppid() != starter)
"""


def test_a_run_stays_for_the_tasks_that_a_script_has_started_and_left(tmp_path):
    (tmp_path / "copies.py").write_text("from tensorflow import flags\n" + COPIES)
    done = run(tmp_path, "run", "copies.py")
    assert done.code == 0, done.stderr
    assert done.stdout == "still here: True\n"


def test_tasks_are_started_on_hosts_by_ssh(here, two_hosts):
    done = run(here, "run", "--cluster", "cluster.yaml", "train.py", **two_hosts)
    assert done.code == 0, done.stderr
    assert done.stdout.count("done worker") == 2
    calls = [json.loads(line) for line in Path(two_hosts["SSH_LOG"]).read_text().splitlines()]
    assert len(calls) == 3
    for call in calls:
        assert "BatchMode=yes" in call and call[-2] == "me@127.0.0.1"
        assert "ConnectTimeout=15" in call
        assert "TENSORFLEET_TOKEN" not in call[-1]  # it does not travel on a command line
        assert "127.0.0.1:21000" in call[-1]


def test_a_host_that_cannot_be_reached_is_named(here, two_hosts):
    (here / "bin" / "ssh").write_text("#!/bin/sh\necho 'Host key verification failed.'\nexit 255\n")
    done = run(here, "run", "--cluster", "cluster.yaml", "train.py", **two_hosts)
    assert done.code == 255
    lines = done.stderr.splitlines()
    assert re.match(r"FAILED: \w+/\d on (alpha|beta) \(127.0.0.1\) exited with code 255", lines[0])
    assert lines[1].startswith("  ssh could not reach me@127.0.0.1, or lost the connection.")
    assert lines[3] == "  Last line of its log: Host key verification failed."


def test_without_ssh_the_host_is_named(here, two_hosts):
    shutil.rmtree(here / "bin")
    done = run(here, "run", "--cluster", "cluster.yaml", "train.py", PATH=str(here / "bin"))
    assert done.code == 127
    assert "Cannot start ps/0 on alpha (127.0.0.1): ssh is not installed on this machine." in done.stderr


def test_tasks_on_hosts_end_with_the_connection(here, two_hosts):
    arguments = ("run", "--cluster", "cluster.yaml", "train.py", "--", "--what", "grandchild")
    with launched(here, *arguments, **two_hosts) as launch:
        launch.read_until("waiting", 2)
        launch.process.send_signal(signal.SIGKILL)


QUEUE = """
import os, time
import tensorflow as tf
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
FLAGS = tf.app.flags.FLAGS
cluster = {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
with tf.device("/job:ps/task:0"):
    done = tf.FIFOQueue(1, tf.int32, shared_name="done")
    kept = tf.get_variable("kept", initializer=7)
def main(_):
    with tf.Session(server.target) as session:
        if FLAGS.job_name == "ps":
            session.run(done.dequeue())
            open("ps_has_ended", "w").close()
            return
        session.run(kept.initializer)
        session.run(done.enqueue(1))
        limit = time.monotonic() + 60
        while not os.path.exists("ps_has_ended") and time.monotonic() < limit:
            time.sleep(0.01)
        print("kept", session.run(kept))
tf.app.run()
"""


def test_what_a_parameter_server_holds_outlives_its_script(tmp_path):
    (tmp_path / "train.py").write_text(QUEUE)
    done = run(tmp_path, "run", "--ps", "1", "--workers", "1", "train.py")
    assert done.code == 0 and "kept 7" in done.stdout, done.stdout + done.stderr
