"""Types of what passes through a step. They are for readers and type checkers; nothing looks at them at run time."""

from __future__ import annotations

from typing import Any, TypeAlias

#: Values by slot, or in the order of inputs and results. An element is an array (of NumPy, of JAX, or what stands for
#: one while XLA traces), packed strings, or the resource behind a handle; None is a value in a branch not taken.
Values: TypeAlias = list[Any]

#: What tells the programs of a segment or loop apart: shapes, and the bytes of arguments that must be known.
Signature: TypeAlias = tuple[Any, ...]
