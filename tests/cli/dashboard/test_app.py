"""The HTTP interface, by real requests to the real server on loopback."""

import contextlib
import json
import socket
import threading

import httpx
import pytest

from tensorfleet.base import errors
from tensorfleet.cli.dashboard import app as app_module
from tensorfleet.cli.dashboard import server as server_module
from tensorfleet.cli.dashboard.collector import StatsCollector
from tensorfleet.cli.dashboard.server import PageRefused, PageServer, listen, place_of
from tensorfleet.cli.dashboard.sources import LiveRun, RunFacts
from tensorfleet.cli.dashboard.store import StatsStore
from tensorfleet.cluster.inspection.topics import Report
from tests.support.simulated_fleet import SimulatedFleet
from tests.support.waiting import until

KEY = "a-key-for-the-tests"


class Served:
    """A page of a simulated cluster, and a client that has its key."""

    def __init__(self, logs):
        self.fleet = SimulatedFleet()
        self.collector = StatsCollector(self.fleet.connect, poll_seconds=0.05)
        for label in self.fleet.labels:
            self.collector.update(label, "127.0.0.1:1", 1, "running")
        self.run = LiveRun(
            RunFacts("r", "train.py", logs), self.collector, StatsStore(None), self._ask, poll_seconds=0.1
        )
        self.ask = self.fleet.ask
        self.page = listen(place_of("0"), KEY)
        self.server = PageServer(self.run, self.page)
        self.run.start()
        self.server.start()
        self.url = self.page.plain_address.rstrip("/")
        self.client = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30)
        self.stranger = httpx.Client(base_url=self.url, timeout=30)

    def _ask(self, *arguments):
        return self.ask(*arguments)

    def close(self):
        self.client.close()
        self.stranger.close()
        self.server.stop()
        self.run.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs")
    (logs / "worker-1.log").write_text(
        "".join(f"line {i}\n" for i in range(5000)) + "<script>alert(1)</script>\n"
    )
    result = Served(logs)
    yield result
    result.close()


@pytest.fixture
def client(served):
    return served.client


def test_decisions_about_durable_tasks_are_events_and_are_counted(served, client):
    messages = [{"decision": f"ps-standby/0 leads it now (epoch {n}).", "about": "ps/0"} for n in (2, 3)]
    for message in messages:
        served.run.decided(message["about"], message["decision"])
    events = [event for event in client.get("/api/run").json()["events"] if event["kind"] == "decision"]
    assert [(event["task"], event["text"]) for event in events] == [
        ("ps/0", "ps-standby/0 leads it now (epoch 2)."),
        ("ps/0", "ps-standby/0 leads it now (epoch 3)."),
    ]
    assert 'tensorfleet_server_decisions_total{task="ps/0"} 2' in client.get("/metrics").text


PATHS = [
    "/",
    "/api/run",
    "/api/now",
    "/api/series",
    "/api/logs/worker-1",
    "/metrics",
    "/static/app.js",
    "/nothing",
]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_served_without_the_key(served, path):
    response = served.stranger.get(path)
    assert response.status_code == 401
    assert "key" in response.text.lower() and KEY not in response.text and "ps/0" not in response.text


@pytest.mark.parametrize("path", ["/api/inspect/worker-1/stacks", "/api/trace", "/api/now"])
def test_nothing_is_asked_without_the_key(served, path):
    assert served.stranger.post(path, json={}).status_code == 401


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cookie", ["", "wrong", KEY[:-1], KEY + "x"])
def test_a_wrong_cookie_opens_nothing(served, path, cookie):
    response = served.stranger.get(path, headers={"Cookie": f"{served.page.access.cookie}={cookie}"})
    assert response.status_code == 401


def test_a_wrong_key_in_the_address_says_where_to_find_the_right_one(served):
    response = served.stranger.get("/?key=wrong")
    assert response.status_code == 401 and "tensorfleet run" in response.text
    assert "set-cookie" not in response.headers and "wrong" not in response.text


