"""A recording of this process: what it holds, how it ends, and that it is bounded."""

import threading

import pytest

import tensorfleet as tf
from tensorfleet.runtime import recording
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def no_recording():
    yield
    if recording._last is not None:
        recording.drop(recording._last)


def kinds(made):
    return [event[0] for event in made.piece(0, 1000)[0]]


def test_what_begins_and_ends_is_an_event_with_its_thread_and_details():
    made = recording.start(1, 60.0)
    with made.open("wait", "for something", {"a": 1}):
        pass
    made.end()
    ((kind, name, began, ended, thread, args),) = made.piece(0, 10)[0]
    assert (kind, name, args) == ("wait", "for something", {"a": 1})
    assert made.began <= began <= ended <= made.ended
    assert made.threads[thread] == threading.current_thread().name


def test_what_has_not_ended_gets_an_end_that_says_so():
    made = recording.start(1, 60.0)
    outer = made.open("step", "outer")
    made.open("wait", "inner")
    made.end()
    outer.end()
    events = made.piece(0, 10)[0]
    assert {(event[1], event[3], event[5]["unfinished"]) for event in events} == {
        ("outer", made.ended, True),
        ("inner", made.ended, True),
    }


def test_nothing_is_noted_after_the_end(session):
    made = recording.start(5, 60.0)
    y = tf.constant(2.0) * tf.random_uniform([])
    session.run(y)
    made.end()
    assert {event[0] for event in made.piece(0, 1000)[0]} >= {"step"}
    count = len(made.piece(0, 1000)[0])
    session.run(y)
    made.open("wait", "late").end()
    assert len(made.piece(0, 1000)[0]) == count
    assert recording.current is None


def test_only_so_many_steps_are_recorded(session):
    made = recording.start(2, 60.0)
    y = tf.constant(2.0) * tf.random_uniform([])
    for _ in range(4):
        session.run(y)
    assert (made.begun, made.finished) == (2, 2)
    made.end()
    assert kinds(made).count("step") == 2


def test_steps_that_are_held_back_are_not_recorded(session):
    made = recording.start(2, 60.0, holds_back=True)
    y = tf.constant(2.0) * tf.random_uniform([])
    session.run(y)
    assert made.begun == 0
    made.holds_back = False
    session.run(y)
    assert made.finished == 1


def test_a_step_that_fails_ends_too(session):
    made = recording.start(2, 60.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.check_numerics(tf.log(-tf.random_uniform([], 1, 2)), "it is not a number"))
    made.end()
    (step,) = [event for event in made.piece(0, 100)[0] if event[0] == "step"]
    assert "unfinished" not in step[5]


def test_a_step_of_a_queue_runner_is_recorded_and_does_not_count(session):
    queue = tf.FIFOQueue(10, tf.float32)
    enqueue = session._make_repeater(queue.enqueue(1.0))
    enqueue()
    made = recording.start(2, 60.0)
    enqueue()
    assert (made.begun, made.finished) == (0, 0)
    made.end()
    assert kinds(made).count("step") == 1


def test_its_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(recording, "MAX_EVENTS", 10)
    monkeypatch.setattr(recording, "MAX_INPUT_EVENTS", 4)
    made = recording.start(1, 60.0)
    for _ in range(6):
        made.open("input", "Map").end()
    for _ in range(9):
        made.open("wait", "for it").end()
    made.end()
    assert kinds(made) == ["input"] * 4 + ["wait"] * 6
    assert made.dropped == 2 + 3


def test_names_are_cut():
    made = recording.start(1, 60.0)
    made.open("wait", "n" * 10_000).end()
    made.end()
    assert len(made.piece(0, 1)[0][0][1]) == 200


def test_a_second_one_is_refused_until_the_first_is_taken():
    made = recording.start(1, 60.0)
    with pytest.raises(recording.Busy, match="goes on for at most"):
        recording.start(1, 60.0)
    made.end()
    with pytest.raises(recording.Busy, match="has not been taken yet"):
        recording.start(1, 60.0)
    recording.drop(made)
    assert recording.start(1, 60.0) is not made


def test_tasks_of_one_process_share_the_recording_of_one_trace():
    assert recording.start(1, 60.0, False, "same") is recording.start(1, 60.0, False, "same")


def test_it_ends_in_time_by_itself_and_is_dropped_when_nobody_takes_it(monkeypatch):
    monkeypatch.setattr(recording, "KEPT_SECONDS", 0.05)
    made = recording.start(1, 0.05, False, "forgotten")
    until(lambda: made.is_over, "the end of the recording")
    until(lambda: recording.last("forgotten") is None, "that it is dropped")
    recording.start(1, 60.0)


def test_waits_of_a_step_are_recorded(session):
    queue = tf.FIFOQueue(10, tf.float32)
    enqueue, taken = queue.enqueue(1.0), queue.dequeue()
    session.run(enqueue)
    session.run(taken)
    made = recording.start(5, 60.0)
    timer = threading.Thread(target=lambda: (until(lambda: made._open), session.run(enqueue)))
    timer.start()
    session.run(taken)
    timer.join(60)
    made.end()
    assert any(event[0] == "wait" for event in made.piece(0, 100)[0])


def test_the_steps_that_a_task_serves_do_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(recording, "MAX_EVENTS", 10)
    begun = recording.Recording(1, 1.0)
    for step in range(1000):
        begun.note_served("session", step)
    assert len(begun.served) == 10
