"""Keyboard, phone, dark, calm."""

import pytest
from playwright.sync_api import expect

from tensorfleet.cli.dashboard.simulated import SimulatedRun
from tests.browser.conftest import go
from tests.browser.test_views import VIEWS

pytestmark = pytest.mark.browser

REACHABLE = "a[href], button, input, select, summary, [tabindex='0']"
# Gives each visible control a number, so that those which Tab has reached can be told.
NUMBER = """selector => [...document.querySelectorAll(selector)]
    .filter(node => !node.disabled && node.checkVisibility() && node.tabIndex >= 0)
    .map((node, i) => { node.dataset.number = i; return node.dataset.number; })"""
FOCUSED = """() => { const node = document.activeElement; const style = getComputedStyle(node);
    const inner = node.querySelector(':scope > rect'); const ring = style.outlineStyle !== 'none' ||
    (inner && getComputedStyle(inner).strokeWidth !== '1px'); return [node.dataset.number ?? null, ring]; }"""


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("view", VIEWS)
def test_tab_reaches_every_control_with_a_visible_ring(visit, view):
    page = visit()
    expect(page.locator(".live")).to_have_text("live")
    go(page, view)
    expect(page.locator("nav a[aria-current]")).to_have_text(view)
    expect(page.locator("main h2").first).to_be_visible()
    if view == "Task":
        page.get_by_role("button", name="Show the stacks").click()
        expect(page.locator(".thread").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    wanted = set(page.evaluate(NUMBER, REACHABLE))
    reached = set()
    for _ in range(len(wanted) + 10):
        page.keyboard.press("Tab")
        number, has_ring = page.evaluate(FOCUSED)
        if number is not None:
            assert has_ring, page.evaluate("document.activeElement.outerHTML")
            reached.add(number)
    missed = [page.locator(f'[data-number="{n}"]').evaluate("n => n.outerHTML") for n in wanted - reached]
    assert missed == []


def test_the_skip_link_comes_first_and_leads_to_the_content(visit):
    page = visit()
    expect(page.locator("tr.task").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize("size", [(2, 3), (20, 180)])
def test_a_phone_scrolls_down_only(visit, size):
    page = visit(SimulatedRun(*size, hostile=True), width=390, height=844)
    expect(page.locator("tr.task").first).to_be_visible()
    for view in VIEWS:
        go(page, view)
        expect(page.locator("main h2").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 390, view


def test_dark_follows_the_system_and_the_switch(visit):
    page = visit(color_scheme="dark")
    expect(page.locator("tr.task").first).to_be_visible()
    dark = background(page)
    assert sum(map(int, dark[4:-1].split(","))) < 120
    switch = page.get_by_role("button", name="Theme")
    switch.click()
    expect(switch).to_have_attribute("aria-label", "Theme: light")
    assert background(page) != dark
    page.reload()
    expect(switch).to_have_attribute("aria-label", "Theme: light")
    assert background(page) != dark


def test_nothing_moves_for_those_who_ask_for_calm(visit):
    page = visit(reduced_motion="reduce")
    expect(page.locator(".live")).to_have_text("live")
    moving = """[...document.querySelectorAll('*')].flatMap(n => [n, '::before']).length &&
        [...document.querySelectorAll('*')].filter(n => getComputedStyle(n, '::before').animationName !== 'none'
        || parseFloat(getComputedStyle(n).transitionDuration) > 0).length"""
    assert page.evaluate(moving) == 0


def test_answers_do_not_move_what_is_on_the_screen(visit):
    page = visit()
    expect(page.locator("tr.task").first).to_be_visible()
    page.evaluate("""() => { window.jumps = 0; new PerformanceObserver(list => {
        for (const entry of list.getEntries()) window.jumps += entry.value; }).observe({ type: 'layout-shift' }); }""")
    step = page.locator(".facts dd").nth(1)
    for _ in range(3):
        shown = step.inner_text()
        expect(step).not_to_have_text(shown)
    assert page.evaluate("window.jumps") < 0.01
