"""Modules that are found where Python finds them, and loaded in another way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


class OtherLoader(MetaPathFinder):
    """Gives the source files of the modules whose names are `chosen` to a loader of its own."""

    def __init__(self, chosen: Callable[[str], bool], loader: type[SourceFileLoader]) -> None:
        self._chosen, self._loader = chosen, loader

    def install(self) -> None:
        """From here on, behind the first of Python's finders."""
        sys.meta_path.insert(1, self)

    def uninstall(self) -> None:
        """Undoes `install`; modules that are imported already stay as they are."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where Python would find the module."""
        if not self._chosen(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = self._loader(fullname, spec.loader.path)
        return spec
