"""Sixteen bits on the wire: 32-bit floats between tasks can be sent as half of them, computed and stored in full.

Chosen by `tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))`, or by TENSORFLEET_WIRE=bfloat16 (or
float16) in the environment of the session's process. What the user feeds and fetches is never thinned.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tensorfleet import dtypes, errors
from tensorfleet.graph.operation import Tensor

_FULL = np.dtype(np.float32)
_CHOICES = {"bfloat16": dtypes.bfloat16.np_dtype, "float16": dtypes.float16.np_dtype}


def wire_type(config: Any) -> str:
    """The element type that a session sends 32-bit floats in, or an empty string for their own."""
    if config.graph_options.enable_bfloat16_sendrecv:
        return "bfloat16"
    chosen = os.environ.get("TENSORFLEET_WIRE", "")
    if chosen and chosen not in (*_CHOICES, "float32"):
        raise errors.InvalidArgumentError(
            None, None, f"TENSORFLEET_WIRE is {chosen!r}; it can be bfloat16, float16 or float32."
        )
    return chosen if chosen in _CHOICES else ""


def is_full(tensor: Tensor) -> bool:
    """Whether a tensor is one that can be thinned."""
    return tensor.dtype.base_dtype == dtypes.float32


def thin(value: Any, kind: str) -> np.ndarray:
    """A value as it is sent."""
    return np.asarray(value).astype(_CHOICES[kind])


def full(value: Any) -> Any:
    """A 32-bit value as it is used, however it came."""
    return value if value.dtype == _FULL else value.astype(_FULL)
