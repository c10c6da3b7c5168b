"""Measure what an engine costs: to the first step of a run, in a step, and from the last step to the end of the command.

    make bench
    .venv/bin/python benchmarks/engines.py --rounds 3 ray slurm

Each measurement is a run of its own, with one ps and one worker on this machine; the engines take turns. Ray and Slurm are
clusters of this machine alone, started before the clock and ended after it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from measuring import ENVIRONMENT, Job, take_turns
from report import HERE, LEAST_ROUNDS, Row, conditions, duration, grid, save, write_between
from run import parser_of

sys.path.insert(0, str(HERE.parent))  # the clusters of the tests
LOCAL = "local"
ABOUT = {
    LOCAL: "processes of this machine",
    "ssh": "the same through a shell in place of ssh: there need be no ssh server here",
    "ray": "a Ray cluster of one node",
    "slurm": "an allocation of a Slurm cluster of two nodes",
}
_MOST = 1.05  # how long the fastest step may take, as a multiple of the fastest local one
_LONGEST = 180.0


@contextlib.contextmanager
def options_on(engine: str, folder: Path) -> Iterator[tuple[list[str], Mapping[str, str]]]:
    """The options of a run on an engine, and the variables by which its commands find the cluster."""
    if engine == "ssh":
        path = folder / "cluster.yaml"
        host = f"{{address: 127.0.0.1, via: sh -c, python: {sys.executable}, directory: {folder}, first_port: 23450}}"
        path.write_text(f"hosts:\n  here: {host}\njobs:\n  ps: {{here: 1}}\n  worker: {{here: 1}}\n")
        yield ["--cluster", str(path)], {}
    elif engine == "ray":
        from tests.engines.ray_cluster import ray_cluster

        with ray_cluster(1) as cluster:
            yield ["--on", "ray", "--address", cluster.address, "--ps", "1", "--workers", "1"], {}
    elif engine == "slurm":
        from tests.engines.slurm_cluster import slurm_cluster

        with slurm_cluster() as slurm:
            yield ["--on", "slurm", "--ps", "1", "--workers", "1"], slurm.environment
    else:
        yield ["--ps", "1", "--workers", "1"], {}


def measure(engine: str) -> dict[str, float]:
    """One run: seconds from the command to the end of the first step, of a step, and from the last to the command's end."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        try:
            options, variables = stack.enter_context(options_on(engine, folder))
        except AssertionError as error:  # of the clusters of the tests
            raise RuntimeError(f"the cluster did not start: {error}") from None
        paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
        given = {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "TENSORFLEET_STATE": str(folder / "state"),
        }
        command = [sys.executable, "-m", "tensorfleet", "run", *options, "--dashboard", "off"]
        began = time.time()
        done = subprocess.run(
            [*command, str(HERE / "engine_task.py")],
            cwd=folder,
            env={**ENVIRONMENT, **given, **variables},
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        ended = time.time()
    told = re.search(r"\{.*\}", done.stdout)
    if done.returncode or told is None:
        raise RuntimeError(done.stdout + done.stderr)
    found = json.loads(told[0])
    return {"start": found["first"] - began, "seconds": found["seconds"], "end": ended - found["last"]}


def can_run(engine: str) -> bool:
    """Whether this machine has the engine."""
    if engine == "ray":
        return importlib.util.find_spec("ray") is not None
    return engine != "slurm" or shutil.which("srun") is not None


def against_local(row: Row, engine: str) -> float | None:
    """The fastest step over the fastest local one: on a busy machine medians tell more of the other work."""
    return min(row.seen[engine]) / min(row.seen[LOCAL]) if row.seen[engine] and row.seen[LOCAL] else None


def engines_table(rows: Mapping[str, Row], engines: Sequence[str], markdown: bool) -> str:
    """A line for each engine: medians, but for the fastest step."""
    head = [
        "engine",
        "to the first step",
        "a step",
        "fastest",
        "of the local one",
        "after the last step",
        "what it is",
    ]
    steps = rows["seconds"]
    lines = []
    for engine in engines:
        shown = {key: row.shown(engine) or "failed" for key, row in rows.items()}
        ratio = None if engine == LOCAL else against_local(steps, engine)
        fastest = duration(min(steps.seen[engine])) if steps.seen[engine] else ""
        compared = "" if ratio is None else f"{ratio:.2f}"
        lines.append(
            [engine, shown["start"], shown["seconds"], fastest, compared, shown["end"], ABOUT[engine]]
        )
    return grid(head, lines, markdown)


def where_from(rounds: int) -> str:
    """Where and with what the numbers were found."""
    versions = [f"ray {importlib.metadata.version('ray')}"] if can_run("ray") else []
    if can_run("slurm"):
        told = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=False, timeout=30)
        versions.append(told.stdout.strip())
    return f"{conditions(rounds).removesuffix('.')}; {', '.join(versions)}."


def main() -> int:
    parser = parser_of("Measure the engines of `tensorfleet run` against processes of this machine.", ABOUT)
    flags = parser.parse_args()
    if unknown := [name for name in flags.works if name not in ABOUT]:
        parser.error(f"there is no engine {', '.join(unknown)}; choose from {', '.join(ABOUT)}")
    if flags.write and (flags.works or flags.rounds < LEAST_ROUNDS):
        parser.error(f"--write needs every engine and at least {LEAST_ROUNDS} rounds")
    wanted = [name for name in ABOUT if name in (*flags.works, LOCAL) or not flags.works]
    engines = [name for name in wanted if can_run(name)]
    for name in set(wanted) - set(engines):
        print(f"{name} is not on this machine: make engines installs it.", file=sys.stderr)
    about = {"start": "to the first step", "seconds": "a step", "end": "after the last step"}
    rows = {key: Row(key, text) for key, text in about.items()}
    take_turns("engines", [Job("run", engines, rows, measure)], flags.rounds)
    where = where_from(flags.rounds)
    save("engines", list(rows.values()), where)
    print(f"{engines_table(rows, engines, False)}\n\n{where}")
    ratios = {name: against_local(rows["seconds"], name) for name in engines}
    slow = [name for name, ratio in ratios.items() if ratio is None or ratio > _MOST]
    if slow:
        print(
            f"A step is more than {_MOST - 1:.0%} slower, or failed, on: {', '.join(slow)}.", file=sys.stderr
        )
    if flags.write:
        write_between("engines table", f"{engines_table(rows, engines, True)}\n\n{where}")
    return int(flags.check and bool(slow))


if __name__ == "__main__":
    sys.exit(main())
