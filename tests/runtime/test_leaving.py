"""Processes that end while their threads are at work."""

import subprocess
import sys

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
