"""Sample calls of an op, kept beside its definition for the tests that walk the whole table."""

from __future__ import annotations

from typing import Any


class case:
    """One call: the inputs as numpy arrays (a list for a list input), the attributes by keyword.

    `grad=False` keeps the numeric-gradient test away, for points where the op has a kink.
    """

    __slots__ = ("attrs", "grad", "inputs")

    def __init__(self, *inputs: Any, grad: Any = True, **attrs: Any) -> None:
        self.inputs = inputs
        self.grad = grad
        self.attrs = attrs

    def __repr__(self) -> str:
        return f"case({len(self.inputs)} inputs, {self.attrs})"
