"""The page beside a run, by the real command: its address, its end, and that nothing is left of it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from tensorfleet.cli.dashboard.launched import LaunchedPage, wanted_key, wanted_place
from tensorfleet.cli.dashboard.server import ListenPlace, PageRefused, listen, place_of
from tensorfleet.cli.dashboard.store import FILE, recorded
from tests.support.launching import launched, run
from tests.support.waiting import until

SCRIPT = """
import argparse, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
parser.add_argument("--ps_hosts")
parser.add_argument("--worker_hosts")
args = parser.parse_args()
import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    v = tf.get_variable("v", [100000])
train = v.assign_add(tf.ones([100000]))
with tf.train.MonitoredTrainingSession(server.target, is_chief=args.task_index == 0) as sess:
    print("begun", flush=True)
    while not os.path.exists("end"):
        sess.run(train)
        time.sleep(0.01)
print("done", flush=True)
"""
CLUSTER = ("run", "--ps", "1", "--workers", "2", "--name", "r")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "hello.py").write_text("print('hello')\n")
    return tmp_path


class Page:
    """The page of a run whose launcher has printed its address."""

    def __init__(self, launch):
        for line in launch.process.stderr:
            if "page at" in line:
                break
        self.address = re.search(r"http://\S+", line)[0]
        url, key = self.address.split("/?key=")
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30)

    def get(self, path):
        return self.client.get(path).json()

    def states(self):
        return {task["label"]: task["state"] for task in self.get("/api/run")["tasks"]}


@contextlib.contextmanager
def shown(launch):
    page = Page(launch)
    with page.client:
        yield page


@pytest.mark.slow
def test_a_run_is_shown_and_can_be_looked_at_afterwards(here):
    with launched(here, *CLUSTER, "train.py", TENSORFLEET_DASHBOARD="") as launch, shown(launch) as page:
        until(lambda: page.states() == dict.fromkeys(["ps/0", "worker/0", "worker/1"], "running"))
        until(lambda: (page.get("/api/now")["tasks"]["worker/1"]["steps_per_second"] or 0) > 0)
        until(lambda: page.get("/api/now")["servers"]["load"].get("ps/0", 0) > 0)
        assert page.get("/api/run")["is_live"]
        assert page.get("/api/logs/worker-0")["lines"]
        (entry,) = [json.loads(p.read_text()) for p in (here / "state").glob("*.json")]
        assert entry["page"] == page.address
        (here / "end").touch()
        # Who looks at the page sees the end of the run.
        until(lambda: not page.get("/api/run")["is_live"])
        assert page.get("/api/run")["exit_code"] == 0
        launch.end()
    assert launch.code == 0
    history = recorded(here / "runs" / "r" / FILE)
    try:
        assert history.state("run")["exit_code"] == 0
        assert {task["state"] for task in history.state("run")["tasks"]} == {"ended"}
        assert any(content["steps_per_second"] for _, content in history.points(0.0))
    finally:
        history.close()
    assert sorted(path.name for path in (here / "runs" / "r").iterdir()) == [
        "ps-0.log", FILE, "worker-0.log", "worker-1.log",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_killed_task_is_dead_and_a_stopped_one_is_silent(here):
    with (
        launched(here, *CLUSTER, "--keep-going", "train.py", TENSORFLEET_DASHBOARD="") as launch,
        shown(launch) as page,
    ):
        until(lambda: page.states() == dict.fromkeys(["ps/0", "worker/0", "worker/1"], "running"))
        pids = {task["label"]: task["pid"] for task in page.get("/api/run")["tasks"]}
        os.killpg(pids["worker/0"], signal.SIGSTOP)
        os.kill(pids["worker/1"], signal.SIGKILL)
        until(lambda: page.states() == {"ps/0": "running", "worker/0": "silent", "worker/1": "dead"})
        kinds = {(f["kind"], f["task"]) for f in page.get("/api/now")["findings"]}
        assert {("silent", "worker/0"), ("dead", "worker/1")} <= kinds
        dead = next(task for task in page.get("/api/run")["tasks"] if task["label"] == "worker/1")
        assert dead["exit_code"] == -9 and dead["last_words"] is not None
        os.killpg(pids["worker/0"], signal.SIGCONT)
        until(lambda: page.states()["worker/0"] == "running")
        (here / "end").touch()
        launch.end()


@pytest.mark.slow
def test_the_page_ends_with_a_launcher_that_is_killed(here):
    with launched(here, *CLUSTER, "train.py", TENSORFLEET_DASHBOARD="") as launch, shown(launch):
        launch.process.kill()
        until(lambda: not launch.left(), "the end of all processes")


@pytest.mark.slow
def test_a_page_that_is_killed_costs_the_run_one_line(here):
    with launched(here, *CLUSTER, "train.py", TENSORFLEET_DASHBOARD="") as launch, shown(launch) as page:
        until(lambda: page.states())
        (pid,) = [pid for pid in launch._pids() if "cli.dashboard" in command_of(pid)]
        os.kill(pid, signal.SIGKILL)
        launch.read_until("tensorfleet: the page has ended unexpectedly. The run continues without it.")
        (here / "end").touch()
        assert launch.end().code == 0 and launch.stdout.count("done") == 2


def command_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().decode()
    return ""


def test_a_port_in_use_costs_the_run_one_line(here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(here, "run", "--name", "r", "--dashboard", str(port), "hello.py")
    assert done.code == 0 and done.stdout == "hello\n"
    line = f"tensorfleet: Port {port} is in use, so there is no page at 127.0.0.1:{port}. Choose another. "
    assert done.stderr == f"{line}The run continues without the page.\n"


def test_beyond_loopback_the_page_needs_tls(here):
    done = run(here, "run", "--name", "r", "--dashboard", "0.0.0.0:0", "hello.py", TENSORFLEET_TLS="")
    assert done.code == 0 and done.stdout == "hello\n"
    assert "not served at 0.0.0.0 without TLS" in done.stderr and "TENSORFLEET_TLS" in done.stderr


def test_no_page_is_served_when_it_is_off(here):
    assert run(here, "run", "--name", "r", "--dashboard", "off", "hello.py").stderr == ""
    assert run(here, "run", "--name", "r", "hello.py", TENSORFLEET_DASHBOARD="off").stderr == ""
    assert not (here / "runs" / "r" / FILE).exists()


def test_a_short_script_is_shown_too(here):
    done = run(here, "run", "--name", "r", "hello.py", TENSORFLEET_DASHBOARD="")
    assert done.code == 0 and done.stdout == "hello\n"
    assert re.fullmatch(r"tensorfleet: page at http://127\.0\.0\.1:\d+/\?key=[\w-]{32}\n", done.stderr)


def test_a_log_folder_that_cannot_be_made_costs_the_page_nothing(here):
    (here / "runs").write_text("a file")
    done = run(here, "run", "--name", "r", "hello.py", TENSORFLEET_DASHBOARD="")
    assert done.code == 0 and "hello\n" in done.stdout
    said = done.stdout + done.stderr
    assert said.count("cannot write the statistics") <= 1 and "Traceback" not in said


@pytest.mark.parametrize("option", ["x", "1:2:y", "70000", "-1", "host:", ":80"])
def test_a_place_that_is_none_is_refused(here, option):
    done = run(here, "run", f"--dashboard={option}", "hello.py")
    assert done.code == 2 and "is not off, PORT or HOST:PORT" in " ".join(
        done.stderr.replace("│", " ").split()
    )


def test_places():
    assert place_of("8000") == ListenPlace("127.0.0.1", 8000)
    assert place_of("0.0.0.0:1") == ListenPlace("0.0.0.0", 1)
    assert place_of("[::1]:0") == ListenPlace("::1", 0)


def test_the_option_goes_before_the_setting(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_DASHBOARD", "off")
    assert wanted_place(None) is None and wanted_place("9000") == ListenPlace(port=9000)
    monkeypatch.delenv("TENSORFLEET_DASHBOARD")
    assert wanted_place(None) == ListenPlace() and wanted_place("off") is None


@pytest.mark.parametrize("key", ["short", "x" * 15, "with spaces in it, long", "é" * 20])
def test_a_key_that_can_be_guessed_is_refused(monkeypatch, key):
    monkeypatch.setenv("TENSORFLEET_DASHBOARD_KEY", key)
    with pytest.raises(ValueError, match="16 characters or more"):
        wanted_key()


def test_a_chosen_key_is_used(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_DASHBOARD_KEY", "0123456789abcdef")
    page = listen(ListenPlace(), wanted_key())
    page.socket.close()
    assert page.address.endswith("/?key=0123456789abcdef")


def test_the_page_does_not_take_the_port_of_another(tmp_path):
    page = listen(ListenPlace())
    try:
        with pytest.raises(PageRefused, match="is in use"):
            listen(ListenPlace(port=page.access.port))
    finally:
        page.socket.close()


def test_a_page_that_does_not_read_never_holds_up_the_launcher(tmp_path):
    page = LaunchedPage(listen(ListenPlace()), "r", "train.py", tmp_path)
    os.kill(page._process.pid, signal.SIGSTOP)
    try:
        for i in range(5000):
            page.task(f"worker/{i}", i, "h:1", "running")
    finally:
        os.kill(page._process.pid, signal.SIGCONT)
        page.close(0)
    assert page._process.poll() is not None
    page.close(0)  # once more does no harm


def test_the_page_serves_over_tls_with_the_certificates_of_the_cluster(tmp_path, monkeypatch):
    from tensorfleet.cli.certificates import make_certificates

    make_certificates(tmp_path / "tls", ["localhost"])
    monkeypatch.setenv("TENSORFLEET_TLS", str(tmp_path / "tls"))
    page = LaunchedPage(listen(ListenPlace("0.0.0.0")), "r", "train.py", tmp_path / "logs")
    try:
        assert page.address.startswith("https://")
        port = re.search(r":(\d+)/", page.address)[1]
        import ssl

        context = ssl.create_default_context(cafile=str(tmp_path / "tls" / "ca.pem"))
        with httpx.Client(base_url=f"https://localhost:{port}", verify=context, timeout=30) as browser:
            assert browser.get("/api/run").status_code == 401
            answer = browser.get(f"/?key={page.address.split('key=')[1]}")
            assert answer.status_code == 303 and "secure" in answer.headers["set-cookie"].lower()
            assert browser.get("/api/run").json()["name"] == "r"
    finally:
        page.close(0)


def test_importing_the_command_loads_no_web_server():
    code = "import sys, tensorfleet.cli.command; print([m for m in ('starlette', 'uvicorn', 'anyio') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
