"""Topics `watch` and `watch_take`: values of tensors in the coming steps of this task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.cluster.inspection import graphs, leases
from tensorfleet.cluster.inspection.topics import Names, Options, Report, chosen
from tensorfleet.runtime.tensor_watch import Seen, TensorWatch
from tensorfleet.runtime.value_stats import statistics

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server

_MAX_TENSORS = 1000
_MAX_OTHERS = 10  # steps that did not compute the tensor, named in a report
_MAX_POLL_SECONDS = 5.0  # below the lease


@dataclass
class _Start:
    tensors: Names = ()
    steps: int = 1
    #: the task whose session's steps count; empty for all
    session: str = ""


@dataclass
class _Take:
    id: str = ""
    seconds: float = 1.0
    #: statistics only: the values stay here
    stats: bool = False


def start(server: Server | None, options: Options) -> Report:
    """Begins a watch. Tells its id, and for each tensor its full name and the task that computes it."""
    wanted: _Start = chosen(_Start, options)
    tensors = wanted.tensors
    if not 1 <= len(tensors) <= _MAX_TENSORS:
        raise errors.InvalidArgumentError(None, None, f"Name between 1 and {_MAX_TENSORS} tensors to watch.")
    if wanted.steps < 1:
        raise errors.InvalidArgumentError(None, None, "Watch a whole number of steps, at least 1.")
    names = [graphs.full_name(str(name)) for name in tensors]
    places = [{"name": name, "task": graphs.task_that_computes(name)} for name in names]
    number = leases.begin(TensorWatch(names, wanted.steps, str(wanted.session)))
    return Report({"id": number, "tensors": places})


def take(server: Server | None, options: Options) -> Report:
    """What was seen since the last question, after at most some seconds."""
    wanted: _Take = chosen(_Take, options)
    watch = leases.renewed(str(wanted.id))
    if not isinstance(watch, TensorWatch):
        raise errors.InvalidArgumentError(None, None, "This is the id of another kind of watch.")
    seen, done = watch.take(min(float(wanted.seconds), _MAX_POLL_SECONDS))
    arrays: list[np.ndarray[Any, Any]] = []
    content = [_content(one, bool(wanted.stats), arrays) for one in seen]
    with watch.changed:
        others = dict(watch.others.most_common(_MAX_OTHERS))
    told = {
        "seen": content,
        "done": done,
        "others": others,
        "reasons": watch.reasons,
        "dropped": watch.dropped,
    }
    return Report(told, arrays)


def _content(one: Seen, stats: bool, arrays: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "name": one.name,
        "step": one.step,
        "time": one.time,
        "fetches": one.fetches,
        "session": one.session,
    }
    if stats:
        result["stats"] = statistics(one.value)
    elif one.value.dtype.kind in "OSU":
        result["texts"] = [_text(v) for v in one.value.ravel().tolist()]
        result["shape"] = list(one.value.shape)
    else:
        result["array"] = len(arrays)
        arrays.append(one.value)
    return result


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
