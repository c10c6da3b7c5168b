"""Where files are: on this machine, or behind a URL such as `gs://bucket/model`.

Everything that reads or writes files asks `file_system(path)`. Paths without a scheme are the operating system's. URLs go to
fsspec, which has drivers for most stores. All failures are `OSError`s with a number, whichever driver they come from.
"""

from __future__ import annotations

import contextlib
import errno
import glob as globbing
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol, cast

from tensorfleet.base import errors

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_EXTRA = "pip install 'tensorfleet[remote]'"
_PACKAGES = {
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("abfs", "abfss", "az"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
    "hdfs": "pyarrow",
    "webhdfs": "requests",
    "hf": "huggingface_hub",
}
_BY_KIND: list[tuple[type[OSError], int]] = [
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
]
_Failed = Callable[[OSError], None]
_Walked = Iterator[tuple[str, list[str], list[str]]]


class FileSystem(Protocol):
    """The operations on files that the library uses, named after those in `os` and `shutil`."""

    def open(self, path: str, mode: str, buffering: int = -1) -> BinaryIO:
        """Opens a file for bytes."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def isfile(self, path: str) -> bool:
        """Whether it is a file."""

    def isdir(self, path: str) -> bool:
        """Whether it is a directory."""

    def getsize(self, path: str) -> int:
        """The size of a file in bytes."""

    def mtime_ns(self, path: str) -> int:
        """When it was last changed, in nanoseconds."""

    def mkdir(self, path: str) -> None:
        """Makes a directory in one that is there."""

    def makedirs(self, path: str) -> None:
        """Makes a directory and those above it."""

    def remove(self, path: str) -> None:
        """Removes a file."""

    def rmdir(self, path: str) -> None:
        """Removes an empty directory."""

    def rmtree(self, path: str) -> None:
        """Removes a directory and everything in it."""

    def replace(self, source: str, target: str) -> None:
        """Renames a file, over one that is there."""

    def link(self, source: str, target: str) -> None:
        """Gives a file a second name, or makes a copy where that is not possible."""

    def copyfile(self, source: str, target: str) -> None:
        """Copies a file."""

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""

    def glob(self, pattern: str) -> list[str]:
        """The paths that match a pattern."""

    def walk(self, top: str, topdown: bool, failed: _Failed | None) -> _Walked:
        """The directories below one, as `os.walk` gives them."""

    def absolute(self, path: str) -> str:
        """The path from the root."""


class _Local:
    """The files of this machine."""

    def open(self, path: str, mode: str, buffering: int = -1) -> BinaryIO:
        return cast(BinaryIO, open(path, mode, buffering))  # all modes here are binary

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def isfile(self, path: str) -> bool:
        return os.path.isfile(path)

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path)

    def getsize(self, path: str) -> int:
        return os.path.getsize(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def remove(self, path: str) -> None:
        os.remove(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def mtime_ns(self, path: str) -> int:
        return os.stat(path).st_mtime_ns

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rmtree(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)

    def copyfile(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def glob(self, pattern: str) -> list[str]:
        return globbing.glob(pattern)

    def walk(self, top: str, topdown: bool, failed: _Failed | None) -> _Walked:
        return os.walk(top, topdown, failed)


class _Remote:
    """The files behind URLs, by fsspec's driver for their scheme."""

    def open(self, path: str, mode: str, buffering: int = -1) -> BinaryIO:
        if mode == "rb":
            with _driver(path) as (driver, place, _):
                return cast(BinaryIO, driver.open(place, "rb"))
        if mode == "xb" and self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return cast(BinaryIO, _Upload(path, appends=mode == "ab"))

    def exists(self, path: str) -> bool:
        with _driver(path) as (driver, place, _):
            return bool(driver.exists(place))

    def isfile(self, path: str) -> bool:
        with _driver(path) as (driver, place, _):
            return bool(driver.isfile(place))

    def isdir(self, path: str) -> bool:
        with _driver(path) as (driver, place, _):
            return bool(driver.isdir(place))

    def getsize(self, path: str) -> int:
        with _driver(path) as (driver, place, _):
            return int(driver.info(place)["size"] or 0)

    def mtime_ns(self, path: str) -> int:
        with _driver(path) as (driver, place, _):
            try:
                return int(driver.modified(place).timestamp() * 1e9)
            except NotImplementedError:  # a store that keeps no times
                return 0

    def mkdir(self, path: str) -> None:
        self.makedirs(path)  # stores make the directories above by themselves

    def makedirs(self, path: str) -> None:
        with _driver(path) as (driver, place, _):
            driver.makedirs(place, exist_ok=True)

    def remove(self, path: str) -> None:
        with _driver(path) as (driver, place, _):
            driver.rm_file(place)

    def rmdir(self, path: str) -> None:
        with _driver(path) as (driver, place, _):
            driver.rmdir(place)

    def rmtree(self, path: str) -> None:
        with _driver(path) as (driver, place, _):
            driver.rm(place, recursive=True)

    def replace(self, source: str, target: str) -> None:
        with _driver(source) as (driver, place, _):
            driver.mv(place, _place(target), recursive=driver.isdir(place))

    def link(self, source: str, target: str) -> None:
        self.copyfile(source, target)  # a store copies by itself, and has no second names

    def copyfile(self, source: str, target: str) -> None:
        with _driver(source) as (driver, place, _):
            driver.cp_file(place, _place(target))

    def listdir(self, path: str) -> list[str]:
        with _driver(path) as (driver, place, _):
            names = (os.path.basename(found.rstrip("/")) for found in driver.ls(place, detail=False))
            return [name for name in names if name]

    def glob(self, pattern: str) -> list[str]:
        with _driver(pattern) as (driver, place, root):
            return [root + found for found in driver.glob(place)]

    def walk(self, top: str, topdown: bool, failed: _Failed | None) -> _Walked:
        with _driver(top) as (driver, place, root):
            if not driver.isdir(place):
                missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), top)
                if failed is not None:
                    failed(missing)
                return
            entries = list(driver.walk(place, topdown=topdown))
        yield from ((root + folder, list(folders), list(files)) for folder, folders, files in entries)

    def absolute(self, path: str) -> str:
        return path


