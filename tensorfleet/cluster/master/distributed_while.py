"""Loops over several tasks: the master decides about every iteration, and each is a step of its own inside the step.

A loop whose operations can all be on one task runs there, as one operation. What is left are loops that change or read, in
every iteration, what different tasks hold. Their condition and their body are programs like any other; the loop
variables are fed to them and fetched from them. What comes from outside is sent once and kept, if it is more than a little. An
array or a stack stays in the task that made it, which keeps it for the whole step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorfleet.graph.operation import Tensor
from tensorfleet.passes.control_flow import Loop, is_variable
from tensorfleet.passes.plan import Guard

if TYPE_CHECKING:
    from tensorfleet.cluster.master.cluster_program import ClusterProgram, StageProgram
    from tensorfleet.cluster.master.step_driver import StepDriver
    from tensorfleet.runtime.values import Values

_MIN_KEPT_BYTES = 1 << 12  # smaller values cost nothing in a message


class DividedLoop:
    """One loop of a cluster's program. It stands where other stages have the program of their own task."""

    inline = False

    def __init__(
        self, loop: Loop, cond: ClusterProgram, body: ClusterProgram, slots: dict[Tensor, int], guard: Guard
    ) -> None:
        self._cond, self._body = cond, body
        #: the durable tasks that its iterations use
        self.durable = (cond.durable or frozenset()) | (body.durable or frozenset())
        self._initial = [slots.setdefault(t, len(slots)) for t in loop.initial]
        self._fixed = [slots.setdefault(t, len(slots)) for t, _ in loop.fixed]
        self._guard = [(slots.setdefault(p, len(slots)), wanted) for p, wanted in guard]
        self._results = [(i, t.dtype.np_dtype) for i, t in loop.results]

    def run(self, run: StepDriver) -> Values:
        """Runs the loop as a part of a step, and gives what comes out of it."""
        values = run.values
        if not all(np.size(values[s]) and bool(values[s]) == wanted for s, wanted in self._guard):
            return [np.zeros(0, kind) for _, kind in self._results]  # nobody looks at what was not computed
        fixed = [values[s] for s in self._fixed]
        variables = [values[s] for s in self._initial]
        sent: set[StageProgram] = set()
        while True:
            holds, *lent = run.inner(self._cond, [*variables, *fixed], sent)
            if not holds:
                return [variables[i] for i, _ in self._results]
            variables = run.inner(self._body, [*variables, *variables, *fixed, *lent], sent)


def is_handle(tensor: Tensor) -> bool:
    """Whether a tensor stands for something in the memory of its task, other than a variable."""
    return tensor.dtype.base_dtype.name == "resource" and not is_variable(tensor)


def handles_inside(loop: Loop, outside: dict[Tensor, Tensor]) -> dict[Tensor, Tensor]:
    """For the handles in a loop, which one from before all loops each is; `outside` tells it of those around it."""
    origins = dict(outside)
    for source, inside in loop.fixed:
        if is_handle(source):
            origins[inside] = outside.get(source, source)
    return origins


def worth_keeping(tensor: Tensor) -> bool:
    """Whether a task had better keep a value for all iterations of a loop than hear of it in each."""
    elements = tensor.shape.num_elements()
    return elements is None or elements * tensor.dtype.size >= _MIN_KEPT_BYTES


def carries_handle(loop: Loop) -> Tensor | None:
    """A loop variable that is a handle itself, if there is one: it would have to go from task to task."""
    return next((t for t in loop.initial if is_handle(t)), None)
