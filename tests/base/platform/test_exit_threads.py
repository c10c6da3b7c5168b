"""What programs do in `atexit` functions, where Python 3.12 starts no thread: the same there and in every other version."""

import subprocess
import sys
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.base.platform import exit_threads
from tensorfleet.testing.cluster import ProcessCluster

# Registered last, called first: from then on all versions refuse what 3.12 refuses.
NO_THREADS = """
import atexit, threading
def _refuse(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")
atexit.register(lambda: setattr(threading.Thread, "start", _refuse))
"""


def run_to_its_end(program: str) -> str:
    text = textwrap.dedent(program) + NO_THREADS
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def test_steps_of_all_kinds_run_at_the_end_of_a_program():
    message = run_to_its_end("""
        import atexit
        import tensorfleet as tf
        queue = tf.FIFOQueue(3, tf.float32, [])
        fill = queue.enqueue_many([[1.0, 2.0, 3.0]])
        x = tf.placeholder(tf.float32, [])
        calls = [tf.py_func(lambda v, n=n: v + n, [x], tf.float32) for n in range(3)]
        heavy = [tf.reduce_sum(tf.matmul(tf.fill([300, 300], x), tf.fill([300, 300], x + n))) for n in range(3)]
        session = tf.Session()
        def late():
            session.run(fill)
            options = tf.RunOptions(timeout_in_ms=60000)
            print(session.run([queue.dequeue(), queue.dequeue()], options=options) in ([1.0, 2.0], [2.0, 1.0]))
            print(*session.run(calls, {x: 1.0}), *session.run(calls, {x: 1.0}, options=options))
            print(*session.run(heavy, {x: 0.0}))
        atexit.register(late)
    """)
    assert message.split("\n") == ["True", "1.0 2.0 3.0 1.0 2.0 3.0", "0.0 0.0 0.0", ""]


def test_checkpoints_and_summaries_are_written_at_the_end_of_a_program(tmp_path):
    run_to_its_end(f"""
        import atexit
        import tensorfleet as tf
        v = tf.Variable(tf.ones([1 << 20]), name="v")
        saver = tf.train.Saver(max_to_keep=1)
        session = tf.Session()
        session.run(v.initializer)
        writer = tf.summary.FileWriter({str(tmp_path)!r})
        def late():
            for step in (1, 2):
                saver.save(session, {str(tmp_path / "m")!r}, step)
                writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=step)]), step)
            writer.flush()
            writer.close()
        atexit.register(late)
    """)
    (events,) = tmp_path.glob("events*")
    steps = [event.step for event in tf.train.summary_iterator(str(events)) if event.summary.value]
    assert steps == [1, 2]
    assert tf.train.load_variable(str(tmp_path), "v").sum() == 1 << 20


def test_parameter_servers_hear_of_the_end_of_a_worker_that_can_start_no_thread():
    with ProcessCluster(here=[("worker", 0)], ps=2, worker=1) as cluster:
        run_to_its_end(f"""
            import tensorfleet as tf
            server = tf.train.Server({cluster.cluster!r}, "worker", 0)
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(0.0)
            with tf.Session(server.target) as s:
                s.run(v.initializer)
        """)
        for index in range(2):
            assert cluster.process("ps", index).wait(20) == 0


def test_a_system_without_threads_is_still_an_error(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(exit_threads.threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        exit_threads.beside(print, (), "print")
