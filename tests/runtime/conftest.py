"""Shared by the tests of the runtime."""

import pytest

from tensorfleet.runtime import compiled


@pytest.fixture
def always_compile(monkeypatch):
    """What can be compiled is, from the first run on."""
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: self.possible)
