"""Topic `graph`: the operations of each session that runs here or has registered some here, with their devices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.inspection import own_task
from tensorfleet.cluster.inspection.topics import Options, Report, chosen
from tensorfleet.cluster.master.master import ClusterEngine

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.engine import LocalEngine

MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class _Options:
    """How many nodes to tell at most, and the version that the asker has already."""

    nodes: int = MAX_NODES
    unless: str = ""


def report(server: Server | None, options: Options) -> Report:
    """The graphs, the one with the most operations first. `left_out` says how many operations are not in the report.

    `version` is another text when operations were added or placed. With option `unless`, a report of that version says
    `is_unchanged` and no more.
    """
    wanted: _Options = chosen(_Options, options)
    if not 1 <= wanted.nodes <= MAX_NODES:
        raise errors.InvalidArgumentError(
            None, None, f"nodes must be a whole number from 1 to {MAX_NODES}, not {wanted.nodes!r}."
        )
    engines = sorted(_engines(own_task.server_here(server)), key=lambda e: -len(e[1].graph._ops))
    version = _version(engines)
    if wanted.unless == version:
        return Report({"version": version, "is_unchanged": True})
    room, left_out, sessions = wanted.nodes, 0, []
    for session, engine in engines:
        ops = list(engine.graph._ops)
        shown = ops[:room]
        room -= len(shown)
        left_out += len(ops) - len(shown)
        if shown:
            placed = engine.placer.placed
            sessions.append({"session": session, "graph": [_node(op, placed.get(op, "")) for op in shown]})
    return Report({"version": version, "sessions": sessions, "left_out": left_out})


def _version(engines: Iterable[tuple[str, LocalEngine | ClusterEngine]]) -> str:
    # Operations are only added, and placed once.
    counts = [(session, len(engine.graph._ops), len(engine.placer.placed)) for session, engine in engines]
    return hashlib.sha256(repr(counts).encode()).hexdigest()[:16]


def _engines(server: Server | None) -> Iterator[tuple[str, LocalEngine | ClusterEngine]]:
    """The engines of this process's sessions, and of those that have stages here."""
    own = own_task.engines()
    for engine in own:
        yield own_task.session_name(engine), engine
    handles = {engine.handle for engine in own if isinstance(engine, ClusterEngine)}
    for handle, stages in [] if server is None else server.worker.engines():
        if handle not in handles:
            yield handle, stages


def _node(op: Operation, device: str) -> dict[str, Any]:
    return {
        "name": op.name,
        "op": op.type,
        "device": device or op.device,
        "inputs": [*(t.name for t in op.inputs), *(f"^{c.name}" for c in op.control_inputs)],
        "line": op.source_line,
    }
