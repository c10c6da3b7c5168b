"""Names of Kubernetes objects: valid, short enough, and the same only for the same task of the same run.

A DNS label has up to 63 lower-case letters, digits and dashes. A Job's pods carry five random characters behind its
name, and a second attempt at a task carries its number, so that a task's own name has to be shorter still.
"""

from __future__ import annotations

import hashlib
import re

PORT = 2222
_MAX_RUN = 34
_MAX_JOB = 14
_HASH_DIGITS = 8


def run_label(name: str) -> str:
    """The name of a run as a DNS label that begins with a letter, as a Service needs it."""
    label = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    label = label if label[:1].isalpha() else f"run-{label}".strip("-")
    return _told_apart(label, name, _MAX_RUN, "-")


def task_name(run: str, job: str, index: int) -> str:
    """The name of a task, which is its pod's host name: digits-worker-1."""
    # A job has no dash in it: `a-b` task 0 of run x, and `b` task 0 of run x-a would share a name.
    label = _told_apart(re.sub("[^a-z0-9]+", "", job.lower()), job, _MAX_JOB, "")
    return f"{run}-{label}-{index}"


def address_of(run: str, job: str, index: int) -> str:
    """Where a task listens: the name that the run's Service gives its pod."""
    return f"{task_name(run, job, index)}.{run}:{PORT}"


def attempt_name(task: str, attempt: int, kind: str = "r") -> str:
    """The name of a task's Job: a later attempt does not wait until an earlier one is deleted."""
    return task if attempt == 0 and kind == "r" else f"{task}-{kind}{attempt}"


def _told_apart(label: str, name: str, limit: int, dash: str) -> str:
    """A label that differs from that of any other name: as it is if nothing was changed, else with a hash."""
    if label == name and len(label) <= limit:
        return label
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    kept = label[: limit - _HASH_DIGITS - len(dash)].rstrip("-")
    return f"{kept}{dash}{digest}"
