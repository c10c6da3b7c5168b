"""`import tensorflow` means TensorFleet: how scripts run without a change.

`install()` puts two finders in place. The first answers every import of `tensorflow` and of what is under it
with TensorFleet's own modules, whether or not TensorFlow is installed. The last one says which part is missing
where Python would only say that it cannot import a name.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from tensorfleet.api import INSTEAD
from tensorfleet.launch.old_names import put_back, take_away

_US = "tensorfleet"
_THEM = "tensorflow"
# Holds a package `tensorflow` that installs the alias: for the processes a script starts itself.
_STAND_IN = Path(__file__).parent / "stand_in"
_old_names: list[tuple[ModuleType, str]] = []  # of numpy and Python, there while the alias is


def install() -> None:
    """From here on `import tensorflow` gives TensorFleet, in this process and in those it starts."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(_THEM)
    if loaded is not None and not str(getattr(loaded, "__file__", "")).startswith(str(_STAND_IN)):
        raise RuntimeError("tensorflow is imported already: install TensorFleet's alias before that.")
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_LastFinder())
    _old_names[:] = put_back()
    paths = [str(_STAND_IN), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def uninstall() -> None:
    """Undoes `install`; modules that are imported already keep what they have."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, (_Finder, _LastFinder))]
    take_away(_old_names)
    for name in [n for n in sys.modules if n == _THEM or n.startswith(_THEM + ".")]:
        del sys.modules[name]
    rest = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p not in ("", str(_STAND_IN))]
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)


def resolve(name: str) -> ModuleType | None:
    """TensorFleet's module for a name such as `tensorflow.contrib.slim`; None when there is none."""
    parts = name.split(".")[1:]
    if parts[:2] == ["compat", "v1"]:
        parts = parts[2:]
    module: ModuleType = importlib.import_module(_US)
    for part in parts:
        child = getattr(module, part, None)
        if not isinstance(child, ModuleType):
            return None
        module = child
    return module


class _Finder(MetaPathFinder):
    """Answers for `tensorflow` and everything below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _THEM and not fullname.startswith(_THEM + "."):
            return None
        module = resolve(fullname)
        if module is None:
            raise _missing(fullname)
        spec = ModuleSpec(fullname, _Loader(module), is_package=True)
        spec.submodule_search_locations = []
        return spec


class _LastFinder(MetaPathFinder):
    """Explains imports below TensorFleet that nobody else found; `from tensorflow.x import y` ends here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(_US + "."):
            raise _missing(fullname)
        return None


class _Loader(Loader):
    """Gives a module that exists already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _missing(name: str) -> ImportError:
    part = name.split(".", 1)[1]
    whole = part.removeprefix("python.").split(".")[0]
    instead = INSTEAD.get(whole, "docs/compatibility.md lists what it has")
    return ImportError(
        f"TensorFleet has no tensorflow.{part}. {instead}; "
        "tensorfleet run --no-alias uses an installed TensorFlow instead.",
        name=f"{_THEM}.{part}",
    )
