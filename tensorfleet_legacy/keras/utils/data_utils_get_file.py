"""`tf.keras.utils.get_file`: a file from elsewhere, kept where it is found again."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path
from typing import Any


def get_file(
    fname: str,
    origin: str,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: str | None = None,
) -> str:
    """The path of a file from `origin`, fetched unless it is in `~/.keras` already, whole and as its hash says.

    With `untar` or `extract`, what an archive has inside is put beside it.
    """
    folder = keras_folder(cache_dir) / cache_subdir
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{fname}.tar.gz" if untar else fname)
    expected = file_hash or md5_hash
    algorithm = "md5" if md5_hash and not file_hash else hash_algorithm
    if not (path.exists() and (expected is None or _is_as(path, expected, algorithm))):
        _fetch(origin, path)
        if expected is not None and not _is_as(path, expected, algorithm):
            raise ValueError(
                f"The file of {origin} has not the hash that was given: {expected}. It may be damaged or another one."
            )
    if untar:
        if not (folder / fname).exists():
            _extract(path, folder, "tar")
        return str(folder / fname)
    if extract:
        _extract(path, folder, archive_format)
    return str(path)


def keras_folder(cache_dir: str | None = None) -> Path:
    """Where Keras keeps files: `~/.keras`, or what KERAS_HOME says."""
    result = (
        Path(cache_dir).expanduser()
        if cache_dir
        else Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    )
    beside = result if os.path.isdir(result) else result.parent
    return result if os.access(beside, os.W_OK) else Path(tempfile.gettempdir()) / ".keras"


def _fetch(origin: str, path: Path) -> None:
    """Gets a file; what came only in part is not left there."""
    print("Downloading data from", origin)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with urllib.request.urlopen(origin, timeout=60) as source, partial.open("wb") as target:
            shutil.copyfileobj(source, target)
        partial.replace(path)
    except OSError as e:
        raise RuntimeError(f"URL fetch failure on {origin}: {e}. Put the file at {path} yourself.") from e
    finally:
        partial.unlink(missing_ok=True)


def _is_as(path: Path, expected: str, algorithm: str) -> bool:
    kind = "sha256" if algorithm == "sha256" or (algorithm == "auto" and len(expected) == 64) else "md5"
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == expected.lower()


def _extract(path: Path, folder: Path, kinds: Any) -> bool:
    """Unpacks an archive of one of some kinds; whether it was one."""
    wanted = ("tar", "zip") if kinds == "auto" else (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
    if "tar" in wanted and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        return True
    if "zip" in wanted and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        return True
    return False
