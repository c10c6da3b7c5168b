"""Shared by all tests: how JAX is set up before anything imports it, and numbers that repeat."""

import contextlib
import logging
import os
import random
import signal
import zlib

# Tests compare numbers, so they run where every machine gives the same ones.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Runs of the command serve no page, but for the tests of the page.
os.environ.setdefault("TENSORFLEET_DASHBOARD", "off")

import hypothesis
import numpy as np
import pytest

from tensorfleet.api.summary.writer import FileWriterCache
from tensorfleet.cluster.server import Server
from tensorfleet.cluster.transport import peers, token
from tensorfleet.graph.scopes import get_default_graph, graph_stack, reset_default_graph
from tensorfleet.kernels import philox
from tensorfleet.passes import verify
from tensorfleet.session.session import Session
from tests.support.tasks import Tasks

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")
verify.enable()
# In the background a shell has its children ignore Ctrl-C, and theirs too; the tests send it to theirs.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def graph():
    """The default graph: what one test leaves in it is not there in the next."""
    if not graph_stack():
        reset_default_graph()
    return get_default_graph()


@pytest.fixture(autouse=True)
def _verbosity():
    """What one test has `tf.logging` tell is not told in the next, nor by absl, which `tf.app.run` brings along."""
    loggers = logging.getLogger("tensorflow"), logging.getLogger()
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        for handler in [
            h for h in logger.handlers if type(h).__module__.startswith("absl") and h not in handlers
        ]:
            logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _process():
    """What one test makes of this process does not last: a launcher's token, servers that were lost and never stopped."""
    secret, tasks = vars(token.secured).copy(), list(peers._own_tasks)
    yield
    vars(token.secured).clear()
    vars(token.secured).update(secret)
    peers._own_tasks[:] = tasks


@pytest.fixture
def session(graph):
    """A session on the default graph, and the default session."""
    with Session(graph=graph) as result:
        yield result


@pytest.fixture
def serve():
    """Starts servers in this process, as `tf.train.Server` does; they end with the test."""
    with contextlib.ExitStack() as ending:

        def start(*args, **kwargs):
            result = Server(*args, **kwargs)
            ending.callback(result.stop)
            return result

        yield start


@pytest.fixture
def server():
    """A server by itself, in this process."""
    result = Server.create_local_server()
    yield result
    result.stop()


@pytest.fixture
def tasks():
    """Starts programs as processes; they end with the test."""
    with Tasks() as result:
        yield result


@pytest.fixture(autouse=True)
def no_event_file_stays_open():
    """Hooks and estimators share writers for the life of a process, which here is that of all tests."""
    yield
    FileWriterCache.clear()


@pytest.fixture(autouse=True)
def the_same_numbers_each_time(request, monkeypatch):
    """Unseeded random ops, numpy and `random` draw what the test's name gives: a failure repeats."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    monkeypatch.setattr(philox, "entropy", random.Random(seed).randbytes)
