"""What a pod is given of this machine: a small script with the files beside it, and certificates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# A ConfigMap has at most 1 MiB, with its names.
_MAX_BYTES = 900_000
_SKIPPED_FOLDERS = {"__pycache__", "runs", "node_modules", "build", "dist"}
_SKIPPED_ENDINGS = (".pyc", ".so", ".log")
_TLS_FILES = ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")


def shipped_files(script: Path, log_dir: Path | None = None) -> dict[str, bytes]:
    """The script and the files beside it, by their path. Raises ValueError if there is too much for a ConfigMap."""
    root = shipped_root(script)
    files: dict[str, bytes] = {}
    total = 0
    for path in _files(root, log_dir):
        total += path.stat().st_size
        if total > _MAX_BYTES:
            raise ValueError(
                f"Cannot ship {root}: it has more than {_MAX_BYTES // 1000} KB, and a ConfigMap has no room for that. Put the "
                "files into the image, or into a volume (--engine-arg volume=claim:NAME:/path)."
            )
        files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files


def shipped_root(script: Path) -> Path:
    """The folder that a script needs: its own, or the one that its package is in."""
    folder = script.resolve().parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def keys_for(paths: list[str]) -> dict[str, str]:
    """The key of each file in a ConfigMap, which knows no folders."""
    return {path: f"file-{number}" for number, path in enumerate(sorted(paths))}


def tls_files(folder: Path) -> dict[str, bytes]:
    """The certificates in a folder of `tensorfleet certs`, without the authority's key. Raises ValueError."""
    files = {name: (folder / name).read_bytes() for name in _TLS_FILES if (folder / name).is_file()}
    if "ca.pem" not in files:
        raise ValueError(
            f"{folder} has no ca.pem. Create certificates with `tensorfleet certs {folder} HOST...`."
        )
    return files


def _files(root: Path, log_dir: Path | None) -> Iterator[Path]:
    logs = log_dir.resolve() if log_dir else None
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _SKIPPED_FOLDERS and here / name != logs
        )
        for name in sorted(names):
            path = here / name
            if not name.startswith(".") and not name.endswith(_SKIPPED_ENDINGS) and path.is_file():
                yield path
