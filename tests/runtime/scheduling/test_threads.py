"""How many threads XLA computes with: as many as there are cores, fewer for those who share them or ask for fewer."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest

import tensorfleet as tf

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc to see threads")

COUNTED = """
import os
import numpy as np
import tensorfleet as tf

{before}
x = tf.placeholder(tf.float32, [512, 512])
y = tf.nn.conv2d(tf.reshape(x, [1, 512, 512, 1]), np.ones([3, 3, 1, 8], "f"), 1, "SAME")
with tf.Session({target}) as session:
    for _ in range(3):
        session.run(y, {{x: np.ones([512, 512])}})
names = [open("/proc/self/task/" + task + "/comm").read() for task in os.listdir("/proc/self/task")]
print(sum("XLAEigen" in name for name in names), os.environ.get("NPROC"))
"""


def threads_of(before="", target=""):
    code = COUNTED.format(before=before, target=target)
    environment = {k: v for k, v in os.environ.items() if k != "NPROC"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    count, left = done.stdout.split()
    assert left == "None"
    return int(count)


SERVER = (
    "server = tf.train.Server({{'ps': ['localhost:0'], 'worker': ['localhost:0', {other!r}]}}, 'worker', 0)"
)
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@pytest.mark.skipif(CORES < 2, reason="needs two cores")
def test_workers_of_one_machine_share_its_cores():
    alone = threads_of(SERVER.format(other="10.0.0.1:2222"), "server.target")
    beside = threads_of(SERVER.format(other="localhost:1"), "server.target")
    assert alone >= CORES > beside


def test_a_session_may_ask_for_fewer():
    assert threads_of(target="config=tf.ConfigProto(intra_op_parallelism_threads=1)") < 2


def test_a_script_that_has_all_loggers_tell_everything_hears_nothing_of_jax():
    program = (
        "import logging, tensorfleet as tf\n"
        "logging.basicConfig(level=logging.DEBUG)\n"
        "x = tf.placeholder(tf.float32, [1, 8, 8, 1])\n"
        "y = tf.nn.conv2d(x, tf.ones([3, 3, 1, 1]), [1, 1, 1, 1], 'SAME')\n"
        "with tf.Session() as sess:\n"
        "    print(sess.run(y, {x: [[[[1.0]] * 8] * 8]}).sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("484.0\n", "")


def most_at_once(count, extra=None, **config):
    """How many of some Python functions of one step ran at the same time, at most. Each waits a little for the others."""
    lock, met = threading.Lock(), threading.Barrier(count)
    now = [0, 0]

    def call():
        with lock:
            now[0] += 1
            now[1] = max(now)
        with contextlib.suppress(threading.BrokenBarrierError):
            met.wait(0.5)
        with lock:
            now[0] -= 1
        return 1.0

    calls = [tf.py_func(call, [], tf.float64) for _ in range(count)]
    with tf.Session(config=tf.ConfigProto(**config)) as session:
        session.run([*calls, *(extra() if extra else [])])
    return now[1]


def test_one_thread_runs_one_function_at_a_time():
    assert most_at_once(2) == 2
    assert most_at_once(2, inter_op_parallelism_threads=1) == 1
    assert most_at_once(2, inter_op_parallelism_threads=-1) == 1
    assert most_at_once(3, inter_op_parallelism_threads=2) == 2


def through_a_queue():
    queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
    with tf.device("/cpu:1"):
        return [queue.dequeue(), queue.enqueue(tf.random_uniform([]))]


def test_one_thread_does_not_have_a_dequeue_hold_up_the_enqueue_it_waits_for():
    two = {"CPU": 2}
    assert most_at_once(2, through_a_queue, inter_op_parallelism_threads=1, device_count=two) == 1


def test_one_thread_runs_functions_of_several_devices_one_at_a_time():
    def elsewhere():
        with tf.device("/cpu:1"):
            return [tf.square(tf.random_uniform([64, 64]))]

    assert most_at_once(2, elsewhere, inter_op_parallelism_threads=1, device_count={"CPU": 2}) == 1


def test_sessions_of_one_process_have_the_threads_they_ask_for():
    tf.Session().close()
    assert most_at_once(2, inter_op_parallelism_threads=1, use_per_session_threads=True) == 1
    assert most_at_once(2, use_per_session_threads=True) == 2


def test_towers_on_virtual_cpus_are_one_program_as_on_one_cpu():
    x = tf.placeholder(tf.float32, [64, 64])
    totals = []
    for device in ("/cpu:0", "/cpu:1"):
        with tf.device(device):
            totals.append(tf.reduce_sum(tf.tanh(tf.matmul(x + 1.0, x))))
    with tf.device("/cpu:0"):
        total = tf.add_n(totals)
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        program = session._prepare(total, {x: 0}).program
        assert len(program.items) == 1
        assert program.inline
        assert session._engine.placer.device_of(totals[1].op).endswith("CPU:1")
