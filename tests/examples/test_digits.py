"""Handwritten digits, read by one process."""

from tests.support.examples import number_after, run_example, try_example


def test_digits_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "digits")
    assert number_after("Final test accuracy", done.stdout) >= 0.97
    assert "\r" not in done.stdout  # progress overwrites its line on a terminal only


def test_digits_says_when_it_misses_its_target(tmp_path):
    done = try_example(tmp_path, "digits", "--steps", "2", "--batch_size", "8", "--seed", "3")
    assert done.code == 1
    assert number_after("Final test accuracy", done.stdout) < 0.97
    assert "The target was missed: try more --steps" in done.stderr


def test_digits_refuses_impossible_flags(tmp_path):
    done = try_example(tmp_path, "digits", "--steps", "0")
    assert done.code == 2
    assert "--steps and --batch_size must be at least 1" in done.stderr
