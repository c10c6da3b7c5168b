"""The threads of a task: the step each is in, what it waits for, and since when."""

import os
import threading

import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.cluster.inspection.stacks import as_text, stacks
from tests.support.waiting import in_background, until


def _named(part):
    return [t for t in stacks() if part in (t["waits_for"] or "")]


def test_a_step_that_waits_for_a_queue_names_it_and_its_line(server):
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, tf.float32, name="batches")
        taken = queue.dequeue(name="take")
        with tf.Session(server.target) as session:
            waiting = in_background(session.run, taken)
            until(lambda: _named("batches"))
            (thread,) = _named("batches")
            assert "'take' (QueueDequeueV2, made at" in thread["step"]
            assert "test_stacks.py" in thread["step"]
            assert thread["since_seconds"] >= 0
            session.run(queue.enqueue(1.0))
            assert waiting.result(60) == 1.0
            assert not _named("batches")


def test_another_process_is_told_of_the_wait(server):
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        queue = tf.FIFOQueue(3, tf.float32, name="asked")
        waiting = in_background(session.run, queue.dequeue())
        until(lambda: _named("asked"))
        content = ask(server.task, server.target.removeprefix("grpc://"), "stacks").content
        assert content["pid"] == os.getpid()
        assert any(
            "'asked'" in (t["waits_for"] or "") or "asked" in (t["step"] or "") for t in content["threads"]
        )
        session.run(queue.enqueue(2.0))
        waiting.result(60)


def test_two_locks_that_two_threads_want_from_each_other_are_both_shown():
    first, second = threading.Lock(), threading.RLock()
    both = threading.Barrier(2)

    def one():
        with first:
            both.wait()
            with second:
                pass

    def two():
        second.acquire()
        both.wait()
        first.acquire()  # left as it is: the other thread releases it
        second.release()

    threads = [threading.Thread(target=f, name=f"deadlock-{f.__name__}") for f in (one, two)]
    for thread in threads:
        thread.start()
    by_name = {}

    def both_wait():
        by_name.update((t["name"], t) for t in stacks())
        return all("lock `" in (by_name[t.name]["waits_for"] or "") for t in threads)

    until(both_wait)
    assert by_name["deadlock-one"]["waits_for"] == "lock `second`, held by thread deadlock-two"
    waits = by_name["deadlock-two"]["waits_for"]
    assert waits.startswith("lock `first`, held by thread deadlock-one, which is at ")
    first.release()  # ends the deadlock: any thread may release a plain lock
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kind", ["join", "queue"])
def test_waits_of_the_users_own_threads_are_named(kind):
    import queue

    given = queue.Queue()
    inner = threading.Thread(target=given.get, name="waits-for-queue")
    inner.start()
    outer = threading.Thread(target=inner.join, name="waits-for-thread")
    outer.start()
    name, what = {
        "join": ("waits-for-thread", "thread waits-for-queue to end"),
        "queue": ("waits-for-queue", "an element of a queue.Queue, which is empty"),
    }[kind]
    until(lambda: any(t["name"] == name and t["waits_for"] == what for t in stacks()))
    given.put(1)
    outer.join()


def test_the_users_frames_are_marked_and_others_counted():
    ready, end = threading.Event(), threading.Event()

    def mine():
        ready.set()
        end.wait()

    thread = threading.Thread(target=mine, name="marked")
    thread.start()
    ready.wait()
    until(lambda: any(t["name"] == "marked" and t["waits_for"] for t in stacks()))
    text = as_text([t for t in stacks() if t["name"] == "marked"])
    end.set()
    thread.join()
    assert "  > " in text and "end.wait()" in text and "calls of libraries" in text
