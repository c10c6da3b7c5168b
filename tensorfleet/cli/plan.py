"""Plans the tasks of a run, each with its command and environment. Decides only; starts nothing."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from tensorfleet.base import settings
from tensorfleet.cli.scripts.bootstrap import CLUSTER_FILE, LAUNCHER
from tensorfleet.cli.scripts.environment import (
    asks_for_ps,
    asks_who_it_is,
    has_master,
    makes_cluster,
    names_task,
    needs_chief,
    of_task,
    refuses_flags,
    variables_of,
)
from tensorfleet.cli.scripts.flags import (
    Flag,
    cluster_in,
    has_one_job,
    job_names,
    other_jobs,
    positions_of,
    reads_places,
    reads_tf_config,
)
from tensorfleet.cli.scripts.hostnames import HOST, hosts_in
from tensorfleet.cli.scripts.uses import (
    addresses_by_default,
    has_chief_of_its_own,
    starts_copies,
    told_by_flags,
)

TOKEN, PLACED, SERVES = settings.TOKEN.name, settings.PLACED.name, settings.SERVES.name
INSPECT = settings.INSPECT.name
MADE, STAYS = settings.MADE.name, settings.STAYS.name
NOTICE = settings.NOTICE_SECONDS.name
LOG_FORMAT = settings.LOG_FORMAT.name
#: of the standbys of durable parameter servers, which are no tasks of the cluster
STANDBY_JOB = "ps-standby"
SERVER_JOBS = ("ps", STANDBY_JOB)
ALONE_JOB = "main"


class TaskNode(Protocol):
    """A machine that an engine starts tasks on."""

    @property
    def python(self) -> str:
        """The command of its Python, which has TensorFleet."""

    @property
    def shown(self) -> str:
        """Its name, for people."""


@dataclass(frozen=True)
class Task:
    """One process of a run."""

    job: str
    index: int
    address: str | None
    command: list[str]
    environment: dict[str, str]  # in addition to the launcher's own
    host: TaskNode | None = None  # None: this machine
    starts_copies: bool = False  # tasks of its cluster, as processes that may outlive it

    @property
    def is_alone(self) -> bool:
        """Whether it is the whole run, told nothing about clusters."""
        return self.job == ALONE_JOB

    @property
    def label(self) -> str:
        """How people and log files call it: worker/1."""
        return f"{self.job}/{self.index}"

    @property
    def serves(self) -> bool:
        """Whether it is there for others, and ends when they have ended."""
        return self.job in SERVER_JOBS

    def shown(self) -> str:
        """The command with its environment as one could type it, without secrets."""
        shown = {k: ("..." if k == TOKEN else v) for k, v in self.environment.items() if k != LAUNCHER}
        pairs = " ".join(f"{k}={shlex.quote(v)}" for k, v in sorted(shown.items()))
        where = f"on {self.host.shown}: " if self.host else ""
        return f"{where}{pairs} {shlex.join(self.command)}"


@dataclass
class Wishes:
    """What the user asked for."""

    script: str
    arguments: list[str] = field(default_factory=list)
    use_alias: bool = True
    gpus_per_worker: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    flag_names: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    #: what tasks are told of how many there are, where that is another number than is started
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a task of the cluster runs and listens."""

    address: str
    #: None: this machine, as a process of the launcher
    host: TaskNode | None = None


@dataclass(frozen=True)
class _TaskForms:
    """How a script learns which task it is: roles by flags, by places of arguments, by variables, by machine."""

    flags: dict[str, Flag]
    places: dict[int, str]
    variables: dict[str, str]
    hosts: dict[str, list[str]]
    jobs: dict[str, str]
    own_first: bool  # the user's arguments come before the flags: the script counts them

    @property
    def names_jobs(self) -> bool:
        """Whether a task is told its job, or its number within that: not its number among all, or its machine."""
        roles = {*self.flags, *self.places.values(), *self.variables.values()}
        return not self.hosts and not roles & {"rank", "node", "nodes", "pod", "named_pod"}


