"""The graphs of the sessions that run in this task, and the tasks that compute their tensors."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.cluster.inspection.topics import Names, Options, Report, chosen
from tensorfleet.cluster.master.master import cluster_engines
from tensorfleet.graph.graph import Graph
from tensorfleet.passes.partition import task_of
from tensorfleet.runtime.engine import live_engines
from tensorfleet.runtime.numeric_checks import line_of
from tensorfleet.runtime.tensor_watch import tensor_named

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_TASK = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")
_TRIES = 10
_MAX_NEAREST = 3
_MAX_OPS = 1000  # of one question for lines


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whose lines are wanted."""

    ops: Names = ()


def graphs() -> list[Graph]:
    """The graphs of this process's sessions, and of those that this task runs stages for."""
    for _ in range(_TRIES):
        with contextlib.suppress(RuntimeError):  # a session is being made in this moment
            every = [e.graph for e in live_engines] + [e.graph for e in cluster_engines()]
            return list({id(graph): graph for graph in every}.values())
    return []


def full_name(name: str) -> str:
    """The name of a tensor that is known in one of the graphs. Raises NotFoundError, which offers the nearest."""
    known = graphs()
    if not known:
        raise errors.NotFoundError(
            None, None, "No session has been made in this task. Watch a task whose script makes one."
        )
    for graph in known:
        tensor = tensor_named(graph, name)
        if tensor is not None:
            return tensor.name
    near = nearest(name, known)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise errors.NotFoundError(None, None, f"No tensor {name[:200]!r} in the sessions of this task.{meant}")


def nearest(name: str, known: Iterable[Graph]) -> list[str]:
    """The names of tensors that are most like a name: one that ends or begins like it, else one of similar spelling."""
    wanted = name.partition(":")[0]
    names = [op.name for graph in known for op in list(graph._ops) if op._outputs]
    like = [n for n in names if n.endswith("/" + wanted) or wanted.lower() == n.lower()][:_MAX_NEAREST]
    like = like or difflib.get_close_matches(wanted, names, _MAX_NEAREST)
    return [f"{n}:0" for n in dict.fromkeys(like)]


def task_that_computes(name: str) -> str | None:
    """The label of the task on which a session of this process has placed a tensor, None where that is not known."""
    for engine in cluster_engines():
        tensor = tensor_named(engine.graph, name)
        device = None if tensor is None else engine.placer.placed.get(tensor._op)
        match = _TASK.match(task_of(device)) if device else None
        if match is not None:
            return f"{match[1]}/{match[2]}"
    return None


def made_at(server: Server | None, options: Options) -> Report:
    """Topic `made_at`: the lines of the program that made some operations, where it is known here."""
    wanted: _Asked = chosen(_Asked, options)
    names = wanted.ops[:_MAX_OPS]
    lines: dict[str, Any] = {}
    for graph in graphs():
        for name in names:
            op = graph._by_name.get(name)
            line = line_of(op) if op is not None else {"line": ""}
            if line["line"]:
                lines[name] = line
    return Report({"lines": lines})
