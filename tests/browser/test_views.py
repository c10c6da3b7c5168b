"""The other views, of a simulated run."""

import json
import re

import pytest
from playwright.sync_api import expect

import tensorfleet as tf
from tensorfleet.cli.dashboard.simulated import SimulatedRun
from tensorfleet.cli.dashboard.sources import Unavailable
from tests.browser.conftest import go

pytestmark = pytest.mark.browser

VIEWS = ("Overview", "Placement", "Variables", "Timeline", "Logs", "Task", "Settings")


def test_every_view_opens_by_its_link_and_by_its_address(visit):
    page = visit()
    for view in VIEWS:
        go(page, view)
        expect(page.get_by_role("link", name=view, exact=True)).to_have_attribute("aria-current", "page")
        expect(page.locator("main h2").first).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Settings")).to_have_attribute("aria-current", "page")
    expect(page.locator("main")).to_contain_text("TENSORFLEET_WIRE")


def test_placement_is_a_tree_by_task_and_can_be_searched(visit):
    page = visit()
    go(page, "Placement")
    page.locator("summary", has_text="ps/0").click()
    expect(page.locator(".op", has_text="embeddings").first).to_contain_text("VariableV2")
    expect(page.locator("summary", has_text="ps/0")).to_have_count(1)
    page.get_by_label("Search operations").fill("biasadd")
    expect(page.locator(".op").first).to_contain_text("worker/0")
    page.get_by_label("Search operations").fill("dense_1/kernal")
    expect(page.locator("main")).to_contain_text("Near: dense_1/kernel")


def test_variables_are_sorted_filtered_and_asked_of_one_task(visit):
    page = visit()
    go(page, "Variables")
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("embeddings")
    expect(first).to_contain_text("512 MB")
    page.get_by_role("button", name="Variable").click()
    expect(first).to_contain_text("dense_1/bias")
    page.get_by_label("Filter variables").fill("embedings")
    expect(page.locator("main")).to_contain_text("No variable matches embedings. Near: embeddings")
    page.get_by_label("Filter variables").fill("")
    page.get_by_label("Whose variables").select_option("ps/1")
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(first).to_contain_text("ps/1")


def test_a_trace_is_drawn_and_downloads_as_a_chrome_trace(visit, tmp_path):
    page = visit()
    go(page, "Timeline")
    page.get_by_label("Number of steps").fill("7")
    page.get_by_role("button", name="Trace the next steps").click()
    expect(page.locator("canvas.lanes")).to_be_visible()
    expect(page.locator("main")).to_contain_text("events in")
    expect(page.locator("canvas.lanes")).to_have_attribute("aria-label", re.compile("with 42 transfers"))
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download").click()
    coming.value.save_as(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "compute"]
    assert len(steps) == 3 * 7


def test_logs_follow_a_task_and_can_be_filtered(visit):
    page = visit()
    go(page, "Logs")
    page.get_by_label("Task whose log is shown").select_option("worker/1")
    expect(page.locator("pre.log .line").first).to_contain_text("worker/1]")
    last = page.locator("pre.log .line").last
    before = last.inner_text()
    expect(last).not_to_have_text(before)
    page.get_by_label("Filter lines").fill("waited")
    expect(page.locator("pre.log .line").first).to_contain_text("waited 1.2 s")
    expect(page.locator("pre.log .line").first).to_have_class(re.compile("warn"))


def test_a_task_shows_its_stacks_profile_and_tensors(visit):
    page = visit()
    page.locator("a.task-link", has_text="worker/2").click()
    expect(page.get_by_role("heading", name="worker/2")).to_be_visible()
    page.get_by_role("button", name="Show the stacks").click()
    expect(page.locator(".thread").first).to_contain_text("waits for ps/0: dense_1/kernel/read for 420 ms")
    expect(page.locator(".frames").first).to_contain_text("train.py:61")
    page.get_by_role("button", name="Sample").click()
    expect(page.locator("svg.flame")).to_contain_text("XLA: fusion")
    page.get_by_label("Name of a tensor").fill("dense_1/Relu:0")
    page.get_by_role("button", name="Watch").click()
    expect(page.locator("main")).to_contain_text("float32 [128, 512]")


def test_an_unknown_tensor_offers_the_nearest_names(visit):
    page = visit()
    go(page, "Task")
    page.get_by_label("Name of a tensor").fill("dense_1/Relo:0")
    page.keyboard.press("Enter")
    expect(page.locator(".ask-status.bad")).to_contain_text("Near: dense_1/Relu:0")


