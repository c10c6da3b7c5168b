"""The older names of `tf.gfile`, whose arguments are called otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.base import files as gfile
from tensorfleet.base.files import FileStatistics
from tensorfleet.base.naming import publish


def _export(function: Callable) -> Callable:
    publish(function, f"gfile.{function.__name__}", f"python.platform.gfile.{function.__name__}")
    return function


@_export
def Exists(filename: Any) -> bool:
    """Whether there is a file or directory of that name."""
    return gfile.exists(filename)


@_export
def IsDirectory(dirname: Any) -> bool:
    """Whether it is a directory."""
    return gfile.isdir(dirname)


@_export
def MkDir(dirname: Any) -> None:
    """Makes a directory, whose parent must exist."""
    gfile.mkdir(dirname)


@_export
def MakeDirs(dirname: Any) -> None:
    """Makes a directory and those above it; one that exists is fine."""
    gfile.makedirs(dirname)


@_export
def Remove(filename: Any) -> None:
    """Deletes a file."""
    gfile.remove(filename)


@_export
def DeleteRecursively(dirname: Any) -> None:
    """Deletes a directory and everything in it."""
    gfile.rmtree(dirname)


@_export
def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file."""
    gfile.copy(oldpath, newpath, overwrite)


@_export
def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames or moves a file or directory."""
    gfile.rename(oldname, newname, overwrite)


@_export
def ListDirectory(dirname: Any) -> list[str]:
    """The names in a directory, in no order."""
    return gfile.listdir(dirname)


@_export
def Glob(filename: Any) -> list[str]:
    """The paths that match a pattern, or any of several."""
    return gfile.glob(filename)


@_export
def Stat(filename: Any) -> FileStatistics:
    """Size, time of change, and whether it is a directory."""
    return gfile.stat(filename)


@_export
def Walk(top: Any, in_order: bool = True) -> Iterator:
    """(directory, its directories, its files) for `top` and everything below it."""
    return gfile.walk(top, in_order)
