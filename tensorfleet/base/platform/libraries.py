"""`tf.load_op_library` and its relatives: shared objects with operations of TensorFlow, which cannot be loaded here."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, NoReturn

from tensorfleet.base import errors
from tensorfleet.base.naming import export, publish_module

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike

_WHAT_TO_DO = (
    "A shared object built for TensorFlow needs TensorFlow's own runtime. Write the operation with tf.py_func, or as docs/"
    "adding-an-op.md shows."
)


def _load(path: PathLike) -> NoReturn:
    """Always raises TensorFlow's error for a file that cannot be loaded, with the loader's reason."""
    try:
        ctypes.CDLL(os.fsdecode(path))
        reason = f"{os.fsdecode(path)}: it has no operations of this library"
    except OSError as e:
        reason = str(e)
    raise errors.NotFoundError(None, None, f"{reason}. {_WHAT_TO_DO}")


@export("load_op_library", "python.framework.load_library.load_op_library")
def load_op_library(library_filename: PathLike) -> NoReturn:
    """The operations of a shared object: always NotFoundError, with an alternative."""
    _load(library_filename)


@export("load_file_system_library", "python.framework.load_library.load_file_system_library")
def load_file_system_library(library_filename: PathLike) -> NoReturn:
    """The file systems of a shared object: always NotFoundError, with an alternative."""
    _load(library_filename)


@export("load_library", "python.framework.load_library.load_library")
def load_library(library_location: PathLike) -> None:
    """A shared object, or all in a folder: NotFoundError with an alternative; OSError when there is none."""
    if not os.path.exists(library_location):
        raise OSError(2, "The file or folder to load kernel libraries from does not exist.", library_location)
    location = os.fsdecode(library_location)
    paths = [location]
    if os.path.isdir(location):
        names = sorted(os.listdir(location))
        paths = [os.path.join(location, n) for n in names if n.endswith((".so", ".dylib", ".dll"))]
    for path in paths:
        _load(path)


# What is inside, by its public name.
publish_module("pywrap_tensorflow", "python.pywrap_tensorflow")