def test_a_task_that_does_not_answer_is_said_to_be_silent(visit):
    run = SimulatedRun()
    run.silence("worker/0")
    page = visit(run)
    page.locator("a.task-link", has_text="worker/0").click()
    page.get_by_role("button", name="Show the stacks").click()
    expect(page.locator(".ask-status.bad")).to_have_text("worker/0 does not answer: it is silent.")


def test_what_a_task_refuses_is_said_in_its_words_and_not_taken_for_a_wrong_key(visit):
    run = SimulatedRun()

    def refuse(task, topic, options):
        raise tf.errors.PermissionDeniedError(None, None, f"{task} does not show values.")

    run.inspect = refuse
    page = visit(run)
    go(page, "Task")
    page.get_by_label("Name of a tensor").fill("loss:0")
    page.keyboard.press("Enter")
    expect(page.locator(".ask-status.bad")).to_have_text("ps/0 does not show values.")
    expect(page.locator("#banner")).to_be_hidden()


def test_a_log_that_is_not_there_leaves_no_empty_box(visit):
    run = SimulatedRun()

    def no_log(task, tail):
        raise Unavailable(f"No log of {task} here.")

    run.log_lines = no_log
    page = visit(run)
    go(page, "Logs")
    expect(page.get_by_text("No log of ps/0 here.")).to_be_visible()
    expect(page.locator("pre.log")).to_be_hidden()


def test_a_run_that_has_ended_shows_what_was_kept_and_when(visit):
    run = SimulatedRun()
    run.finish()
    page = visit(run)
    go(page, "Placement")
    expect(page.locator("main")).to_contain_text(re.compile(r"operations, as of \d+:\d\d:\d\d"))
    page.get_by_label("Search operations").fill("embeddings")
    expect(page.locator(".op").first).to_contain_text("ps/0")
    go(page, "Variables")
    page.get_by_label("Whose variables").select_option("ps/1")
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(page.locator("main")).to_contain_text(re.compile(r"5, as of \d+:\d\d:\d\d"))
    go(page, "Settings")
    expect(page.locator("main")).to_contain_text(re.compile(r"set, as of \d+:\d\d:\d\d"))


def test_what_was_not_kept_of_a_run_that_has_ended_is_said(visit):
    run = SimulatedRun()
    run.finish()

    def none_kept(task, topic, options):
        raise Unavailable(f"The run has ended, and no report of {task} on {topic} was kept.", 409)

    run.inspect = none_kept
    page = visit(run)
    go(page, "Placement")
    expect(page.locator(".ask-status.bad")).to_have_text(
        "The run has ended, and no report of worker/0 on graph was kept."
    )


def test_a_graph_that_is_told_in_part_says_so(visit):
    run = SimulatedRun()
    run.inspect = lambda *_: {
        "sessions": [{"session": "s", "graph": [{"name": "a", "op": "Add"}]}],
        "left_out": 4,
    }
    page = visit(run)
    go(page, "Placement")
    expect(page.locator("main")).to_contain_text("1 of 5 operations")


def test_a_task_that_does_not_exist_is_said_so(visit):
    page = visit()
    go(page, "Task")
    page.evaluate("location.hash = '#/task/worker-99'")
    expect(page.locator("main")).to_contain_text("This run has no task worker/99.")


def test_settings_that_differ_come_first(visit):
    page = visit()
    go(page, "Settings")
    page.get_by_label("Whose settings").select_option("this page")
    expect(page.locator("tbody tr.set")).to_have_count(2)
    expect(page.locator("tbody tr").first).to_contain_text("TENSORFLEET_WIRE")


def test_settings_are_those_of_the_chosen_task_and_show_no_secret(visit):
    page = visit()
    go(page, "Settings")
    silent = page.locator("tbody tr", has_text="TENSORFLEET_SILENT_SECONDS")
    expect(page.get_by_label("Whose settings")).to_have_value("ps/0")
    expect(silent).to_contain_text("12  (default 4)")
    token = page.locator("tbody tr").filter(has=page.get_by_text("TENSORFLEET_TOKEN", exact=True))
    expect(token).to_contain_text("set  (default none)")
    page.get_by_label("Whose settings").select_option("worker/1")
    expect(silent).to_contain_text("3  (default 4)")
    expect(page.locator("tbody tr.set")).to_have_count(4)


def test_a_task_that_does_not_tell_its_settings_shows_no_others(visit):
    run = SimulatedRun()
    run.silence("worker/0")
    page = visit(run)
    go(page, "Settings")
    expect(page.locator("tbody tr.set").first).to_be_visible()
    page.get_by_label("Whose settings").select_option("worker/0")
    expect(page.locator(".ask-status.bad")).to_have_text("worker/0 does not answer: it is silent.")
    expect(page.locator("main")).to_contain_text("No settings have been told.")
    expect(page.locator("tbody tr")).to_have_count(0)
