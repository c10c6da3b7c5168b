"""Messages in a `google.protobuf.Any` are known by TensorFlow's name of their type, in scripts and in files.

Our messages have a package name of our own, since two libraries cannot both have the types of one name in a
process. `any.Unpack(asset)` compares names: without this it would find that an asset is none.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.internal import well_known_types

_OURS, _THEIRS = "tensorfleet.", "tensorflow."
_BEFORE = {name: getattr(well_known_types.Any, name) for name in ("Is", "Pack")}


def _is(self: Any, descriptor: Any) -> bool:
    """Whether the message inside is of a type: ours are TensorFlow's of that name, in whichever package it has them."""
    name = self.TypeName()
    same = name.startswith(_THEIRS) and descriptor.full_name == _OURS + name.rpartition(".")[2]
    return "/" in self.type_url and (same or name == descriptor.full_name)


def _pack(self: Any, msg: Any, *args: Any, **kwargs: Any) -> None:
    """Puts a message inside."""
    _BEFORE["Pack"](self, msg, *args, **kwargs)
    self.type_url = self.type_url.replace(f"/{_OURS}", f"/{_THEIRS}")


def install() -> None:
    """From here on types are compared by either name, and written by TensorFlow's."""
    for name, method in (("Is", _is), ("Pack", _pack)):
        setattr(well_known_types.Any, name, method)


def uninstall() -> None:
    """Undoes `install`."""
    for name, method in _BEFORE.items():
        setattr(well_known_types.Any, name, method)
