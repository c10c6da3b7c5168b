"""Messages of libraries from TensorFlow 1's days: `_pb2.py` files that protoc made before its version 3.19.

Such a file spells out every field, which protobuf refuses today; it also holds the whole description in one string.
That is all that is taken from it, besides the other files of messages that it imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

_ENDING = "_pb2"
_SIGNS = (b"_descriptor.FileDescriptor(", b"serialized_pb=")


def install() -> None:
    """From here on modules of messages are read whatever protoc made them."""
    sys.meta_path.insert(1, _Finder())


def uninstall() -> None:
    """Undoes `install`; modules that are imported already stay."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]


class _Finder(MetaPathFinder):
    """Finds modules of messages where Python would, and loads them in another way."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.endswith(_ENDING):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


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
