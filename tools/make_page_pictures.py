"""Makes the pictures of the page of a run in docs/pictures: a simulated run in Chromium, page-*.png.

python tools/make_page_pictures.py                 all of them
python tools/make_page_pictures.py light phone     some

Needs the extras `browser` and `images`, and Chromium (tools/chromium.sh finds or installs it).
"""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tensorfleet.cli.dashboard.simulated import SimulatedRun
from tensorfleet.cli.dashboard.simulated_server import SimulatedPage

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 200_000
MOMENT = 1_700_000_000.0  # of the simulated run: the pictures are the same each time


@dataclass(frozen=True)
class Picture:
    """One picture: of which run, how large, and what is pressed before."""

    ps: int = 2
    workers: int = 3
    width: int = 1440
    height: int = 1100
    scheme: str = "light"
    view: str = ""
    press: tuple[str, ...] = ()
    killed: str | None = None
    scale: float = 1


ALL = {
    "light": Picture(),
    "dark": Picture(scheme="dark", killed="worker/1"),
    "phone": Picture(width=390, height=844, scale=2),
    "200-tasks": Picture(20, 180, height=1200, killed="worker/42"),
    "task": Picture(view="task/worker-2", height=1000, press=("Show the stacks", "Sample")),
    "timeline": Picture(
        view="timeline", height=480, press=("Trace the next steps", "Zoom in", "Zoom in", "Zoom in")
    ),
}


def taken(browser: Browser, picture: Picture) -> bytes:
    """The picture as PNG."""
    time = [MOMENT]
    run = SimulatedRun(picture.ps, picture.workers, clock=lambda: time[0])
    if picture.killed:
        run.kill(picture.killed)
        time[0] += 20
    server = SimulatedPage(run).start()
    page = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        device_scale_factor=picture.scale,
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    try:
        page.goto(server.address)
        page.goto(f"{server.plain_address}#/{picture.view}")
        prepared(page, picture)
        return page.screenshot()
    finally:
        page.close()
        server.stop()


def prepared(page: Page, picture: Picture) -> None:
    """Waits for the first state, and presses what is to be pressed."""
    expect(page.locator(".live")).to_have_text("live", timeout=20_000)
    for name in picture.press:
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=name)).to_be_enabled(timeout=20_000)
    page.evaluate("scrollTo(0, 0); document.activeElement.blur()")
    page.mouse.move(picture.width - 1, picture.height - 1)
    page.wait_for_timeout(1500)  # for charts that learn their width a frame later, and one more answer


def small(png: bytes) -> bytes:
    """The picture in 256 colours: a page has few, and a repository keeps each version."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    result = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(result, "PNG", optimize=True)
    return result.getvalue()


def main() -> None:
    """Writes the pictures that are asked for."""
    chromium = subprocess.run(
        [ROOT / "tools" / "chromium.sh"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in sys.argv[1:] or ALL:
            picture = small(taken(browser, ALL[name]))
            if len(picture) > MAX_BYTES:
                raise SystemExit(f"page-{name}.png has {len(picture)} bytes: more than {MAX_BYTES}.")
            (PICTURES / f"page-{name}.png").write_bytes(picture)
            print(f"page-{name}.png: {len(picture) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
