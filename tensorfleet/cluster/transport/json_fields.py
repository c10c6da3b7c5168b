"""Dataclasses as JSON objects and back, checked against the types that their fields declare.

A field may be `bool`, `int`, `str`, another dataclass, or a `list`, `tuple`, `dict` or union of these. Integers are never
negative and have at most 64 bits: nothing that a message counts or numbers is otherwise. What does not fit is
refused as malformed, with the place of the field.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tensorfleet.cluster.transport.tensor_bytes import malformed

if TYPE_CHECKING:
    from tensorfleet.runtime.values import Values

MAX_INTEGER = (1 << 64) - 1
_Struct = TypeVar("_Struct")
_Reader = Callable[[object], Any]


class _Mismatch(Exception):
    """A value that its field cannot have. The way to the field is added on the way out."""

    def __init__(self, why: str, *path: str) -> None:
        super().__init__(why)
        self.why, self.path = why, path

    def inside(self, name: str) -> _Mismatch:
        return _Mismatch(self.why, name, *self.path)


def encode(struct: object) -> bytes:
    """A dataclass as JSON. Fields that have their default are left out, and nothing is sent for no fields at all."""
    said = _said(struct)
    return json.dumps(said, default=_said).encode() if said else b""


def decode(cls: type[_Struct], data: bytes) -> _Struct:
    """The dataclass that JSON describes. Raises the error for a malformed message."""
    try:
        value = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        raise malformed("its fields are not JSON") from None
    return read(cls, value)


def read(cls: type[_Struct], value: object) -> _Struct:
    """The dataclass that a JSON object describes. Raises the error for a malformed message."""
    try:
        hint: Any = cls
        struct: _Struct = _reader_of(hint)(value)
        return struct
    except _Mismatch as e:
        where = f" in '{'.'.join(e.path)}'" if e.path else ""
        raise malformed(f"{cls.__name__}{where} {e.why}") from None


@functools.cache
def _defaults(cls: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass with their defaults."""
    return [
        (f.name, f.default if f.default_factory is dataclasses.MISSING else f.default_factory())
        for f in dataclasses.fields(cls)
    ]


def _said(struct: object) -> dict[str, Any]:
    """The fields of a dataclass that have to be said."""
    cls: Any = type(struct)
    values = [(name, getattr(struct, name), default) for name, default in _defaults(cls)]
    return {name: value for name, value, default in values if value != default}


# -- one reader for each declared type ----------------------------------------------------------------


@functools.cache
def _reader_of(hint: Any) -> _Reader:
    if dataclasses.is_dataclass(hint):
        return _struct_reader(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_reader([_reader_of(a) for a in arguments])
    if origin is list:
        return _list_reader(arguments[0])
    if origin is tuple:
        return _tuple_reader([_reader_of(a) for a in arguments])
    if origin is dict and arguments[0] is str:
        return _dict_reader(_reader_of(arguments[1]))
    return _PLAIN[hint]


def _read_integer(value: object) -> int:
    if type(value) is not int:
        raise _Mismatch("is not an integer")
    if not 0 <= value <= MAX_INTEGER:
        raise _Mismatch("is negative, or has more than 64 bits")
    return value


def _plain_reader(kind: type[Any], name: str) -> _Reader:
    def read(value: object) -> Any:
        if type(value) is not kind:
            raise _Mismatch(f"is not {name}")
        return value

    return read


_PLAIN: dict[Any, _Reader] = {
    int: _read_integer,
    bool: _plain_reader(bool, "true or false"),
    str: _plain_reader(str, "a string"),
    types.NoneType: _plain_reader(types.NoneType, "null"),
}


def _list_reader(of: Any) -> _Reader:
    item = _reader_of(of)

    def read(value: object) -> Values:
        if type(value) is not list:
            raise _Mismatch("is not a list")
        return [item(v) for v in value]

    def read_strings(value: object) -> list[str]:
        # Most lists are names, of which a graph has thousands: one pass without a call for each.
        if type(value) is not list or not all([type(v) is str for v in value]):
            raise _Mismatch("is not a list of strings")
        return value

    return read_strings if of is str else read


def _tuple_reader(items: list[_Reader]) -> _Reader:
    def read(value: object) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(items):
            raise _Mismatch(f"is not a list of {len(items)}")
        return tuple([item(v) for item, v in zip(items, value, strict=True)])

    return read


def _dict_reader(item: _Reader) -> _Reader:
    def read(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            raise _Mismatch("is not an object")
        return {k: item(v) for k, v in value.items()}

    return read


def _union_reader(choices: list[_Reader]) -> _Reader:
    def read(value: object) -> Any:
        wrong: list[_Mismatch] = []
        for choice in choices:
            try:
                return choice(value)
            except _Mismatch as e:
                wrong.append(e)
        raise max(wrong, key=lambda e: len(e.path))  # the one that fitted best

    return read


def _struct_reader(cls: Any) -> _Reader:
    hints = typing.get_type_hints(cls)
    readers = {name: _reader_of(hints[name]) for name, _ in _defaults(cls)}
    required = {name for name, default in _defaults(cls) if default is dataclasses.MISSING}

    def read(value: object) -> Any:
        if type(value) is not dict:
            raise _Mismatch("is not an object")
        if not readers.keys() >= value.keys():
            raise _Mismatch("is not a field", min(value.keys() - readers.keys())[:40])
        if not value.keys() >= required:
            raise _Mismatch("is missing", min(required - value.keys()))
        fields = {}
        for name, v in value.items():
            try:
                fields[name] = readers[name](v)
            except _Mismatch as e:
                raise e.inside(name) from None
        return cls(**fields)

    return read
