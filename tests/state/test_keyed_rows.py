"""Rows by key: made on first use, merged, ranged over, run on, and copied."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorfleet.base import errors
from tensorfleet.state.keyed_rows import KeyedRows, RowKind, digest_of


def table(dim=2, merge="sum", init=0.0, name="t"):
    return KeyedRows(RowKind(name, dim, "float32", merge, np.full(dim, init, np.float32).tobytes()))


def keys(*values):
    return np.array(values, np.int64)


def rows(*values):
    return np.array(values, np.float32)


class Recorder:
    def __init__(self):
        self.calls = []

    def called(self, table, method, arrays):
        self.calls.append((method, [np.array(a) for a in arrays]))

    def changed(self, table):
        self.calls.append(("whole", []))


MERGES = {"sum": lambda a, b: a + b, "max": max, "set": lambda a, b: b}


@given(
    st.sampled_from(sorted(MERGES)),
    st.lists(
        st.lists(st.tuples(st.integers(0, 12), st.integers(-8, 8)), max_size=20),
        max_size=6,
    ),
)
def test_pushes_merge_one_after_the_other_also_those_of_one_key(merge, pushes):
    wanted = {}
    made = table(1, merge)
    for push in pushes:
        made.push(keys(*(k for k, _ in push)), rows(*([v] for _, v in push)).reshape(-1, 1), merge)
        for key, value in push:
            wanted[key] = MERGES[merge](wanted.get(key, 0), value)
    found = made.pull(np.arange(13))
    assert found.ravel().tolist() == [wanted.get(key, 0) for key in range(13)]
    assert made.size() == len(wanted)


def test_a_function_merges_the_values_of_a_repeated_key_in_their_order():
    made = table(1)
    made.push(keys(5, 5, 6, 5), rows([1], [2], [3], [4]), lambda old, new: old * 10 + new)
    assert made.pull(keys(5, 6)).tolist() == [[124], [3]]


def test_a_pull_makes_no_row_and_gives_the_initial_one():
    made = table(init=7)
    assert made.pull(keys(1, 2)).tolist() == [[7, 7], [7, 7]]
    made.push(keys(2), rows([1, 2]), "sum")
    assert made.pull(keys(1, 2)).tolist() == [[7, 7], [8, 9]]
    assert made.size() == 1


def test_what_was_pulled_does_not_change():
    made = table()
    made.push(keys(1), rows([1, 1]), "sum")
    before = made.pull(keys(1))
    made.push(keys(1), rows([1, 1]), "sum")
    assert before.tolist() == [[1, 1]]


def test_a_range_gives_its_keys_in_order():
    made = table(1)
    made.push(keys(9, 2, 7, 2**62, 5), rows([9], [2], [7], [1], [5]), "sum")
    found, values = made.pull_range(2, 9)
    assert found.tolist() == [2, 5, 7]
    assert values.ravel().tolist() == [2, 5, 7]


def test_a_function_runs_on_the_rows_and_gives_its_other_results():
    made = table(init=1)
    (seen,) = made.run(keys(3, 4), lambda some: [some + 1, some.sum(axis=1)])
    assert seen.tolist() == [2, 2]
    assert made.pull(keys(3, 4, 5)).tolist() == [[2, 2], [2, 2], [1, 1]]


def test_a_function_that_fails_changes_no_value():
    made = table()
    made.push(keys(3), rows([1, 1]), "sum")
    with pytest.raises(ZeroDivisionError):
        made.run(keys(3), lambda some: [1 / 0])
    assert made.pull(keys(3)).tolist() == [[1, 1]]


def test_a_function_is_refused_a_key_that_comes_twice():
    with pytest.raises(
        errors.InvalidArgumentError, match="got a key more than once. Give each key once: sum"
    ):
        table().run(keys(3, 4, 3), lambda some: [some])


def test_a_function_that_gives_other_rows_is_refused():
    with pytest.raises(errors.InvalidArgumentError, match=r"gave rows of shape \[1, 3\] .*, not \[1, 2\]"):
        table().run(keys(3), lambda some: [np.zeros((1, 3), np.float32)])


def test_sets_of_keys_are_remembered_until_many_others_came():
    made = table()
    first = keys(1, 2, 3)
    made.remember(first)
    first[0] = 9  # the memory of a request is used again
    assert made.remembered(digest_of(keys(1, 2, 3))).tolist() == [1, 2, 3]
    for i in range(64):
        made.remember(keys(i))
    assert made.remembered(digest_of(keys(1, 2, 3))) is None


def test_a_copy_made_of_its_content_and_of_later_calls_is_equal():
    made, recorder = table(), Recorder()
    made.push(keys(1, 2**62), rows([1, 1], [2, 2]), "sum")
    content = made.content()
    made.recorder = recorder
    made.push(keys(2, 1, 2), rows([3, 3], [4, 4], [5, 5]), "sum")
    made.run(keys(8), lambda some: [some + 8])
    copy = table()
    copy.restore(*content)
    for method, arrays in recorder.calls:
        getattr(copy, method)(*arrays)
    asked = keys(1, 2, 8, 2**62)
    assert copy.pull(asked).tolist() == made.pull(asked).tolist() == [[5, 5], [8, 8], [8, 8], [2, 2]]


def test_differences_of_tables_are_named():
    assert (
        RowKind("t", 3, "float32", "max", b"").differences(table()) == "dim=2, not 3, merge='sum', not 'max'"
    )
    assert RowKind("t", 2, "float32", "sum", b"").differences(table()) == "another `init`"
