"""What a trace tells of a transfer between tasks: its names, its bytes, and how both ends find each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.cluster.transport.tensor_bytes import as_array, describe
from tensorfleet.cluster.transport.wire import HEADER_BYTES

if TYPE_CHECKING:
    from tensorfleet.cluster.transport.wire import Channel

_TASK = re.compile(r"/job:([^/]+)(?:/replica:\d+)?/task:(\d+)")
_MAX_EDGES = 40  # named in one event


def label_of(task: str) -> str:
    """The short name of a task, as in ps/0."""
    match = _TASK.fullmatch(task)
    return f"{match[1]}/{match[2]}" if match else task


def payload_bytes(values: Sequence[Any]) -> list[int]:
    """The bytes of each tensor as it is sent: those of a string tensor are its table and its texts."""
    return [array.nbytes for array in describe([as_array(v) for v in values])[3]]


def frame_bytes(fields: bytes, values: Sequence[Any]) -> int:
    """How long the frame with these fields and tensors is, where no memory is shared."""
    blob, _, total, _ = describe([as_array(v) for v in values])
    return HEADER_BYTES + len(fields) + len(blob) + total


def way(channel: Channel) -> str:
    """How the bytes of a connection travel."""
    if channel.shares_memory:
        return "shared memory"
    return "tcp" if channel.can_be_polled else "tls"


def transfer(
    flow: str, end: str, names: Sequence[str], values: Sequence[Any], fields: bytes, channel: Channel | None
) -> dict[str, Any]:
    """The details of one end ("out" or "in") of a transfer: tensors that went in one frame.

    `bytes` are those of the tensors, `frame_bytes` those of the whole frame where it crosses a network.
    """
    sizes = payload_bytes(values)
    edges = [f"{name} ({size} B)" for name, size in zip(names, sizes, strict=False)]
    if len(edges) > _MAX_EDGES:
        edges = [*edges[:_MAX_EDGES], f"and {len(edges) - _MAX_EDGES} more"]
    result: dict[str, Any] = {
        "flow": flow,
        "end": end,
        "edges": edges,
        "bytes": sum(sizes),
        "frame_bytes": frame_bytes(fields, values),
    }
    return result if channel is None else {**result, "via": way(channel)}


def request_flow(session: str, step: int, stage: int) -> str:
    """What identifies the values that are sent with the request for a stage."""
    return f"{session}/{step}/{stage}/request"


def reply_flow(session: str, step: int, stage: int) -> str:
    """What identifies the values that a stage replies with."""
    return f"{session}/{step}/{stage}/reply"


def push_flow(session: str, step: int, names: Sequence[str], task: str) -> str:
    """What identifies values that one task sends to another for a step."""
    return f"{session}/{step}/push/{task}/{names[0] if names else ''}"
