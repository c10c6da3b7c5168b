"""Which tasks a run has: as asked for on the command line, else as the script needs them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensorfleet.cli import plan as planning
from tensorfleet.cli.scripts.environment import evaluates_beside, makes_servers


@dataclass(frozen=True)
class Asked:
    """How many tasks of each job the user asks for; None where nothing is said."""

    ps: int | None = None
    workers: int | None = None
    chief: bool = False
    evaluator: bool | None = None
    jobs: dict[str, int] = field(default_factory=dict)  # by other names
    #: the run begins with so many workers, and takes more, up to `workers`, as there is room
    least_workers: int | None = None
    #: it takes more only when the user says so: `tensorfleet scale`
    scaled_by_hand: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether the tasks of the cluster are left to the script."""
        return self.ps is None and self.workers is None and not self.chief and not self.jobs


@dataclass(frozen=True)
class Counts:
    """How many tasks of each job a run has."""

    #: the jobs of the cluster
    jobs: dict[str, int]
    evaluators: int = 0
    #: how many workers have to be there at the beginning, if that is fewer than there may be
    least_workers: int | None = None


def counts_for(wishes: planning.Wishes, asked: Asked) -> Counts | None:
    """The tasks of a run; None where the script runs once, told nothing of clusters. Raises ValueError for none."""
    script = Path(wishes.script)
    jobs = _counts(wishes, asked)
    if jobs is None:
        return None
    jobs = _adapted(script, jobs)
    if not any(jobs.values()):
        raise ValueError("The run has no tasks. Add for example --workers 1.")
    if not any(count for job, count in jobs.items() if job not in planning.SERVER_JOBS):
        raise ValueError(
            "The run has only parameter servers. Add for example --workers 1. To start one server of a cluster, pass "
            f"its arguments to the script: tensorfleet run {wishes.script} --job_name=ps --task_index=0 ..."
        )
    evaluators = int(_has_evaluator(script, asked, jobs))
    least = asked.least_workers
    if least is not None and asked.workers is not None:
        least = max(least - (asked.workers - jobs.get("worker", 0)), 0)  # one may have become the chief
    return Counts({job: count for job, count in jobs.items() if count}, evaluators, least)


def counts_in_file(wishes: planning.Wishes, asked: Asked, cluster: Path, tasks: Mapping[str, int]) -> Counts:
    """The tasks that a cluster file names. Raises ValueError if others are asked for as well."""
    if not asked.is_nothing:
        raise ValueError(f"{cluster} defines the tasks. Leave out --ps, --workers, --chief and --job.")
    jobs = {job: count for job, count in tasks.items() if job != "evaluator"}
    evaluators = tasks.get("evaluator", 0)
    if not evaluators and asked.evaluator is not False and _evaluates_nothing(Path(wishes.script), jobs):
        _note(
            f"{wishes.script} calls train_and_evaluate, but no task evaluates. Add a job evaluator with one task to "
            f"{cluster}, or pass --no-evaluator."
        )
    return Counts(jobs, evaluators)


def _counts(wishes: planning.Wishes, asked: Asked) -> dict[str, int] | None:
    """How many tasks of each job; None where the script runs once, told nothing of clusters."""
    script = Path(wishes.script)
    if asked.is_nothing:
        is_clustered = planning.is_told_by_arguments(wishes) or planning.is_for_clusters(script)
        if (not is_clustered and not asked.evaluator) or planning.is_one_task(wishes):
            return None
        counts = planning.jobs_asked_for(wishes)
        _note(f"{script} is written for a cluster. Starting {spoken(counts)}.")
        return counts
    if planning.starts_its_tasks(wishes):
        how = (
            "creates the tasks of its cluster itself, and runs once"
            if makes_servers(script)
            else "starts no server, and runs once. Start the servers that it connects to yourself"
        )
        _note(f"{script} {how}.")
        return None
    others = 1 if asked.workers is None and not asked.jobs else asked.workers or 0
    ps = asked.ps
    if ps is None and not asked.jobs:
        ps = planning.servers_of(script)
        if ps and (others or asked.chief):
            _note(f"{script} has a job ps. Starting {spoken({'ps': ps})}.")
    wanted = {"ps": ps or 0, "chief": int(asked.chief), "worker": others, **asked.jobs}
    counts = planning.with_jobs_of_its_own(script, wanted)
    if counts != wanted:
        _note(f"{script} has other jobs. Starting {spoken(counts)}.")
    return counts


def _adapted(script: Path, wanted: dict[str, int]) -> dict[str, int]:
    """The tasks to start of those that are wanted: a script may have no servers, or a chief of its own."""
    counts = planning.without_servers(script, wanted)
    if counts != wanted:
        _note(f"{script} has one job and no parameter servers. Starting workers only.")
    wanted, counts = counts, planning.with_chief(script, counts)
    if counts != wanted:
        job = "master" if counts.get("master") else "chief"
        how = "The first worker takes this role" if counts["worker"] < wanted["worker"] else "Starting it too"
        _note(f"{script} has a job {job}. {how}.")
    return counts


def _has_evaluator(script: Path, asked: Asked, counts: dict[str, int]) -> bool:
    if asked.evaluator is not None:
        return asked.evaluator
    if not _evaluates_nothing(script, counts):
        return False
    _note(f"{script} calls train_and_evaluate. Starting an evaluator too (--no-evaluator for none).")
    return True


def _evaluates_nothing(script: Path, counts: dict[str, int]) -> bool:
    """Whether a script's `train_and_evaluate` would only train: in a cluster, a task of its own has to evaluate.

    A single task does both, and so does a master.
    """
    return (
        sum(counts.values()) > 1
        and not {"master", "evaluator"} & {job for job, count in counts.items() if count}
        and evaluates_beside(script)
    )


def spoken(counts: dict[str, int]) -> str:
    """Jobs with the number of their tasks, and how to ask for others."""
    plural = [f"{n} {job}{'s' if n > 1 and job == 'worker' else ''}" for job, n in counts.items()]
    options = {"ps": "--ps", "worker": "--workers", "chief": "--chief"}
    choose = dict.fromkeys(options.get(job, "--job") for job in counts)
    return f"{' and '.join(plural)} (choose with {' and '.join(choose)})"


def _note(text: str) -> None:
    print(f"tensorfleet: {text}", file=sys.stderr)
