"""Sixteen bits on the wire: 32-bit floats between tasks can be sent as half of them, computed and stored in full.

Chosen by `tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))`, or by TENSORFLEET_WIRE=bfloat16 (or
float16) in the environment of the session's process. What the user feeds and fetches is never thinned.

A finite value that is too large for 16 bits is sent as the largest finite one: an infinity in a gradient would destroy
the variable. The process that sends it says so, once for each tensor, and again in total.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.base import dtypes, errors, logging, settings
from tensorfleet.graph.operation import Tensor

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.base.types import Array

_FULL = np.dtype(np.float32)
_CHOICES = {"bfloat16": dtypes.bfloat16.np_dtype, "float16": dtypes.float16.np_dtype}
_LARGEST = {kind: float(dtypes.as_dtype(kind).max) for kind in _CHOICES}
_TOTALS_EVERY_SECONDS = 60.0  # seconds


def wire_type(config: ConfigProto) -> str:
    """The element type that a session sends 32-bit floats in, or an empty string for their own."""
    if config.graph_options.enable_bfloat16_sendrecv:
        return "bfloat16"
    chosen = settings.WIRE()
    if chosen and chosen not in (*_CHOICES, "float32"):
        raise errors.InvalidArgumentError(
            None, None, f"TENSORFLEET_WIRE is {chosen!r}; it can be bfloat16, float16 or float32."
        )
    return chosen if chosen in _CHOICES else ""


def is_full(tensor: Tensor) -> bool:
    """Whether a tensor is one that can be thinned."""
    return tensor.dtype.base_dtype == dtypes.float32


def thin(value: Array, kind: str, edge: str) -> np.ndarray:
    """A value as it is sent. `edge` names it in the warning about values that do not fit."""
    exact = np.asarray(value)
    with np.errstate(over="ignore"):  # the values that overflow are replaced below
        sent = exact.astype(_CHOICES[kind])
    infinite = np.isinf(sent)
    if infinite.any():
        too_large = infinite & np.isfinite(exact)
        count = int(np.count_nonzero(too_large))
        if count:
            sent = np.where(too_large, np.copysign(_LARGEST[kind], exact).astype(sent.dtype), sent)
            _log(saturated.add(edge, kind, count, float(np.abs(exact[too_large]).max()), time.monotonic()))
    return sent


def full(value: Array) -> Array:
    """A 32-bit value as it is used, however it came."""
    return value if value.dtype == _FULL else value.astype(_FULL)


class Saturated:
    """Counts the values that did not fit, and decides when that is worth a line in the log."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()  # by edge
        self._unlogged = 0  # counted since the last line
        self._logged_at = 0.0
        self._lock = threading.Lock()

    def add(self, edge: str, kind: str, count: int, largest: float, now: float) -> str | None:
        """Counts values of an edge; the line to log: the first of each edge, and the total once a minute."""
        with self._lock:
            is_new = edge not in self._counts
            if not self._counts:
                self._logged_at = now
            self._counts[edge] += count
            if is_new:
                return (
                    f"{count} {'value' if count == 1 else 'values'} of {edge}, up to {largest:g}: too large for {kind}, sent "
                    f"as {_LARGEST[kind]:g}. Scale the tensor, or {_remedy(kind)}"
                )
            self._unlogged += count
            if now - self._logged_at < _TOTALS_EVERY_SECONDS:
                return None
            self._logged_at = now
            return self._total()

    def rest(self) -> str | None:
        """The total, if there were more since the last line."""
        with self._lock:
            return self._total() if self._unlogged else None

    def _total(self) -> str:
        self._unlogged = 0
        edge, most = self._counts.most_common(1)[0]
        return (
            f"So far {sum(self._counts.values())} values were too large for 16 bits on the wire and were sent as the largest "
            f"finite number. Tensors: {len(self._counts)}, most often {edge} ({most} values)."
        )


saturated = Saturated()


def _remedy(kind: str) -> str:
    if kind == "float16":
        return "use TENSORFLEET_WIRE=bfloat16, which has the range of float32, or leave it out."
    return "leave out TENSORFLEET_WIRE and enable_bfloat16_sendrecv."


def _log(line: str | None) -> None:
    if line is not None:
        logging.warning("%s", line)


atexit.register(lambda: _log(saturated.rest()))
