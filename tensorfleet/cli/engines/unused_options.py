"""Options that an engine would ignore: a run that asks for them is refused, since it would not be what was asked for."""

from __future__ import annotations

from typing import NamedTuple

from tensorfleet.cli.engines.base import RunOptions, TaskResources


class _Option(NamedTuple):
    """An option of `tensorfleet run` that only some engines heed."""

    flag: str
    engines: tuple[str, ...]
    #: another way to the same end, for those who cannot use one of these engines
    instead: str = ""


_SCHEDULERS = ("ray", "slurm", "kubernetes")
_OF_RUN = {
    "cluster_file": _Option("--cluster", ("ssh",)),
    "submit": _Option("--submit", ("slurm",), "`ray job submit` submits a run to Ray"),
    "address": _Option("--address", ("ray", "kubernetes")),
    "time_limit": _Option("--time", ("slurm", "kubernetes"), "--timeout S stops any run after S seconds"),
    "engine_arguments": _Option("--engine-arg", _SCHEDULERS),
    "image": _Option("--image", ("kubernetes",)),
    "namespace": _Option("--namespace", ("kubernetes",)),
}
_OF_TASKS = {
    "cpus": _Option("--cpus-per-task", _SCHEDULERS),
    "memory_bytes": _Option("--memory", _SCHEDULERS),
}
_OURS = ("local", "ssh", *_SCHEDULERS)


def check_options(engine: str, options: RunOptions, resources: TaskResources) -> None:
    """Raises ValueError for an option that this engine does not have. Engines of other packages may use all."""
    if engine not in _OURS:
        return
    given = [option for name, option in _OF_RUN.items() if getattr(options, name)]
    given += [option for name, option in _OF_TASKS.items() if getattr(resources, name) is not None]
    for option in given:
        if engine not in option.engines:
            raise ValueError(_refusal(engine, option))


def _refusal(engine: str, option: _Option) -> str:
    *others, last = option.engines
    named = f"{', '.join(others)} and {last}" if others else last
    used = " or ".join(f"--on {name}" for name in option.engines)
    instead = f" {option.instead[0].upper()}{option.instead[1:]}." if option.instead else ""
    return f"{option.flag} is for {named}, and this run is on {engine}. Leave it out, or use {used}.{instead}"
