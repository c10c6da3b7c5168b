"""What the page shows without a click, of a simulated run."""

import re

import pytest
from playwright.sync_api import expect

from tensorfleet.cli.dashboard.simulated import SimulatedRun

pytestmark = pytest.mark.browser

PANELS = (
    "Findings",
    "Tasks",
    "Progress",
    "Loss",
    "Server load",
    "A worker's step",
    "Traffic",
    "Staleness",
    "Queues",
    "Events",
)


def box(page, name):
    return page.get_by_role("region", name=name, exact=True).first


def row(page, label):
    return page.locator(f'tr[data-task="{label}"]')


@pytest.mark.parametrize(("ps", "workers"), [(1, 1), (2, 3), (20, 180)])
def test_everything_is_on_the_first_screen_without_a_click(visit, ps, workers):
    run = SimulatedRun(ps, workers)
    page = visit(run)
    for name in PANELS:
        expect(box(page, name)).to_be_visible()
    for label in run.labels:
        expect(row(page, label)).to_have_count(1)
    expect(page.locator(".facts")).to_contain_text("Global step")
    expect(page.get_by_role("heading", level=1)).to_have_text("ctr-embeddings")
    expect(page.locator(".empty-line:visible")).to_have_count(0)


def test_the_hot_server_and_the_straggler_are_named_with_advice(visit):
    page = visit(SimulatedRun(2, 3))
    findings = box(page, "Findings")
    expect(findings).to_contain_text(
        re.compile(
            r"ps/0 carries \d+ % of the bytes of the 2 parameter servers .* because embeddings \(410 MB\) is whole there"
        )
    )
    expect(findings).to_contain_text("tf.fixed_size_partitioner(2)")
    expect(findings).to_contain_text("worker/2 takes 2.9 times as long")
    expect(findings).to_contain_text("worker/1 waits for input")
    expect(row(page, "worker/2")).to_contain_text("slow")
    expect(row(page, "ps/0")).to_contain_text("hot")
    expect(box(page, "Server load")).to_contain_text("hottest to mean: ps/0")


@pytest.mark.parametrize(("ps", "workers"), [(1, 1), (20, 180)])
def test_the_page_draws_in_under_a_second(visit, ps, workers, record_property):
    """The one timing that is a requirement; a shared machine takes a fifth of it."""
    page = visit(SimulatedRun(ps, workers))
    expect(row(page, "worker/0")).to_be_visible()
    took = page.evaluate("performance.getEntriesByName('first-draw')[0].duration")
    record_property("first_draw_ms", took)
    print(f"{ps + workers} tasks: first draw {took:.0f} ms")
    assert took < 1000


def test_many_tasks_are_bands_and_the_worst_come_first(visit):
    run = SimulatedRun(20, 180)
    page = visit(run)
    legend = box(page, "Progress").locator(".legend").nth(1)
    expect(legend).to_contain_text("median of 180")
    expect(legend).to_contain_text("worker/179")
    expect(page.locator("tr.task").first).to_have_attribute("data-task", "worker/179")
    expect(box(page, "A worker's step")).to_contain_text("mean of 180")
    run.kill("worker/42")
    expect(page.locator("tr.task").first).to_have_attribute("data-task", "worker/42")


def test_the_filter_and_the_columns_choose_rows(visit):
    page = visit(SimulatedRun(20, 180))
    expect(row(page, "worker/0")).to_have_count(1)
    page.get_by_label("Filter the tasks").fill("ps/1 running")
    expect(page.locator("tr.task")).to_have_count(11)  # ps/1 and ps/10 to ps/19
    page.get_by_label("Filter the tasks").fill("nonsense")
    expect(box(page, "Tasks")).to_contain_text("No task matches.")
    page.get_by_label("Filter the tasks").fill("")
    page.get_by_role("button", name="Memory").click()
    expect(page.locator("tr.task").first).to_have_attribute("data-task", "ps/0")
    expect(page.get_by_role("columnheader", name="Memory")).to_have_attribute("aria-sort", "descending")


def test_a_killed_task_turns_red_with_its_last_words(visit):
    run = SimulatedRun(2, 3)
    page = visit(run)
    expect(row(page, "worker/1")).to_contain_text("running")
    calm = row(page, "worker/1").evaluate("node => getComputedStyle(node).backgroundColor")
    run.kill("worker/1")
    expect(row(page, "worker/1")).to_contain_text("dead")
    expect(box(page, "Tasks")).to_contain_text("Killed by signal SIGKILL")
    assert row(page, "worker/1").evaluate("node => getComputedStyle(node).backgroundColor") != calm
    red, green, blue = (
        row(page, "worker/1")
        .locator(".state-text")
        .last.evaluate("node => getComputedStyle(node).color.match(/\\d+/g).slice(0, 3).map(Number)")
    )
    assert red > 2 * max(green, blue)
    expect(box(page, "Findings")).to_contain_text("worker/1 was killed")
    expect(page.locator(".title .state")).to_have_text("1 dead")


def test_the_time_between_two_steps_is_a_part_of_its_own(visit):
    page = visit(SimulatedRun(2, 3))
    track = box(page, "A worker's step").locator(".track").first
    expect(track).to_have_attribute("aria-label", re.compile("outside sess.run 4"))
    widths = track.locator(".piece").evaluate_all("all => all.map(piece => parseFloat(piece.style.width))")
    assert abs(sum(widths) - 100) < 0.5 and widths[-1] == 4


def test_curves_move(visit):
    page = visit(SimulatedRun(2, 3))
    line = box(page, "Loss").locator("path.line").first
    expect(line).to_have_attribute("d", re.compile("^M"))
    before = line.get_attribute("d")
    expect(line).not_to_have_attribute("d", before)
    step = page.locator(".facts dd").nth(1)
    shown = step.inner_text()
    expect(step).not_to_have_text(shown)


def test_a_curve_tells_single_moments_to_the_keyboard(visit):
    page = visit(SimulatedRun(2, 3))
    chart = box(page, "Loss").locator("svg.chart")
    expect(chart).to_have_attribute("aria-label", re.compile("loss 0"))
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tip")).to_contain_text("loss")
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()


def test_a_run_that_has_just_begun_says_so(visit):
    page = visit(SimulatedRun(0, 0, history=-5))
    expect(page.locator("#banner")).to_contain_text("No data yet")
    expect(box(page, "Tasks")).to_contain_text("No tasks yet.")
    expect(box(page, "Findings")).to_be_visible()


def test_a_run_that_ended_keeps_its_last_state(visit):
    run = SimulatedRun(2, 3)
    run.finish(exit_code=3)
    page = visit(run)
    expect(page.locator("#banner")).to_contain_text("The run ended with exit code 3")
    expect(row(page, "worker/0")).to_contain_text("failed")
    expect(box(page, "Loss").locator("path.line").first).to_have_attribute("d", re.compile("^M"))
    expect(box(page, "Loss").locator(".grid text", has_text="end")).to_be_visible()
    expect(box(page, "Loss")).not_to_contain_text("now")
