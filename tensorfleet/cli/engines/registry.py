"""The engines by name: ours, and those that other packages bring along."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import cast

from tensorfleet.cli.doctor import EngineCheck
from tensorfleet.cli.engines.base import EngineError, RunEngine, RunOptions

#: where other packages register a class, as `mpi = "my_package.mpi:MpiEngine"`
ENTRY_POINTS = "tensorfleet.engines"
_OURS = {
    "local": "tensorfleet.cli.engines.local:ProcessEngine",
    "ssh": "tensorfleet.cli.engines.ssh:SshEngine",
    "ray": "tensorfleet.cli.engines.ray:RayEngine",
    "slurm": "tensorfleet.cli.engines.slurm:SlurmEngine",
    "kubernetes": "tensorfleet.cli.engines.kubernetes:KubernetesEngine",
}


def names() -> list[str]:
    """The engines that `--on` knows."""
    return [*_OURS, *sorted(entry.name for entry in entry_points(group=ENTRY_POINTS))]


def make_engine(name: str, options: RunOptions) -> RunEngine:
    """The engine of that name for one run. Raises `EngineError`, or `ValueError` for a mistake in its configuration."""
    return _class_of(name)(options)


def check_of(name: str) -> EngineCheck:
    """What `tensorfleet doctor --on NAME` runs: the function `check` beside the engine's class."""
    module = importlib.import_module(_class_of(name).__module__)
    check = getattr(module, "check", None)
    if check is None:
        raise EngineError(f"{name} has no checks of its own. Run tensorfleet doctor without --on.")
    return cast(EngineCheck, check)


def _class_of(name: str) -> Callable[[RunOptions], RunEngine]:
    # Imported only when it is used: an engine may need a library that is not installed.
    if name in _OURS:
        module, _, attribute = _OURS[name].partition(":")
        return cast(Callable[[RunOptions], RunEngine], getattr(importlib.import_module(module), attribute))
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return cast(Callable[[RunOptions], RunEngine], entry.load())
    known = names()
    near = difflib.get_close_matches(name, known, 1)
    meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    raise EngineError(f"No engine is named {name!r}. {meant}")
