"""Shared by the tests of Keras."""

import pytest

from tensorfleet_legacy.keras import backend


@pytest.fixture(autouse=True)
def no_session_stays():
    """Keras keeps one session for the life of a process: the next test starts with none."""
    yield
    backend.set_session(None)
