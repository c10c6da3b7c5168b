"""Syntax trees of a script and of the modules beside it, read without running them."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

from tensorfleet.cli.scripts.annex import old_scripts
from tensorfleet.cli.scripts.packages import home_of

# Scripts define their flags and cluster themselves, or in a module that is rarely further away.
_IMPORT_DEPTH = 3


def name_of(call: ast.Call) -> str:
    """The name of what is called: `f` in `f()` and in `a.b.f()`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def modules(script: Path, depth: int = _IMPORT_DEPTH, seen: set[Path] | None = None) -> Iterator[ast.Module]:
    """The script's syntax tree, and those of the modules beside it that it imports, `depth` imports away."""
    seen = set() if seen is None else seen
    script = script.resolve()
    if script in seen or not script.is_file():
        return
    seen.add(script)
    try:
        with tokenize.open(script) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old spellings Python tells where the script runs, if asked
            tree, _ = old_scripts().parse(file.read(), str(script))
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    yield tree
    if depth == 0:
        return
    folders = dict.fromkeys((script.parent, home_of(script)[1]))
    for name in imported_names(tree):
        for path in (folder.joinpath(*name.split(".")) for folder in folders):
            for candidate in (path.with_suffix(".py"), path / "__init__.py"):
                yield from modules(candidate, depth - 1, seen)


def nodes_of(script: Path) -> list[ast.AST]:
    """Every node of a script and of the modules beside it."""
    return [node for tree in modules(script) for node in ast.walk(tree)]


def imported_names(tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports, and what it imports from them, which may be modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            prefix = f"{node.module}." if node.module else ""
            yield from (prefix + alias.name for alias in node.names if alias.name != "*")


def text_of(node: ast.AST | None) -> str:
    """The text that is written out at a place, or none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
