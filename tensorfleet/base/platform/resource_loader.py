"""`tf.resource_loader`: files that lie beside the calling script."""

from __future__ import annotations

import os
import sys

from tensorfleet.base import packages
from tensorfleet.base.files import file_path
from tensorfleet.base.naming import export


def _folder_of_caller() -> str:
    return os.path.dirname(os.path.abspath(sys._getframe(2).f_code.co_filename))  # noqa: SLF001 - Python's own


@export("resource_loader.get_data_files_path")
def get_data_files_path() -> str:
    """The directory of the calling script."""
    return _folder_of_caller()


@export("resource_loader.get_path_to_datafile")
def get_path_to_datafile(path: str) -> str:
    """A path relative to the calling script, made absolute."""
    return os.path.join(_folder_of_caller(), path)


@export("resource_loader.get_root_dir_with_all_resources")
def get_root_dir_with_all_resources() -> str:
    """The directory of the calling script."""
    return _folder_of_caller()


@export("resource_loader.load_resource")
def load_resource(path: str) -> bytes:
    """The content of a file inside this package's directory."""
    with open(file_path(os.path.join(packages.FOLDERS[0], path)), "rb") as f:
        return f.read()


@export("resource_loader.readahead_file_path")
def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """The path itself: local files need no hint."""
    return path
