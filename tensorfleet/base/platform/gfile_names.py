"""The older names of `tf.gfile`, whose arguments are called otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from tensorfleet.base import files as gfile
from tensorfleet.base.files import FileStatistics
from tensorfleet.base.naming import publish

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike


F = TypeVar("F", bound=Callable[..., object])


def _export(function: F) -> F:
    publish(function, f"gfile.{function.__name__}", f"python.platform.gfile.{function.__name__}")
    return function


@_export
def Exists(filename: PathLike) -> bool:
    """Whether there is a file or directory of that name."""
    return gfile.exists(filename)


@_export
def IsDirectory(dirname: PathLike) -> bool:
    """Whether it is a directory."""
    return gfile.isdir(dirname)


@_export
def MkDir(dirname: PathLike) -> None:
    """Makes a directory, whose parent must exist."""
    gfile.mkdir(dirname)


@_export
def MakeDirs(dirname: PathLike) -> None:
    """Makes a directory and those above it; one that exists is fine."""
    gfile.makedirs(dirname)


@_export
def Remove(filename: PathLike) -> None:
    """Deletes a file."""
    gfile.remove(filename)


@_export
def DeleteRecursively(dirname: PathLike) -> None:
    """Deletes a directory and everything in it."""
    gfile.rmtree(dirname)


@_export
def Copy(oldpath: PathLike, newpath: PathLike, overwrite: bool = False) -> None:
    """Copies a file."""
    gfile.copy(oldpath, newpath, overwrite)


@_export
def Rename(oldname: PathLike, newname: PathLike, overwrite: bool = False) -> None:
    """Renames or moves a file or directory."""
    gfile.rename(oldname, newname, overwrite)


@_export
def ListDirectory(dirname: PathLike) -> list[str]:
    """The names in a directory, in no order."""
    return gfile.listdir(dirname)


@_export
def Glob(filename: PathLike | Iterable[PathLike]) -> list[str]:
    """The paths that match a pattern, or any of several."""
    return gfile.glob(filename)


@_export
def Stat(filename: PathLike) -> FileStatistics:
    """Size, time of change, and whether it is a directory."""
    return gfile.stat(filename)


@_export
def Walk(top: PathLike, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files) for `top` and everything below it."""
    return gfile.walk(top, in_order)