class _Upload:
    """A remote file that is being written: on this machine first, and sent as a whole when it is flushed or closed.

    Most stores cannot change an object, only replace it. A reader sees the old content or the new, never a part.
    """

    def __init__(self, path: str, appends: bool) -> None:
        self.name = path
        self._staged = tempfile.NamedTemporaryFile(prefix="tensorfleet-upload-")  # noqa: SIM115
        self._unsent = True  # also an empty file is made
        with _driver(path) as (driver, place, _):
            if appends and driver.exists(place):
                driver.get_file(place, self._staged.name)
                self._staged.seek(0, os.SEEK_END)

    def write(self, data: Any) -> int:
        self._unsent = True
        return self._staged.write(data)

    def tell(self) -> int:
        return self._staged.tell()

    def flush(self) -> None:
        self._staged.flush()
        if self._unsent:
            with _driver(self.name) as (driver, place, _):
                driver.put_file(self._staged.name, place)
            self._unsent = False

    def close(self) -> None:
        if self._staged.closed:
            return
        try:
            self.flush()
        finally:
            self._staged.close()

    def __enter__(self) -> _Upload:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()


_LOCAL, _REMOTE = _Local(), _Remote()


def scheme_of(path: str) -> str:
    """The scheme of a URL, empty for a path of this machine."""
    match = _URL.match(path)
    return "" if match is None else match[1].lower()


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return bool(scheme_of(path))


def file_system(path: str) -> FileSystem:
    """The file system that a path is in."""
    return _REMOTE if is_remote(path) else _LOCAL


def copy_file(source: str, target: str) -> None:
    """Copies a file, within a file system or from one to another."""
    here = file_system(source)
    if scheme_of(source) == scheme_of(target):
        here.copyfile(source, target)
        return
    with here.open(source, "rb") as read, file_system(target).open(target, "wb") as written:
        shutil.copyfileobj(read, written)


@contextlib.contextmanager
def _driver(path: str) -> Iterator[tuple[Any, str, str]]:
    """The driver for a URL, the place there, and the text that makes a URL of a place."""
    try:
        driver, place = _found(path)
        driver.invalidate_cache()  # other tasks write there too
        yield driver, place, path.rstrip("/").removesuffix(place.rstrip("/"))
    except OSError as e:
        if e.errno is not None:
            raise
        number = next((n for kind, n in _BY_KIND if isinstance(e, kind)), errno.EIO)
        reason = os.strerror(number) if number != errno.EIO else _first_line(e)
        raise OSError(number, reason, path) from e
    except NotImplementedError as e:
        raise OSError(errno.ENOTSUP, f"The driver cannot do this: {e}", path) from e
    except errors.OpError:
        raise
    except Exception as e:  # drivers raise errors of the libraries below them
        raise OSError(errno.EIO, f"{type(e).__name__}: {_first_line(e)}", path) from e


def _first_line(failure: Exception) -> str:
    return str(failure).partition("\n")[0]


def _place(path: str) -> str:
    return str(_found(path)[1])


def _found(path: str) -> tuple[Any, str]:
    scheme = scheme_of(path)
    package = _PACKAGES.get(scheme, "")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise _not_implemented(path, f"Install fsspec and its driver with `{_EXTRA} {package}`") from None
    try:
        driver, place = url_to_fs(path)
    except ImportError as e:
        known = f"Install its driver with `pip install {package}`" if package else f"fsspec says: {e}"
        raise _not_implemented(path, known) from None
    except ValueError as e:  # fsspec knows no such scheme
        raise _not_implemented(path, f"{e}. Copy it to a local or mounted path") from None
    return driver, place


def _not_implemented(path: str, advice: str) -> errors.UnimplementedError:
    scheme = scheme_of(path)
    return errors.UnimplementedError(
        None, None, f"File system scheme '{scheme}' not implemented (file: '{path}'). {advice}."
    )
