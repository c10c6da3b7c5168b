"""`tensorfleet debug` on real runs."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime import observing
from tests.support.launching import launched, run
from tests.support.waiting import until

pytestmark = pytest.mark.slow  # left out by `make quick`

HEAD = """
import argparse, os, signal, sys, threading, time
import numpy as np
import tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
parser.add_argument("--ps_hosts")
parser.add_argument("--worker_hosts")
args = parser.parse_args()
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, args.job_name, args.task_index)
if args.job_name == "ps":
    server.join()
device = tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % args.task_index)
"""
BLOCKED = """
with tf.device("/job:ps/task:0"):
    queue = tf.FIFOQueue(3, tf.float32, shared_name="batches")
with tf.Session(server.target) as session:
    print("blocks", flush=True)
    session.run(queue.dequeue())
"""
DIES = """
if args.task_index == 1:
    raise ValueError("last words")
time.sleep(300)
"""
DEADLOCK = """
first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
def one():
    with first:
        both.wait()
        with second:
            pass
def two():
    with second:
        both.wait()
        with first:
            pass
threads = [threading.Thread(target=f, name=f.__name__, daemon=True) for f in (one, two)]
[thread.start() for thread in threads]
time.sleep(0.5)
print("deadlocked", flush=True)
[thread.join() for thread in threads]
"""
TRAINING = """
with tf.device(device):
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [8, 4], name="x")
    w = tf.get_variable("w", [4, 3], initializer=tf.random_normal_initializer(seed=2))
    hidden = tf.nn.relu(tf.matmul(x, w), name="hidden")
    loss = tf.reduce_mean(tf.square(hidden), name="loss")
    risky = tf.log(tf.placeholder_with_default(1.0, [], name="scale") * loss, name="risky")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss + 0.0001 * risky)
rng = np.random.RandomState(3)
with tf.Session(server.target) as session:
    while True:
        try:
            if args.task_index == 0:
                session.run(tf.global_variables_initializer())
            elif len(session.run(tf.report_uninitialized_variables())):
                continue
            break
        except tf.errors.OpError:
            time.sleep(0.05)
    step = 0
    while step < STEPS:
        step += 1
        is_bad = MAKES_NAN and args.task_index == 1 and os.path.exists("now")
        feed = {x: rng.rand(8, 4), "scale:0": 0.0 if is_bad else 1.0}
        print("LOSS", step, float(session.run([loss, train], feed)[0]).hex(), flush=True)
        time.sleep(0.01)
    print("END", session.run(w).tobytes().hex(), flush=True)
