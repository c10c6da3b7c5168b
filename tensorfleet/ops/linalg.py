"""Matrix factorizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import op
from tensorfleet.ops.examples import case
from tensorfleet.shapes import TensorShape


def _qr_shape(op: Operation) -> list[TensorShape]:
    shape = op._inputs[0].shape.with_rank_at_least(2)
    if shape.rank is None:
        return [shape, shape]
    *batch, m, n = shape.as_list()
    small = None if m is None or n is None else min(m, n)
    if op._attrs["full_matrices"]:
        return [TensorShape([*batch, m, m]), TensorShape([*batch, m, n])]
    return [TensorShape([*batch, m, small]), TensorShape([*batch, small, n])]


@op(
    "Qr",
    "input: T -> q: T, r: T",
    "full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
    shape=_qr_shape,
    examples=[case(np.array([[2.0, 1.0], [1.0, 3.0], [0.5, 1.0]], np.float64), grad=False)],
)
def _qr(xp: Any, x: Any, *, full_matrices: bool) -> Any:
    q, r = xp.linalg.qr(x, mode="complete" if full_matrices else "reduced")
    return q, r
