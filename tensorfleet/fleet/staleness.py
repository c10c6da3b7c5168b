"""`tf.fleet.StalenessOptimizer`: asynchronous training that knows how old its gradients are."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.graph.apply import apply, constant
from tensorfleet.graph.operation import IndexedSlices, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.basic import group
from tensorfleet.ops.cast import cast
from tensorfleet.ops.control_flow import cond
from tensorfleet.platform import logging
from tensorfleet.train.global_step import get_global_step
from tensorfleet.train.optimizer import Optimizer
from tensorfleet.train.session_run_hook import SessionRunHook
from tensorfleet.variables.variable import Variable

POLICIES = ("measure", "scale", "drop", "wait")
_ENDED = np.iinfo(np.int64).max // 2


@export("fleet.StalenessOptimizer")
class StalenessOptimizer(Optimizer):
    """Wraps an optimizer of workers that do not wait for each other.

    The staleness of a gradient is the number of updates that others made after its variables were read. After
    `apply_gradients` (or `minimize`) it is the tensor `staleness`, to fetch, log or summarize.

    policy "measure": every gradient is applied as it is.
    policy "scale": a gradient is divided by one more than its staleness.
    policy "drop": a gradient staler than `bound` is not applied, and the global step does not count it.
    policy "wait": a worker that is more than `bound` steps ahead of the slowest waits for it; pass
    `make_session_run_hook(task_index)` to its `MonitoredTrainingSession`, and `num_workers` here.
    """

    def __init__(
        self,
        opt: Optimizer,
        policy: str = "measure",
        bound: int | None = None,
        num_workers: int | None = None,
        name: str = "staleness",
    ) -> None:
        super().__init__(False, name)
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}.")
        if (bound is not None) != (policy in ("drop", "wait")) or (bound is not None and bound < 0):
            raise ValueError(f"The policies drop and wait need a bound of 0 or more; {policy!r} got {bound}.")
        if policy == "wait" and not num_workers:
            raise ValueError("The policy wait needs num_workers, the number of workers to wait for.")
        self._opt = opt
        self._policy = policy
        self._bound = bound
        self._num_workers = num_workers
        self._seen: Any = None
        self._steps: Any = None
        self.staleness: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list:
        """As the wrapped optimizer; also notes at which step the variables were read."""
        step = get_global_step()
        if step is None:
            raise ValueError(
                "Staleness is counted in global steps: call tf.train.create_global_step() first."
            )
        self._seen = apply("Identity", step, name=f"{self._name}_seen")
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """An operation that applies the gradients as the policy says."""
        if self._seen is None:
            raise ValueError("Make the gradients with compute_gradients() of this optimizer.")
        global_step = get_global_step() if global_step is None else global_step
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        with name_scope(name, self._name):
            ready = [g.values if isinstance(g, IndexedSlices) else g for g, _ in pairs]
            with control_dependencies(ready), colocate_with(global_step.op):
                now = global_step.read_value()
                self.staleness = apply("Sub", now, self._seen, name="staleness")
            if self._policy == "scale":
                pairs = [(_divided(g, self.staleness), v) for g, v in pairs]
            if self._policy == "wait":
                zeros = np.zeros(self._num_workers or 0, np.int64)
                self._steps = Variable(zeros, trainable=False, name="worker_steps")
        if self._policy == "drop":
            return self._unless_stale(pairs, global_step)
        with control_dependencies([self.staleness]):
            return self._opt.apply_gradients(pairs, global_step, name)

    def _unless_stale(self, pairs: list, global_step: Any) -> Any:
        with control_dependencies(None):
            self._opt._create_slots([v for _, v in pairs])

        def update() -> Tensor:
            with control_dependencies([self._opt.apply_gradients(pairs, global_step)]):
                return constant(True)

        def leave() -> Tensor:
            return constant(False)

        fresh = apply("LessEqual", self.staleness, np.int64(self._bound or 0))
        return group(cond(fresh, update, leave), name=f"{self._name}_update")

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The slot that the wrapped optimizer keeps for a variable."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list:
        """Everything that the wrapped optimizer keeps."""
        return self._opt.variables()

    def make_session_run_hook(self, task_index: int, max_wait_secs: float = 60.0) -> SessionRunHook:
        """For the policy "wait": holds this worker back when it is too far ahead.

        A worker that makes no step for `max_wait_secs` is not waited for until it makes one.
        """
        if self._steps is None or self._bound is None:
            raise ValueError('The hook is for the policy "wait", after apply_gradients() or minimize().')
        return _Wait(self._steps, task_index, self._bound, max_wait_secs)


def _divided(grad: Any, staleness: Tensor) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(_divided(grad.values, staleness), grad.indices, grad.dense_shape)
    return grad / (cast(staleness, grad.dtype.base_dtype) + 1)


class _Wait(SessionRunHook):
    """Counts this worker's steps where all workers see them, and waits for the slowest."""

    def __init__(self, steps: Any, task_index: int, bound: int, max_wait_secs: float) -> None:
        self._steps = steps
        self._me = task_index
        self._bound = bound
        self._max_wait_secs = max_wait_secs
        self._slowest = -1
        self._lost: dict[int, int] = {}

    def begin(self) -> None:
        """Adds the operation that tells how far this worker is."""
        self._mine = 0
        self._value = apply("Placeholder", dtype=dtypes.int64, shape=[])
        self._tell = apply(
            "ScatterUpdate", self._steps._ref(), [self._me], apply("ExpandDims", self._value, 0)
        )

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts where the slowest is."""
        self._mine = int(session.run(self._steps).min())
        session.run(self._tell, {self._value: self._mine})

    def before_run(self, run_context: Any) -> None:
        """Waits while this worker is too far ahead."""
        if self._mine - self._slowest <= self._bound:
            return
        began, seen = time.monotonic(), None
        while True:
            steps = run_context.session.run(self._steps)
            counted = [int(n) for i, n in enumerate(steps) if i != self._me and self._lost.get(i) != int(n)]
            self._slowest = min(counted, default=_ENDED)
            if self._mine - self._slowest <= self._bound:
                return
            if seen != self._slowest:
                began, seen = time.monotonic(), self._slowest
            if time.monotonic() - began > self._max_wait_secs:
                self._lost.update({i: int(n) for i, n in enumerate(steps) if int(n) == self._slowest})
                logging.warning("Workers %s made no step; not waiting for them.", sorted(self._lost))
            time.sleep(0.005)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Tells that a step is done."""
        self._mine += 1
        run_context.session.run(self._tell, {self._value: self._mine})

    def end(self, session: Any) -> None:
        """Nobody needs to wait for this worker any more."""
        session.run(self._tell, {self._value: _ENDED})
