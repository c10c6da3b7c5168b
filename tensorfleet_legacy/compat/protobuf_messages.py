"""Messages of libraries from TensorFlow 1's days: `_pb2.py` files that protoc made before its version 3.19.

Such a file spells out every field, which protobuf refuses today; it also holds the whole description in one string.
That is all that is taken from it, besides the other files of messages that it imports.
"""

from __future__ import annotations

import ast
from importlib.machinery import SourceFileLoader
from types import CodeType

from tensorfleet.cli.scripts.module_loaders import OtherLoader

_ENDING = "_pb2"
_SIGNS = (b"_descriptor.FileDescriptor(", b"serialized_pb=")


class _Loader(SourceFileLoader):
    """Loads a file as it is, unless it spells its messages out; what is made of that one is not kept on disk."""

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_data(self.path)
        if not all(sign in source for sign in _SIGNS):
            return super().get_code(fullname)
        tree = ast.parse(source, self.path)
        body = [node for node in tree.body if _is_of_messages(node)]
        body += ast.parse(_BUILD.format(described=_described(tree))).body
        return compile(ast.Module(body, []), self.path, "exec")


LOADER = OtherLoader(lambda name: name.endswith(_ENDING), _Loader)

_BUILD = """
from google.protobuf import descriptor_pool as _pools
from google.protobuf.internal import builder as _builder
DESCRIPTOR = _pools.Default().AddSerializedFile({described!r})
_builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())
"""


def _is_of_messages(node: ast.stmt) -> bool:
    """Whether a statement of the file concerns another file of messages."""
    match node:
        case ast.ImportFrom(module, names):
            return (module or "").endswith(_ENDING) or any(name.name.endswith(_ENDING) for name in names)
        case ast.Import(names):
            return any(name.name.endswith(_ENDING) for name in names)
        case ast.Try():  # one that is imported by way of another
            return True
    return False


def _described(tree: ast.Module) -> bytes:
    """The description of all messages in a file; for Python 2 it was written as text."""
    for call in ast.walk(tree):
        match call:
            case ast.keyword("serialized_pb", ast.Constant(bytes() as value)):
                return value
            case ast.keyword("serialized_pb", ast.Call(_, [ast.Constant(str() as text)])):
                return text.encode("latin1")
            case ast.keyword("serialized_pb", ast.Constant(str() as text)):
                return text.encode("latin1")
    raise ImportError("This file of messages has no description: make it again, with a protoc of today.")
