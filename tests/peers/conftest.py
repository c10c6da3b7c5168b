"""TensorFlow itself, as the oracle."""

import os
import warnings
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# Kernels of its own on every processor: those that some processors bring along round and shape results differently.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for are left out by their marks
def pytest_collection_modifyitems(items):
    """All tests of this folder need the oracle."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.peers)


@pytest.fixture(scope="session")
def tensorflow():
    """`tensorflow.compat.v1` in graph mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow.compat.v1 as oracle

    oracle.disable_v2_behavior()
    oracle.logging.set_verbosity(oracle.logging.ERROR)
    return oracle
