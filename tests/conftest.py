"""Shared by all tests: how JAX is set up before anything imports it, and numbers that repeat."""

import os
import random
import zlib

# Tests compare numbers, so they run where every machine gives the same ones.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import numpy as np
import pytest

from tensorfleet.ops import philox

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def the_same_numbers_each_time(request, monkeypatch):
    """Unseeded random ops, numpy and `random` draw what the test's name gives: a failure repeats."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    monkeypatch.setattr(philox, "_entropy", random.Random(seed).randbytes)
