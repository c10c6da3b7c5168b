"""Scripts for Python 2 and for old libraries, by the package `tensorfleet_legacy` where it is installed."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
from types import CodeType
from typing import Any, Protocol, cast

_ENTRY = "tensorfleet_legacy.compat.entry"


class OldScripts(Protocol):
    """The functions of tensorfleet_legacy/compat/entry.py, which has their documentation."""

    def install(self) -> None:
        """Makes old libraries importable."""

    def uninstall(self) -> None:
        """Takes them back."""

    def install_script_loader(self) -> None:
        """Loads modules beside the script as old Python where they are."""

    def parse(self, source: str, path: str) -> tuple[ast.Module, bool]:
        """The syntax tree of a source, and whether it is old Python."""

    def compile_script(self, source: str, path: str) -> tuple[CodeType, bool]:
        """The code of a source, and whether it is old Python."""

    def names_for(self, source: str, is_old: bool) -> dict[str, Any]:
        """The global names that a script expects."""


class _NewScripts:
    """Without the package: scripts are Python 3 for the libraries that are installed."""

    def install(self) -> None:
        """Nothing to put back."""

    def uninstall(self) -> None:
        """Nothing was put back."""

    def install_script_loader(self) -> None:
        """Python's own loader is right."""

    def parse(self, source: str, path: str) -> tuple[ast.Module, bool]:
        return ast.parse(source, path), False

    def compile_script(self, source: str, path: str) -> tuple[CodeType, bool]:
        return compile(source, path, "exec", dont_inherit=True), False

    def names_for(self, source: str, is_old: bool) -> dict[str, Any]:
        return {}


@functools.cache
def old_scripts() -> OldScripts:
    """How to read and run scripts."""
    if importlib.util.find_spec(_ENTRY.partition(".")[0]) is None:
        return _NewScripts()
    return cast(OldScripts, importlib.import_module(_ENTRY))
