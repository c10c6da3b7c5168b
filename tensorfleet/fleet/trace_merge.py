"""From the recordings of several tasks to one Chrome trace: one clock, a process per task, arrows for transfers.

Decisions only: nothing here asks a task. The format is that of chrome://tracing and Perfetto ("JSON object format").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tensorfleet.fleet.clock_offsets import NONE, ClockOffset
from tensorfleet.fleet.recorded_steps import recorded_steps, without_other_steps

#: an event as a task tells it: kind, name, began, ended, thread, details; times by its steady clock
TaskEvent: TypeAlias = Sequence[Any]
#: an event of a Chrome trace
ChromeEvent: TypeAlias = dict[str, Any]

FORMAT_VERSION = 1
#: the rows of a process: first those of a kind that comes first
_ROW_ORDER = ("step", "stage", "input")
_ROW_NAMES = {"step": "sessions", "stage": "serves others", "input": "input pipeline"}


@dataclass
class TaskTrace:
    """What one task has recorded."""

    label: str
    host: str = ""
    pid: int = 0
    #: tells one process from another: several tasks may live in one
    process: str = ""
    clock: ClockOffset = NONE
    events: Sequence[TaskEvent] = field(default_factory=list)
    threads: dict[int, str] = field(default_factory=dict)
    steps: int = 0
    dropped: int = 0
    began: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What was asked for: it is stated in the trace."""

    steps: int
    seconds: float
    by_op: bool
    #: by the clock of whoever asked: the steady clock that the trace uses, and the same moment as Unix time
    steady_ns: int
    unix_ns: int


