"""Messages inside of a `google.protobuf.Any` by TensorFlow's name of their type."""

import pytest
from google.protobuf.any_pb2 import Any

from tensorfleet.base import protos
from tensorfleet.cli.scripts import alias


@pytest.fixture
def installed():
    alias.install()
    yield
    alias.uninstall()


def test_a_packed_message_has_the_name_that_tensorflow_knows(installed):
    held = Any()
    held.Pack(protos.AssetFileDef(filename="words.txt"))
    assert held.type_url == "type.googleapis.com/tensorflow.AssetFileDef"
    result = protos.AssetFileDef()
    assert held.Unpack(result) and result.filename == "words.txt"


def test_what_tensorflow_packed_is_unpacked(installed):
    value = protos.Signatures().SerializeToString()
    held = Any(type_url="type.googleapis.com/tensorflow.serving.Signatures", value=value)
    assert held.Is(protos.Signatures.DESCRIPTOR) and held.Unpack(protos.Signatures())
    assert not held.Unpack(protos.AssetFileDef())


def test_the_names_go_with_the_alias():
    alias.install()
    alias.uninstall()
    held = Any()
    held.Pack(protos.AssetFileDef())
    assert held.TypeName() == protos.AssetFileDef.DESCRIPTOR.full_name
