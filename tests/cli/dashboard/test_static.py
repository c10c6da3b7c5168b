"""The files of the page: what they may not hold. What they do is tested in tests/browser."""

import re
from pathlib import Path

import pytest

from tensorfleet.cli import dashboard

STATIC = Path(dashboard.__file__).parent / "static"
FILES = sorted(p for p in STATIC.rglob("*") if p.is_file())
SCRIPTS = [p for p in FILES if p.suffix == ".js"]


def name(path):
    return str(path.relative_to(STATIC))


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_no_script_parses_text_as_html_or_code(path):
    text = path.read_text()
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML"
        r"|\beval\(|new Function|srcdoc|javascript:",
        text,
    )
    assert found == []


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_file_names_another_host(path):
    others = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"(?m)^\s*//.*$", "", path.read_text())))
    assert others <= {"http://www.w3.org"}  # the name of SVG, which nobody loads


def test_the_page_has_no_inline_script_and_no_inline_style():
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_every_import_is_there(path):
    for target in re.findall(r'from "(\.[^"]+)"', path.read_text()):
        assert (path.parent / target).is_file(), target


def test_files_stay_readable():
    assert [name(p) for p in FILES if len(p.read_text().splitlines()) > 500] == []
