"""What the documentation says is true: its programs run, its links lead somewhere, its lists are current."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tensorfleet.testing.cluster import free_ports

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
INITIALIZE = "    sess.run(tf.global_variables_initializer())\n"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def blocks(language: str, page: Path = ROOT / "README.md") -> list[str]:
    """A page's blocks in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def run(program: str, folder: Path) -> subprocess.CompletedProcess:
    script = folder / "train.py"
    script.write_text(program)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120
    )


def error_of(program: str, folder: Path) -> str:
    """How a program's error ends, as if the program were in the README's home folder."""
    done = run(program, folder)
    assert done.returncode == 1
    return done.stderr[done.stderr.index("tensorfleet.errors.") :].replace(str(folder), "/home/me")


def anchor(heading: str) -> str:
    """How GitHub names a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_twelve_line_program_has_twelve_lines_and_prints_what_the_readme_shows(tmp_path):
    program = blocks("python")[0]
    assert len([line for line in program.splitlines() if line.strip()]) == 12
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == blocks("text")[0]


def test_cluster_programs_of_the_pages_run(tmp_path):
    pages = [blocks("python")[1]]
    pages += [
        blocks("python", ROOT / "docs" / f"{name}.md")[0] for name in ("cluster", "security", "testing")
    ]
    ports = free_ports(2)
    for program, shown in zip(
        pages,
        [
            "loss 0.000000\n",
            "6.0\n",
            "let in\n",
            "[cluster] kills worker/1\n[cluster] kills ps/0\nlost: True\nagain: 1\n",
        ],
        strict=True,
    ):
        done = run(program.replace("2222", str(ports[0])).replace("2223", str(ports[1])), tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == shown


def test_errors_look_as_the_readme_shows(tmp_path):
    program = blocks("python")[2]
    assert error_of(program, tmp_path) == blocks("text")[1]
    ready = program.replace("    sess.run(vectors", INITIALIZE + "    sess.run(vectors")
    assert error_of(ready, tmp_path) == blocks("text")[2]


def test_compatibility_page_is_current():
    page = tool("make_compatibility").page()
    current = (ROOT / "docs" / "compatibility.md").read_text() == page
    assert current, "docs/compatibility.md is out of date: run python tools/make_compatibility.py"


def test_compatibility_page_counts_names_of_modules_and_not_of_classes():
    make = tool("make_compatibility")
    modules = {m.name: m for m in make.compare({"tanh", "math.tanh"})}
    assert modules[""].supported == ["tanh"]
    assert modules["math"].supported == ["tanh"]
    assert "Session" in modules[""].missing
    assert "Session" not in modules  # a class is not a module


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, wanted = target.partition("#")
        there = (page.parent / path) if path else page
        headings = re.findall(r"^#+ (.*)$", there.read_text(), re.M) if wanted and there.is_file() else []
        if not there.exists() or (wanted and wanted not in map(anchor, headings)):
            broken.append(target)
    assert not broken


def test_layout_page_names_every_stage():
    page = (ROOT / "docs" / "layout.md").read_text()
    parts = [p for p in (ROOT / "tensorfleet").iterdir() if not p.name.startswith("__")]
    assert [p.name for p in parts if f"`{p.name}{'/' if p.is_dir() else ''}`" not in page] == []


def test_benchmark_table_has_its_markers():
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md"):
        assert re.search(r"<!-- table -->\n.+\n<!-- /table -->", page.read_text(), re.S)
