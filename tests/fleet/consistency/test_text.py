"""The value `consistency=`: what it means, and what is said about a text without a meaning."""

import pytest

from tensorfleet.fleet.consistency.asp import Asynchronous
from tensorfleet.fleet.consistency.backup import Backup
from tensorfleet.fleet.consistency.bsp import BulkSynchronous
from tensorfleet.fleet.consistency.scheme import Dropped, Scaled
from tensorfleet.fleet.consistency.ssp import StaleSynchronous
from tensorfleet.fleet.consistency.text import EXAMPLES, Schedule, parse, parse_schedule


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_value_is_written_as_it_was_read(text):
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("bsp", BulkSynchronous()),
        (" BSP ", BulkSynchronous()),
        ("backup:2", Backup(2)),
        ("ssp:0", StaleSynchronous(0)),
        ("ssp:4  scale", StaleSynchronous(4, Scaled())),
        ("asp", Asynchronous()),
        ("asp drop:8", Asynchronous(Dropped(8))),
    ],
)
def test_a_text_means_a_scheme(text, scheme):
    assert parse(text).dense == parse(text).sparse == Schedule(scheme)


def test_dense_and_sparse_gradients_may_go_different_ways():
    both = parse("bsp dense, asp sparse")
    assert both.is_split
    assert (both.dense.scheme, both.sparse.scheme) == (BulkSynchronous(), Asynchronous())
    assert not parse("bsp dense, bsp sparse").is_split


def test_a_scheme_may_begin_after_some_steps_of_another():
    schedule = parse_schedule("asp after 3 bsp")
    assert [schedule.at(step).text for step in range(5)] == ["bsp", "bsp", "bsp", "asp", "asp"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            "ssp:-1",
            "consistency is 'ssp:-1'. The number in 'ssp:-1' must be 0 or more, not -1. Write for example 'ssp:4'.",
        ),
        ("asp drop:-2", "must be 0 or more, not -2. Write for example 'drop:8'."),
        ("spp:7", "Did you mean 'ssp:7'?"),
        ("bps", "Did you mean 'bsp'?"),
        ("async", "Write one of 'bsp', 'backup:2', 'ssp:4'"),
        ("", "Write one of 'bsp', 'backup:2', 'ssp:4'"),
        ("ssp", "ssp needs a number. Write for example 'ssp:4'."),
        ("ssp:", "The number in 'ssp:' is ''. Write for example 'ssp:4'."),
        ("ssp:1.5", "The number in 'ssp:1.5' is '1.5'. Write for example 'ssp:4'."),
        ("ssp:9999999999", "The number in 'ssp:9999999999' is '9999999999'."),
        ("backup", "backup needs a number. Write for example 'backup:2'."),
        ("bsp:3", "bsp has no number. Write 'bsp', or 'ssp:3' for a bound."),
        ("bsp scale", "bsp has no 'scale': it always drops late gradients. Write 'bsp', or 'ssp:4 scale'."),
        ("asp drop", "drop needs a number. Write for example 'drop:8'."),
        ("ssp:4 scael", "Did you mean 'ssp:4 scale'?"),
        ("asp after some bsp", "The number of steps in 'asp after some bsp' is 'some'."),
        ("bsp dense", "Did you mean"),
        ("x" * 300, "It has 300 characters"),
    ],
)
def test_a_text_without_a_meaning_is_refused_with_the_nearest_that_has_one(text, advice):
    with pytest.raises(ValueError, match="^consistency is ") as caught:
        parse(text)
    assert advice in str(caught.value)


@pytest.mark.parametrize("value", [4, None, b"bsp"])
def test_what_is_no_text_is_refused(value):
    with pytest.raises(TypeError, match="consistency must be a text such as 'ssp:4', not "):
        parse(value)


def test_the_error_names_the_argument():
    with pytest.raises(ValueError, match="^TENSORFLEET_CONSISTENCY is 'bps'"):
        parse("bps", "TENSORFLEET_CONSISTENCY")


def test_one_way_is_asked_for_where_there_is_one():
    with pytest.raises(ValueError, match="Dense and sparse gradients cannot differ here"):
        parse_schedule("bsp dense, asp sparse")
