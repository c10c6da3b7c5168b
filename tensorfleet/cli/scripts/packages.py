"""Scripts that are modules of a package: what `python -m trainer.task` runs, and `trainer/task.py` is a path to."""

from __future__ import annotations

import re
from pathlib import Path

_RELATIVE = re.compile(r"^[ \t]*from\s+\.+[\w.]*\s+import\b", re.MULTILINE)


def file_of(module: str) -> Path | None:
    """The file of a module that is below the working directory: `trainer.task` is trainer/task.py."""
    path = Path(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__main__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def home_of(script: Path) -> tuple[str, Path]:
    """The package that a script is in, by its whole name, and the folder from which that is imported.

    The name is empty where there is none.
    """
    folder = script.resolve().parent
    names: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), folder


def places_of(script: Path, source: str) -> tuple[str, list[str]]:
    """The package that a script is run as a module of, if it is, and from where it imports.

    A script that imports from its own package by dots can only be a module. Another one in a package is run by its
    path, and finds its package too.
    """
    folder = script.resolve().parent
    package, above = home_of(script)
    if _RELATIVE.search(source):
        return (package, [str(above)]) if package else (folder.name, [str(folder.parent)])
    return "", [str(folder)] if above == folder else [str(folder), str(above)]
