"""Slurm's commands, and what they print about jobs and nodes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorfleet.base import settings
from tensorfleet.cli.engines.base import EngineError

_ANSWER_SECONDS = 30.0
_COMPLETING_SECONDS = 10.0  # while the nodes of a job that is over end its steps
_DETAIL = re.compile(r"\bNodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
_GPUS = re.compile(r"gpu(?::[^:,(]+)?:(\d+)")
_FIELD = re.compile(r"\b([A-Za-z]\w*)=(\S*)")
_DOWN = frozenset({"DOWN", "FAIL", "FAILING", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "REBOOT"})
_CLOSED = frozenset({"DRAIN", "DRAINED", "DRAINING"})
_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER"})
#: states in which a job has its nodes, or is about to
_ALIVE = frozenset({"RUNNING", "SUSPENDED", "PENDING", "CONFIGURING", "RESIZING", "SIGNALING", "STOPPED"})
_ENDS = {
    "TIMEOUT": "has reached its time limit",
    "PREEMPTED": "was preempted",
    "CANCELLED": "was cancelled",
    "NODE_FAIL": "was ended because a node of it has failed",
    "DEADLINE": "has reached its deadline",
    "OUT_OF_MEMORY": "has run out of memory",
    "REQUEUED": "was requeued",
    "REVOKED": "was revoked",
}

# What to do about refusals, by words of Slurm's that its versions share.
_REMEDIES = (
    (
        "node configuration is not available|memory specification",
        "No node has that much: ask for less per task (--cpus-per-task, --memory, --gpus-per-worker), or for other nodes.",
    ),
    ("account", "`sacctmgr show associations` lists your accounts: --engine-arg account=NAME."),
    ("partition", "`sinfo` lists the partitions: --engine-arg partition=NAME."),
    ("invalid node name", "`sinfo -N` lists the nodes."),
    ("--time|time limit", "Write the time as 2:00:00, within the limit that `sinfo` shows."),
    ("qos", "`sacctmgr show qos` lists them: --engine-arg qos=NAME."),
    ("unrecognized option", "--engine-arg takes the options of salloc and sbatch, which their --help lists."),
)


@dataclass(frozen=True)
class NodeShare:
    """The part of a node that a job has been given."""

    #: the job that `srun` and `scancel` name, and that of this share: they differ in a heterogeneous job
    leader: str
    job: str
    node: str
    cpus: int
    memory_mb: int
    gpus: int
    #: its number in a heterogeneous job
    component: int | None = None

    @property
    def step_options(self) -> list[str]:
        """The options of `srun` that start a step of one task here."""
        group = [] if self.component is None else [f"--het-group={self.component}"]
        where = [f"--nodelist={self.node}", "--nodes=1", "--ntasks=1"]
        return [f"--jobid={self.leader}", *group, *where]


@dataclass(frozen=True)
class NodeState:
    """A node, as Slurm's controller sees it."""

    name: str
    address: str
    states: frozenset[str]

    @property
    def is_up(self) -> bool:
        """Whether steps run there."""
        return not self.states & _DOWN

    @property
    def takes_more(self) -> bool:
        """Whether new tasks should go there: it is up, and not about to be taken out of service."""
        return self.is_up and not self.states & _CLOSED


