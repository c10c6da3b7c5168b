"""`import tensorflow` means TensorFleet: how scripts run without a change.

`install()` puts two finders in place. The first answers every import of `tensorflow` and of what is under it
with TensorFleet's own modules, whether or not TensorFlow is installed. The last one says which part is missing
where Python would only say that it cannot import a name.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from tensorfleet.base import settings
from tensorfleet.base.naming import INSTEAD
from tensorfleet.cli.scripts import any_messages
from tensorfleet.cli.scripts.annex import old_scripts

_US = "tensorfleet"
_THEM = "tensorflow"
# The packages in which TensorFlow 1.15 keeps its parts; scripts import from them too.
_PARTS = ("tensorflow_core", "tensorflow_estimator")
# Holds a package `tensorflow` that installs the alias: for the processes a script starts itself.
_STAND_IN = Path(__file__).parents[1] / "stand_in"


def install() -> None:
    """From here on `import tensorflow` gives TensorFleet, in this process and in those it starts."""
    if any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(_THEM)
    if loaded is not None and not str(getattr(loaded, "__file__", "")).startswith(str(_STAND_IN)):
        raise RuntimeError("tensorflow is already imported. Install TensorFleet's alias first.")
    sys.meta_path.insert(0, _AliasFinder())
    old_scripts().install()
    sys.meta_path.append(_LastFinder())
    any_messages.install()
    if settings.CONSISTENCY():
        from tensorfleet.fleet.consistency import of_run

        of_run.install()
    sys.path.insert(0, str(_STAND_IN))  # processes that multiprocessing spawns get this path, not PYTHONPATH
    paths = [str(_STAND_IN), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def uninstall() -> None:
    """Undoes `install`; modules that are imported already keep what they have."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, (_AliasFinder, _LastFinder))]
    old_scripts().uninstall()
    sys.path[:] = [p for p in sys.path if p != str(_STAND_IN)]
    any_messages.uninstall()
    if settings.CONSISTENCY():
        from tensorfleet.fleet.consistency import of_run

        of_run.uninstall()
    for name in [n for n in sys.modules if n.partition(".")[0] in (_THEM, *_PARTS) or _is_ours_as_keras(n)]:
        del sys.modules[name]
    rest = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p not in ("", str(_STAND_IN))]
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)


# Where Keras's own package had modules that are elsewhere in TensorFlow.
_KERAS_PLACES = {
    "backend.tensorflow_backend": "backend",
    "legacy.interfaces": "",
    "objectives": "losses",
    "utils.training_utils": "utils",
}


def _keras(name: str) -> str:
    """The place in TensorFlow of a module of the package `keras`: a public one, or one inside."""
    inner = name.partition(".")[2]
    inner = _KERAS_PLACES.get(inner, inner)
    public = f"{_THEM}.keras.{inner}".rstrip(".")
    inside = f"{_THEM}.python.keras.{inner}"
    return inside if resolve(public) is None and resolve(inside) is not None else public


@functools.cache
def _stands_for_keras() -> bool:
    """Whether `import keras` is TensorFleet's too: where Keras 2 is not installed. Keras 3 is not for TensorFlow 1."""
    try:
        return int(importlib.metadata.version("keras").split(".")[0]) > 2
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return importlib.machinery.PathFinder.find_spec("keras") is None


def resolve(name: str) -> ModuleType | None:
    """TensorFleet's module for a name such as `tensorflow.contrib.slim`; None when there is none."""
    parts = name.split(".")[1:]
    if parts[:1] == ["_api"]:  # where TensorFlow 2 keeps its public names
        parts = parts[2:]
    if parts[:2] == ["compat", "v1"]:
        parts = parts[2:]
    module: ModuleType = importlib.import_module(_US)
    for part in parts:
        child = getattr(module, part, None)
        if not isinstance(child, ModuleType):
            # A package may show a function by the name of the module that has it, as it does with `arg_scope`.
            child = sys.modules.get(f"{module.__name__}.{part}")
        if child is None:
            return None
        module = child
    return module


def _is_ours_as_keras(name: str) -> bool:
    module = sys.modules[name]
    return name.partition(".")[0] == "keras" and getattr(module, "__name__", "").startswith(f"{_US}.")


class _AliasFinder(MetaPathFinder):
    """Answers for `tensorflow`, its parts and everything below them, and for `keras` where nobody else does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, inner = fullname.partition(".")
        if package == "keras":
            return _spec(fullname, _keras(fullname)) if _stands_for_keras() else None
        if package in (_THEM, *_PARTS):
            return _spec(fullname, f"{_THEM}.{inner}".rstrip("."))
        return None


class _LastFinder(MetaPathFinder):
    """Explains imports below TensorFleet that nobody else found; `from tensorflow.x import y` ends here."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_US + "."):
            return None
        inner = fullname.partition(".")[2]
        return _spec(fullname, _keras(inner) if inner.startswith("keras.") else fullname)


def _spec(fullname: str, place: str) -> ModuleSpec:
    """How the module at a place in TensorFlow is loaded under a name."""
    module = resolve(place)
    if module is None:
        helper = _beside_script(place)
        if helper is not None:
            return helper
        raise _missing(place)
    spec = ModuleSpec(fullname, _Loader(module), is_package=True)
    spec.submodule_search_locations = []
    return spec


# The folders of TensorFlow's tests whose files take something from each other.
_TEST_FOLDERS = ("kernel_tests", "distributions", "linalg", "proto", "random", "signal")


def _beside_script(place: str) -> ModuleSpec | None:
    """What a test of TensorFlow's own tree takes from other tests: the file of that tree, or the one beside the script."""
    *path, name = _THEM, *place.split(".")[1:]
    if "kernel_tests" not in path + [name] and "test" not in name:
        return None
    script = Path(sys.argv[0]).resolve()
    roots = [folder.parent for folder in script.parents if folder.name == _THEM]
    folders = [root.joinpath(*path, name) for root in roots]
    for place_of in (*folders, script.parent / name):
        if place_of.with_suffix(".py").is_file():
            return importlib.util.spec_from_file_location(place, place_of.with_suffix(".py"))
    if any(folder.is_dir() for folder in folders) or name in _TEST_FOLDERS:
        package = ModuleSpec(place, None, is_package=True)
        package.submodule_search_locations = [str(f) for f in folders]
        return package
    return None


class _Loader(Loader):
    """Gives a module that exists already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Python puts a module that it loads into the package around it, in place of a function of the same name. Those
        # that have one are there before anyone asks.
        inside = f"{self._module.__name__}."
        for full, hidden in tuple(sys.modules.items()):
            name = full.removeprefix(inside)
            if full.startswith(inside) and "." not in name and vars(self._module).get(name) is not hidden:
                sys.modules.setdefault(f"{spec.name}.{name}", hidden)
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


def _missing(name: str) -> ImportError:
    part = name.split(".", 1)[1]
    whole = part.removeprefix("python.").removeprefix("contrib.").split(".")[0]
    instead = INSTEAD.get(whole, "docs/compatibility.md lists what it has")
    return ImportError(
        f"TensorFleet has no tensorflow.{part}. {instead}; "
        "tensorfleet run --no-alias uses an installed TensorFlow instead.",
        name=f"{_THEM}.{part}",
    )
