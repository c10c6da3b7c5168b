"""`tensorfleet dashboard`: of a run, of a run that has ended, of a cluster that was started by hand."""

import contextlib
import json
import re
import signal

import httpx
import pytest

from tensorfleet.cli.dashboard.store import FILE, StatsStore
from tensorfleet.cli.registry import Entry
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.launching import launched, run
from tests.support.waiting import until


@pytest.fixture
def finished(tmp_path):
    """A folder with a run that has ended."""
    folder = tmp_path / "runs" / "old"
    folder.mkdir(parents=True)
    store = StatsStore(folder / FILE)
    store.add_point(1000.0, {"global_step": 7, "steps_per_second": {"worker/0": 3.5}})
    task = {"label": "worker/0", "job": "worker", "index": 0, "state": "ended"}
    store.set_state(
        "run", {"name": "old", "started": 990.0, "ended": 1001.0, "exit_code": 0, "tasks": [task]}
    )
    store.set_state("now", {"time": 1000.0, "tasks": {"worker/0": {"state": "ended"}}})
    store.set_report("worker/0", "graph", {"sessions": [], "left_out": 3, "kept_at": 1000.0})
    store.close()
    (folder / "worker-0.log").write_text("the last line\n")
    return tmp_path


@contextlib.contextmanager
def client_of(launch):
    """Who has followed the printed address."""
    launch.read_until("http")
    address = re.search(r"https?://\S+", launch.stdout)[0]
    with httpx.Client(base_url=address.partition("?")[0], timeout=30) as client:
        assert client.get(address).status_code == 303
        yield client


def ends_by_interrupt(launch):
    launch.process.send_signal(signal.SIGINT)
    launch.end()
    assert launch.code == 0 and launch.stderr == ""


@pytest.mark.parametrize("name", ["old", "runs/old", f"runs/old/{FILE}", None])
def test_a_finished_run_is_shown_until_ctrl_c(finished, name):
    with launched(finished, "dashboard", *([name] if name else [])) as launch, client_of(launch) as client:
        described = client.get("/api/run").json()
        assert (described["name"], described["is_live"], described["ended"]) == ("old", False, 1001.0)
        assert client.get("/api/now").json()["tasks"] == {"worker/0": {"state": "ended"}}
        assert client.get("/api/series").json()["series"]["global_step"] == [7]
        assert client.get("/api/logs/worker-0").json() == {"lines": ["the last line"]}
        assert client.get("/api/logs/worker-1").status_code == 404
        assert client.get("/metrics").status_code == 200
        client.headers["Origin"] = str(client.base_url).rstrip("/")
        graph = client.post("/api/inspect/worker-0/graph", json={})
        assert graph.json() == {"sessions": [], "left_out": 3, "kept_at": 1000.0}
        for topic, reason in (("stacks", "cannot be asked any more"), ("settings", "was kept")):
            asked = client.post(f"/api/inspect/worker-0/{topic}", json={})
            assert asked.status_code == 409 and reason in asked.json()["error"]
        assert client.post("/api/inspect/worker-1/graph", json={}).status_code == 404
        ends_by_interrupt(launch)


def test_a_run_whose_launcher_was_killed_has_ended_with_its_last_second(finished):
    store = StatsStore(finished / "runs" / "old" / FILE)
    store.set_state("run", {"name": "old", "started": 990.0, "ended": None, "is_live": True, "tasks": []})
    store.close()
    with launched(finished, "dashboard", "old") as launch, client_of(launch) as client:
        described = client.get("/api/run").json()
        assert (described["is_live"], described["ended"]) == (False, 1000.0)
        ends_by_interrupt(launch)


def test_the_port_is_chosen(finished, tmp_path):
    with launched(finished, "dashboard", "old", "--port", "0") as launch, client_of(launch) as client:
        port = str(client.base_url.port)
        refused = run(finished, "dashboard", "old", "--port", port)
        assert refused.code == 2 and f"Port {port} is in use" in refused.stderr
        ends_by_interrupt(launch)


def test_a_cluster_that_was_started_by_hand_is_shown(tmp_path):
    with ProcessCluster(ps=1, worker=2, env={"TENSORFLEET_REPORT_SECONDS": "77"}) as cluster:
        target = cluster.target("worker", 1)
        with launched(tmp_path, "dashboard", target) as launch, client_of(launch) as client:

            def states():
                return {task["label"]: task["state"] for task in client.get("/api/run").json()["tasks"]}

            until(lambda: states() == dict.fromkeys(["ps/0", "worker/0", "worker/1"], "running"))
            cluster.kill("worker", 0)
            until(lambda: states() == {"ps/0": "running", "worker/0": "dead", "worker/1": "running"})
            answer = client.get("/api/logs/ps-0")
            assert answer.json()["lines"] == [] and "started by hand" in answer.json()["note"]
            client.headers["Origin"] = str(client.base_url).rstrip("/")
            told = client.post("/api/inspect/worker-1/settings", json={}).json()["settings"]
            (report,) = [one for one in told if one["name"] == "TENSORFLEET_REPORT_SECONDS"]
            assert (report["value"], report["source"]) == ("77", "environment")  # the task's, not the page's
            ends_by_interrupt(launch)


def test_the_page_of_a_running_run_is_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    entry = Entry("r", "train.py", None, "", "http://127.0.0.1:1/?key=abc")
    entry.update("worker/0", 1, "h:1", "running")
    try:
        for arguments in (["r"], []):
            done = run(tmp_path, "dashboard", *arguments)
            assert (done.code, done.stdout) == (0, "http://127.0.0.1:1/?key=abc\n")
    finally:
        entry.remove()


def test_the_end_of_a_run_without_a_page_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    entry = Entry("r", "train.py", None)
    entry.update("main/0", 1, None, "running")
    with launched(tmp_path, "dashboard", "r") as launch, client_of(launch) as client:
        assert client.get("/api/run").json()["is_live"]
        entry.remove()
        until(lambda: not client.get("/api/run").json()["is_live"])
        ends_by_interrupt(launch)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody", "No run named nobody on this machine"),
        ("grpc://127.0.0.1:1", "cannot be reached"),
        (None, "No runs."),
    ],
)
def test_a_run_that_is_not_there_is_an_error(tmp_path, name, words):
    done = run(tmp_path, "dashboard", *([name] if name else []))
    assert done.code == 2 and words in " ".join(done.stderr.replace("│", " ").split())


def test_a_folder_without_statistics_says_why(tmp_path):
    (tmp_path / "runs" / "r").mkdir(parents=True)
    done = run(tmp_path, "dashboard", "r")
    assert done.code == 2 and "that run had no page" in " ".join(done.stderr.replace("│", " ").split())


def test_a_file_that_is_no_history_says_so(tmp_path):
    (tmp_path / FILE).write_text(json.dumps({"not": "sqlite"}) * 100)
    done = run(tmp_path, "dashboard", ".")
    assert done.code == 2 and "Cannot read the statistics" in " ".join(done.stderr.replace("│", " ").split())
