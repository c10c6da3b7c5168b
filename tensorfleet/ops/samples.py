"""Sample calls of an op, kept beside its definition for the tests that walk the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet.base.types import Array


class case:
    """One call: the inputs as numpy arrays (a list for a list input), the attributes by keyword.

    `grad=False` keeps the numeric-gradient test away, for points where the op has a kink.
    """

    __slots__ = ("attrs", "grad", "inputs")

    def __init__(
        self, *inputs: Array | np.generic | Sequence[Array | np.generic], grad: bool = True, **attrs: Any
    ) -> None:
        self.inputs = inputs
        self.grad = grad
        self.attrs = attrs

    def __repr__(self) -> str:
        return f"case({len(self.inputs)} inputs, {self.attrs})"
