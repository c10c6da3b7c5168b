"""What the pages list is what there is: names, stages, files, tables, pictures."""

import re

import pytest

from tensorfleet.cluster.inspection import stats_schema
from tests.support.reading import DOCS, README, ROOT, blocks_of, tool


def test_compatibility_page_is_current():
    page = tool("make_compatibility").page()
    current = (DOCS / "compatibility.md").read_text() == page
    assert current, "docs/compatibility.md is out of date: run python tools/make_compatibility.py"


def test_statistics_page_is_current_and_gives_each_field_a_sentence():
    assert (DOCS / "statistics.md").read_text() == tool("make_statistics").page()
    fields = [field for part in stats_schema.ALL for field in stats_schema.fields_of(part)]
    assert [field.name for field in fields if not re.match(r"[A-Z].*[.]$", field.meaning)] == []


def test_compatibility_page_counts_names_of_modules_and_not_of_classes():
    make = tool("make_compatibility")
    modules = {m.name: m for m in make.compare({"tanh", "math.tanh"})}
    assert modules[""].supported == ["tanh"]
    assert modules["math"].supported == ["tanh"]
    assert "Session" in modules[""].missing
    assert "Session" not in modules  # a class is not a module


def test_layout_page_names_every_stage():
    page = (DOCS / "layout.md").read_text()
    parts = [p for p in (ROOT / "tensorfleet").iterdir() if not p.name.startswith("__")]
    assert [p.name for p in parts if f"`{p.name}{'/' if p.is_dir() else ''}`" not in page] == []


@pytest.mark.parametrize("name", ["journey-of-a-step", "adding-an-op"])
def test_files_that_a_page_names_exist(name: str):
    """Written `cluster/master/master.py`: under tensorfleet/, or from the top of the tree."""
    named = set(re.findall(r"(?<!\+ )\b\w[\w/]*/[\w.]+\.(?:py|md)\b", (DOCS / f"{name}.md").read_text()))
    assert len(named) > 5
    assert [
        n for n in named if not any((ROOT / top / n).exists() for top in ("tensorfleet", ".", "docs"))
    ] == []


def test_benchmark_table_has_its_markers():
    for page in (README, ROOT / "benchmarks" / "README.md"):
        assert re.search(r"<!-- table -->\n.+\n<!-- /table -->", page.read_text(), re.S)


def test_the_diff_that_adds_an_op_is_what_the_tree_holds():
    for block in blocks_of(DOCS / "adding-an-op.md"):
        if block.language == "diff":
            path = re.search(r"^\+\+\+ b/(.+)$", block.code, re.M)[1]
            added = [line[1:] for line in block.code.splitlines() if re.match(r"\+(?!\+\+)", line)]
            assert "\n".join(added) in (ROOT / path).read_text()
