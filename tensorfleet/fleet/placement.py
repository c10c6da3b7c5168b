"""Which device each operation runs on, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.base.naming import export
from tensorfleet.session.session import BaseSession

if TYPE_CHECKING:
    from tensorfleet.passes.place import Placer


@export("fleet.explain_placement")
def explain_placement(session: object, fetches: object = None) -> str:
    """A table of the operations a session has run (or would run for `fetches`), their devices and why.

    Print it: one line per operation, with its type, its device, and what decided: where it ran before,
    the `tf.device` around it, the operation it must stay with, soft placement, or the default.
    `session` is a `tf.Session`, or a monitored session.
    """
    plain = _plain_session(session)
    if fetches is not None:
        plain._check_devices()
        plain._plan(fetches, [])
    return placement_table(plain._engine.placer)


def _plain_session(given: object) -> BaseSession:
    """The session inside the wrappers of monitored sessions."""
    result: Any = given
    while not isinstance(result, BaseSession):
        inside = getattr(result, "_tf_sess", None)
        if inside is None and not hasattr(result, "_sess"):
            raise TypeError(
                f"session must be a tf.Session or a monitored session, but got {type(given)}. Pass the session whose "
                "operations you want to see."
            )
        result = result._sess if inside is None else inside()
        if result is None:
            raise RuntimeError("Session is already closed. Explain its placement before it is closed.")
    return result


def placement_table(placer: Placer) -> str:
    """The table of a placer's operations."""
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
