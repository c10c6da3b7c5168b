"""`tf.gfile`: files and directories, local or behind a URL, with TensorFlow's errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from tensorfleet.base import errors
from tensorfleet.base.file_systems import copy_file, file_system, scheme_of
from tensorfleet.base.naming import export, publish
from tensorfleet.base.platform.compat import as_bytes, as_text

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike

_MODES = ("r", "w", "a", "r+", "w+", "a+")
_BY_ERRNO: dict[int | None, Callable[..., errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
}


def file_path(name: PathLike) -> str:
    """A path as `file_system` takes it: of this machine without `file://`, else the URL."""
    return as_text(os.fspath(name)).removeprefix("file://")


@contextmanager
def errors_about(path: str) -> Iterator[None]:
    """Turns an error of the operating system into the one TensorFlow raises for it."""
    try:
        yield
    except OSError as e:
        kind = _BY_ERRNO.get(e.errno, errors.UnknownError)
        raise kind(None, None, f"{path}; {e.strerror or e}") from None


class GFile:
    """A file, opened when it is first read or written. Text as str; with "b" in its mode, bytes.

    Sizes and positions count bytes. One that is open for both reads from its start what was written and
    flushed; "r+" and "w+" replace what there was at their first write, "a+" appends.
    """

    def __init__(self, name: PathLike, mode: str = "r") -> None:
        self._name = name
        self._mode = mode
        self._binary = "b" in mode
        self._plain = mode.replace("b", "")
        if self._plain not in _MODES:
            raise errors.invalid("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._reads = self._plain in ("r", "r+", "w+", "a+")
        self._writes = self._plain != "r"
        self._reader: IO[bytes] | None = None
        self._writer: IO[bytes] | None = None

    @property
    def name(self) -> PathLike:
        """The path it was made with."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode it was made with."""
        return self._mode

    def _reading(self) -> IO[bytes]:
        if not self._reads:
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        if self._reader is None:
            self._reader = self._open("rb")
        return self._reader

    def _writing(self) -> IO[bytes]:
        if not self._writes:
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        if self._writer is None:
            self._writer = self._open("ab" if self._plain[0] == "a" else "wb")
        return self._writer

    def _open(self, mode: str) -> IO[bytes]:
        path = file_path(self._name)
        with errors_about(path):
            return file_system(path).open(path, mode)

    def _given(self, data: bytes) -> Any:
        return data if self._binary else as_text(data)

    def size(self) -> int:
        """The size on disk, in bytes."""
        return stat(self._name).length

    def write(self, file_content: str | bytes) -> None:
        """Appends text or bytes."""
        file = self._writing()
        with errors_about(str(self._name)):
            file.write(as_bytes(file_content))

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes, or all that is left."""
        file = self._reading()
        with errors_about(str(self._name)):
            return self._given(file.read(n))

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves to `offset` from the start (`whence` 0), from here (1) or from the end (2)."""
        if offset is None and position is None:
            raise TypeError("seek(): offset argument required")
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        if whence not in (0, 1, 2):
            raise errors.invalid(f"Invalid whence argument: {whence}. Use 0, 1 or 2.")
        file = self._reading()
        try:
            file.seek(offset if offset is not None else position or 0, whence)
        except (OSError, ValueError) as e:
            raise errors.invalid(f"Cannot seek in {self._name!s}: {e}") from None

    def readline(self) -> Any:
        """The next line with its end, or nothing at the end of the file."""
        return self._given(self._reading().readline())

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return [self._given(line) for line in self._reading().readlines()]

    def tell(self) -> int:
        """The position, in bytes."""
        return (self._reading() if self._reads else self._writing()).tell()

    def seekable(self) -> bool:
        """Always true."""
        return True

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def __iter__(self) -> GFile:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration()
        return line

    def next(self) -> Any:
        """The next line; StopIteration at the end."""
        return self.__next__()

    def flush(self) -> None:
        """Hands written bytes to the operating system."""
        if self._writer is not None:
            with errors_about(str(self._name)):
                self._writer.flush()

    def close(self) -> None:
        """Closes the file; using it again opens it again."""
        opened = (self._reader, self._writer)
        self._reader = self._writer = None
        for file in opened:
            if file is not None:
                with errors_about(str(self._name)):
                    file.close()

    def __del__(self) -> None:
        if hasattr(self, "_writer"):
            self.close()


