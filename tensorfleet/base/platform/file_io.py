"""`tensorflow.python.lib.io.file_io`: files by the names that libraries and tests use for them."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tensorfleet.base import errors
from tensorfleet.base import files as gfile
from tensorfleet.base.files import GFile
from tensorfleet.base.naming import publish
from tensorfleet.base.platform import gfile_names

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike

_PLACE = "python.lib.io.file_io"
for _name, _function in {
    "file_exists": gfile_names.Exists,
    "delete_file": gfile_names.Remove,
    "get_matching_files": gfile_names.Glob,
    "create_dir": gfile_names.MkDir,
    "recursive_create_dir": gfile_names.MakeDirs,
    "copy": gfile_names.Copy,
    "rename": gfile_names.Rename,
    "delete_recursively": gfile_names.DeleteRecursively,
    "is_directory": gfile_names.IsDirectory,
    "list_directory": gfile_names.ListDirectory,
    "walk": gfile_names.Walk,
    "stat": gfile_names.Stat,
    "file_exists_v2": gfile.exists,
    "delete_file_v2": gfile.remove,
    "get_matching_files_v2": gfile.glob,
    "create_dir_v2": gfile.mkdir,
    "recursive_create_dir_v2": gfile.makedirs,
    "copy_v2": gfile.copy,
    "rename_v2": gfile.rename,
    "delete_recursively_v2": gfile.rmtree,
    "is_directory_v2": gfile.isdir,
    "list_directory_v2": gfile.listdir,
    "walk_v2": gfile.walk,
    "stat_v2": gfile.stat,
}.items():
    publish(_function, f"{_PLACE}.{_name}")


F = TypeVar("F", bound=Callable[..., object])


def _export(function: F) -> F:
    publish(function, f"{_PLACE}.{function.__name__}")
    return function


@_export
def read_file_to_string(filename: PathLike, binary_mode: bool = False) -> Any:
    """All of a file, as text or as bytes."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


@_export
def write_string_to_file(filename: PathLike, file_content: str | bytes) -> None:
    """Writes a file with this content, replacing an existing one."""
    with GFile(filename, "w") as file:
        file.write(file_content)


@_export
def atomic_write_string_to_file(filename: PathLike, contents: str | bytes, overwrite: bool = True) -> None:
    """Makes a file of this content in one move: nobody sees a part of it."""
    temporary = f"{gfile.file_path(filename)}.tmp{uuid.uuid4().hex}"
    write_string_to_file(temporary, contents)
    try:
        gfile.rename(temporary, filename, overwrite)
    except errors.OpError:
        gfile.remove(temporary)
        raise


@_export
def filecmp(filename_a: PathLike, filename_b: PathLike) -> bool:
    """Whether two files have the same content."""
    if gfile.stat(filename_a).length != gfile.stat(filename_b).length:
        return False
    with GFile(filename_a, "rb") as a, GFile(filename_b, "rb") as b:
        while True:
            block = a.read(1 << 20)
            if block != b.read(1 << 20):
                return False
            if not block:
                return True


@_export
def file_crc32(filename: PathLike, block_size: int = 1 << 24) -> str:
    """A file's CRC-32, in hexadecimal."""
    crc = 0
    with GFile(filename, "rb") as file:
        while block := file.read(block_size):
            crc = zlib.crc32(block, crc)
    return hex(crc & 0xFFFFFFFF)
