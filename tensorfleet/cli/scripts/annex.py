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

    def install(self) -> None: ...
    def uninstall(self) -> None: ...
    def install_script_loader(self) -> None: ...
    def parse(self, source: str, path: str) -> tuple[ast.Module, bool]: ...
    def compile_script(self, source: str, path: str) -> tuple[CodeType, bool]: ...
    def names_for(self, source: str, is_old: bool) -> dict[str, Any]: ...


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
