"""Attaching a debugger: what is refused, and how that is said."""

import signal
import sys

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection import attach


def test_a_task_without_debugpy_names_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "debugpy", None)
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"pip install 'tensorfleet\[debug\]'"):
        attach.report(None, {})


def test_an_unknown_option_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown option 'kind'. There are port"):
        attach.report(None, {"kind": "gdb"})


def test_pdb_is_refused_where_the_script_handles_the_signal_itself(server):
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with pytest.raises(tf.errors.FailedPreconditionError, match="handler of its own for SIGUSR1"):
            attach.open_terminal(None, {})
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_debugger_that_has_ended_says_so():
    with pytest.raises(tf.errors.NotFoundError, match="Attach again"):
        attach.talk(None, {"id": "none"})


@pytest.mark.parametrize("port", [-1, 65_536, 10**12])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(tf.errors.InvalidArgumentError, match="port must be a"):
        attach.report(None, {"port": port})
