"""`tf.sysconfig`: where a C++ compiler would find TensorFlow. Ours is Python: there is nothing to link with."""

from __future__ import annotations

import os

from tensorfleet.base import packages
from tensorfleet.base.naming import export, publish

CXX11_ABI_FLAG = 1
MONOLITHIC_BUILD = 0
publish(CXX11_ABI_FLAG, "sysconfig.CXX11_ABI_FLAG", "CXX11_ABI_FLAG")
publish(MONOLITHIC_BUILD, "sysconfig.MONOLITHIC_BUILD", "MONOLITHIC_BUILD")

_ROOT = os.path.dirname(packages.FOLDERS[0])


@export("sysconfig.get_lib")
def get_lib() -> str:
    """The folder this package lies in."""
    return _ROOT


@export("sysconfig.get_include")
def get_include() -> str:
    """The folder C++ headers would lie in."""
    return os.path.join(_ROOT, "include")


@export("sysconfig.get_compile_flags")
def get_compile_flags() -> list[str]:
    """The compiler's flags for custom operations."""
    return [f"-I{get_include()}", f"-D_GLIBCXX_USE_CXX11_ABI={CXX11_ABI_FLAG}"]


@export("sysconfig.get_link_flags")
def get_link_flags() -> list[str]:
    """The linker's flags for custom operations: none, as there is no library to link with."""
    return []