publish(GFile, "gfile.GFile", "gfile.Open", "gfile.FastGFile", "io.gfile.GFile")
publish(
    GFile,
    *(f"python.platform.gfile.{n}" for n in ("GFile", "Open", "FastGFile")),
    "python.lib.io.file_io.FileIO",
)


class FileStatistics(NamedTuple):
    """Size, time of change and kind of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


@export("io.gfile.exists")
def exists(path: PathLike) -> bool:
    """Whether there is a file or directory of that name."""
    path = file_path(path)
    with errors_about(path):
        return file_system(path).exists(path)


@export("io.gfile.isdir")
def isdir(path: PathLike) -> bool:
    """Whether it is a directory."""
    path = file_path(path)
    with errors_about(path):
        return file_system(path).isdir(path)


@export("io.gfile.mkdir")
def mkdir(path: PathLike) -> None:
    """Makes a directory, whose parent must exist."""
    path = file_path(path)
    with errors_about(path):
        if not file_system(path).isdir(path):
            file_system(path).mkdir(path)


@export("io.gfile.makedirs")
def makedirs(path: PathLike) -> None:
    """Makes a directory and those above it; one that exists is fine."""
    path = file_path(path)
    with errors_about(path):
        file_system(path).makedirs(path)


@export("io.gfile.remove")
def remove(path: PathLike) -> None:
    """Deletes a file."""
    path = file_path(path)
    with errors_about(path):
        file_system(path).remove(path)


@export("io.gfile.rmtree")
def rmtree(path: PathLike) -> None:
    """Deletes a directory and everything in it."""
    path = file_path(path)
    with errors_about(path):
        if not (file_system(path).exists(path) or os.path.islink(path)):
            raise errors.NotFoundError(None, None, f"{path} not found")
        file_system(path).rmtree(path)


@export("io.gfile.copy")
def copy(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Copies a file."""
    source, target = file_path(src), file_path(dst)
    _check_free(target, overwrite)
    with errors_about(source):
        copy_file(source, target)


def _check_free(target: str, overwrite: bool) -> None:
    if not overwrite and exists(target):
        raise errors.AlreadyExistsError(None, None, f"file already exists: {target}")


@export("io.gfile.rename")
def rename(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Renames or moves a file or directory."""
    source, target = file_path(src), file_path(dst)
    if scheme_of(source) != scheme_of(target):
        raise errors.UnimplementedError(
            None,
            None,
            f"Renaming {source} to {target} not implemented: they are in two file systems. Copy it, then delete it.",
        )
    _check_free(target, overwrite)
    with errors_about(source):
        file_system(source).replace(source, target)


@export("io.gfile.listdir")
def listdir(path: PathLike) -> list[str]:
    """The names in a directory, in no order."""
    path = file_path(path)
    if not isdir(path):
        raise errors.NotFoundError(None, None, f"Could not find directory {path}")
    with errors_about(path):
        return file_system(path).listdir(path)


@export("io.gfile.glob")
def glob(pattern: PathLike | Iterable[PathLike]) -> list[str]:
    """The paths that match a pattern, or any of several."""
    patterns = [pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern
    matches: list[str] = []
    for path in map(file_path, patterns):
        with errors_about(path):
            matches += sorted(file_system(path).glob(path))
    return matches


@export("io.gfile.stat")
def stat(path: PathLike) -> FileStatistics:
    """Size, time of change, and whether it is a directory."""
    path = file_path(path)
    files = file_system(path)
    with errors_about(path):
        return FileStatistics(files.getsize(path), files.mtime_ns(path), files.isdir(path))


@export("io.gfile.walk")
def walk(
    top: PathLike, topdown: bool = True, onerror: Callable[[errors.OpError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files) for `top` and everything below it."""

    def report(e: OSError) -> None:
        if onerror is not None:
            onerror(errors.NotFoundError(None, None, f"Could not find directory {e.filename}"))

    path = file_path(top)
    with errors_about(path):
        yield from file_system(path).walk(path, topdown, report)


def whole_file(name: PathLike) -> bytes:
    """The content of a file."""
    path = file_path(name)
    with errors_about(path), file_system(path).open(path, "rb") as file:
        return file.read()
