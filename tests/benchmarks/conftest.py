"""The scripts of benchmarks/ import each other by their bare names, as `python benchmarks/run.py` has them."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a script; afterwards its name, and those of the scripts it imports, are free again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    names = {path.stem for path in FOLDER.glob("*.py")}
    for name in (set(sys.modules) - before) & names:
        del sys.modules[name]
