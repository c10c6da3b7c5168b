"""Functions and constructors of `tf.contrib` take the arguments that they take in TensorFlow 1.15."""

import functools
from pathlib import Path

import pytest

import tensorfleet as tf
from tests.support.signatures import arguments, same_default

# Where we differ on purpose. An entry that is no longer needed fails the test.
DIFFERENT = {
    "contrib.framework.nest.is_sequence": "is the function that is called is_nested elsewhere",
    "contrib.layers.sparse_column_with_hash_bucket": "has one hash, and no `hash_keys` for several",
}


@functools.cache
def table() -> dict[str, list[str]]:
    """name -> [argument, argument=default, ...] of TensorFlow 1.15; a default `?` is no literal."""
    lines = (Path(__file__).parents[1] / "data" / "contrib_1.15.tsv").read_text().splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: args for name, _, *args in rows}


def same(ours: str, theirs: str) -> bool:
    (name, given, default), (their_name, their_given, wanted) = ours.partition("="), theirs.partition("=")
    if name.startswith("*") or their_name.startswith("*"):
        return name.count("*") == their_name.count("*")
    return name == their_name and given == their_given and (wanted == "?" or same_default(default, wanted))


def fits(ours: list[str], theirs: list[str]) -> bool:
    """Whether all calls with their arguments mean the same here; ours may have more behind, with defaults."""
    if len(ours) < len(theirs):
        return False
    more = ours[len(theirs) :]
    return all(map(same, ours, theirs)) and all("=" in a or a.startswith("*") for a in more)


def differences():
    for name, theirs in table().items():
        ours = arguments(functools.reduce(getattr, name.split("."), tf))
        if not fits(ours, theirs):
            yield name, f"has ({', '.join(ours)}), 1.15 ({', '.join(theirs)})"


def test_arguments_are_those_of_tensorflow():
    result = dict(differences())
    assert {name: text for name, text in result.items() if name not in DIFFERENT} == {}
    assert [name for name in DIFFERENT if name not in result] == [], "these are as in TensorFlow now"


@pytest.mark.parametrize(
    ("ours", "theirs", "is_same"),
    [
        (["x", "name=None"], ["x", "name=None"], True),
        (["x", "name=None", "more=1"], ["x", "name=None"], True),
        (["x", "name=None", "more"], ["x", "name=None"], False),
        (["x"], ["x", "name=None"], False),
        (["y"], ["x"], False),
        (["x=2"], ["x=1"], False),
        (["x=2"], ["x=?"], True),
        (["*args"], ["x"], False),
    ],
)
def test_lists_of_arguments_are_compared(ours, theirs, is_same):
    assert fits(ours, theirs) == is_same
