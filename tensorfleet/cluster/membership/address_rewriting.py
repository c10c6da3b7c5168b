"""Clusters written into scripts: addresses of other machines, when all tasks have been started on this one.

`tensorfleet run` tells its tasks where they are. A script that names its author's machines is then given those
addresses instead, task by task; what can be listened at here is left as it is. So is one that adds its own ports to
the addresses it was told.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

from tensorfleet.base import settings
from tensorfleet.cluster.membership.shutdown import end_script
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.transport.connection import (
    HANDSHAKE_SECONDS,
    addresses,
    canonical,
    is_loopback,
    split_address,
)

if TYPE_CHECKING:
    from tensorfleet.base.protos import ServerDef

PLACED, SERVES, MADE = settings.PLACED.name, settings.SERVES.name, settings.MADE.name
_MORE_TASKS_EXIT_CODE = 75  # EX_TEMPFAIL of sysexits.h: the launcher starts the script again, with all tasks
_MAX_LOCAL_TASKS = 16  # that the launcher starts on one machine without being told to
_moved: dict[str, str] = {}  # from the script's addresses to where the tasks are


def here(cluster: ClusterSpec, job: str, index: int) -> ClusterSpec:
    """The cluster with those of its tasks that cannot be at their addresses here where the launcher has put them."""
    placed = json.loads(settings.PLACED() or "{}")
    jobs = {
        name: {i: cluster.task_address(name, i) for i in cluster.task_indices(name)} for name in cluster.jobs
    }
    own = jobs[job][index]
    for name, tasks in jobs.items():
        for i, address in enumerate(placed.get(name, [])):
            if i in tasks and (_has_port_too_many(tasks[i], address) or not _is_here(tasks[i])):
                _moved[tasks[i]] = address
                tasks[i] = address
    known = {canonical(address) for where in placed.values() for address in where}
    for name, tasks in jobs.items():
        started = len(placed.get(name, []))
        # A task whose address is known was started, if as one of another job.
        if placed and len(tasks) > started and not known.issuperset(map(canonical, tasks.values())):
            _ask_for_all(cluster)
            if index == 0:
                _say_what_is_missing(name, len(tasks), started)
    if jobs[job][index] != own and not _has_port_too_many(own, jobs[job][index]):
        _say(
            f"{own}, where the script has {job}/{index}, is not this machine: it is at {jobs[job][index]} in this run."
        )
    return ClusterSpec(jobs)


def take_task_to_serve(server_def: ServerDef) -> bool:
    """Makes a server of the parameter server that this process was started as, where the script makes another task of it.

    Such a script has no code for parameter servers: in TensorFlow another program is started for them.
    """
    job, _, index = settings.SERVES().partition("/")
    cluster = ClusterSpec(server_def.cluster)
    if server_def.job_name == job or job not in cluster.jobs or int(index) not in cluster.task_indices(job):
        return False
    _say(f"the script makes every task a {server_def.job_name}: this one, {job}/{index}, only serves.")
    server_def.job_name, server_def.task_index = job, int(index)
    return True


def end_if_needless(cluster: ClusterSpec, job: str, index: int) -> None:
    """Ends this process when it was started as a task that the script's cluster does not have.

    That is a parameter server where it has none, or one more of a job than it has; or any, where it has other jobs.
    """
    placed = json.loads(settings.PLACED() or "{}")
    if not 0 <= index < len(placed.get(job, [])):
        return
    if cluster.jobs and not placed.keys() - {"ps"} <= set(cluster.jobs):
        _ask_for_all(cluster)
    if job == "ps" and cluster.jobs and job not in cluster.jobs:
        _say(f"the script's cluster has {' and '.join(cluster.jobs)}, and no ps: this task is not needed.")
        end_script(0)
    if (
        job in cluster.jobs
        and all(cluster.job_tasks(job))
        and index > max(cluster.task_indices(job), default=-1)
    ):
        count = cluster.num_tasks(job)
        _say(f"the script's cluster has {count} of job {job}: this task, {job}/{index}, is not needed.")
        end_script(0)


def moved(target: str) -> str:
    """A session's target, at the address where its task is."""
    scheme, separator, address = target.partition("://")
    return f"{scheme}://{_moved[address]}" if separator and address in _moved else target


def _ask_for_all(cluster: ClusterSpec) -> None:
    """Ends this process, where its launcher starts all tasks of the script's cluster then: it had to guess how many."""
    counts = {job: cluster.num_tasks(job) for job in cluster.jobs}
    path = settings.MADE()
    if path and sum(counts.values()) <= _MAX_LOCAL_TASKS:
        own = f"{path}.{os.getpid()}"
        try:
            with open(own, "w") as file:
                json.dump(counts, file)
            os.replace(own, path)
        except OSError as error:
            _say(f"the launcher cannot be told of the script's cluster: {path}: {error.strerror}.")
            return
        end_script(_MORE_TASKS_EXIT_CODE)


def _say_what_is_missing(job: str, wanted: int, started: int) -> None:
    """Says that a script's cluster has more tasks than were started: whoever needs them waits."""
    option = {"ps": f"--ps {wanted}", "worker": f"--workers {wanted}"}.get(job, f"--job {job}={wanted}")
    _say(
        f"the script's cluster has {wanted} tasks of job {job}, and {started} of them were started: use {option}."
    )


def _has_port_too_many(address: str, placed: str) -> bool:
    """Whether a script has put a port of its own behind what it was told: it expects names of machines alone."""
    return address.startswith(f"{placed}:")


def _say(text: str) -> None:
    print(f"tensorfleet: {text}", file=sys.stderr)


@functools.cache
def _is_here(address: str) -> bool:
    """Whether a socket of this machine can listen at an address."""
    host, _ = split_address(address)
    if is_loopback(host):
        return True
    try:
        family, _, _, _, at = addresses(host, 0, HANDSHAKE_SECONDS)[0]
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.bind(at)
    except OSError:
        return False
    return True
