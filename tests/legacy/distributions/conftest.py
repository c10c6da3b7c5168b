"""Shared by the tests of distributions."""

import pytest

import tensorfleet as tf


@pytest.fixture(autouse=True)
def fresh_graph(request):
    """A graph of its own for each test, with the seed that its file asks for as `SEED`."""
    with tf.Graph().as_default():
        tf.set_random_seed(getattr(request.module, "SEED", None))
        yield
