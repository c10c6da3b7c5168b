"""The sample calls that op blocks carry, as lists of cases to run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.samples import case


def all_cases() -> list[tuple[str, int, case]]:
    """(op name, number, case) for every sample in the table."""
    return [
        (name, i, c) for name, spec in sorted(registry.all_ops().items()) for i, c in enumerate(spec.examples)
    ]


def placeholders_for(name: str, sample: case, unknown: bool = False) -> list[Any]:
    """Inputs for one case: placeholders, but constants where the op needs the value to know its shape."""
    spec = registry.get(name)
    inputs: list[Any] = []
    for i, value in enumerate(sample.inputs):
        if isinstance(value, list):
            inputs.append([_placeholder(v, unknown) for v in value])
        elif i in spec.static and not unknown:
            inputs.append(_constant(value))
        else:
            inputs.append(_placeholder(value, unknown))
    return inputs


def _constant(value: object) -> Tensor:
    array = np.asarray(value)
    return constant(array, dtypes.as_dtype(array.dtype))


def _placeholder(value: object, unknown: bool) -> Tensor:
    array = np.asarray(value)
    dtype = dtypes.as_dtype(array.dtype)
    shape = [None] * array.ndim if unknown else array.shape
    return apply("Placeholder", dtype=dtype, shape=shape)


def feed_for(inputs: list[Any], sample: case) -> dict[Tensor, Any]:
    """The feed_dict of one case."""
    feed: dict[Tensor, Any] = {}
    for made, value in zip(inputs, sample.inputs, strict=True):
        pairs = zip(made, value, strict=True) if isinstance(value, list) else [(made, value)]
        feed.update({t: v for t, v in pairs if t.op.type == "Placeholder"})
    return feed
