"""Nothing that a run says is executed, nothing is served without the key, and the page survives its server."""

import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect

from tensorfleet.cli.dashboard.simulated import HOSTILE, SimulatedRun
from tests.browser.conftest import go

pytestmark = pytest.mark.browser


def test_html_in_names_lines_errors_and_findings_is_shown_as_text(visit):
    run = SimulatedRun(2, 3, hostile=True)
    run.kill("worker/1")
    page = visit(run)
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE)
    expect(page.locator(".finding").first).to_contain_text(HOSTILE)
    expect(page.locator(".last-words").first).to_contain_text(HOSTILE)
    page.get_by_role("img", name="Traffic").hover()
    go(page, "Placement")
    page.get_by_label("Search operations").fill("script")
    expect(page.locator(".op").first).to_contain_text(HOSTILE)
    go(page, "Variables")
    expect(page.locator("tbody")).to_contain_text(HOSTILE)
    go(page, "Logs")
    expect(page.locator("pre.log")).to_contain_text(HOSTILE)
    go(page, "Settings")
    expect(page.locator("tbody")).to_contain_text(HOSTILE)
    page.evaluate("location.hash = '#/task/worker-0'")
    page.get_by_role("button", name="Show the stacks").click()
    expect(page.locator(".frames").first).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Sample").click()
    expect(page.locator("svg.flame")).to_be_visible()
    page.get_by_label("Name of a tensor").fill(HOSTILE)
    page.get_by_role("button", name="Watch").click()
    expect(page.locator(".ask-status.bad")).to_contain_text("<script>")
    go(page, "Timeline")
    page.get_by_role("button", name="Trace the next steps").click()
    expect(page.locator("canvas.lanes")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("path", ["", "static/app.js", "static/page.css", "api/now", "api/run", "metrics"])
def test_nothing_is_served_without_the_key(serve_page, path):
    page = serve_page(SimulatedRun())
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(page.plain_address + path)
    assert refused.value.code == 401
    refused.value.close()


def test_the_key_leaves_the_address(visit):
    page = visit()
    expect(page.locator("tr.task").first).to_be_visible()
    assert "key" not in page.url


def test_a_key_that_is_no_longer_valid_is_said_and_the_last_state_stays(visit, serve_page):
    run = SimulatedRun()
    page = visit(run)
    expect(page.locator("tr.task")).to_have_count(5)
    page.context.clear_cookies()
    expect(page.locator("#banner")).to_contain_text("The key is missing or wrong")
    expect(page.locator("#banner")).to_contain_text("tensorfleet dashboard")
    expect(page.locator("tr.task")).to_have_count(5)


def test_the_page_reconnects_when_its_server_comes_back(visit, serve_page):
    run = SimulatedRun()
    server = serve_page(run)
    page = visit(server.address)
    expect(page.locator(".live")).to_have_text("live")
    expect(page.locator("tr.task")).to_have_count(5)
    server.stop()
    expect(page.locator("#banner")).to_contain_text("Reconnecting")
    expect(page.locator("#banner")).to_contain_text("Shown is the state of")
    expect(page.locator("tr.task")).to_have_count(5)
    serve_page(run, port=server.port, key=server.key)
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator(".live")).to_have_text("live")
