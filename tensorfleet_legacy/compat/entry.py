"""Scripts for Python 2 and for old NumPy, SciPy and protobuf: the functions that the launcher uses of this folder.

`tensorfleet/cli/scripts/annex.py` loads this module.
"""

from __future__ import annotations

from typing import Any

from tensorfleet_legacy.compat import (
    numpy_functions,
    numpy_methods,
    numpy_names,
    protobuf_messages,
    python2_scripts,
    scipy_functions,
)
from tensorfleet_legacy.compat.python2 import parse
from tensorfleet_legacy.compat.python2_scripts import compile_script, names_for

__all__ = ["compile_script", "install", "install_script_loader", "names_for", "parse", "uninstall"]

_names: list[tuple[Any, str]] = []  # of NumPy and Python, there while this is installed


def install() -> None:
    """From here on NumPy, SciPy, protobuf and Python's library have what scripts of TensorFlow 1 expect of them."""
    protobuf_messages.LOADER.install()
    scipy_functions.install()
    _names[:] = numpy_names.put_back()
    numpy_methods.put_back()
    numpy_functions.widen()


def uninstall() -> None:
    """Undoes `install`; modules that are imported already keep what they have."""
    protobuf_messages.LOADER.uninstall()
    scipy_functions.uninstall()
    numpy_names.take_away(_names)
    numpy_methods.take_away()
    numpy_functions.narrow()


def install_script_loader() -> None:
    """From here on the modules of scripts may be Python 2."""
    python2_scripts.install()
