"""Tasks on a Ray cluster: Ray gives the room, and an actor in it owns each task's process.

Data never goes through Ray: tasks connect to each other. `docs/ray.md` describes it for users.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorfleet.base.versions import FLEET_VERSION
from tensorfleet.cli.engines.base import EngineError, RunEngine, RunListener, RunningTask, RunOptions, Wanted
from tensorfleet.cli.engines.ray_connection import (
    brings_folder,
    connect,
    disconnect,
    head_address,
    ray_library,
)
from tensorfleet.cli.engines.ray_folders import warn_of_folders
from tensorfleet.cli.engines.ray_head import HeadWatch
from tensorfleet.cli.engines.ray_options import Shipped, is_larger, read_options, shipped
from tensorfleet.cli.engines.ray_task import Closed, RayNode, RayTask, Reply, kill
from tensorfleet.cli.plan import NOTICE, TOKEN, Place, Task
from tensorfleet.fleet import ray_placement, ray_tasks
from tensorfleet.fleet.ray_placement import Held, NoRoom, Seat
from tensorfleet.fleet.ray_tasks import NodePlace, TaskCommand

if TYPE_CHECKING:
    from tensorfleet.cli.doctor import Finding

_START_SECONDS = 600.0  # for an actor to come up: its environment may be installed first
_KILL_SECONDS = 2.0
_RETRY_SECONDS = 1.0
_THREADS = 4  # of an actor: one waits for lines while others take signals
_MAX_SHIPPED_BYTES = 100 << 20  # through Ray's control store, to every node
_LOOPBACK = "127.0.0.1"
_DEVICES = "CUDA_VISIBLE_DEVICES"
_LIBRARY_THREADS = "OMP_NUM_THREADS"


class RayEngine(RunEngine):
    """Places the tasks of a run in placement groups of a Ray cluster."""

    name = "ray"

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self._arguments = read_options(options.engine_arguments)
        self._is_connected = False
        self._reply = Reply()
        self._shipped: Shipped | None = None
        self._directory = self._arguments.directory
        self._folders_checked = False
        self._gone = ""  # the cluster, and how
        self._only_host: str | None = None  # of a cluster that is this machine and stays so
        #: of each task: its bundle, its newest actor, the actor's node, and its newest start
        self._held: dict[str, Held] = {}
        self._actors: dict[str, Any] = {}
        self._nodes: dict[str, RayNode] = {}
        self._running: dict[str, RayTask] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()  # of the above: `seek` has threads

    def reserve(self, wanted: Sequence[Wanted], listener: RunListener) -> dict[str, Place]:
        """A bundle and an actor for each task."""
        self._connect(listener)
        if (head := head_address()) is not None:
            HeadWatch(head, self._reply.closed, self._lose).start()
        try:
            self._held = ray_placement.reserve(
                [self._seat(each) for each in wanted],
                self.options.wait_seconds,
                listener.on_note,
                self._arguments.autoscaling,
                self._reply.closed.is_set,
            )
        except NoRoom as error:
            raise EngineError(str(error)) from None
        self._actors = {label: _new_actor(held) for label, held in self._held.items()}
        asked = {label: actor.place.remote() for label, actor in self._actors.items()}
        return {label: self._place(label, reference) for label, reference in asked.items()}

    def start(self, task: Task, listener: RunListener) -> RunningTask:
        """Has the task's actor start its process; what goes wrong there is told as its exit."""
        with self._lock:
            actor, node = self._actors[task.label], self._nodes[task.label]
            command = self._command(task, self._held[task.label])
            running = RayTask(task.label, actor, node, command, listener, self._reply)
            self._running[task.label] = running
            self._check_folders(task, listener)
        return running

    def seek(self, wanted: Wanted, listener: RunListener) -> None:
        """A new actor: in the task's bundle, which Ray moves to another node if it must, or in a new one."""
        if self._gone:
            raise EngineError(self._gone)
        with self._lock:
            self._leave_node(wanted.label)
            if wanted.label not in self._held:
                (self._held[wanted.label],) = ray_placement.ask([self._seat(wanted)])
            actor = self._replace_actor(wanted.label)
            thread = threading.Thread(
                target=self._await_place, args=(wanted.label, actor, listener), daemon=True
            )
            self._threads.append(thread)
        thread.start()

    def _lose(self, reason: str) -> None:
        """The cluster is gone: every task is lost, and there are no places any more."""
        self._gone = reason
        for task in list(self._running.values()):
            task.lose("the Ray cluster is gone")

    def _leave_node(self, label: str) -> None:
        """Gives back room on a node that is being drained, which Ray would replace only when the node has gone.

        A bundle that shares its group with other tasks cannot be given back alone.
        """
        running, held = self._running.get(label), self._held.get(label)
        if running is None or held is None or not running.leaves:
            return
        if not any(other.group == held.group for name, other in self._held.items() if name != label):
            ray_placement.give_back([self._held.pop(label)])

    def release(self, label: str) -> None:
        """Ends the task's actor, and gives its bundle back."""
        with self._lock:
            actor, held = self._actors.pop(label, None), self._held.pop(label, None)
            if actor is not None:
                kill(actor)
            if held is not None:
                ray_placement.give_back([held])

    def close(self) -> None:
        """Ends the tasks and their actors, gives the room back, and leaves the cluster."""
        if not self._is_connected or self._reply.closed.is_set():
            self._reply.closed.set()
            return
        running = list(self._running.values())
        for task in running:
            task.send(signal.SIGKILL)
        limit = time.monotonic() + _KILL_SECONDS
        for task in running:
            task.ended.wait(max(limit - time.monotonic(), 0))
        self._reply.closed.set()
        if self._gone:  # nobody is there to give anything back to: the nodes end what they have
            return
        with self._lock:
            for actor in self._actors.values():
                kill(actor)
            ray_placement.give_back(list(self._held.values()))
        # Ray's library may not go while a thread of ours is in it.
        limit = time.monotonic() + _KILL_SECONDS
        for thread in [*self._threads, *(task.thread for task in running)]:
            thread.join(max(limit - time.monotonic(), 0))
        disconnect()

    def advice(self, task: Task, code: int) -> list[str]:
        """Where Ray tells more of a task that was killed."""
        running = self._running.get(task.label)
        if running is None or code != -signal.SIGKILL:
            return []
        return [f"It was {running.where}: `ray list actors` and the node's logs may tell more."]

    # -- The way there --------------------------------------------------------------------------------------------

    def _connect(self, listener: RunListener) -> None:
        """Connects, and has Ray bring the script's folder to the nodes if it is not there anyway."""
        environment = dict(self._arguments.runtime_env)
        folder = environment.get("working_dir")
        if folder is None and self._directory is None and not brings_folder():
            self._connect_with(environment)
            self._only_host = None if self._arguments.autoscaling else _only_host()
            if self._only_host is not None:
                self._directory = os.getcwd()
                _check_script(self.options)
                return
            self._is_connected = False
            disconnect()
            folder = ""
        if folder is not None and "://" not in folder:
            self._shipped = shipped(self.options.script, folder)
            environment["working_dir"] = str(self._shipped.folder)
            environment["excludes"] = [*environment.get("excludes", []), *self._own_files()]
            listener.on_note(_on_shipping(self._shipped.folder))
        self._connect_with(environment)

    def _connect_with(self, environment: dict[str, Any]) -> None:
        connect(self.options.address, environment or None)
        self._is_connected = True

    def _own_files(self) -> list[str]:
        """The logs of this run and others, which change while they would be sent."""
        assert self._shipped is not None
        if self.options.log_dir is None:
            return []
        runs, folder = self.options.log_dir.absolute().parent, self._shipped.folder
        return [f"/{runs.relative_to(folder)}"] if runs != folder and runs.is_relative_to(folder) else []

    # -- Places ---------------------------------------------------------------------------------------------------

    def _seat(self, wanted: Wanted) -> Seat:
        needs = wanted.resources
        bundle = ray_placement.bundle(
            {
                "CPU": 1.0 if needs.cpus is None else needs.cpus,
                "GPU": needs.gpus,
                "memory": needs.memory_bytes or 0,
                **self._arguments.resources_of(wanted),
            }
        )
        labels = self._arguments.labels_of(wanted)
        return Seat(wanted.label, bundle, wanted.serves, labels, has_own_cpus=needs.cpus is not None)

    def _replace_actor(self, label: str) -> Any:
        before = self._actors.pop(label, None)
        if before is not None:
            kill(before)
        self._actors[label] = _new_actor(self._held[label])
        return self._actors[label]

    def _place(self, label: str, asked: Any, seconds: float | None = _START_SECONDS) -> Place:
        """The place of a task, once its actor has come up."""
        ray = ray_library()
        try:
            found: NodePlace = self._reply.get(asked, seconds)
        except ray.exceptions.RuntimeEnvSetupError as error:
            raise EngineError(
                f"Ray cannot set up the runtime environment of {label}: {_reason_of_setup(str(error))}. Correct "
                "--engine-arg runtime_env, or install on the nodes what the tasks need."
            ) from None
        except TimeoutError:
            raise EngineError(
                f"Ray has not started an actor for {label} within {_START_SECONDS:g} s. See `ray status`."
            ) from None
        except Closed:
            raise EngineError("The run was stopped while its tasks were placed.") from None
        except ray.exceptions.RayActorError as error:
            reason = ray_placement.death_of(error)
            raise EngineError(f"Ray has lost the place of {label} before it was used: {reason}.") from error
        _check_version(found)
        self._nodes[label] = RayNode(found.host, found.python, found.node_id, found.actor_id)
        return Place(f"{self._host_of(found)}:{found.port}", self._nodes[label])

    def _host_of(self, found: NodePlace) -> str:
        """How the other tasks reach a node: within one machine without its network, which is faster and private."""
        if self._only_host is None:
            return f"[{found.host}]" if ":" in found.host else found.host
        if found.host == self._only_host:
            return _LOOPBACK
        raise EngineError(
            f"Node {found.host} has joined the Ray cluster after the run began on one machine, and cannot be used. "
            "Start runs on a cluster that grows with --engine-arg autoscaling=1."
        )

    def _await_place(self, label: str, actor: Any, listener: RunListener) -> None:
        """Waits for as long as it takes: a cluster may get room at any time."""
        while True:
            try:
                place = self._place(label, actor.place.remote(), None)
                break
            except EngineError as error:
                if self._reply.closed.wait(_RETRY_SECONDS):
                    return
                with self._lock:
                    if self._actors.get(label) is not actor:  # somebody has asked again
                        return
                    if not _was_lost(error):
                        listener.on_note(str(error))
                        return
                    actor = self._replace_actor(label)
        if self._actors.get(label) is actor and not self._reply.closed.is_set():
            listener.on_place(label, place)

    def _check_folders(self, task: Task, listener: RunListener) -> None:
        """Once: warns of folders in the arguments that are not the same on all nodes."""
        if self._folders_checked or self._only_host is not None:
            return
        self._folders_checked = True
        actors = {
            self._nodes[label].name: actor for label, actor in self._actors.items() if label in self._nodes
        }
        checked = (actors, task.command, self._directory, self._reply, listener.on_note)
        thread = threading.Thread(target=warn_of_folders, args=checked, name="folders", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _command(self, task: Task, held: Held) -> TaskCommand:
        environment = {**self.options.environment, **task.environment}
        secret = environment.pop(TOKEN, "")
        # Ray knows which GPUs of the node are the task's.
        if held.seat.bundle.get("GPU") and _DEVICES not in self.options.environment:
            environment.pop(_DEVICES, None)
        # Ray limits the threads of libraries to the CPUs of a task, also where nobody has asked for a number of them.
        hidden = () if held.seat.has_own_cpus else (_LIBRARY_THREADS,)
        command = task.command
        if self._shipped is not None:
            command = self._shipped.command(command, self.options.script)
        saves = not task.serves and bool(float(environment.get(NOTICE) or 0))
        return TaskCommand(command, environment, secret, self._directory, task.starts_copies, hidden, saves)


def check(address: str | None) -> Iterator[Finding]:
    """What `tensorfleet doctor --on ray` finds: Ray, the cluster, its nodes and what they have."""
    from tensorfleet.cli.engines.ray_check import findings

    return findings(address)


def _only_host() -> str | None:
    """The address of this machine, if all of the cluster is on it: then it has the script."""
    here = str(ray_library().util.get_node_ip_address())
    return here if all(node["NodeManagerAddress"] == here for node in ray_placement.alive_nodes()) else None


def _on_shipping(folder: Path) -> str:
    text = f"Ray sends a copy of {folder} to the nodes. Save checkpoints elsewhere, in a folder that all nodes share."
    if not is_larger(folder, _MAX_SHIPPED_BYTES):
        return text
    return (
        f"{text} It has more than {_MAX_SHIPPED_BYTES >> 20} MB: list what the tasks do not need in a .gitignore there, "
        "or put it on a disk that all nodes share and name that: --engine-arg directory=FOLDER."
    )


def _new_actor(held: Held) -> Any:
    ray = ray_library()
    ray.cloudpickle.register_pickle_by_value(ray_tasks)
    options = {**held.actor_options(), "max_concurrency": _THREADS, "max_restarts": 0}
    return ray.remote(ray_tasks.TaskActor).options(**options).remote()


def _check_version(found: NodePlace) -> None:
    wanted = f"tensorfleet=={FLEET_VERSION}"
    remedy = f"Install it there, or let Ray do it: --engine-arg runtime_env.pip={wanted}"
    if not found.version:
        raise EngineError(f"TensorFleet is not installed on node {found.host} ({found.python}). {remedy}")
    if found.version != FLEET_VERSION:
        raise EngineError(
            f"Node {found.host} has TensorFleet {found.version}, this machine {FLEET_VERSION}. {remedy}"
        )


def _check_script(options: RunOptions) -> None:
    if not options.script.is_file():
        raise EngineError(f"No file {options.script} in {os.getcwd()}. Give the path of the script.")


def _reason_of_setup(text: str) -> str:
    """The sentence in the report of a failed installation, which has Ray's own stack in it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.partition(": ")[2] for line in lines if re.match(r"(ERROR|\w+Error): ", line)]
    return (errors or lines or ["Ray gives no reason"])[-1].rstrip(".")


def _was_lost(error: EngineError) -> bool:
    """Whether the place itself has gone, so that another one may do: what is wrong with a node stays wrong."""
    return error.__cause__ is not None
