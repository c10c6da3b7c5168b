"""What a run asks Slurm for: the options of its tasks, and the script of a batch job."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.slurm_commands import answer
from tensorfleet.cli.engines.slurm_rooms import memory_mb, whole_cpus

_NOTICE_SECONDS = 60  # before the time limit, and where Slurm takes the nodes for another job
# `wait` returns when a signal comes, so it is called until the launcher has ended.
_SCRIPT = """\
#!/bin/bash
# Written by tensorfleet. Submit it again with: sbatch {path}
{directives}

cd {directory} || exit
# {notice} s before the end Slurm sends SIGTERM to this shell, and the launcher lets the tasks save. A job that Slurm
# puts back into its queue runs the same command again, and the script goes on from its last checkpoint.
trap 'told=yes; kill -TERM "$launcher"' TERM
{command} &
launcher=$!
told=yes
while [ -n "$told" ]; do  # a signal interrupts the wait
    told=
    wait "$launcher"
    code=$?
done
exit "$code"
"""


@dataclass(frozen=True)
class Submitted:
    """A batch job that has been submitted."""

    job: str
    script: Path
    output: Path

    def spoken(self, name: str) -> str:
        """What to tell the user."""
        return (
            f"tensorfleet: submitted job {self.job}. Its batch script is {self.script}.\n"
            f"  See it:    tensorfleet ps (or: squeue -j {self.job})\n"
            f"  Follow it: tensorfleet logs {name} --follow (or: tail -F {self.output})\n"
            f"  Stop it:   tensorfleet stop {name} (or: scancel {self.job})"
        )


def request_options(wanted: Sequence[Wanted], options: RunOptions) -> list[list[str]]:
    """The options of salloc and sbatch. Tasks that need different things are parts of a heterogeneous job."""
    kinds: dict[TaskResources, list[Wanted]] = {}
    for one in wanted:
        kinds.setdefault(one.resources, []).append(one)
    parts = []
    for number, (resources, tasks) in enumerate(kinds.items()):
        first = number == 0
        name = [f"--job-name={options.name}"] if first else []
        limit = [f"--time={options.time_limit}"] if options.time_limit and first else []
        servers = sum(one.serves for one in tasks)
        spread = ["--spread-job"] if servers > 1 and servers == len(tasks) else []
        own = [word if word.startswith("-") else f"--{word}" for word in options.engine_arguments]
        parts.append([*name, *limit, f"--ntasks={len(tasks)}", *_options_of(resources), *spread, *own])
    return parts


def _options_of(resources: TaskResources) -> list[str]:
    cpus = max(whole_cpus(resources), 1)
    result = [f"--cpus-per-task={cpus}"]
    if resources.memory_bytes is not None:
        result.append(f"--mem-per-cpu={math.ceil(memory_mb(resources) / cpus)}M")
    if resources.gpus:
        result.append(f"--gpus-per-task={resources.gpus}")
    return result


def batch_script(
    command: Sequence[str], wanted: Sequence[Wanted], options: RunOptions, directory: Path, path: Path
) -> str:
    """A script for sbatch that runs the command in the nodes that the tasks need."""
    common = [
        f"--output={output_of(path)}",
        "--open-mode=append",  # a job that is put back into the queue goes on in the same file
        f"--signal=B:TERM@{_NOTICE_SECONDS}",
        "--requeue",
    ]
    blocks = []
    for number, part in enumerate(request_options(wanted, options)):
        words = [*part, "--no-kill", *(common if number == 0 else [])]
        blocks.append("\n".join(f"#SBATCH {_quoted(word)}" for word in words))
    return _SCRIPT.format(
        path=path,
        directives="\n#SBATCH hetjob\n".join(blocks),
        directory=shlex.quote(str(directory)),
        command=shlex.join(command),
        notice=_NOTICE_SECONDS,
    )


def output_of(script: Path) -> Path:
    """The file that a batch job prints to."""
    return script.with_suffix(".out")


def inner_command(command: Sequence[str], options: RunOptions) -> list[str]:
    """The command to run in the job: it does not submit again or ask for a job, and has the run's name."""
    begin = list(command).index("run") + 1
    rest = list(command[begin:])
    # The first are ours: options of the script come after its name.
    rest.remove("--submit")
    for flag, count in (
        ("--time", int(options.time_limit is not None)),
        ("--engine-arg", len(options.engine_arguments)),
    ):
        for _ in range(count):
            _remove(rest, flag)
    return [*command[:begin], f"--name={options.name}", *rest]


def _remove(words: list[str], flag: str) -> None:
    """Takes the first `--flag value` or `--flag=value` out."""
    for place, word in enumerate(words):
        if word == flag or word.startswith(f"{flag}="):
            del words[place : place + (2 if word == flag else 1)]
            return


def submit(
    command: Sequence[str], wanted: Sequence[Wanted], options: RunOptions, directory: Path
) -> Submitted:
    """Writes the batch script into the folder of the run's logs, and submits it."""
    folder = (options.log_dir or Path("runs") / options.name).absolute()
    path = folder / "slurm.sh"
    text = batch_script(inner_command(command, options), wanted, options, directory, path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise EngineError(
            f"Cannot write the batch script {path}: {error.strerror}. Choose another --log-dir."
        ) from None
    try:
        printed = answer(["sbatch", "--parsable", str(path)])
    except EngineError:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it has more than this
            folder.rmdir()
        raise
    return Submitted(printed.strip().split(";")[0], path, output_of(path))


def _quoted(word: str) -> str:
    """An option as sbatch reads it in a script."""
    return word if not set(word) & set(" \t'\"\\#") else shlex.quote(word)