def answer(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """What a command of Slurm's prints. Raises `EngineError` with Slurm's own words if it fails."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise EngineError(no_command(command[0])) from None
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"{command[0]} has not answered for {_ANSWER_SECONDS:g} s. Is slurmctld running? Test it with: scontrol ping"
        ) from None
    if done.returncode != 0:
        raise EngineError(explained(f"{command[0]} failed", done.stderr.splitlines()))
    return done.stdout


def no_command(name: str) -> str:
    """What to do where a command of Slurm's is not installed."""
    return (
        f"There is no command {name} on this machine. Install Slurm's client commands (Debian: slurm-client), "
        "or start the run on a login node of the cluster."
    )


def explained(doing: str, lines: Iterable[str]) -> str:
    """A failure in Slurm's own words, with what to do where that is known: "salloc failed: ..."."""
    said = own_words(lines)
    if re.search(
        r"unable to contact slurm controller|connection refused|communication connection", said, re.I
    ):
        return (
            f"Slurm's controller does not answer ({said}). Is slurmctld running? Test it with: scontrol ping"
        )
    if re.search(r"failed to fetch config|dns srv|could not establish a configuration", said, re.I):
        return (
            f"Slurm's commands find no configuration here ({said}). Set SLURM_CONF to the slurm.conf of your cluster, or "
            "start the run on a login node."
        )
    remedy = next((remedy for sign, remedy in _REMEDIES if re.search(sign, said, re.I)), "")
    return f"{doing}: {said}.{remedy and f' {remedy}'}"


def own_words(lines: Iterable[str]) -> str:
    """The errors among lines of Slurm's, in its words."""
    said = [line.strip() for line in lines if line.strip() and not line.startswith("Try ")]
    errors = [line for line in said if "error" in line.lower()]
    return (
        "; ".join(re.sub(r"^\w+: (error: |fatal: )?", "", line) for line in errors or said[-1:])
        or "no reason given"
    )


def step_environment(added: dict[str, str]) -> dict[str, str]:
    """The environment for `srun`: this one, without what Slurm has set for an enclosing step, and without the token."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SRUN_")) or k in _KEPT}
    own.pop(settings.TOKEN.name, None)
    return {**own, **added}


def hostnames(listed: str) -> list[str]:
    """The nodes of a list such as `n[1-4,7]`."""
    return answer(["scontrol", "show", "hostnames", listed]).split()


def job_state(job: str) -> str:
    """The state of a job: RUNNING, TIMEOUT. UNKNOWN if the controller has forgotten it."""
    try:
        shown = answer(["scontrol", "show", "job", "-o", job])
    except EngineError as error:
        if "invalid job id" in str(error).lower():
            return "UNKNOWN"
        raise
    fields = [dict(_FIELD.findall(line)) for line in shown.splitlines()]
    return next((f["JobState"] for f in fields if f.get("JobId") == job), "UNKNOWN")


def own_jobs() -> dict[str, str]:
    """The state of each job of this user that waits or runs."""
    shown = answer(["squeue", "--noheader", f"--user={os.getuid()}", "--format=%A %T"])
    return dict(line.split() for line in shown.splitlines() if line.strip())


def why_ended(job: str) -> str | None:
    """Why a job is over, once that is known: one that is being ended does not say it yet. None if it is not over."""
    limit = time.monotonic() + _COMPLETING_SECONDS
    while (state := job_state(job)) == "COMPLETING" and time.monotonic() < limit:
        time.sleep(0.3)
    return why_over(job, state)


def why_over(job: str, state: str) -> str | None:
    """Why a job in this state has no nodes any more, as a sentence's end; None if it has."""
    return None if state in _ALIVE else f"Slurm job {job} {_ENDS.get(state, 'has ended')}"


def shares_of(job: str, leader: str | None = None, component: int | None = None) -> list[NodeShare]:
    """What a running job has been given on each of its nodes."""
    shown = answer(["scontrol", "show", "job", "-d", "-o", job])
    own = next((line for line in shown.splitlines() if re.match(rf"JobId={re.escape(job)}\b", line)), "")
    return [
        NodeShare(leader or job, job, node, count_ids(cpus), int(memory), gpus_in(gres), component)
        for listed, cpus, memory, gres in _DETAIL.findall(own)
        for node in ([listed] if "[" not in listed and "," not in listed else hostnames(listed))
    ]


def node_states(names: Iterable[str]) -> dict[str, NodeState]:
    """The state of nodes, by name."""
    shown = answer(["scontrol", "show", "node", "-o", ",".join(sorted(set(names)))])
    return {
        fields["NodeName"]: NodeState(
            fields["NodeName"], fields.get("NodeAddr") or fields["NodeName"], _states(line)
        )
        for line in shown.splitlines()
        if "NodeName" in (fields := dict(_FIELD.findall(line)))
    }


def _states(line: str) -> frozenset[str]:
    """IDLE+DRAIN, MIXED*: the parts, with the star as NOT_RESPONDING."""
    match = re.search(r"\bState=(\S+)", line)
    text = match[1] if match else ""
    marked = {"NOT_RESPONDING"} if "*" in text else set()
    return frozenset({*re.findall(r"[A-Z_]+", text), *marked})


def count_ids(listed: str) -> int:
    """How many numbers there are in `0-3,8`."""
    pairs = [part.partition("-") for part in listed.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in pairs)


def gpus_in(gres: str) -> int:
    """How many GPUs generic resources have: `gpu:a100:2(IDX:0-1),shard:4`."""
    return sum(int(n) for n in _GPUS.findall(gres))
