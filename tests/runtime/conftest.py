"""Shared by the tests of the runtime."""

import pytest

from tensorfleet.runtime.segments import compiled, trial


@pytest.fixture
def always_compile(monkeypatch):
    """What can be compiled is, from the first run on, however little there is to gain."""
    monkeypatch.setattr(trial, "_MIN_NUMPY_SECONDS", 0.0)
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: self.possible)
    monkeypatch.setattr(compiled.Compiler, "_compiles_beside", lambda self: False)  # not at some later step
