"""Processes that end while their threads are at work."""

import subprocess
import sys
import threading

import pytest

from tensorfleet.runtime import xla_exit_guard as leaving
from tests.support.waiting import in_background

pytestmark = pytest.mark.slow  # left out by `make quick`
SECONDS = 120
PROGRAM = """
import threading
import tensorfleet as tf

x = tf.placeholder(tf.float32, [])
table = tf.Variable(tf.ones([1 << 21]))
total = tf.reduce_sum(tf.exp(table * x) * table)
session = tf.Session()
session.run(tf.global_variables_initializer())
under_way = threading.Event()

def work():
    for i in range(100000):
        session.run(total, {x: 1.0})
        if i == 20:
            under_way.set()

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
under_way.wait(60)
"""


def test_a_process_ends_in_peace_while_threads_run_steps():
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_is_done_at_the_end_finds_variables_that_threads_were_writing():
    writing = PROGRAM.replace("session.run(total,", "session.run(more,").replace(
        "session = ", "more = table.assign(tf.exp(-table * table) * 0.5)\nsession = "
    )
    late = "import atexit\natexit.register(lambda: print(session.run([more, total], {x: 0.0})[1]))\n"
    done = subprocess.run([sys.executable, "-c", late + writing], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) > 0


def test_the_thread_that_ends_the_process_may_still_run_steps():
    late = "import atexit\natexit.register(lambda: print(session.run(total, {x: 0.0})))\n"
    done = subprocess.run([sys.executable, "-c", late + PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == 1 << 21


STARTING = """
import atexit
import sys
import threading

atexit.register(lambda: print("is there:", devices._loaded is not None))  # the last of all

from tensorfleet.runtime import devices

begun = threading.Event()

class Begins:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            begun.set()

sys.meta_path.insert(0, Begins())
threading.Thread(target=devices.load_jax, daemon=True).start()
begun.wait(60)
"""


@pytest.mark.parametrize("module", ["jaxlib.cpu_feature_guard", "jaxlib._jax", "jax._src.xla_bridge"])
def test_a_process_ends_in_peace_while_a_thread_starts_xla(module):
    """A parameter server that is stopped when it has just got its first gradients is such a process."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING, module], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "is there: True\n", "")


@pytest.fixture
def nobody_inside(monkeypatch):
    for name in ("_inside", "_starting", "_last"):
        monkeypatch.setattr(leaving, name, [])
    monkeypatch.setattr(leaving, "_seen", set())


def test_the_end_waits_longer_for_the_start_of_xla_than_for_a_call_of_it(nobody_inside, monkeypatch):
    monkeypatch.setattr(leaving, "_GRACE_SECONDS", 0.1)
    inside, out = threading.Event(), threading.Event()

    def start():
        with leaving.starting_xla:
            inside.set()
            out.wait(SECONDS)

    starting = in_background(start)
    assert inside.wait(SECONDS)
    ending = in_background(leaving.wait_for_others)
    with pytest.raises(TimeoutError):
        ending.result(1.0)  # ten times as long as for a call
    out.set()
    starting.result(SECONDS)
    ending.result(SECONDS)