Cluster = dict[str, list[Place]]  # by job; an evaluator is no part of it


def is_for_clusters(script: Path) -> bool:
    """Whether a script expects to be told which task of a cluster it is."""
    roles = {*told_by_flags(script), *positions_of(script).values()}
    # A number alone names a task only where all tasks are of one job.
    needs_job = len(cluster_in(script)) != 1 and not has_one_job(script)
    by_flags = "task_index" in roles and (not needs_job or bool({"job_name", "is_ps"} & roles))
    by_flags |= "rank" in roles or ("job_name" in roles and bool(other_jobs(script)))
    by_variables = (variables_of(script) or hosts_in(script)) and makes_cluster(script)
    return (by_flags and not starts_copies(script)) or reads_tf_config(script) or bool(by_variables)


def is_told_by_arguments(wishes: Wishes) -> bool:
    """Whether the user's own arguments have places for which task it is."""
    roles = ("job_name", "task_index", "rank")
    return any(f"{{{role}}}" in argument for argument in wishes.arguments for role in roles)


def is_one_task(wishes: Wishes) -> bool:
    """Whether the user says which task of its cluster the script is, by its arguments, by TF_CONFIG or by the variables it reads: the others are started by themselves."""
    script = Path(wishes.script)
    flag = told_by_flags(script).get("job_name")
    given = [a.lstrip("-").partition("=")[0] for a in wishes.arguments if a.startswith("-")]
    by_flag = flag is not None and flag.name in given
    place = next((p for p, role in positions_of(script).items() if role == "job_name"), 0)
    job = wishes.arguments[place - 1] if 0 < place <= len(wishes.arguments) else ""
    by_place = job in {"ps", "worker", "chief", "master", *cluster_in(script)}
    machine = told_by_flags(script).get("machine")
    by_machine = machine is not None and machine.name in given
    if (by_flag or by_place or by_machine) and not is_told_by_arguments(wishes):
        return True
    if reads_tf_config(script) and _names_a_task(os.environ.get("TF_CONFIG", "")):
        return True
    read = variables_of(script)
    by_variables = names_task(read) or bool({"pod", "named_pod"} & set(read.values()))
    return (by_variables and all(map(os.environ.get, read))) or _is_ranked(read)


def _is_ranked(read: dict[str, str]) -> bool:
    """Whether a manager has started this as one of several: not so in the batch script of an allocation, which is rank 0 too."""
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_ID" not in os.environ:
        return False
    for rank in (name for name, role in read.items() if role == "rank" and os.environ.get(name)):
        own = [n for n, role in read.items() if n.split("_")[0] == rank.split("_")[0] and role != "per_node"]
        manager = {name: os.environ.get(name) for name in own}
        alone = any(role == "size" and manager.get(name) == "1" for name, role in read.items())
        if all(manager.values()) and not alone:
            return True
    return False


def _names_a_task(config: str) -> bool:
    try:
        value = json.loads(config or "{}")
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value.get("task"))


def starts_its_tasks(wishes: Wishes) -> bool:
    """Whether a script makes its cluster all by itself: nothing asks which task it is, or it starts them as processes."""
    script = Path(wishes.script)
    has_templates = wishes.flag_names or any("{" in argument for argument in wishes.arguments)
    alone = makes_cluster(script) and not is_for_clusters(script)
    return not has_templates and alone and (not asks_who_it_is(script) or starts_copies(script))


def is_known_to_clients(script: Path) -> bool:
    """Whether the addresses of a script's tasks are written out in it: then clients of their own know them too."""
    return bool(cluster_in(script))


def jobs_asked_for(wishes: Wishes) -> dict[str, int]:
    """How many tasks of each job are started where the launcher is not told: as the script's own arguments say."""
    script = Path(wishes.script)
    counts = jobs_of(script)
    for role, flag in told_by_flags(script, wishes.flag_names).items():
        job = role.removesuffix("_count")
        if role != job and job in counts:
            given = _given(wishes.arguments, flag.name)
            counts[job] = int(given) + flag.added if given.isdigit() else counts[job]
    return counts


