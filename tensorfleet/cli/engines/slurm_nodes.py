"""The nodes that a run uses: a probe on each, the project there, free ports, and the watch over them."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensorfleet.cli.engines.base import EngineError, RunListener, RunOptions
from tensorfleet.cli.engines.shared_folders import Mark, Unseen, named_folders, not_shared, warning
from tensorfleet.cli.engines.slurm_commands import NodeShare, node_states, why_ended
from tensorfleet.cli.engines.slurm_files import Project
from tensorfleet.cli.engines.slurm_node import NodeProbe
from tensorfleet.cli.engines.slurm_step import SlurmStep

_BEAT_SECONDS = 2.0
_SUSPECT_SECONDS = 7.0  # of silence, then Slurm is asked
_SILENT_SECONDS = 30.0  # of silence, then a node is given up whatever Slurm says
_AGAIN_SECONDS = 30.0  # until a node that has failed is tried again


class Nodes:
    """The nodes in use. Threads may share it."""

    def __init__(self, options: RunOptions, on_loss: Callable[[NodeShare, str], None]) -> None:
        self._on_loss = on_loss
        self._project = Project(options.script, Path.cwd(), options.log_dir)
        self._probes: dict[NodeShare, NodeProbe] = {}
        self._failed: dict[NodeShare, tuple[float, str]] = {}
        self._kept: dict[str, NodeProbe | None] = {}
        self._lock = threading.RLock()
        self._opening = threading.Lock()
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None

    def usable(self, shares: Sequence[NodeShare]) -> list[NodeShare]:
        """The shares whose nodes take new tasks."""
        states = node_states(share.node for share in shares)
        now = time.monotonic()
        with self._lock:
            failed = {share for share, (since, _) in self._failed.items() if now - since < _AGAIN_SECONDS}
        up = {name for name, state in states.items() if state.takes_more}
        return [share for share in shares if share.node in up and share not in failed]

    def avoid(self, share: NodeShare, reason: str) -> None:
        """Uses it for no new task for a while."""
        with self._lock:
            self._failed[share] = time.monotonic(), reason

    def reasons(self) -> list[str]:
        """Why nodes are not used."""
        with self._lock:
            return [reason for _, reason in self._failed.values()]

    def open(self, shares: Iterable[NodeShare], listener: RunListener) -> bool:
        """Starts a probe on each of these that has none. False if one of them cannot be used."""
        with self._opening:
            new = [share for share in shares if share not in self._probes]
            if not new:
                return True
            addresses = {name: state.address for name, state in node_states(s.node for s in new).items()}
            peers = {*addresses.values(), *(probe.address for probe in self._probes.values())}
            with ThreadPoolExecutor(max_workers=min(len(new), 32)) as pool:
                opened = list(pool.map(lambda share: self._open(share, sorted(peers), listener), new))
            return all(opened)

    def probe(self, share: NodeShare) -> NodeProbe:
        """The probe of a share that has been opened. Raises `EngineError` if it is gone."""
        probe = self._probes.get(share)
        if probe is None:
            raise EngineError(f"node {share.node} is not in use any more")
        return probe

    def port(self, probe: NodeProbe) -> int:
        """A port of that node for one task, which the probe holds."""
        (port,) = probe.ask("ports", address=probe.address, count=1)["ports"]
        return int(port)

    def project_on(self, probe: NodeProbe, command: Sequence[str]) -> tuple[str, list[str]]:
        """The working directory of a task on that node, and its command there."""
        if probe.folder is None:
            return os.getcwd(), list(command)
        return probe.folder, self._project.command_in(probe.folder, command)

    def follow(self, step: SlurmStep) -> None:
        """From now on the step ends with the launcher, also if that cannot say goodbye."""
        probe = self._probes.get(step.share)
        if probe is not None and step.name is not None:
            probe.tell("follow", names=[step.name])

    def forget(self, step: SlurmStep) -> None:
        """The step has ended."""
        probe = self._probes.get(step.share)
        if probe is not None and step.name is not None:
            probe.tell("forget", names=[step.name])

    def keep(self, job: str) -> None:
        """The job is the run's own: one of its nodes ends it if the launcher cannot."""
        with self._lock:
            self._kept[job] = next((p for p in self._probes.values() if p.share.leader == job), None)
            keeper = self._kept[job]
        if keeper is not None:
            keeper.tell("follow", names=[job])

    def keep_if_new(self, job: str | None) -> None:
        """The same, unless a node does it already."""
        if job is not None and self._kept.get(job) is None:
            self.keep(job)

    def watch(self) -> None:
        """From now on, notices nodes that do not answer any more."""
        self._watcher = threading.Thread(target=self._watch, name="slurm nodes", daemon=True)
        self._watcher.start()

    def check_folders(self, command: Sequence[str], listener: RunListener) -> None:
        """Warns of folders in a task's arguments that are not the same on all nodes."""
        with self._lock:
            probes = {
                node: probe
                for node, probe in sorted(
                    ((p.share.node, p) for p in self._probes.values()), key=lambda pair: pair[0]
                )
            }
        first, *others = probes.values()
        folders = named_folders(command, self.project_on(first, command)[0])
        mark: Mark = lambda name, paths: first.ask("mark", name=name, folders=list(paths))["paths"]  # noqa: E731
        asks: dict[str, Unseen] = {probe.share.node: functools.partial(_unseen_by, probe) for probe in others}
        try:
            found = not_shared(folders, mark, asks)
        except EngineError:  # a node that is gone is noticed elsewhere
            return
        for flag, nodes in found.items():
            listener.on_note(warning(flag, folders[flag], first.share.node, nodes))

    def drop(self, job: str | None) -> None:
        """The job is given back: ends the probes in it."""
        with self._lock:
            self._kept.pop(job or "", None)
            dropped = [share for share in self._probes if share.leader == job]
            probes = [self._probes.pop(share) for share in dropped]
        _end(probes)

    def close(self) -> None:
        """Ends the probes, which remove what they have made."""
        self._closing.set()
        with self._lock:
            probes, self._probes = list(self._probes.values()), {}
        _end(probes)

    def _open(self, share: NodeShare, peers: list[str], listener: RunListener) -> bool:
        probe = NodeProbe(share)
        try:
            self._prepare(probe, peers, listener)
        except EngineError as error:
            probe.hang_up()
            with self._lock:
                self._failed[share] = time.monotonic(), str(error)
            listener.on_note(f"Not using node {share.node}: {error}")
            return False
        with self._lock:
            self._failed.pop(share, None)
            self._probes[share] = probe
        if self._closing.is_set():
            probe.hang_up()
        return True

    def _prepare(self, probe: NodeProbe, peers: list[str], listener: RunListener) -> None:
        there = probe.ask("python")
        if there["tensorfleet"] is None:
            raise EngineError(
                f"Its Python ({there['executable']}) has no tensorfleet. Install it there, or use a Python in a folder "
                "that all nodes share."
            )
        probe.python = str(there["executable"])
        probe.address = str(probe.ask("address", peers=peers)["address"])
        project = self._project
        found = probe.ask("files", folder=str(project.root), directory=os.getcwd(), digests=project.digests)
        wrong = found["missing"] or found["differing"]
        if not wrong:
            return
        probe.folder = probe.send_archive(project.archive)
        how = "misses" if found["missing"] else "has another"
        listener.on_note(
            f"Node {probe.share.node} {how} {wrong[0]} in {project.root}: copied {len(project.archive) >> 10} KB to "
            f"{probe.folder} there, where its tasks run. The copy goes with the run."
        )

    def _watch(self) -> None:
        while not self._closing.wait(_BEAT_SECONDS):
            with self._lock:
                probes = list(self._probes.values())
            for probe in probes:
                probe.beat()
                if probe.is_gone or probe.silent_seconds > _SUSPECT_SECONDS:
                    self._suspect(probe)

    def _suspect(self, probe: NodeProbe) -> None:
        """A probe says nothing any more: the node may have failed, or the job be over."""
        reason = _why_gone(probe)
        if reason is None or self._closing.is_set():
            return
        with self._lock:
            if self._probes.pop(probe.share, None) is None:
                return
            self._failed[probe.share] = time.monotonic(), reason
            kept = [job for job, keeper in self._kept.items() if keeper is probe]
        self._on_loss(probe.share, reason)
        probe.abandon()
        for job in kept:
            self.keep(job)


def _end(probes: Sequence[NodeProbe]) -> None:
    for probe in probes:
        probe.tell("forget_all")
        probe.hang_up()
    for probe in probes:
        probe.end()


def _unseen_by(probe: NodeProbe, marks: Mapping[str, str]) -> Sequence[str]:
    return [str(folder) for folder in probe.ask("sees", paths=dict(marks))["unseen"]]


def _why_gone(probe: NodeProbe) -> str | None:
    """Why a node is lost, or None as long as that is not sure."""
    share = probe.share
    try:
        if over := why_ended(share.job):
            return over
        state = node_states([share.node]).get(share.node)
        if state is not None and not state.is_up:
            return f"node {share.node} has failed ({'+'.join(sorted(state.states))})"
    except EngineError as error:  # the controller is away: that alone ends no task
        if not probe.is_gone:
            return None
        return str(error).rstrip(".")
    if probe.is_gone:
        return f"Slurm ended the launcher's step on node {share.node}: {probe.words()}"
    if probe.silent_seconds > _SILENT_SECONDS:
        return f"node {share.node} has not answered for {_SILENT_SECONDS:g} s"
    return None
