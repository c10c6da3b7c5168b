"""Retention of exports: functions from lists of paths to the sorted paths that remain."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from tensorfleet.base.naming import find
from tensorfleet.base.platform.compat import as_str_any


class Path(NamedTuple):
    """Something stored at a path, and the version that its name tells."""

    path: str
    export_version: int | None


Keep = Callable[[list[Path]], list[Path]]


def largest_export_versions(n: int) -> Keep:
    """Keeps the `n` latest versions."""

    def keep(paths: list[Path]) -> list[Path]:
        versions = [(path.export_version, place) for place, path in enumerate(paths) if path[1] is not None]
        return sorted(paths[place] for _, place in sorted(versions, reverse=True)[:n])

    return keep


def one_of_every_n_export_versions(n: int) -> Keep:
    """Keeps the latest of the versions 0 to n, of n+1 to 2n, and so on."""

    def keep(paths: list[Path]) -> list[Path]:
        latest: dict[int, Path] = {}
        for path in sorted(p for p in paths if p.export_version is not None):
            version = path.export_version or 0
            part = (version - 1) // n if version else 0
            latest[part] = max(latest.get(part, path), path, key=lambda p: p.export_version or 0)
        return sorted(latest.values())

    return keep


def mod_export_version(n: int) -> Keep:
    """Keeps the versions that `n` divides."""
    return lambda paths: sorted(path for path in paths if path.export_version % n == 0)  # type: ignore[operator]


def union(lf: Keep, rf: Keep) -> Keep:
    """Keeps what one of two functions keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Keep) -> Keep:
    """Keeps what another function does not."""
    return lambda paths: sorted(set(paths) - set(f(paths)))


def get_paths(base_dir: str, parser: Callable[[Path], Path | None]) -> list[Path]:
    """The paths in a folder with what `parser` finds in their names; those for which it returns None are left out."""
    folder = as_str_any(base_dir)
    names = (as_str_any(name).rstrip("/") for name in find("gfile.ListDirectory")(folder))
    read = (parser(Path(os.path.join(folder, name), None)) for name in names)
    return sorted(path for path in read if path)