"""


@contextlib.contextmanager
def _run_of(folder, body, says, ps=1, workers=1, before=""):
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(before + HEAD + body)
    counts = ("--ps", str(ps), "--workers", str(workers), "--name", "r")
    with launched(folder, "run", *counts, "train.py") as launch:
        launch.read_until(says, workers)
        yield launch


def _log(folder, task):
    return (folder / "runs" / "r" / f"{task}.log").read_text()


def test_a_worker_that_is_blocked_in_a_dequeue_names_the_queue(tmp_path):
    with _run_of(tmp_path, BLOCKED, "blocks"):
        told = []

        def is_told():
            done = run(tmp_path, "debug", "r", "worker/0", "stack")
            assert done.code == 0, done.stderr
            told.append(done.stdout)
            return "waits for 'batches'" in done.stdout

        until(is_told)
        assert "of /job:ps/replica:0/task:0, for" in told[-1]
        assert re.search(r"> .*train.py:\d+ in <module>\n +session.run\(queue.dequeue\(\)\)", told[-1])
        assert "Inspected by" in _log(tmp_path, "worker-0")
        server = run(tmp_path, "debug", "ps/0", "stack")
        assert re.search(r"batches.*, for \d", server.stdout)
        machine = run(tmp_path, "debug", "ps/0", "stack", "--json")
        assert json.loads(machine.stdout)["task"] == "/job:ps/replica:0/task:0"


def test_a_deadlocked_script_shows_both_locks_and_sigusr1_writes_them_to_the_log(tmp_path):
    with _run_of(tmp_path, DEADLOCK, "deadlocked"):
        done = run(tmp_path, "debug", "worker/0", "stack")
        assert "lock `second`, held by thread two" in done.stdout
        assert "lock `first`, held by thread one" in done.stdout
        pids = re.search(r"worker/0 .* pid (\d+)", run(tmp_path, "ps").stdout)
        os.kill(int(pids[1]), signal.SIGUSR1)
        until(lambda: "SIGUSR1: end" in _log(tmp_path, "worker-0"))
        log = _log(tmp_path, "worker-0")
        assert "lock `second`, held by thread two" in log and "lock `first`, held by thread one" in log
        assert "running" in run(tmp_path, "ps").stdout


def test_a_handler_of_the_scripts_own_for_sigusr1_is_kept(tmp_path):
    (tmp_path / "own.py").write_text(
        "import os, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('own handler', flush=True))\n"
        "import tensorflow as tf\n"
        "server = tf.train.Server.create_local_server()\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print('lives', flush=True)\n"
    )
    done = run(tmp_path, "own.py")
    assert done.stdout.splitlines() == ["own handler", "lives"]
    assert "SIGUSR1:" not in done.stderr


# Which of both modes runs a segment depends on the time it takes, and they round in different ways.
MODE = """
from tensorfleet.runtime.segments.compiled import Compiler
Compiler.wanted = lambda self: {}
"""


@pytest.mark.parametrize("is_compiled", [False, True], ids=["interpreted", "compiled"])
def test_watched_values_are_those_the_script_computes_and_training_does_not_change(tmp_path, is_compiled):
    body, mode = "STEPS, MAKES_NAN = 400, False\n" + TRAINING, MODE.format(is_compiled)
    with _run_of(tmp_path / "watched", body, "LOSS 3 ", before=mode) as launch:
        done = run(
            tmp_path / "watched",
            "debug",
            "worker/0",
            "watch",
            "loss",
            "hidden",
            "--steps",
            "5",
            "--save",
            "out",
        )
        assert done.code == 0, done.stderr
        watched = launch.end()
    with _run_of(tmp_path / "plain", body, "LOSS 3 ", before=mode) as launch:
        plain = launch.end()
    # The log line of the watch may come in the middle of one of the script's.
    line = re.compile(r"LOSS \d+ -?0x[0-9.a-f]+p[-+]\d+|END [0-9a-f]+")
    printed = line.findall(watched.stdout)
    assert len(printed) == 401 and printed == line.findall(plain.stdout)
    losses = [float.fromhex(line.split()[2]) for line in printed[:-1]]
    out = tmp_path / "watched" / "out"
    seen = [np.load(out / f"loss_0-{n}.npy").item() for n in range(1, 6)]
    first = losses.index(seen[0])
    assert seen == losses[first : first + 5]
    for n, value in enumerate(seen, 1):
        hidden = np.load(out / f"hidden_0-{n}.npy")
        np.testing.assert_allclose(np.square(hidden).mean(), value, rtol=1e-5)


def test_numerics_names_the_line_of_the_operation_in_a_program_of_three_tasks(tmp_path):
    body = "STEPS, MAKES_NAN = 10**9, True\n" + TRAINING
    with _run_of(tmp_path, body, "LOSS 3 ", workers=2):
        (tmp_path / "soon").touch()
        command = [sys.executable, "-m", "tensorfleet", "debug", "worker/1", "numerics", "--steps", "100000"]
        environment = {**os.environ, "TENSORFLEET_STATE": str(tmp_path / "state")}
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        ) as asking:
            first = asking.stdout.readline()
            assert "Checking steps of worker/1, ps/0, worker/0." in first
            (tmp_path / "now").touch()
            told = asking.communicate(timeout=120)[0]
        assert asking.returncode == 1
        assert "'risky' (Log) on worker/1 makes an infinity." in told
        number = (
            (HEAD + body)
            .splitlines()
            .index(next(line for line in (HEAD + body).splitlines() if "risky =" in line))
        )
        assert f"train.py:{number + 1}:  risky = tf.log(" in told
        assert "min 0, max 0" in told


def test_what_the_server_computes_is_watched_there(tmp_path):
    body = "STEPS, MAKES_NAN = 10**9, False\n" + TRAINING
    with _run_of(tmp_path, body, "LOSS 3 "):
        done = run(tmp_path, "debug", "worker/0", "watch", "w", "--stats", "--steps", "2")
        assert "ps/0 computes w:0 for worker/0; watching there." in done.stdout
        assert re.search(r"step 2  w:0  float32 4x3, min .*, 0 nans, 0 infinities", done.stdout)
        done = run(tmp_path, "debug", "worker/0", "watch", "hidden", "w", "--stats")
        assert "hidden:0  float32 8x3" in done.stdout and "w:0  float32 4x3" in done.stdout
        done = run(tmp_path, "debug", "worker/0", "watch", "hiden")
        assert done.code == 1 and "Did you mean hidden:0?" in done.stderr
        done = run(tmp_path, "debug", "worker/0", "watch", "report_uninitialized_variables", "--seconds", "1")
        assert done.code != 0
        done = run(tmp_path, "debug", "worker/7", "stack")
        assert done.code == 2 and "has no task worker/7" in done.stderr
        done = run(tmp_path, "debug", "worker/0", "stak")
        assert done.code == 2 and "Actions: stack, watch" in done.stderr


def test_a_task_that_does_not_answer_is_said_to_be_stopped_or_busy(tmp_path):
    with _run_of(tmp_path, BLOCKED, "blocks"):
        pids = re.search(r"worker/0 .* pid (\d+)", run(tmp_path, "ps").stdout)
        os.kill(int(pids[1]), signal.SIGSTOP)
        try:
            done = run(tmp_path, "debug", "worker/0", "stack")
        finally:
            os.kill(int(pids[1]), signal.SIGCONT)
        assert done.code == 1
        assert "worker/0 has not answered in 10 s" in done.stderr and "py-spy dump" in done.stderr


def test_a_task_that_has_died_is_told_with_its_last_words(tmp_path):
    (tmp_path / "train.py").write_text(HEAD + DIES)
    with launched(
        tmp_path, "run", "--ps", "1", "--workers", "2", "--name", "r", "--keep-going", "train.py"
    ) as launch:
        launch.read_until("last words")
        until(lambda: "failed" in run(tmp_path, "ps").stdout or "ended" in run(tmp_path, "ps").stdout)
        done = run(tmp_path, "debug", "worker/1", "stack")
        assert done.code == 1
        assert "worker/1 does not answer" in done.stderr and "ValueError: last words" in done.stderr


def _interrupted(server, *arguments):
    command = [sys.executable, "-m", "tensorfleet", "debug", server.target, "local/0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: observing.active)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    until(lambda: not observing.active)


@pytest.mark.parametrize("action", [("watch", "value", "--steps", "9"), ("numerics",)])
def test_ctrl_c_withdraws_what_was_begun(server, action):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        given = tf.placeholder(tf.float32, [])
        session.run(tf.add(given, 1.0, name="value"), {given: 1.0})
        _interrupted(server, *action)


BUSY = """
import tensorflow as tf
server = tf.train.Server.create_local_server()
print("TARGET", server.target, flush=True)
def burn():
    total = 0
    for i in range(100000):
        total += i
    return total
