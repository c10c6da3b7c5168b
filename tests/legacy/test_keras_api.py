"""The names under `tf.keras` are TensorFlow 1.15's: the same kinds, arguments in the same order, the same defaults."""

import functools
from collections.abc import Iterator
from typing import Any

import tensorfleet as tf
from tests.support.signatures import difference, kind_of, problems_of_members, read_table

# Where we differ on purpose. An entry that is no longer needed fails the test.
DIFFERENT = {
    "keras.Model.__init__": "the arguments that 1.15 takes as any are known here",
    "keras.layers.CuDNNGRU.get_losses_for": "as of all layers",
    "keras.layers.CuDNNLSTM.get_losses_for": "as of all layers",
}


@functools.cache
def table() -> dict[str, tuple[str, ...]]:
    """name -> (kind, argument, argument=default, ...) of TensorFlow 1.15."""
    return read_table("keras_1.15.tsv")


def found(name: str) -> Any:
    return functools.reduce(getattr, name.split("."), tf)


def top_level() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names that are not members of a class."""
    for name, row in table().items():
        if table().get(name.rpartition(".")[0], ("",))[0] != "class":
            yield name, row


def test_every_name_is_there_and_of_its_kind():
    wrong = []
    for name, (kind, *_) in top_level():
        ours = kind_of(found(name))
        if kind not in ("member", ours):
            wrong.append(f"{name} is a {ours}, in 1.15 a {kind}")
    assert wrong == []


def test_functions_take_the_same_arguments():
    pairs = [(name, tuple(args)) for name, (kind, *args) in top_level() if kind == "function"]
    wrong = {name: difference(found(name), args) for name, args in pairs}
    assert {name: problem for name, problem in wrong.items() if problem} == {}
    assert len(pairs) > 300


def test_classes_have_the_same_methods():
    problems: dict[str, str] = {}
    seen = set()
    for name, (kind, *_) in top_level():
        cls = found(name) if kind == "class" else None
        if cls is None or cls in seen:
            continue
        seen.add(cls)
        start = f"{name}."
        members = [(n[len(start) :], row) for n, row in table().items() if n.startswith(start)]
        problems.update(problems_of_members(name, cls, members))
    assert {n: p for n, p in problems.items() if n not in DIFFERENT} == {}
    assert [n for n in DIFFERENT if n not in problems] == [], "these are as in TensorFlow now"
