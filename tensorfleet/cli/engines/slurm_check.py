"""`tensorfleet doctor --on slurm`: whether this machine reaches a Slurm, and what that has."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from tensorfleet.cli.doctor import Finding
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.slurm_allocation import is_inside, shares_in
from tensorfleet.cli.engines.slurm_commands import answer
from tensorfleet.cli.engines.slurm_node import NodeProbe
from tensorfleet.cli.engines.slurm_rooms import spoken_room

_COMMANDS = ("srun", "salloc", "sbatch", "scontrol", "scancel", "squeue", "sinfo")


def check(address: str | None = None) -> Iterator[Finding]:
    """What stands between this machine and a run on Slurm. There is no address: Slurm's own configuration says it."""
    missing = [name for name in _COMMANDS if shutil.which(name) is None]
    if missing:
        yield Finding(
            "slurm", f"no {', '.join(missing)} on the PATH", "bad", "install Slurm's client commands"
        )
        return
    try:
        yield Finding("slurm", answer(["sinfo", "--version"]).strip(), "ok")
        yield from _partitions()
        yield from _allocation()
    except EngineError as error:
        yield Finding("slurm", str(error), "bad")


def _partitions() -> Iterator[Finding]:
    lines = answer(["sinfo", "--noheader", "--format=%R|%a|%F|%C|%l"]).split()
    if not lines:
        yield Finding("partitions", "none", "bad", "ask the administrators for access")
    for line in lines:
        name, state, nodes, cpus, limit = line.split("|")
        idle, total = nodes.split("/")[1], nodes.split("/")[3]
        free, all_cpus = cpus.split("/")[1], cpus.split("/")[3]
        good = state == "up" and int(free) > 0
        yield Finding(
            "partition",
            f"{name} ({state}): {idle} of {total} nodes idle, {free} of {all_cpus} CPUs; at most {limit}",
            "ok" if good else "warning",
            "" if good else "a run waits there until there is room",
        )


def _allocation() -> Iterator[Finding]:
    if not is_inside(os.environ):
        yield Finding("allocation", "none: a run asks for one by salloc, or is submitted with --submit", "ok")
        return
    shares = shares_in(os.environ)
    if not shares:
        job = os.environ["SLURM_JOB_ID"]
        yield Finding("allocation", f"job {job} has ended", "bad", "leave its shell, or unset SLURM_JOB_ID")
        return
    yield Finding("allocation", f"job {shares[0].leader}: {spoken_room(shares)}", "ok")
    for share in shares:
        yield _python_of(NodeProbe(share))


def _python_of(probe: NodeProbe) -> Finding:
    node = probe.share.node
    try:
        there = probe.ask("python")
        shown = f"Python {there['python']} ({there['executable']})"
        if there["tensorfleet"] is None:
            return Finding(node, f"{shown} without tensorfleet", "bad", "pip install tensorfleet there")
        return Finding(node, f"{shown}, tensorfleet {there['tensorfleet']}", "ok")
    except EngineError as error:
        return Finding(node, str(error), "bad")
    finally:
        probe.hang_up()
        probe.end()
