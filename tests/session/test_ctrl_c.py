"""Ctrl-C ends a run, whatever it is doing."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

SECONDS = 90

SCRIPT = """
    import signal, sys, threading, time
    import tensorfleet as tf

    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it

    def forever():
        while True:
            time.sleep(0.001)

    n = tf.placeholder(tf.int64, [])
    runs = {
        "a loop in XLA": tf.while_loop(lambda i: i < n, lambda i: i + 1, [tf.constant(0, tf.int64)]),
        "a Python function": tf.py_func(forever, [], tf.float32),
        "a dequeue": tf.FIFOQueue(1, tf.float32).dequeue(),
    }
    fetch, timeout = runs[sys.argv[1]], int(sys.argv[2])
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=timeout)) as sess:
        if sys.argv[1] == "a loop in XLA":
            for _ in range(4):
                sess.run(fetch, {n: 2000})
        threading.Timer(0.5, lambda: print("ready", flush=True)).start()
        try:
            sess.run(fetch, {n: 1 << 60})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        print(sess.run(tf.constant(2.0)), [t.name for t in threading.enumerate() if "pyfunc" in t.name])
"""


@pytest.mark.parametrize(
    ("what", "timeout"),
    [("a loop in XLA", 0), ("a Python function", 0), ("a Python function", 600_000), ("a dequeue", 0)],
)
def test_ctrl_c_ends_a_run_and_leaves_the_session_usable(tmp_path, what, timeout):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), what, str(timeout)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=SECONDS)
            assert out.splitlines() == ["interrupted", "2.0 []"] and process.returncode == 0
        finally:
            process.kill()
