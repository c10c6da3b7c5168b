"""Modules of messages as protoc made them in TensorFlow 1's days."""

import importlib
import sys

import pytest
from google.protobuf import descriptor_pb2

from tensorfleet.cli.scripts import alias

PLAIN = """
import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
from google.protobuf import descriptor as _descriptor
from google.protobuf import reflection as _reflection
{imports}
DESCRIPTOR = _descriptor.FileDescriptor(
  name='{name}',
  package='{package}',
  syntax='proto3',
  serialized_pb={described}
  {dependencies})
_POINT = _descriptor.Descriptor(name='Point', full_name='Point', filename=None, file=DESCRIPTOR)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    alias.install()
    yield tmp_path
    alias.uninstall()
    for name in [n for n in sys.modules if n.startswith("old_")]:
        del sys.modules[name]


def described(name, package, imports=()):
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=imports)
    point = file.message_type.add(name="Point")
    point.field.add(name="x", number=1, type=5, label=1)
    file.enum_type.add(name="Colour").value.add(name="RED", number=0)
    if imports:
        point.field.add(name="inner", number=2, type=11, label=1, type_name=".old.first.Point")
    return file.SerializeToString()


def test_messages_are_read_from_the_description_in_the_file(folder):
    text = f"_b({described('old_first.proto', 'old.first').decode('latin1')!r})"
    words = {"imports": "", "dependencies": ""}
    (folder / "old_first_pb2.py").write_text(
        PLAIN.format(name="old_first.proto", package="old.first", described=text, **words), encoding="utf-8"
    )
    words = {"imports": "import old_first_pb2 as old__first__pb2", "dependencies": ", dependencies=[]"}
    data = repr(described("old_second.proto", "old.second", ["old_first.proto"]))
    (folder / "old_second_pb2.py").write_text(
        PLAIN.format(name="old_second.proto", package="old.second", described=data, **words)
    )
    second = importlib.import_module("old_second_pb2")
    point = second.Point(x=3, inner=sys.modules["old_first_pb2"].Point(x=4))
    assert second.Point.FromString(point.SerializeToString()) == point
    assert second.RED == 0 and second.Colour.Name(0) == "RED"
    assert not list(folder.glob("__pycache__/*pb2*"))


def test_a_file_without_a_description_says_what_to_do(folder):
    (folder / "old_broken_pb2.py").write_text(
        "DESCRIPTOR = _descriptor.FileDescriptor(\n  serialized_pb=nothing)\n"
    )
    with pytest.raises(ImportError, match="protoc of today"):
        importlib.import_module("old_broken_pb2")


def test_a_file_of_today_is_loaded_as_it_is(folder):
    (folder / "old_not_at_all_pb2.py").write_text("VALUE = 5\n")
    assert importlib.import_module("old_not_at_all_pb2").VALUE == 5
