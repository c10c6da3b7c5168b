"""The mistakes that the fuzzer puts into messages: of every field of every message, each refused by its decoder."""

import contextlib
import dataclasses
from dataclasses import dataclass

import pytest

from tensorfleet.base import errors
from tensorfleet.cluster import messages
from tensorfleet.testing import fuzz

EVERY = pytest.mark.parametrize("message", messages.ALL, ids=lambda message: message.__name__)


def test_messages_of_every_kind_are_among_the_frames():
    kinds = set()
    for data in fuzz.frames():
        with contextlib.suppress(ConnectionError):
            for frame in fuzz.heard(data):
                kinds.add(frame.kind)
    assert kinds == set(messages.KINDS)


@EVERY
def test_every_field_is_missing_once_and_has_other_types(message):
    result = list(fuzz.mistakes(message))
    if message.layout is not None:
        assert len(result) > message.layout.size
        return
    for field in dataclasses.fields(message):
        said = [m.what for m in result if m.what.startswith(f".{field.name} ")]
        assert f".{field.name} is missing" in said
        assert {f".{field.name} is {wrong}" for wrong in ("-1", "None", "1.5", str(1 << 64))} <= set(said)
    assert any("one more" in m.what for m in result)


@EVERY
def test_wrong_fields_are_refused_and_others_are_read(message):
    for mistake in fuzz.mistakes(message):
        if mistake.refused:
            with pytest.raises(errors.InvalidArgumentError, match="A message does not make sense"):
                message.decode(mistake.fields)
        elif message.layout is None:
            message.decode(mistake.fields)  # as `fits` says, which knows nothing of the decoder
        else:
            with contextlib.suppress(errors.InvalidArgumentError):
                message.decode(mistake.fields)


def test_a_new_message_is_mutated_without_a_word_in_the_fuzzer():
    @dataclass(frozen=True, slots=True)
    class Inner:
        names: list[str]

    @dataclass(frozen=True, slots=True)
    class New(messages.Request[messages.Done]):
        kind = 99
        inner: Inner
        pairs: list[tuple[str, int]]
        count: int = 0

    New.__annotations__.update(inner=Inner, pairs=list[tuple[str, int]], count=int)
    Inner.__annotations__.update(names=list[str])
    said = {mistake.what for mistake in fuzz.mistakes(New)}
    assert {".inner.names.0 is -1", ".pairs.0 is shorter", ".pairs.0.1 is 1.5", ".count is -1"} <= said
    for mistake in fuzz.mistakes(New):
        with pytest.raises(errors.InvalidArgumentError) if mistake.refused else contextlib.nullcontext():
            New.decode(mistake.fields)