def _given(arguments: list[str], name: str) -> str:
    """What the user's arguments give for a flag, last: `--name=2` or `--name 2`."""
    value = ""
    for argument, following in itertools.pairwise([*arguments, ""]):
        flag, equals, text = argument.partition("=")
        if flag.startswith("-") and flag.lstrip("-") == name:
            value = text if equals else following
    return value


def jobs_of(script: Path) -> dict[str, int]:
    """How many tasks of each job a script for clusters is started with, if nothing else is asked for."""
    if has_one_job(script):
        return {"worker": 2}
    takes_addresses = {"ps_hosts", "worker_hosts"} & told_by_flags(script).keys()
    listed = {job: len(a) for job, a in (addresses_by_default(script) or hosts_in(script)).items()}
    written = {} if takes_addresses else cluster_in(script) or listed
    return written or _jobs_of_its_own(script, 2) or {"ps": 1, "worker": 2}


def servers_of(script: Path) -> int:
    """How many parameter servers a script needs of which only the workers were asked for."""
    roles = {*told_by_flags(script), *positions_of(script).values()}
    knows_jobs = "job_name" in roles and is_for_clusters(script)
    knows_jobs |= (reads_tf_config(script) or names_task(variables_of(script))) and asks_for_ps(script)
    return jobs_of(script).get("ps", 0) if knows_jobs else 0


def with_jobs_of_its_own(script: Path, counts: dict[str, int]) -> dict[str, int]:
    """The tasks to start: of the jobs that a script has, where workers are asked for and it has none."""
    asked = {job: n for job, n in counts.items() if n}
    if asked.keys() - {"ps", "worker"} or not asked.get("worker"):
        return counts
    own = _jobs_of_its_own(script, asked["worker"])
    servers = {"ps": asked["ps"]} if "ps" in own and "ps" in asked else {}
    return {**own, **servers} or counts


def _jobs_of_its_own(script: Path, many: int) -> dict[str, int]:
    """One task of each job that is called otherwise than usual; `many` of what there are several of, if they are told apart."""
    known = {*told_by_flags(script), *positions_of(script).values()}
    alike = "job_name" in known and "task_index" not in known
    own = {job: many if n > 1 and not alike else 1 for job, n in other_jobs(script).items()}
    return own and {**own, **cluster_in(script)}


def with_chief(script: Path, counts: dict[str, int]) -> dict[str, int]:
    """The tasks to start: the first worker as what a script's chief is called, if that is a job of its own."""
    if not counts.get("worker") or {"master", "chief"} & {job for job, n in counts.items() if n}:
        return counts
    if "job_name" in told_by_flags(script) and has_chief_of_its_own(script):
        return {**counts, "chief": 1}
    if reads_tf_config(script) and has_master(script):
        job = "master"
    elif needs_chief(script, alone=sum(counts.values()) == 1):
        job = "chief"
    else:
        return counts
    return {**counts, job: 1, "worker": counts["worker"] - 1}


def without_servers(script: Path, counts: dict[str, int]) -> dict[str, int]:
    """The tasks to start: no parameter servers where a script has one job, and could not tell them from workers."""
    return (
        {**counts, "ps": 0} if counts.get("ps") and counts.get("worker") and has_one_job(script) else counts
    )


def plan(wishes: Wishes, cluster: Cluster, token: str, evaluators: list[Place] | None = None) -> list[Task]:
    """Every task of a run: the servers first, then the chief, the workers, the evaluators."""
    forms = _forms(wishes, cluster)
    # Servers start before the tasks that connect to them.
    order = sorted(cluster, key=lambda job: (job not in SERVER_JOBS, job not in ("chief", "master"), job))
    ordered = {job: cluster[job] for job in order}
    tasks = [_task(wishes, ordered, forms, token, j, i, p) for j in order for i, p in enumerate(cluster[j])]
    for i, place in enumerate(evaluators or []):
        tasks.append(_task(wishes, ordered, forms, token, "evaluator", i, place))
    return tasks


