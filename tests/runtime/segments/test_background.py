"""Programs that are compiled beside the steps."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.segments import background, compiled
from tests.support.waiting import SECONDS

X = np.linspace(-1, 1, 6, dtype=np.float32)


@pytest.fixture
def beside(monkeypatch):
    """What can be compiled beside the steps is, after a first run in numpy."""
    monkeypatch.setattr(compiled.Compiler, "wanted", lambda self: self.possible and self.runs > 0)
    monkeypatch.setattr(compiled.Compiler, "mostly_calls", lambda self: True)


def _chain(x):
    value = x
    for i in range(40):
        value = tf.tanh(value * 0.9) + float(i % 3)
    return value


def test_jobs_are_done_in_order_with_shorter_turns_and_the_thread_ends():
    usual = sys.getswitchinterval()
    done, go = [], threading.Event()
    background.start(lambda: go.wait(SECONDS))
    for i in range(3):
        background.start(lambda i=i: done.append((i, sys.getswitchinterval() < usual)))
    assert not background.wait(0.0)
    assert done == []
    go.set()
    assert background.wait(SECONDS)
    assert done == [(0, True), (1, True), (2, True)]
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_the_jobs_if_the_program_wants_it(enabled):
    was, seen = gc.isenabled(), []
    (gc.enable if enabled else gc.disable)()
    try:
        background.start(lambda: seen.append(gc.isenabled()))
        assert background.wait(SECONDS)
        assert (seen, gc.isenabled()) == ([False], enabled)
    finally:
        (gc.enable if was else gc.disable)()


def test_steps_go_on_in_numpy_until_the_program_is_there(beside, session, monkeypatch):
    go = threading.Event()
    whole = compiled.Compiler._compile

    def compile_later(self, *args):
        assert threading.current_thread().name == "tensorfleet-compile"
        assert go.wait(SECONDS)
        return whole(self, *args)

    monkeypatch.setattr(compiled.Compiler, "_compile", compile_later)
    x = tf.placeholder(tf.float32, [6])
    y = _chain(x)
    first = session.run(y, {x: X})
    (item,) = session._prepare(y, {x: X}).program.items
    for _ in range(3):
        np.testing.assert_array_equal(session.run(y, {x: X}), first)
    assert item.compiler.pending and not item.compiler.programs and item.compiler.runs == 4
    go.set()
    assert background.wait(SECONDS)
    assert not item.compiler.pending
    np.testing.assert_allclose(session.run(y, {x: X}), first, rtol=1e-5)
    assert item.compiler.runs == 4 and len(item.compiler.programs) == 1


def test_variables_are_updated_once_in_each_step_before_and_after(beside, session):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    add = tf.assign_add(v, x * 2.0)
    session.run(v.initializer)
    for i in range(20):
        assert session.run(add, {x: 1.0}) == 2.0 * (i + 1)
        if i == 9:
            assert background.wait(SECONDS)


def test_a_value_that_must_be_known_is_taken_from_a_step(beside, session):
    x, axis = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [])
    y = tf.reduce_sum(x * 2.0, axis)
    for i in range(12):
        given = np.full([2, 3], float(i), np.float32)
        np.testing.assert_array_equal(session.run(y, {x: given, axis: i % 2}), (given * 2).sum(i % 2))
        assert background.wait(SECONDS)
    (item,) = session._prepare(y, {x: X, axis: 0}).program.items
    assert item.compiler.in_step and item.compiler.static_inputs


def test_an_error_of_the_compiler_is_raised_by_a_step(beside, session, monkeypatch):
    def fail(self, *args):
        raise tf.errors.InternalError(None, None, "no such instruction")

    monkeypatch.setattr(compiled.Compiler, "_compile", fail)
    x = tf.placeholder(tf.float32, [6])
    y = _chain(x)
    session.run(y, {x: X})
    session.run(y, {x: X})
    assert background.wait(SECONDS)
    with pytest.raises(tf.errors.InternalError, match="no such instruction"):
        session.run(y, {x: X})


PROGRAM = """
import threading
import numpy as np
import tensorfleet as tf
from tensorfleet.runtime.segments import compiled

begun = threading.Event()
whole = compiled.Compiler._compile

def compile_and_tell(self, *args):
    begun.set()
    return whole(self, *args)

compiled.Compiler._compile = compile_and_tell
x = value = tf.placeholder(tf.float32, [8])
for i in range(600):
    value = [tf.tanh, tf.sin, tf.negative][(i * i // 7 + i.bit_count()) % 3](value)
session = tf.Session()
while not begun.is_set():
    session.run(value, {x: np.ones(8)})
print("compiling")
"""


@pytest.mark.slow
def test_a_process_ends_in_peace_while_a_program_is_compiled():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "compiling\n", "")
