"""Every message of the cluster: it comes out as it went in, or is refused with the place of the mistake."""

import dataclasses
import inspect

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport import wire
from tensorfleet.testing import fuzz

EVERY = pytest.mark.parametrize("message", messages.ALL, ids=lambda message: message.__name__)


def test_every_kind_has_a_struct():
    assert {message.kind for message in messages.ALL} == set(messages.KINDS)
    assert set(messages.REQUESTS) == set(messages.KINDS) - {messages.WELCOME, messages.OK, messages.FAILED}


def test_every_struct_is_in_the_table():
    bases = (messages.Message, messages.Answer, messages.Request)
    declared = [
        found
        for _, found in inspect.getmembers(messages, inspect.isclass)
        if issubclass(found, messages.Message) and found not in bases
    ]
    assert set(declared) == set(messages.ALL)
    assert all(message.answer() in messages.ANSWERS for message in messages.REQUESTS.values())
    assert messages.Hello.answer() is messages.Welcome


@EVERY
@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
def test_a_message_comes_out_as_it_went_in(message, full):
    said = fuzz.sample(message, full)
    assert message.decode(said.encode()) == said
    assert not hasattr(said, "__dict__")


@pytest.mark.parametrize(
    "message",
    [message for message in messages.ALL if fuzz.sample(message).carries() is not None],
    ids=lambda message: message.__name__,
)
def test_a_message_with_another_number_of_tensors_is_refused(message):
    said = fuzz.sample(message, full=True)
    values = [np.zeros(1)] * (said.carries() + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{message.__name__} comes with"):
        wire.Frame(message.kind, said.encode(), values).read(message)


def test_a_frame_of_another_kind_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="of kind 3, where Description was expected"):
        wire.Frame(messages.PING, b"", []).read(messages.Description)
    with pytest.raises(tf.errors.InvalidArgumentError, match="there is no message of kind 200"):
        messages.request_of(200)


STAGE = {"id": 1, "wire": "", "ops": ["c"], "targets": [], "given": [], "kept": [], "awaited": []}
STAGE |= {"reply": [], "keep": [], "push": [], "known": [], "thin": []}


@pytest.mark.parametrize(
    ("message", "fields", "why"),
    [
        (messages.Bye, b"", "Bye in 'task' is missing"),
        (messages.Ping, b'{"x": 1}', "Ping in 'x' is not a field"),
        (messages.Ping, b"[]", "Ping is not an object"),
        (messages.Ping, b"{", "its fields are not JSON"),
        (messages.Bye, b'{"task": "a", "served": 1}', "'served' is not true or false"),
        (messages.Cancel, b'{"session": "s", "step": -1}', "'step' is negative, or has more than 64 bits"),
        (messages.Cancel, b'{"session": "s", "step": true}', "'step' is not an integer"),
        (messages.Reset, b'{"containers": [5]}', "'containers' is not"),
        (messages.Failed, b'{"code": 3, "message": "m", "op": 5}', "'op' is not"),
        (messages.Run, b"x", "Run has 1 bytes, not 45"),
        (messages.Run, bytes(36) + b"\x10" + bytes(8), "no such way to run it"),
    ],
)
def test_a_mistake_is_named_with_its_place(message, fields, why):
    with pytest.raises(tf.errors.InvalidArgumentError, match=why):
        message.decode(fields)


def test_a_mistake_deep_inside_is_named_with_its_place():
    said = dataclasses.asdict(fuzz.sample(messages.Register))
    said["stages"] = [STAGE | {"push": [{"task": "t", "address": "a", "names": "no"}]}]
    fields = str(said).replace("'", '"').replace("True", "true").replace("None", "null").encode()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Register in 'stages\.push\.names' is not a list"
    ):
        messages.Register.decode(fields)


def test_what_is_not_traced_says_nothing():
    assert messages.Ran().encode() == messages.Done().encode() == messages.NOTHING
