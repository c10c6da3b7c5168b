"""What a trace says in a few lines: the slowest items, the time in transfers, the waits of each task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: slices that do work themselves
_WORK = ("segment", "op", "host op", "loop", "input")
_MAX_NAME = 48


@dataclass(frozen=True, slots=True)
class Line:
    """Slices of one kind, task and name together. Times in microseconds."""

    task: str
    kind: str
    name: str
    count: int
    total: float
    longest: float
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The lines of a trace, those with the most time first."""

    steps: Mapping[str, int]
    items: Sequence[Line]
    #: from a task (or out of its shared memory) to another
    transfers: Sequence[Line]
    waits: Sequence[Line]
    notes: Sequence[str]


def summarize(trace: Mapping[str, Any]) -> Summary:
    """Adds up the slices of a trace."""
    about = trace["otherData"]
    labels = {task["pid"]: label for label, task in about["tasks"].items()}
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    # A transfer is told by its receiver, who also knows how long it was under way.
    moved = [e for e in slices if e["cat"] == "shared read" or (e["cat"] == "receive" and e["args"]["bytes"])]
    return Summary(
        {label: task["steps"] for label, task in about["tasks"].items() if task["steps"]},
        _added(slices, labels, _WORK),
        _added(moved, labels, ("receive", "shared read")),
        _added(slices, labels, ("wait",)),
        about["notes"],
    )


def _added(
    slices: Iterable[Mapping[str, Any]], labels: Mapping[int, str], kinds: Sequence[str]
) -> list[Line]:
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for e in slices:
        if e["cat"] in kinds:
            groups.setdefault((labels[e["pid"]], e["cat"], e["name"]), []).append(e)
    lines = []
    for (task, kind, name), own in groups.items():
        times = [e["args"].get("transfer_us", e["dur"]) for e in own]
        size = sum(e["args"].get("bytes", 0) for e in own)
        lines.append(Line(task, kind, name, len(own), sum(times), max(times), size))
    return sorted(lines, key=lambda line: (-line.total, line.task, line.name))


def as_text(summary: Summary, most: int = 10) -> str:
    """The summary as tables for a screen."""
    parts = []
    if summary.steps:
        parts.append("Steps: " + ", ".join(f"{n} of {task}" for task, n in summary.steps.items()) + ".")
    parts.append(_table("Slowest items (those inside others count in both)", summary.items, most))
    transfers = _table("Transfers", summary.transfers, most, has_bytes=True)
    parts.append(transfers or "No values went from task to task.")
    parts.append(_table("Waits", summary.waits, most))
    parts += [f"Note: {note}" for note in summary.notes]
    return "\n\n".join(part for part in parts if part)


def _table(title: str, lines: Sequence[Line], most: int, has_bytes: bool = False) -> str:
    if not lines:
        return ""
    header = ["task", "kind", "name", "count", "total ms", "mean ms", "longest ms"]
    rows = [header + (["MB", "MB/s"] if has_bytes else [])]
    for line in lines[:most]:
        row = [line.task, line.kind, _short(line.name), str(line.count)]
        row += [f"{t / 1000:.3f}" for t in (line.total, line.total / line.count, line.longest)]
        if has_bytes:
            speed = line.bytes / line.total if line.total else 0.0  # bytes per microsecond
            row += [f"{line.bytes / 1e6:.3f}", f"{speed:.1f}"]
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    texts = []
    for row in rows:
        cells = [
            c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        texts.append("  " + "  ".join(cells).rstrip())
    more = f" (the {most} longest of {len(lines)})" if len(lines) > most else ""
    return "\n".join([f"{title}{more}:", *texts])


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else "..." + name[3 - _MAX_NAME :]
