"""Which device each operation runs on, and why."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export


@export("fleet.explain_placement")
def explain_placement(session: Any, fetches: Any = None) -> str:
    """A table of the operations a session has run (or would run for `fetches`), their devices and why.

    Print it: one line per operation, with its type, its device, and what decided: where it ran before,
    the `tf.device` around it, the operation it must stay with, soft placement, or the default.
    """
    placer = session._engine.placer
    if fetches is not None:
        session._plan(fetches, [])
    return placement_table(placer)


def placement_table(placer: Any) -> str:
    """The table of what a placer has placed."""
    rows = [("operation", "type", "device", "because")]
    for op, device in sorted(placer.placed.items(), key=lambda pair: pair[0]._id):
        rows.append((op.name, op.type, _short(device), placer.reason(op, device)))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    return "\n".join(lines)


def _short(device: str) -> str:
    return device.replace("/replica:0", "").replace("/job:localhost/task:0", "")
