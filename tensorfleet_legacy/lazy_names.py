"""Names that are published before the module that has them is imported: that happens at the first use of one."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tensorfleet.base.naming import publish_lazily


def publish_from(module: str, names: str, *places: str) -> None:
    """Publishes names of a module of this package, separated by blanks, in each of the places.

    `public=inner` stands for a name that is another one in the module; of `a.b.name` the last part is the name there.
    """
    for entry in names.split():
        public, _, inner = entry.partition("=")
        load = functools.partial(_load, module, (inner or public).rpartition(".")[2])
        publish_lazily(load, *(f"{place}.{public}" for place in places))


def publish_whole(module: str, *places: str) -> None:
    """Publishes a module of this package as each of the places."""
    publish_lazily(lambda _: importlib.import_module(f"tensorfleet_legacy.{module}"), *places)


def _load(module: str, name: str, _: str) -> Any:
    return getattr(importlib.import_module(f"tensorfleet_legacy.{module}"), name)