def plan_again(wishes: Wishes, tasks: list[Task], made: dict[str, int], ports: Iterator[int]) -> list[Task]:
    """The tasks of a run of which too few were planned: those of the cluster that its script makes.

    They are told as many as before: the script has made this cluster of that.
    """
    called = {own: job for job, own in job_names(Path(wishes.script)).items()}
    cluster = {
        called.get(j, j): [Place(f"127.0.0.1:{next(ports)}") for _ in range(n)] for j, n in made.items()
    }
    before = {job: sum(task.job == job for task in tasks) for job in cluster}
    again = replace(wishes, counts={job: n for job, n in before.items() if n})
    evaluators = [Place("") for task in tasks if task.job == "evaluator"]
    return plan(again, cluster, tasks[0].environment.get(TOKEN, ""), evaluators)


def _forms(wishes: Wishes, cluster: Cluster) -> _TaskForms:
    script = Path(wishes.script)
    variables = variables_of(script)
    silent = names_task(variables) and refuses_flags(script) and not wishes.flag_names
    flags = {} if silent else told_by_flags(script, wishes.flag_names, cluster)
    telling = {"job_name", "is_ps", "task_index", "rank"}
    places = {} if telling & flags.keys() else positions_of(script)
    knows = telling & {*flags, *places.values(), *variables.values()}
    by_host = {} if knows else hosts_in(script)
    flags = flags if by_host else {role: flag for role, flag in flags.items() if role != "machine"}
    renamed = names_in_script(script, cluster)
    return _TaskForms(flags, places, variables, by_host, renamed, own_first=reads_places(script))


def names_in_script(script: Path, jobs: Collection[str]) -> dict[str, str]:
    """What a script calls some jobs in its ClusterSpec, where that is another name."""
    return {job: name for job, name in job_names(script).items() if name not in jobs}


def plan_alone(wishes: Wishes, node: TaskNode | None = None) -> list[Task]:
    """A script by itself, told nothing about clusters."""
    command = _command(wishes, node.python if node else wishes.python, wishes.arguments)
    copies = starts_copies(Path(wishes.script))
    return [Task(ALONE_JOB, 0, None, command, dict(wishes.environment), node, starts_copies=copies)]


def _task(
    wishes: Wishes,
    cluster: Cluster,
    forms: _TaskForms,
    token: str,
    job: str,
    index: int,
    place: Place,
) -> Task:
    addresses = {j: [p.address for p in places] for j, places in cluster.items() if places}
    name = forms.jobs.get(job, job)  # as the script calls it
    values: dict[str, str | list[str]] = {
        **{f"{j}_hosts": addresses.get(j, []) for j in ("ps", "worker", "chief", *addresses)},
        "hosts": addresses.get(job, []),
        "job_name": name,
        "task_index": str(index),
        **{
            f"{j}_count": str(wishes.counts.get(j, len(addresses.get(j, []))))
            for j in ("ps", "worker", *addresses)
        },
        "cluster_json": json.dumps(addresses),
        "cluster_bars": ",".join(f"{j}|{';'.join(where)}" for j, where in addresses.items()),
        "cluster_file": CLUSTER_FILE,
        **{f"is_{kind}": str(job == kind) for kind in ("ps", "worker", "chief")},
    }
    # Where no job is the chief, the first worker is.
    if job == "worker" and index == 0 and "chief" not in addresses:
        values["is_chief"] = str(True)
    by_role = {**values, **of_task(addresses, job, index)}
    values["rank"] = by_role["rank"]
    machine = dict(enumerate(forms.hosts.get(job, []))).get(index)
    values["machine"] = machine or ""
    flags = [a for role, flag in forms.flags.items() for a in _as_arguments(flag, _value(role, flag, values))]
    own = _in_places(forms.places, values, wishes.arguments)
    arguments = [*own, *flags] if forms.own_first else [*flags, *own]
    placed = {forms.jobs.get(j, j): where for j, where in addresses.items()}
    environment = {
        "TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": job, "index": index}}),
        "CLUSTER_SPEC": json.dumps(addresses),
        "JOB_NAME": job,
        "TASK_INDEX": str(index),
        **{f"{job.upper()}_HOSTS": ",".join(where) for job, where in addresses.items()},
        **{name: _joined(by_role[role]) for name, role in forms.variables.items()},
        **({HOST: machine} if machine else {}),
        **({PLACED: json.dumps(placed)} if place.host is None else {}),
        **({SERVES: f"{name}/{index}"} if job in SERVER_JOBS and forms.names_jobs else {}),
        **({TOKEN: token} if token else {}),
        **_devices(wishes.gpus_per_worker, job, index, "chief" in addresses),
        # Last: what the user sets with --env wins.
        **wishes.environment,
    }
    python = place.host.python if place.host else wishes.python
    command = _command(wishes, python, arguments)
    return Task(job, index, place.address, command, environment, place.host)