def merge(tasks: Iterable[TaskTrace], missing: Mapping[str, str], asked: TraceRequest) -> dict[str, Any]:
    """One trace of several tasks. `missing` says, by label, why a task is not in it."""
    processes = _by_process(tasks)
    steps = recorded_steps(event for task in processes for event in task.events)
    for task in processes:
        task.events = without_other_steps(task.events, steps)
    slices: list[ChromeEvent] = []
    names: list[ChromeEvent] = []
    origin = _origin(processes, asked)
    for pid, task in enumerate(processes, 1):
        numbers = _thread_numbers(task, pid)
        names += _names(task, pid, numbers)
        slices += [_slice(event, task, pid, numbers, origin) for event in task.events]
    arrows = _arrows(slices, {pid: task.label for pid, task in enumerate(processes, 1)})
    for event in slices:
        event["args"].pop("flow", None)
    # Of two slices that begin together the longer one is around the other.
    timed = sorted([*slices, *arrows], key=lambda e: (e["ts"], "sXf".index(e["ph"]), -e.get("dur", 0.0)))
    return {
        "traceEvents": [*names, *timed],
        "displayTimeUnit": "ms",
        "otherData": _about(processes, missing, asked, origin, len(arrows) // 2),
    }


def _origin(processes: Sequence[TaskTrace], asked: TraceRequest) -> int:
    """Where time begins in the trace: no task has recorded anything before."""
    starts = [task.began - task.clock.applied for task in processes if task.began]
    starts += [event[2] - task.clock.applied for task in processes for event in task.events]
    return min(starts, default=asked.steady_ns)


def _by_process(tasks: Iterable[TaskTrace]) -> list[TaskTrace]:
    """The tasks, those of one process as one."""
    result: dict[str, TaskTrace] = {}
    for task in tasks:
        key = task.process or task.label
        if key in result:
            result[key].label += f", {task.label}"
        else:
            result[key] = task
    return list(result.values())


def _thread_numbers(task: TaskTrace, pid: int) -> dict[int, int]:
    """A number for each thread, in the order of the rows; no two of a trace have the same."""
    kinds = _row_kinds(task)
    order = sorted(kinds, key=lambda thread: (kinds[thread], task.threads.get(thread, ""), thread))
    return {thread: pid * 10_000 + n for n, thread in enumerate(order)}


def _row_kinds(task: TaskTrace) -> dict[int, int]:
    """For each thread the position of what it does in `_ROW_ORDER`."""
    result: dict[int, int] = {}
    for kind, _, _, _, thread, _ in task.events:
        rank = _ROW_ORDER.index(kind) if kind in _ROW_ORDER else len(_ROW_ORDER)
        result[thread] = min(result.get(thread, rank), rank)
    return result


def _names(task: TaskTrace, pid: int, numbers: Mapping[int, int]) -> list[ChromeEvent]:
    """The names of a process and its threads."""
    where = f" ({task.host}, pid {task.pid})" if task.host else ""
    result = [
        _meta("process_name", pid, 0, {"name": task.label + where}),
        _meta("process_sort_index", pid, 0, {"sort_index": pid}),
    ]
    kinds = _row_kinds(task)
    for thread, tid in numbers.items():
        name = task.threads.get(thread, f"thread {thread}")
        if kinds[thread] < len(_ROW_ORDER):
            name = f"{_ROW_NAMES[_ROW_ORDER[kinds[thread]]]} ({name})"
        result.append(_meta("thread_name", pid, tid, {"name": name}))
        result.append(_meta("thread_sort_index", pid, tid, {"sort_index": tid}))
    return result


def _meta(name: str, pid: int, tid: int, args: dict[str, Any]) -> ChromeEvent:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _slice(
    event: TaskEvent, task: TaskTrace, pid: int, numbers: Mapping[int, int], origin: int
) -> ChromeEvent:
    kind, name, began, ended, thread, args = event
    start = began - task.clock.applied - origin
    return {
        "ph": "X",
        "cat": kind,
        "name": name,
        "pid": pid,
        "tid": numbers[thread],
        "ts": start / 1000,
        "dur": (ended - began) / 1000,
        "args": dict(args),
    }


def _arrows(slices: list[ChromeEvent], labels: Mapping[int, str]) -> list[ChromeEvent]:
    """An arrow from each send to its receive, of which both are here; both then tell how fast it was."""
    ends: dict[str, dict[str, ChromeEvent]] = {}
    for event in slices:
        if "flow" in event["args"]:
            ends.setdefault(event["args"]["flow"], {}).setdefault(event["args"]["end"], event)
    result: list[ChromeEvent] = []
    for both in ends.values():
        sent, received = both.get("out"), both.get("in")
        if sent is None or received is None:
            continue
        micros = received["ts"] - sent["ts"]
        size = sent["args"]["bytes"]
        speed = {"transfer_us": round(max(micros, 0.0), 3)}
        if size and micros > 0:
            speed["megabytes_per_second"] = round(size / micros, 3)
        if "via" in received["args"]:
            sent["args"].setdefault("via", received["args"]["via"])
        sent["args"] |= speed | {"peer": labels[received["pid"]]}
        received["args"] |= speed | {"peer": labels[sent["pid"]]}
        sent["name"] = f"send to {labels[received['pid']]}"
        received["name"] = f"receive from {labels[sent['pid']]}"
        if micros < 0:  # the clocks are not known well enough: an arrow would point back in time
            continue
        common = {"cat": "transfer", "name": "transfer", "id": len(result) // 2 + 1}
        result += [
            {"ph": "s", **common, "pid": sent["pid"], "tid": sent["tid"], "ts": sent["ts"]},
            {
                "ph": "f",
                "bp": "e",
                **common,
                "pid": received["pid"],
                "tid": received["tid"],
                "ts": received["ts"],
            },
        ]
    return result


def _about(
    processes: Sequence[TaskTrace], missing: Mapping[str, str], asked: TraceRequest, origin: int, arrows: int
) -> dict[str, Any]:
    """What is stated about the trace."""
    notes = [f"{label} is not in this trace: {why}" for label, why in missing.items()]
    for task in processes:
        if task.dropped:
            notes.append(
                f"{task.label} recorded more than it could keep: {task.dropped} events were left out."
            )
    if asked.by_op:
        notes.append(
            "The traced steps ran unfused: every operation by itself. Its cost is its own, and the steps took longer than "
            "they do otherwise."
        )
    return {
        "made_by": "tensorfleet",
        "format_version": FORMAT_VERSION,
        "by_op": asked.by_op,
        "steps_asked": asked.steps,
        "seconds_asked": asked.seconds,
        "start_unix_ns": asked.unix_ns + origin - asked.steady_ns,
        "arrows": arrows,
        "notes": notes,
        "tasks": {
            task.label: {
                "pid": pid,
                "process_id": task.pid,
                "host": task.host,
                "steps": task.steps,
                "events": len(task.events),
                "dropped": task.dropped,
                "recorded_ms": (task.ended - task.began) / 1e6,
                "clock_offset_ms": task.clock.wall / 1e6,
                "steady_clock_offset_us": task.clock.steady / 1000,
                "corrected_by_us": task.clock.applied / 1000,
                "clock_uncertainty_us": task.clock.uncertainty / 1000,
            }
            for pid, task in enumerate(processes, 1)
        },
    }