while True:
    burn()
"""


@contextlib.contextmanager
def _busy(folder):
    (folder / "busy.py").write_text(BUSY)
    with launched(folder, "busy.py") as launch:
        launch.read_until("TARGET")
        yield launch.stdout.split()[1]


def test_a_profile_of_a_busy_loop_names_the_function(tmp_path):
    with _busy(tmp_path) as target:
        done = run(tmp_path, "debug", target, "profile", "--seconds", "1", "-o", "flames.svg")
        assert done.code == 0, done.stderr
        assert re.search(r"\d %  burn \(busy.py", done.stdout)
        assert "burn" in (tmp_path / "flames.txt").read_text()
        picture = (tmp_path / "flames.svg").read_text()
        assert picture.startswith("<svg") and "burn" in picture and "<script" not in picture


def test_a_profile_of_a_task_that_only_waits_says_so_and_writes_nothing(tmp_path):
    (tmp_path / "idle.py").write_text(
        "import tensorflow as tf\n"
        "server = tf.train.Server.create_local_server()\n"
        'print("TARGET", server.target, flush=True)\n'
        "server.join()\n"
    )
    with launched(tmp_path, "idle.py") as launch:
        launch.read_until("TARGET")
        target = launch.stdout.split()[1]
        for _ in range(5):  # a sample of a thread that wakes up now and again is no mistake
            done = run(tmp_path, "debug", target, "profile", "--seconds", "1", "-o", "flames.svg")
            if done.code:
                break
        assert "No sample in 1 s: the task did nothing but wait." in done.stderr
        assert done.code == 1


class _Dap:
    """A client of the debug adapter protocol, as an editor is one."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._file = self._socket.makefile("rb")
        self._number = 0

    def send(self, command, **arguments):
        self._number += 1
        body = json.dumps(
            {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        )
        self._socket.sendall(f"Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def until(self, **wanted):
        while True:
            length = 0
            while line := self._file.readline().strip():
                length = int(line.split(b":")[1])
            message = json.loads(self._file.read(length))
            if all(message.get(key) == value for key, value in wanted.items()):
                return message

    def close(self):
        self._file.close()
        self._socket.close()


def test_an_editor_sets_a_breakpoint_and_a_second_attach_says_that_one_is_open(tmp_path):
    pytest.importorskip("debugpy")
    with _busy(tmp_path) as target:
        done = run(tmp_path, "debug", target, "attach")
        assert done.code == 0, done.stderr
        port = int(re.search(r"at 127.0.0.1:(\d+)", done.stdout)[1])
        assert '"request": "attach"' in done.stdout
        assert (
            f"A debugger is open in local/0 already, at 127.0.0.1:{port}"
            in run(tmp_path, "debug", target, "attach").stdout
        )
        client = _Dap(port)
        try:
            client.send("initialize", adapterID="test")
            client.until(type="response", command="initialize")
            client.send("attach", justMyCode=False)
            client.until(type="event", event="initialized")
            line = BUSY.splitlines().index("        total += i") + 1
            client.send(
                "setBreakpoints", source={"path": str(tmp_path / "busy.py")}, breakpoints=[{"line": line}]
            )
            client.until(type="response", command="setBreakpoints")
            client.send("configurationDone")
            stopped = client.until(type="event", event="stopped")["body"]
            assert stopped["reason"] == "breakpoint"
            client.send("stackTrace", threadId=stopped["threadId"])
            frame = client.until(type="response", command="stackTrace")["body"]["stackFrames"][0]
            assert (frame["name"], frame["line"]) == ("burn", line)
            client.send("disconnect", terminateDebuggee=False)
            client.until(type="response", command="disconnect")
        finally:
            client.close()


def test_pdb_stops_at_the_users_line_and_quit_lets_the_program_run_on(tmp_path):
    with _busy(tmp_path) as target:
        command = [sys.executable, "-m", "tensorfleet", "debug", target, "local/0", "attach", "--pdb"]
        for _ in range(2):
            done = subprocess.run(
                command,
                input="w\nb burn\nc\nn\np total\nquit\n",
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr
            assert "busy.py(" in done.stdout and "(Pdb)" in done.stdout
            assert re.search(r"Breakpoint \d at .*busy.py:\d", done.stdout)
        assert "burn" in run(tmp_path, "debug", target, "stack").stdout


def test_help_says_how_to_write_each_action(tmp_path):
    for action in ("stack", "watch", "numerics", "attach", "profile"):
        done = run(tmp_path, "debug", action, "--help")
        assert done.code == 0 and action in done.stdout


def test_the_usage_of_an_action_has_the_task_before_it(tmp_path):
    assert (
        "Usage: tensorfleet debug [RUN] TASK stack [OPTIONS]"
        in run(tmp_path, "debug", "stack", "--help").stdout
    )
    usage = run(tmp_path, "debug", "digits", "worker/1", "stack", "--help").stdout
    assert "Usage: tensorfleet debug digits worker/1 stack [OPTIONS]" in usage
