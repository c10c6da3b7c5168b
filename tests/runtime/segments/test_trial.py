"""When a segment is compiled, and when it goes back to numpy."""

import pytest

import tensorfleet as tf


def _trial():
    x = tf.placeholder(tf.float32, [4])
    with tf.Session() as sess:
        program = sess._plan(x * 2.0 + 1.0, [x]).program
    (item,) = program.items
    return item.compiler


def _tried(runs, in_numpy, in_xla):
    """The trial of a segment that took so long in its first runs, and then so long as a program."""
    trial = _trial()
    for _ in range(runs):
        trial.timed(in_numpy)
    assert trial.wanted()
    trial.programs["shapes"] = None
    while trial.on_trial:
        trial.called(in_xla)
    return trial


def test_a_segment_that_xla_does_not_run_faster_goes_back_to_numpy():
    trial = _tried(10, 0.01, 0.02)
    assert not trial.wanted()


@pytest.mark.parametrize("faster", [True, False])
def test_a_program_that_has_lost_is_tried_once_more(faster):
    trial = _tried(10, 0.01, 0.02)
    while not trial.wanted():
        trial.timed(0.01)
    assert trial.on_trial
    while trial.on_trial:
        assert trial.wanted()
        trial.called(0.005 if faster else 0.02)
    for _ in range(1000):
        assert trial.wanted() == faster
        if not faster:
            trial.timed(0.01)


def test_a_program_that_was_far_slower_is_not_tried_again():
    trial = _tried(10, 0.01, 0.2)
    for _ in range(1000):
        assert not trial.wanted()
        trial.timed(0.01)


@pytest.mark.parametrize("seconds", [0.03, 0.08])
def test_where_numpy_had_few_runs_it_gets_some_more_before_it_replaces_a_program(seconds):
    trial = _tried(1, 0.03, 0.05)
    for _ in range(6):
        assert not trial.wanted()
        trial.timed(seconds)
    assert trial.wanted() == (seconds > 0.05)


@pytest.mark.parametrize("seconds", [0.002, 0.02])
def test_of_few_operations_one_slow_run_in_numpy_does_not_decide(seconds):
    trial = _tried(1, 0.09, 0.005)
    for _ in range(6):
        assert not trial.wanted()
        trial.timed(seconds)
    assert trial.wanted() == (seconds > 0.005)


def test_a_segment_that_xla_runs_faster_stays_compiled():
    trial = _trial()
    for _ in range(10):
        trial.timed(0.01)
    trial.programs["shapes"] = None
    trial.called(0.02)
    while trial.on_trial:
        trial.called(0.005)
    assert trial.wanted()


@pytest.mark.parametrize("seconds", [0.004, 0.009])
def test_a_program_that_won_narrowly_against_a_few_runs_has_to_win_again(seconds):
    trial = _tried(3, 0.008, 0.005)
    for _ in range(6):
        assert not trial.wanted()
        trial.timed(seconds)
    assert trial.wanted() == (seconds > 0.005)


def test_what_xla_takes_long_to_compile_runs_in_numpy_for_longer():
    alpha = tf.placeholder(tf.float32, [4])
    with tf.Session() as sess:
        (item,) = sess._plan(tf.random_gamma([1000], alpha), [alpha]).program.items
    for _ in range(10):
        item.compiler.timed(0.005)
    assert not item.compiler.wanted()
    for _ in range(60):
        item.compiler.timed(0.005)
    assert item.compiler.wanted()
