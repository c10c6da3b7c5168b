"""The checks find each kind of violation in histories that are made up, and none in good ones."""

import pytest

from tensorfleet.testing import ledger as checks
from tensorfleet.testing.ledger import Acknowledgement, History, Ledger, LedgerWriter


def history(tried, done, values=None, life=0):
    values = values or [None] * len(done)
    acknowledged = [Acknowledgement(n, float(n), v, life) for n, v in zip(done, values, strict=True)]
    return History(list(tried), acknowledged)


def test_a_client_that_was_killed_in_a_line_leaves_no_wrong_entry(tmp_path):
    path = tmp_path / "ledger"
    with LedgerWriter(path, 0) as writer:
        assert writer.run("rows", 0, lambda: 7) == 7
    with open(path, "a") as file:
        file.write("t rows 1\na rows 1 0.")
    ledger = Ledger(path)
    assert ledger.next() == 2
    with LedgerWriter(path, ledger.next()) as writer:
        writer.run("rows", 2, lambda: [8])
    rows = ledger.of("rows")
    assert rows.attempts == [0, 1, 2]
    assert [(one.number, one.value, one.life) for one in rows.acknowledged] == [(0, 7, 0), (2, [8], 2)]
    assert rows.uncertain == {1}
    assert ledger.acknowledged() == 2


def test_an_error_is_neither_done_nor_not_done(tmp_path):
    with LedgerWriter(tmp_path / "ledger", 0) as writer, pytest.raises(ZeroDivisionError):
        writer.run("rows", 0, lambda: 1 // 0)
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.of("rows").uncertain == {0}
    assert len(ledger.failures) == 1 and "ZeroDivisionError" in ledger.failures[0]


def test_a_good_history_of_marks_has_no_violation():
    assert checks.check_marks("x", history([0, 1, 2], [0, 1]), {0: 1, 1: 1}) == []
    assert checks.check_marks("x", history([0, 1, 2], [0, 1]), {0: 1, 1: 1, 2: 1}) == []
    assert checks.check_marks("x", history(range(4), range(3)), {0: 2, 1: 1}, lambda n: n % 2) == []
    assert checks.check_marks("x", history(range(4), range(3)), {0: 2, 1: 2}, lambda n: n % 2) == []


@pytest.mark.parametrize(
    ("counts", "what"),
    [
        ({0: 1}, "x: 1 acknowledged, but not in the state: 1"),
        ({0: 1, 1: 2}, "x: 1 in the state too often: 1"),
        ({0: 1, 1: 1, 2: 2}, "x: 1 in the state too often: 2"),
        ({0: 1, 1: 1, 9: 1}, "x: 1 in the state, but never tried: 9"),
        ({0: 1, 1: 1, 2: -1}, "x: 1 in the state less than no time: 2"),
    ],
)
def test_a_lost_a_doubled_and_a_strange_mark_are_found(counts, what):
    assert checks.check_marks("x", history([0, 1, 2], [0, 1]), counts) == [what]


def test_a_loss_and_a_double_of_one_mark_do_not_make_up_for_each_other_when_each_has_its_own():
    assert len(checks.check_marks("x", history([0, 1], [0, 1]), {0: 2})) == 2


@pytest.mark.parametrize(("count", "good"), [(1, False), (2, True), (3, True), (4, False)])
def test_a_counter_is_between_the_acknowledged_and_the_tried(count, good):
    assert (checks.check_count("x", history([0, 1, 2], [0, 1]), count) == []) == good


def test_a_good_transfer_has_no_violation():
    puts, takes = history([1, 2, 3, 4], [1, 2, 4]), history([1, 2, 3], [1, 2], [1, 2])
    assert checks.check_transfer("q", puts, takes, [4]) == []
    assert checks.check_transfer("q", puts, takes, [3, 4]) == []
    assert checks.check_transfer("q", puts, takes, []) == [], "a take that was not acknowledged has it"


@pytest.mark.parametrize(
    ("taken", "rest", "what"),
    [
        ([1], [4], "q: 1 acknowledged, but taken by nobody: 2"),
        ([1, 2, 2], [4], "q: 1 taken more than once: 2"),
        ([1, 2], [2, 4], "q: 1 taken more than once: 2"),
        ([1, 2, 9], [4], "q: 1 taken, but never put in: 9"),
        ([2, 1], [4], "q: 1 it went back: 1 after 2"),
    ],
)
def test_what_a_queue_loses_doubles_or_turns_round_is_found(taken, rest, what):
    puts = history([1, 2, 3, 4], [1, 2, 4])
    takes = history(range(len(taken)), range(len(taken)), taken)
    assert checks.check_transfer("q", puts, takes, rest) == [what]


def test_reads_go_back_in_one_life_only():
    first, second = history([0, 1], [0, 1], [5, 6]), history([2, 3], [2, 3], [4, 3], life=2)
    both = History(first.attempts + second.attempts, first.acknowledged + second.acknowledged)
    assert checks.check_reads("x", first) == []
    assert checks.check_reads("x", both) == ["x, life 2: 1 it went back: 3 after 4"]


def test_a_step_that_is_missing_or_was_done_twice_is_found_by_its_values():
    def steps(life):
        yield from (life + n for n in range(1, 9))

    assert checks.check_replay("x", history([0, 1, 2], [0, 1, 2], [1, 2, 3]), steps) == []
    assert checks.check_replay("x", history([0, 1, 2], [0, 1, 2], [1, 2, 4]), steps) == [
        "x, life 0: 4 at 2 instead of 3"
    ]
    assert checks.check_replay("x", history([0, 1, 2], [0, 1, 2], [1, 2, 2]), steps) == [
        "x, life 0: 2 at 2 instead of 3"
    ]


def test_a_pause_ends_with_the_first_answer_that_was_not_under_way():
    ledger = Ledger("/nowhere")
    ledger.times = [1.0, 2.001, 2.5, 2.6]
    assert checks.pause_after(ledger, 2.0) == 0.5
    assert checks.pause_after(ledger, 3.0) == float("inf")


def test_the_longest_pause_is_one_between_two_answers():
    ledger = Ledger("/nowhere")
    ledger.times = [1.0, 2.0, 2.5, 4.0, 4.1]
    assert checks.longest_pause(ledger, 1.75) == 1.5
    assert checks.longest_pause(ledger, 4.0) == pytest.approx(0.1)
    assert checks.longest_pause(ledger, 5.0) == float("inf")
