"""What `--engine-arg` says to the Ray engine, and which folder travels to the nodes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensorfleet.cli.engines.base import EngineError, Wanted
from tensorfleet.cli.scripts.packages import home_of

_KNOWN = "resources.NAME, label_selector.LABEL, runtime_env.KEY, directory and autoscaling"
# Where the launcher has an option of its own.
_ELSEWHERE = {
    "num_cpus": "--cpus-per-task",
    "num_gpus": "--gpus-per-worker",
    "memory": "--memory",
    "max_restarts": "--restart",
    "address": "--address",
    "env_vars": "--env",
}
_SKIPPED = {"__pycache__", "node_modules"}  # and hidden folders


@dataclass
class RayOptions:
    """The engine arguments of a run."""

    #: custom resources and labels: for every task by "", for a job's by its name
    resources: dict[str, dict[str, float]] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    runtime_env: dict[str, Any] = field(default_factory=dict)
    #: a folder that every node has, in which the tasks start; nothing is sent then
    directory: str | None = None
    #: the cluster adds nodes when tasks wait
    autoscaling: bool = False

    def resources_of(self, wanted: Wanted) -> dict[str, float]:
        """The custom resources that a task needs."""
        return {**self.resources.get("", {}), **self.resources.get(wanted.job, {})}

    def labels_of(self, wanted: Wanted) -> dict[str, str]:
        """The labels that a task's node must have."""
        return {**self.labels.get("", {}), **self.labels.get(wanted.job, {})}


def read_options(arguments: Sequence[str]) -> RayOptions:
    """The options in `KEY=VALUE` texts. A job's name before the key, as in `ps.resources.disk=1`, is for that job."""
    result = RayOptions()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key:
            raise EngineError(f"--engine-arg {argument!r} does not have the form KEY=VALUE.")
        _take(result, key, value)
    return result


def _take(result: RayOptions, key: str, value: str) -> None:
    first, _, rest = key.partition(".")
    if key == "directory":
        result.directory = value
    elif key == "autoscaling":
        result.autoscaling = value.lower() not in ("0", "false", "no")
    elif first == "runtime_env" and rest:
        _set(result.runtime_env, rest, value)
    else:
        job = "" if first in ("resources", "label_selector") else first
        kind, _, name = (key if not job else rest).partition(".")
        if kind == "resources" and name:
            result.resources.setdefault(job, {})[name] = _number(key, value)
        elif kind == "label_selector" and name:
            result.labels.setdefault(job, {})[name] = value
        else:
            instead = f"Use {_ELSEWHERE[key]}." if key in _ELSEWHERE else f"It knows {_KNOWN}."
            raise EngineError(f"The Ray engine has no argument {key!r}. {instead}")


def _number(key: str, value: str) -> float:
    try:
        amount = float(value)
    except ValueError:
        amount = -1.0
    if not amount > 0:
        raise EngineError(f"--engine-arg {key}={value}: {value!r} is not an amount. Give a number above 0.")
    return amount


def _set(runtime_env: dict[str, Any], key: str, value: str) -> None:
    """One entry of Ray's `runtime_env`; the variables of `env_vars` one by one, lists with commas or as JSON."""
    name, _, inner = key.partition(".")
    if inner:
        runtime_env.setdefault(name, {})[inner] = value
    elif value[:1] in ("[", "{"):
        try:
            runtime_env[name] = json.loads(value)
        except ValueError as error:
            raise EngineError(f"--engine-arg runtime_env.{key}: {value} is not valid JSON: {error}") from None
    elif name in ("pip", "uv", "py_modules", "excludes"):
        runtime_env[name] = value.split(",")
    else:
        runtime_env[name] = value


@dataclass(frozen=True)
class Shipped:
    """The folder that travels, and how a task calls its script there."""

    folder: Path
    script: str

    def command(self, command: Sequence[str], script: Path) -> list[str]:
        """A task's command, with the script as it is called where the folder has been unpacked."""
        return [self.script if word == str(script) else word for word in command]


def shipped(script: Path, working_dir: str | None = None) -> Shipped:
    """The script's folder: for a module the one that its package is in. `working_dir` names another one."""
    if not script.is_file():
        raise EngineError(f"No file {script} in {os.getcwd()}. Give the path of the script.")
    folder = Path(working_dir).resolve() if working_dir else home_of(script)[1]
    if not script.resolve().is_relative_to(folder):
        raise EngineError(
            f"The script {script} is not in {folder}, the folder that is sent to Ray. "
            "Name a folder that has it: --engine-arg runtime_env.working_dir=FOLDER."
        )
    return Shipped(folder, str(script.resolve().relative_to(folder)))


def is_larger(folder: Path, limit: int) -> bool:
    """Whether a folder has more bytes than this, as far as a look at it tells what Ray would send."""
    total = 0
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue
            if total > limit:
                return True
    return False
