"""The shape of the repository: what starting up loads, how long files are, which tests may be run again.

Which room imports which is checked by import-linter: see the contracts in pyproject.toml.
"""

import ast
import subprocess
import sys
from pathlib import Path

import tensorfleet

ROOT = Path(tensorfleet.__file__).parent.parent
PACKAGES = ("tensorfleet", "tensorfleet_legacy")


def modules() -> list[Path]:
    return [p for package in PACKAGES for p in (ROOT / package).rglob("*.py")]


def loaded_by(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_starting_up_does_not_load_jax():
    assert "jax" not in loaded_by("import tensorfleet")


def test_starting_up_loads_a_small_part_of_the_library():
    files = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for p in modules()}
    assert len(files & loaded_by("import tensorfleet")) < 350


def test_files_stay_readable():
    long = [p.name for p in modules() if "_pb2" not in p.name and len(p.read_text().splitlines()) > 520]
    assert not long


def test_at_most_ten_tests_may_be_run_again_and_each_says_why():
    marks = [
        (p.name, node)
        for p in Path(__file__).parent.rglob("test_*.py")
        if "mark.flaky" in p.read_text()
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.flaky"
    ]
    assert len(marks) <= 10
    assert not [name for name, node in marks if "reason" not in {keyword.arg for keyword in node.keywords}]
