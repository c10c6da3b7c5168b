"""Links lead somewhere, and every page can be reached."""

from pathlib import Path

import pytest
import yaml

from tests.support.reading import DOCS, ROOT, headings_of, links_of, tool

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path):
    broken = []
    for target in links_of(page):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        if not there.exists() or (anchor and anchor not in headings_of(there)):
            broken.append(target)
    assert not broken


def pages_in(nav: list) -> list[str]:
    result = []
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            result += pages_in(value) if isinstance(value, list) else [value]
    return result


def test_the_site_lists_every_page_once():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    listed = pages_in(tool("docs_hook").with_folders(nav, DOCS))
    assert sorted(listed) == sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))


def test_the_list_of_pages_links_to_every_page():
    linked = {target.partition("#")[0] for target in links_of(DOCS / "README.md")}
    assert {p.name for p in DOCS.glob("*.md")} - {"README.md"} <= linked
