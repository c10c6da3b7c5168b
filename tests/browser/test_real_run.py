"""The page of a real run of 2 parameter servers and 3 workers, one server of which is hot and one worker slow."""

import importlib.util
import json
import os
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import go
from tests.support.launching import launched, run

pytestmark = pytest.mark.browser

SKEWED = Path(__file__).parent / "skewed.py"
NAMED_SECONDS = 10  # of training, within which the page names what is wrong
TRAINING = r"training begins at ([\d.]+)"


@pytest.fixture
def skewed(tmp_path):
    """The run, once all workers train."""
    options = ("--ps", "2", "--workers", "3", "--name", "skewed", "--dashboard", "0", "--keep-going")
    with launched(tmp_path, "run", *options, str(SKEWED)) as launch:
        launch.read_until("training begins", times=3)
        yield launch
        (tmp_path / "end").touch()


@pytest.fixture
def address(skewed, tmp_path):
    """What `tensorfleet dashboard` prints for the run."""
    return run(tmp_path, "dashboard", "skewed").stdout.strip()


def findings(page):
    return page.get_by_role("region", name="Findings", exact=True)


def row(page, label):
    return page.locator(f'tr[data-task="{label}"]')


def test_a_hot_server_and_a_straggler_are_named_within_ten_seconds(visit, skewed, address):
    page = visit(address)
    expect(findings(page)).to_contain_text(re.compile("ps/0 (carries|moves)"))
    expect(findings(page)).to_contain_text("embeddings")
    expect(findings(page)).to_contain_text(re.compile("worker/2 .*(slow|long)"))
    # What counts is when the page's process named them: a person's browser is open before. When the last worker began to
    # train, there was nothing yet to be seen of it.
    begun = max(float(begun) for begun in re.findall(TRAINING, skewed.stdout))
    events = page.evaluate("fetch('api/run').then(answer => answer.json())")["events"]
    named = [min(e["time"] for e in events if re.search(p, e["text"])) for p in ("^ps/0 ", "^worker/2 takes")]
    took = max(named) - begun
    print(f"named after {took:.1f} s of training")
    assert took < NAMED_SECONDS
    expect(row(page, "worker/2")).to_contain_text("slow")
    expect(row(page, "ps/0")).to_contain_text("hot")


def test_curves_move_and_a_killed_worker_turns_red(address, visit, tmp_path):
    page = visit(address)
    loss = page.get_by_role("region", name="Loss", exact=True)
    expect(loss.locator("path.line").first).to_have_attribute("d", re.compile("L"))
    before = loss.locator("path.line").first.get_attribute("d")
    expect(loss.locator("path.line").first).not_to_have_attribute("d", before)
    step = page.locator(".facts dd").nth(1)
    expect(step).not_to_have_text(step.inner_text())
    expect(row(page, "worker/1")).to_contain_text("running")
    told = page.evaluate("fetch('api/run').then(answer => answer.json())")
    os.kill(next(task["pid"] for task in told["tasks"] if task["label"] == "worker/1"), signal.SIGKILL)
    expect(row(page, "worker/1")).to_have_class(re.compile("dead"))
    expect(findings(page)).to_contain_text("worker/1")


def test_a_stack_opens_and_a_tensor_is_watched(address, visit):
    page = visit(address)
    page.locator("a.task-link", has_text="worker/2").click()
    page.get_by_role("button", name="Show the stacks").click()
    expect(page.locator(".thread").first).to_contain_text("MainThread")
    expect(page.locator(".frames").first).to_contain_text("skewed.py")
    page.get_by_label("Name of a tensor").fill("los:0")
    page.get_by_role("button", name="Watch").click()
    expect(page.locator(".ask-status.bad")).to_contain_text("loss")
    page.get_by_label("Name of a tensor").fill("loss:0")
    page.get_by_role("button", name="Watch").click()
    expect(page.locator("main")).to_contain_text("float32 []")


def test_placement_variables_logs_and_settings_are_those_of_the_run(address, visit):
    page = visit(address)
    go(page, "Variables")
    expect(page.locator("tbody tr").first).to_contain_text("embeddings")
    expect(page.locator("tbody tr").first).to_contain_text("ps/0")
    go(page, "Placement")
    page.get_by_label("Search operations").fill("dense/weight")
    expect(page.locator(".op").first).to_contain_text("ps/1")
    go(page, "Logs")
    page.get_by_label("Task whose log is shown").select_option("worker/2")
    expect(page.locator("pre.log")).to_contain_text("training begins")
    go(page, "Settings")
    page.get_by_label("Whose settings").select_option("worker/1")
    token = page.locator("tbody tr").filter(has=page.get_by_text("TENSORFLEET_TOKEN", exact=True))
    expect(token).to_contain_text("set  (default none)")
    orphan = page.locator("tbody tr.set", has_text="TENSORFLEET_ORPHAN_SECONDS")
    expect(orphan).to_contain_text("0  (default 3600)")  # as the launcher has its tasks


def test_a_finished_run_shows_its_placement_variables_and_settings(address, visit, skewed, tmp_path):
    page = visit(address)
    expect(page.locator(".facts dd").nth(1)).to_have_text(re.compile(r"[1-9]"))
    (tmp_path / "end").touch()
    skewed.end()
    with launched(tmp_path, "dashboard", "skewed") as launch:
        launch.read_until("http")
        page = visit(re.search(r"https?://\S+", launch.stdout)[0])
        expect(page.locator(".live")).to_have_text("ended")
        go(page, "Placement")
        page.get_by_label("Search operations").fill("dense/weight")
        expect(page.locator(".op").first).to_contain_text("ps/1")
        go(page, "Variables")
        first = page.locator("tbody tr").first
        expect(first).to_contain_text("embeddings")
        page.get_by_label("Whose variables").select_option("ps/1")
        expect(first).to_contain_text("dense/weight")
        expect(first.locator("td").nth(4)).to_have_text(re.compile(r"[1-9]"))  # the version
        go(page, "Settings")
        page.get_by_label("Whose settings").select_option("worker/1")
        expect(page.locator("tbody tr.set", has_text="TENSORFLEET_ORPHAN_SECONDS")).to_contain_text("0")
        launch.process.send_signal(signal.SIGINT)
        launch.end()


@pytest.mark.skipif(
    importlib.util.find_spec("tensorfleet.fleet.tracing") is None, reason="traces of all tasks are not there"
)
def test_a_trace_downloads(address, visit, tmp_path):
    page = visit(address)
    go(page, "Timeline")
    page.get_by_label("Number of steps").fill("5")
    page.get_by_role("button", name="Trace the next steps").click()
    expect(page.locator("canvas.lanes")).to_be_visible(timeout=60_000)
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download").click()
    coming.value.save_as(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert all(any(label in name for name in names) for label in ("ps/0", "ps/1", "worker/0", "worker/2"))


def test_nothing_of_a_real_run_is_served_without_the_key(address):
    plain = address.partition("?")[0]
    for path in ("", "api/now", "api/logs/worker-0", "metrics", "static/app.js", "?key=wrong"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(plain + path)
        assert refused.value.code == 401
        refused.value.close()
    with urllib.request.urlopen(plain + "healthz") as answer:
        assert json.load(answer) == {"status": "ok"}
