"""Threads that stop together."""

import sys
import threading

import pytest

import tensorfleet as tf


def thread(body, *args):
    result = threading.Thread(target=body, args=args, daemon=True)
    result.start()
    return result


def failing(coord, error):
    """A thread body that reports an exception the way most programs do."""
    try:
        raise error
    except Exception as e:
        coord.request_stop(e)


def test_a_stop_is_seen_until_it_is_cleared():
    coord = tf.train.Coordinator()
    assert not coord.should_stop()
    assert not coord.wait_for_stop(0.001)
    coord.request_stop()
    assert coord.should_stop()
    assert coord.wait_for_stop(0.001)
    coord.clear_stop()
    assert not coord.should_stop()
    assert not coord.joined


def test_wait_for_stop_wakes_when_another_thread_asks_for_it():
    coord = tf.train.Coordinator()
    waiting = thread(coord.request_stop)
    assert coord.wait_for_stop(60)
    coord.join([waiting])
    assert coord.joined


def test_join_waits_for_registered_and_given_threads():
    coord = tf.train.Coordinator()
    done = []
    go = threading.Event()

    def body(i):
        go.wait(60)
        done.append(i)

    registered = thread(body, 1)
    coord.register_thread(registered)
    given = thread(body, 2)
    go.set()
    coord.join([given])
    assert sorted(done) == [1, 2]
    assert not coord.should_stop()  # they ended by themselves


def test_join_raises_the_first_exception_reported():
    coord = tf.train.Coordinator()
    for text in ("First", "Second"):
        thread(failing, coord, RuntimeError(text)).join()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="First"):
            coord.join([])
    with pytest.raises(RuntimeError, match="First"):
        coord.raise_requested_exception()


def test_an_exception_may_come_as_exc_info():
    coord = tf.train.Coordinator()
    try:
        raise KeyError("k")
    except KeyError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(KeyError, match="k"):
        coord.join([])


def test_the_end_of_the_input_is_a_clean_stop():
    coord = tf.train.Coordinator()
    thread(failing, coord, tf.errors.OutOfRangeError(None, None, "First")).join()
    coord.join([])
    own = tf.train.Coordinator(clean_stop_exception_types=(ValueError,))
    own.request_stop(ValueError("fine"))
    own.join([])
    own = tf.train.Coordinator(clean_stop_exception_types=(ValueError,))
    own.request_stop(tf.errors.OutOfRangeError(None, None, "not fine"))
    with pytest.raises(tf.errors.OutOfRangeError):
        own.join([])


def test_threads_that_do_not_stop_are_named():
    coord = tf.train.Coordinator()
    ever = threading.Event()
    slow = threading.Thread(target=ever.wait, args=(60,), name="slowpoke", daemon=True)
    slow.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="threads still running: slowpoke"):
        coord.join([slow], stop_grace_period_secs=0.01)
    assert coord.joined
    again = tf.train.Coordinator()
    again.request_stop()
    again.join([slow], stop_grace_period_secs=0.01, ignore_live_threads=True)
    failed = tf.train.Coordinator()
    failed.register_thread(slow)
    failed.request_stop(ValueError("the cause"))
    with pytest.raises(ValueError, match="the cause"):
        failed.join(stop_grace_period_secs=0.01)
    ever.set()
    slow.join()


def test_after_join_an_exception_is_raised_where_it_is_reported():
    coord = tf.train.Coordinator()
    coord.join([])
    coord.request_stop()
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))
    with pytest.raises(RuntimeError, match="later"), coord.stop_on_exception():
        raise RuntimeError("later")


def test_stop_on_exception_reports_what_happens_inside():
    coord = tf.train.Coordinator()
    with coord.stop_on_exception():
        raise RuntimeError("inside")
    assert coord.should_stop()
    with pytest.raises(RuntimeError, match="inside"):
        coord.join([])


@pytest.mark.parametrize("interval", [None, 0.001])
def test_looper_calls_until_told_to_stop(interval):
    coord = tf.train.Coordinator()
    calls = []

    def target(a, b):
        calls.append((a, b))
        if len(calls) == 3:
            coord.request_stop()

    looper = tf.train.LooperThread.loop(coord, interval, target, args=(1,), kwargs={"b": 2})
    coord.join()
    assert calls == [(1, 2)] * 3
    assert not looper.isAlive()


def test_looper_subclasses_are_told_of_start_and_end_and_failures_stop_the_coordinator():
    seen = []

    class Looper(tf.train.LooperThread):
        def start_loop(self):
            seen.append("start")

        def run_loop(self):
            seen.append("run")
            raise ValueError("in the loop")

        def stop_loop(self):
            seen.append("stop")

    coord = tf.train.Coordinator()
    looper = Looper(coord, None)
    assert looper.daemon
    looper.start()
    with pytest.raises(ValueError, match="in the loop"):
        coord.join()
    assert seen == ["start", "run"]


def test_looper_refuses_arguments_without_a_target():
    with pytest.raises(ValueError, match="must be a Coordinator"):
        tf.train.LooperThread(1, None)
    with pytest.raises(ValueError, match="require that you also pass 'target'"):
        tf.train.LooperThread(tf.train.Coordinator(), None, args=(1,))
