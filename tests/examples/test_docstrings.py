"""What every example has."""

import re

import pytest

from tests.support.examples import EXAMPLES

PATHS = sorted(EXAMPLES.glob("*.py"))
PAGE = (EXAMPLES.parent / "docs" / "examples.md").read_text()


def test_the_page_lists_the_examples_and_no_others():
    assert sorted(re.findall(r"^\| \[(\w+)\]", PAGE, re.M)) == [path.stem for path in PATHS]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_examples_show_the_command_that_the_page_has(path):
    shown = path.read_text().split('"""')[1]
    assert f"examples/{path.name}" in shown
    row = re.search(rf"^\| \[{path.stem}\].*`((?:make|python|tensorfleet) .*?)`", PAGE, re.M)
    assert row is not None and row[1] in shown


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= 260
