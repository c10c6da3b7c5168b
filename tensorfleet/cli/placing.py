"""From the number of tasks to tasks with places: what an engine is asked for, and the plan that follows from its answer."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tensorfleet.cli import plan as planning
from tensorfleet.cli.engines.base import TaskResources, Wanted
from tensorfleet.cli.moves import unplaced
from tensorfleet.cli.plan import Place
from tensorfleet.cli.task_counts import Counts

_EVALUATOR = "evaluator"
_ELASTIC = "worker"


def token_for(script: Path, is_local: bool) -> str:
    """The secret of a run: the user's, or a new one. Raises ValueError for one that has several lines."""
    given = os.environ.get(planning.TOKEN, "").strip()
    if "\n" in given:
        raise ValueError(f"{planning.TOKEN} has several lines. Set a token of one line.")
    # Without one, a script with addresses of its own uses this machine's: so do clients that people start.
    if is_local and planning.is_known_to_clients(script):
        return given
    return given or secrets.token_hex(32)


def wanted_for(counts: Counts, resources: TaskResources) -> list[Wanted]:
    """A request for each task, the servers first. GPUs are for those that compute, and the rest is for every task."""
    order = sorted(counts.jobs, key=lambda job: job not in planning.SERVER_JOBS)
    jobs = [(job, counts.jobs[job]) for job in order] + [(_EVALUATOR, counts.evaluators)]
    return [_wanted(job, index, resources) for job, count in jobs for index in range(count)]


def wanted_alone(resources: TaskResources) -> Wanted:
    """The request for a script that runs once."""
    return _wanted(planning.ALONE_JOB, 0, resources)


def _wanted(job: str, index: int, resources: TaskResources) -> Wanted:
    serves = job in planning.SERVER_JOBS
    return Wanted(job, index, serves, replace(resources, gpus=0) if serves else resources)


def needed_at_once(counts: Counts, wanted: list[Wanted]) -> list[Wanted]:
    """The tasks that a run cannot begin without."""
    if counts.least_workers is None:
        return wanted
    return [one for one in wanted if one.job != _ELASTIC or one.index < counts.least_workers]


def elastic_jobs(counts: Counts) -> frozenset[str]:
    """The jobs whose tasks may come and go."""
    return frozenset() if counts.least_workers is None else frozenset({_ELASTIC})


def tasks_at(
    wishes: planning.Wishes, counts: Counts, places: Mapping[str, Place], token: str
) -> list[planning.Task]:
    """The tasks of a run at their places. Those without one have an address that leads nowhere yet."""
    cluster = {
        job: [places.get(f"{job}/{i}") or unplaced(job, i) for i in range(count)]
        for job, count in counts.jobs.items()
    }
    evaluators = [
        replace(places.get(f"{_EVALUATOR}/{i}") or Place(""), address="") for i in range(counts.evaluators)
    ]
    return planning.plan(wishes, cluster, token, evaluators)