def test_the_key_in_the_address_becomes_a_cookie(served):
    with httpx.Client(base_url=served.url, timeout=30) as browser:
        response = browser.get(f"/?key={KEY}")
        assert response.status_code == 303 and response.headers["location"] == "/"
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
        assert browser.get("/api/run").json()["name"] == "r"
        assert browser.get("/").status_code == 200


def test_health_needs_no_key(served):
    response = served.stranger.get("/healthz")
    assert response.status_code == 200 and response.json() == {"status": "ok"}


@pytest.mark.parametrize("path", [*PATHS, "/healthz", f"/?key={KEY}"])
def test_another_name_of_the_host_is_refused(served, path):
    response = served.client.get(path, headers={"Host": "evil.example"})
    assert response.status_code == 421 and "set-cookie" not in response.headers


@pytest.mark.parametrize("path", [*PATHS, "/healthz"])
def test_every_answer_has_the_headers_that_browsers_heed(served, path):
    for client in (served.client, served.stranger):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers and "server" not in headers


def test_no_other_site_may_read_or_ask(served):
    cookie = {"Cookie": f"{served.page.access.cookie}={KEY}"}
    preflight = served.stranger.options(
        "/api/inspect/worker-1/stacks",
        headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"},
    )
    assert preflight.status_code == 401 and "access-control-allow-origin" not in preflight.headers
    for headers in (
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        for path in ("/api/inspect/worker-1/stacks", "/api/trace"):
            response = served.stranger.post(path, json={}, headers=cookie | headers)
            assert response.status_code == 403, headers
    own = served.stranger.post(
        "/api/inspect/worker-1/stacks", json={}, headers=cookie | {"Origin": served.url}
    )
    assert own.status_code == 200


def test_the_run_is_described(client):
    run = client.get("/api/run").json()
    assert (run["name"], run["script"], run["is_live"], run["ended"], run["exit_code"]) == (
        "r",
        "train.py",
        True,
        None,
        None,
    )
    assert [task["label"] for task in run["tasks"]] == ["ps/0", "ps/1", "worker/0", "worker/1", "worker/2"]
    assert {"name", "value", "default", "source", "purpose", "problem"} == set(run["settings"][0])


def test_secrets_are_not_among_the_settings(client, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_TOKEN", "do-not-show-this-token")
    monkeypatch.setenv("TENSORFLEET_DASHBOARD_KEY", "do-not-show-this-key")
    answer = client.get("/api/run")
    assert "do-not-show" not in answer.text
    told = {setting["name"]: setting for setting in answer.json()["settings"]}
    assert (told["TENSORFLEET_TOKEN"]["value"], told["TENSORFLEET_TOKEN"]["source"]) == ("set", "environment")


def test_rates_and_findings_come(client):
    def findings():
        return {finding["kind"]: finding for finding in client.get("/api/now").json()["findings"]}

    until(lambda: {"hot_server", "straggler"} <= set(findings()))
    assert findings()["hot_server"]["task"] == "ps/0" and "embeddings" in findings()["hot_server"]["text"]
    assert findings()["straggler"]["task"] == "worker/1"
    assert client.get("/api/now").json()["tasks"]["worker/1"]["is_straggler"]


def test_curves_grow_and_only_new_points_come(client):
    until(lambda: len(client.get("/api/series").json()["times"]) > 3)
    times = client.get("/api/series?seconds=600").json()["times"]
    newer = client.get(f"/api/series?since={times[-2]}").json()
    assert newer["times"][0] > times[-2]
    assert len(newer["series"]["memory_bytes"]["ps/0"]) == len(newer["times"])


@pytest.mark.parametrize("query", ["seconds=x", "seconds=-1", "since=nan", "since=inf", "seconds=1e99"])
def test_a_number_that_is_none_is_refused(client, query):
    response = client.get(f"/api/series?{query}")
    assert response.status_code == 400 and "must be a number" in response.json()["error"]


def test_the_end_of_a_log_comes_as_text(client):
    response = client.get("/api/logs/worker-1?tail=2")
    assert response.json() == {"lines": ["line 4999", "<script>alert(1)</script>"]}
    assert response.headers["content-type"] == "application/json"
    assert len(client.get("/api/logs/worker-1?tail=1e9").json()["lines"]) == 5000
    assert len(client.get("/api/logs/worker-1").json()["lines"]) == 200


@pytest.mark.parametrize("task", ["worker-9", "..", "%2e%2e%2fetc-0", "worker", "worker-1.log", "x" * 500])
def test_a_task_that_the_run_does_not_have_is_an_error(client, task):
    response = client.get(f"/api/logs/{task}")
    assert response.status_code == 404
    assert "no task" in response.json()["error"] or response.json()["error"].startswith("No ")


def test_a_log_that_is_not_there_is_empty_and_says_why(client):
    response = client.get("/api/logs/ps-0")
    assert response.status_code == 200 and response.json()["lines"] == []
    assert "Cannot read the log" in response.json()["note"]


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_files_beside_the_assets_are_not_served(client, path):
    assert client.get(path).status_code == 404


def test_a_task_is_inspected(client, served):
    response = client.post("/api/inspect/worker-1/stacks", json={"depth": 3})
    assert response.json()["threads"][0]["name"] == "MainThread"
    assert ("worker/1", "stacks", {"depth": 3}) in served.fleet.questions
    assert client.post("/api/inspect/worker-1/stacks").status_code == 200  # without a body


def test_what_a_task_answers_to_a_wrong_question_is_told(client):
    response = client.post("/api/inspect/worker-1/stakcs", json={})
    assert response.status_code == 400 and "No topic" in response.json()["error"]
    assert client.post("/api/inspect/worker-7/stacks", json={}).status_code == 404
    assert client.get("/api/inspect/worker-1/stacks").status_code == 405


def test_a_task_that_does_not_answer_is_told(client, served):
    served.fleet.silent.add("worker/2")
    try:
        response = client.post("/api/inspect/worker-2/stacks", json={})
        assert response.status_code == 502 and "did not answer" in response.json()["error"]
    finally:
        served.fleet.silent.clear()


def test_a_debugger_is_not_opened_by_the_page(client):
    response = client.post("/api/inspect/worker-1/attach", json={})
    assert response.status_code == 403 and "tensorfleet debug r worker/1 attach" in response.json()["error"]


@pytest.mark.parametrize("body", [b"[]", b"{", b"3", b"\xff", b"[" * 60_000])
def test_a_body_that_is_no_object_is_refused(client, body):
    response = client.post("/api/inspect/worker-1/stacks", content=body)
    assert response.status_code == 400 and "JSON object" in response.json()["error"]


def test_a_body_that_is_too_large_is_refused(client):
    response = client.post("/api/inspect/worker-1/stacks", content=b" " * (64 * 1024 + 1))
    assert response.status_code == 413 and "too large" in response.json()["error"]


def test_a_body_without_end_is_refused_before_its_end(served):
    """Chunk after chunk, with no length told: the answer comes before the last of them."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", served.page.access.port), 30)) as stream:
        stream.sendall(
            f"POST /api/inspect/worker-1/stacks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(17):
            stream.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
        assert b"413" in stream.recv(100)


def test_headers_without_end_are_refused(served):
    with contextlib.closing(socket.create_connection(("127.0.0.1", served.page.access.port), 30)) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        with contextlib.suppress(OSError):
            for _ in range(64):
                stream.sendall(b"x" * 4096)
        with contextlib.suppress(ConnectionError):
            answer = stream.recv(100)
            assert not answer or b" 4" in answer
    assert served.stranger.get("/healthz").status_code == 200


def test_only_so_many_inspections_are_under_way(client, served):
    begun, may_end = threading.Semaphore(0), threading.Event()

    def ask(*arguments):
        begun.release()
        assert may_end.wait(60)
        return Report({"asked": True})

    served.ask = ask
    answers = []

    def post():
        answers.append(client.post("/api/inspect/worker-1/stacks", json={}))

    threads = [threading.Thread(target=post) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            assert begun.acquire(timeout=60)
        refused = client.post("/api/inspect/worker-1/stacks", json={})
        assert refused.status_code == 429 and "Try again" in refused.json()["error"]
        assert client.get("/api/now").status_code == 200
    finally:
        may_end.set()
        for thread in threads:
            thread.join(60)
        served.ask = served.fleet.ask
    assert [answer.status_code for answer in answers] == [200] * 4
    assert client.post("/api/inspect/worker-1/stacks", json={}).status_code == 200


def test_a_long_inspection_is_given_its_time(client, served):
    seconds = []
    served.ask = lambda *arguments: (seconds.append(arguments[-1]), Report({}))[1]
    try:
        client.post("/api/inspect/worker-1/profile", json={"seconds": 30})
        client.post("/api/inspect/worker-1/profile", json={"seconds": "x"})
        client.post("/api/inspect/worker-1/profile", json={"seconds": 1e9})
    finally:
        served.ask = served.fleet.ask
    assert seconds == [40.0, 10.0, 10.0]


def test_an_error_that_nobody_expected_is_a_sentence(client, served):
    def ask(*arguments):
        raise ZeroDivisionError

    served.ask = ask
    try:
        response = client.post("/api/inspect/worker-1/stacks", json={})
    finally:
        served.ask = served.fleet.ask
    assert response.status_code == 500 and "failed to answer" in response.json()["error"]


@pytest.mark.parametrize("steps", ["0", "-1", "x", "100000"])
def test_a_trace_of_no_or_too_many_steps_is_refused(client, steps):
    assert client.post(f"/api/trace?steps={steps}").status_code == 400


def test_the_page_is_html(client):
    response = client.get("/")
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/html")


def test_without_its_files_the_page_says_so(client, monkeypatch, tmp_path):
    monkeypatch.setattr(app_module, "STATIC", tmp_path)
    assert "not installed" in client.get("/").text


def test_metrics_come_as_prometheus_reads_them(client):
    until(lambda: "tensorfleet_steps_total{" in client.get("/metrics").text)
    assert client.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_a_run_that_has_ended_says_so(tmp_path):
    served = Served(tmp_path)
    try:
        until(lambda: served.client.get("/api/now").json()["tasks"]["ps/0"]["state"] == "running")
        served.run.end(3)
        run = served.client.get("/api/run").json()
        assert (run["is_live"], run["exit_code"]) == (False, 3) and run["ended"] >= run["started"]
        for path in ("/api/inspect/worker-1/stacks", "/api/trace"):
            response = served.client.post(path, json={})
            assert response.status_code == 409 and "has ended" in response.json()["error"]
    finally:
        served.close()


def test_a_run_that_has_ended_tells_what_its_tasks_told_last(tmp_path):
    served = Served(tmp_path)
    try:
        until(lambda: len(served.collector.reports()) == 5 + 5 + 2)
        served.run.end(0)
        number = len(served.fleet.questions)
        graph = served.client.post("/api/inspect/worker-1/graph", json={}).json()
        assert graph["sessions"][0]["graph"][0]["name"] == "worker/1/x" and graph["kept_at"] > 0
        settings = served.client.post("/api/inspect/ps-1/settings", json={}).json()
        assert settings["settings"][0]["value"] == "ps/1"
        stats = served.client.post("/api/inspect/ps-0/stats", json={}).json()
        assert stats["variables"][0]["name"] == "embeddings"
        refused = served.client.post("/api/inspect/worker-0/stats", json={})
        assert refused.status_code == 409
        assert refused.json()["error"] == "The run has ended, and no report of worker/0 on stats was kept."
        own = [q for q in served.fleet.questions[number:] if q[1] == "graph" and "unless" not in q[2]]
        assert own == []  # nobody was asked for it
    finally:
        served.close()


def test_nothing_is_left_of_a_page(tmp_path):
    before = set(threading.enumerate())
    served = Served(tmp_path)
    served.client.get("/api/now")
    served.close()
    # The pool of threads of an event loop ends with its loop, a moment later.
    until(lambda: not {t for t in threading.enumerate() if t not in before and t.is_alive()})
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", served.page.access.port), 5)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.FailedPreconditionError, 409),
        (errors.PermissionDeniedError, 403),
        (errors.DeadlineExceededError, 502),
        (errors.InvalidArgumentError, 400),
    ],
)
def test_what_a_task_raises_becomes_a_status(client, served, error, status):
    def ask(*arguments):
        raise error(None, None, "A sentence.")

    served.ask = ask
    try:
        response = client.post("/api/inspect/worker-1/stacks", json={})
    finally:
        served.ask = served.fleet.ask
    assert (response.status_code, response.json()) == (status, {"error": "A sentence."})


def test_errors_name_the_task(client, served):
    def ask(*arguments):
        raise errors.UnavailableError(None, None, "worker/1 (h:1) cannot be reached: Connection refused.")

    served.ask = ask
    try:
        assert "worker/1" in client.post("/api/inspect/worker-1/stacks", json={}).json()["error"]
    finally:
        served.ask = served.fleet.ask


def test_answers_are_valid_json(client):
    for path in ("/api/run", "/api/now", "/api/series"):
        json.loads(client.get(path).text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize("topic", ["pdb", "pdb_talk"])
def test_the_page_runs_no_code_in_a_task(client, served, topic):
    before = len(served.fleet.questions)
    response = client.post(f"/api/inspect/worker-1/{topic}", json={"text": "import os"})
    assert response.status_code == 403 and "attach --pdb in a terminal" in response.json()["error"]
    assert len([q for q in served.fleet.questions[before:] if q[1] == topic]) == 0


def test_a_report_with_numbers_that_json_does_not_have_is_told(client, served):
    kept = served.ask
    served.ask = lambda *_: Report({"stats": {"mean": float("nan"), "max": [float("inf"), 1.0]}})
    try:
        response = client.post("/api/inspect/worker-1/watch_take", json={})
        assert response.json() == {"stats": {"mean": None, "max": [None, 1.0]}}
    finally:
        served.ask = kept


@pytest.mark.parametrize("host", ["127.0.0.1/healthz?", "127.0.0.1/healthz#", "me@127.0.0.1", "127.0.0.1\\x"])
def test_a_host_that_is_more_than_a_name_opens_nothing(served, host):
    response = served.stranger.get("/api/run", headers={"Host": host})
    assert response.status_code in (400, 421) and "tasks" not in response.text


def test_a_host_that_is_no_name_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(server_module, "is_loopback", lambda host: True)
    with pytest.raises(PageRefused, match="not a host name"):
        listen(place_of("é" * 70 + ":0"))


def test_workers_that_come_and_go_are_events(served, client):
    served.run.changed("scaled", None, "was scaled to 3 workers: worker/2 to join.")
    served.run.changed("joined", "worker/2", "joins.")
    events = client.get("/api/run").json()["events"]
    shown = [(event["kind"], event["task"], event["text"]) for event in events]
    assert ("scaled", None, "was scaled to 3 workers: worker/2 to join.") in shown
    assert ("joined", "worker/2", "joins.") in shown
    assert any(kind == "shard" and "dealt again, of input input" in text for kind, _, text in shown)
    lines = client.get("/metrics").text.splitlines()
    assert 'tensorfleet_worker_changes_total{change="joined"} 1' in lines
    assert 'tensorfleet_worker_changes_total{change="left"} 0' in lines
