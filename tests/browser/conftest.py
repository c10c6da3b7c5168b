"""A real browser on the page, and what no test may leave behind: errors, refused scripts, requests to other hosts."""

import contextlib
import importlib.util
import os
import shutil
import urllib.parse
from dataclasses import dataclass, field

import pytest

from tensorfleet.cli.dashboard.simulated import SimulatedRun
from tensorfleet.cli.dashboard.simulated_server import SimulatedPage

# `make browser` installs it; `make test` leaves these tests out.
collect_ignore_glob = [] if importlib.util.find_spec("playwright") else ["test_*.py"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The browser writes this itself when the server is away, which some tests want.
AWAY = "Failed to load resource"
LISTEN = (
    "document.addEventListener('securitypolicyviolation', e => console.error('CSP: ' + e.violatedDirective))"
)


@dataclass
class Visit:
    """A page in a window of its own, and what it did wrong."""

    page: object
    context: object
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def __post_init__(self):
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).netloc))
        self.page.add_init_script(LISTEN)

    def _heard(self, message):
        if message.type in ("error", "warning") and AWAY not in message.text:
            self.errors.append(message.text)


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium, by Playwright."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail("No Chromium here: run `make browser`, or set CHROMIUM to its path.")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # on a machine with other work

    with sync_playwright() as playwright:
        # As root, which CI often is, Chromium starts without its sandbox only.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def serve_page():
    """Serves the page of a simulated run; it ends with the test."""
    with contextlib.ExitStack() as ending:

        def serve(run, **kwargs):
            result = SimulatedPage(run, **kwargs).start()
            ending.callback(result.stop)
            return result

        yield serve


@pytest.fixture
def visit(chromium, serve_page):
    """Opens the page of a run, or an address. What the page did wrong fails the test at its end."""
    visits = []

    def open_page(target=None, width=1440, height=900, **kwargs):
        run = SimulatedRun() if target is None else target
        context = chromium.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **kwargs
        )
        context.set_default_timeout(20_000)
        result = Visit(context.new_page(), context)
        visits.append(result)
        result.page.goto(run if isinstance(run, str) else serve_page(run).address)
        return result.page

    yield open_page
    for one in visits:
        one.context.close()
        assert one.errors == []
        assert len(one.hosts) == 1, "the page asked another host"


def go(page, view):
    """Opens a view by its link."""
    page.get_by_role("navigation").get_by_role("link", name=view, exact=True).click()