def _command(wishes: Wishes, python: str, arguments: list[str]) -> list[str]:
    alias = [] if wishes.use_alias else ["--no-alias"]
    return [python, "-m", "tensorfleet", *alias, wishes.script, *arguments]


def _value(role: str, flag: Flag, values: dict[str, str | list[str]]) -> str | list[str]:
    """The value of a flag: the job with the number, as in `worker:0`, if its default is written like that."""
    both = re.fullmatch(r"(ps|worker|chief|master)(\W)\d+", flag.default)
    if both and role in ("task_index", "rank"):
        return f"{values['job_name']}{both[2]}{values['task_index']}"
    return values[role]


def _as_arguments(flag: Flag, value: str | list[str]) -> list[str]:
    if flag.is_switch:
        return [f"--{flag.name}"] if value == str(True) else [f"--no{flag.name}"] if flag.negates else []
    if flag.listed and isinstance(value, list):
        return [f"--{flag.name}={json.dumps(value)}"]
    if flag.many and isinstance(value, list):
        return [f"--{flag.name}", *value] if value else []
    text = _joined(value)
    return [f"--{flag.name}={int(text) - flag.added if flag.added and text.isdigit() else text}"]


def _in_places(places: dict[int, str], values: dict[str, str | list[str]], given: list[str]) -> list[str]:
    """The user's arguments, with the task's own at their places among them; not where the user has put them."""
    filled = [_filled(a, values) for a in given]
    # An argument with {task_index} and the like shows that the user has placed the values.
    if not places or filled != given:
        return filled
    arguments: list[str] = []
    rest = iter(filled)
    for place in range(1, max(places) + 1):
        if place in places:
            value = values[places[place]]
            arguments.append(_joined(value))
        else:
            arguments += [a for a in [next(rest, None)] if a is not None]
    return [*arguments, *rest]


def _filled(argument: str, values: dict[str, str | list[str]]) -> str:
    """An argument in which {job_name}, {task_index} and the like stand for the task's own."""
    for role, value in values.items():
        argument = argument.replace(f"{{{role}}}", _joined(value))
    return argument


def _joined(value: str | list[str]) -> str:
    return ",".join(value) if isinstance(value, list) else value


def _devices(per_worker: int | None, job: str, index: int, has_chief: bool) -> dict[str, str]:
    """Which GPUs a task sees: servers none, workers their own."""
    if job in SERVER_JOBS:
        return {"CUDA_VISIBLE_DEVICES": ""}
    if per_worker is None or job not in ("worker", "chief"):
        return {}
    # The chief has the first GPUs, and the workers those behind.
    place = index + (1 if has_chief and job == "worker" else 0)
    start = place * per_worker
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    ours = visible.split(",") if visible else [str(i) for i in range(start + per_worker)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(ours[start : start + per_worker])}
