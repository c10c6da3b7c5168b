"""Dataclasses as JSON: what their types allow comes back, all else is refused with its place."""

import json
from dataclasses import dataclass, field

import pytest

from tensorfleet.base import errors
from tensorfleet.cluster.transport import json_fields


@dataclass(frozen=True, slots=True)
class Inner:
    names: list[str]
    pairs: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outer:
    number: int
    inner: Inner | None = None
    by_name: dict[str, list[bool]] = field(default_factory=dict)
    either: list[str] | dict[str, str] = field(default_factory=list)


def test_a_struct_comes_back_as_it_was():
    for made in (
        Outer(0),
        Outer(json_fields.MAX_INTEGER, Inner([])),
        Outer(1, Inner(["a", ""], [("b", 2)]), {"c": [True, False]}, {"d": "e"}),
    ):
        assert json_fields.decode(Outer, json_fields.encode(made)) == made


def test_fields_with_their_defaults_are_left_out():
    assert json.loads(json_fields.encode(Outer(3, Inner(["a"])))) == {"number": 3, "inner": {"names": ["a"]}}
    assert json_fields.encode(Outer(0)) == b'{"number": 0}'  # it has no default


def test_defaults_are_not_shared_between_structs():
    first, second = (json_fields.decode(Outer, b'{"number": 1}') for _ in range(2))
    assert first.by_name is not second.by_name


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({}, "'number' is missing"),
        ({"number": 1, "more": 2}, "'more' is not a field"),
        ({"number": 1.0}, "'number' is not an integer"),
        ({"number": False}, "'number' is not an integer"),
        ({"number": -1}, "'number' is negative"),
        ({"number": 1 << 64}, "more than 64 bits"),
        ({"number": 1, "inner": {"names": [1]}}, "'inner.names' is not a list of strings"),
        ({"number": 1, "inner": {"names": [], "pairs": [["a"]]}}, "'inner.pairs' is not a list of 2"),
        ({"number": 1, "by_name": {"x": [1]}}, "'by_name' is not true or false"),
        ({"number": 1, "either": 5}, "'either' is not"),
        ([], "Outer is not an object"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value, why):
    with pytest.raises(errors.InvalidArgumentError, match=why):
        json_fields.read(Outer, value)
