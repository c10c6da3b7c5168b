"""Shared by all tests: how JAX is set up before anything imports it."""

import os

# Tests compare numbers, so they run where every machine gives the same ones.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
