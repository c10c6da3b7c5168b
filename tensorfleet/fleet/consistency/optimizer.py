"""`tf.fleet.Optimizer`: any optimizer, under any consistency."""

from __future__ import annotations

import json
import os
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train.optimizer import Optimizer, without_detour
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import settings
from tensorfleet.base.naming import export
from tensorfleet.fleet.checking import whole_number
from tensorfleet.fleet.consistency.learning_rate import RateScaling, multiplied_rate, rate_of
from tensorfleet.fleet.consistency.text import Consistency, Schedule, parse
from tensorfleet.fleet.consistency.wiring import GatedUpdate, Training
from tensorfleet.graph.apply import apply
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph, name_scope
from tensorfleet.ops.array.basic import group

if TYPE_CHECKING:
    from tensorfleet.api.train.types import GlobalStep, Gradient, GradsAndVars
    from tensorfleet.graph.graph import Graph

#: by graph the keys that its trainings have
_trainings: weakref.WeakKeyDictionary[Graph, Counter[str]] = weakref.WeakKeyDictionary()
_JOBS_THAT_TRAIN = ("chief", "master", "worker")


@export("fleet.Optimizer")
class FleetOptimizer(Optimizer):
    """Wraps an optimizer: `consistency` says how far workers may drift apart, and what becomes of stale gradients.

    "bsp": all workers make a step together, from the mean of their gradients.
    "backup:2": the first gradients make the step, and the two slowest workers are not waited for.
    "ssp:4": no worker is more than four steps ahead of the slowest.
    "asp": no worker waits. This is the default, unless `tensorfleet run --consistency` says something else.
    "auto": as "ssp", with a bound that follows what waiting and staleness cost.
    Behind ssp, asp and auto: "scale" divides a gradient by one more than its staleness, "drop:8" drops a staler one.
    "bsp dense, asp sparse" and "asp after 1000 bsp" combine two.

    `num_workers` is how many workers to wait for at the beginning; without it, as many as `TF_CONFIG` has. Workers may
    come and go later. Every worker trains with the same value. No hook is needed.

    With "bsp" and "backup" an update has the examples of several workers. `rate_for_workers` is the number of workers
    that the learning rate was chosen for: from n gradients, the rate is n / `rate_for_workers` times as high. It rises
    to that over the first `warm_up_steps` global steps.
    """

    def __init__(
        self,
        opt: Optimizer,
        consistency: str | None = None,
        num_workers: int | None = None,
        name: str = "consistency",
        rate_for_workers: int | None = None,
        warm_up_steps: int = 0,
    ) -> None:
        super().__init__(False, name)
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt must be a tf.train.Optimizer, not {opt!r}.")
        self._opt = opt
        self._consistency = wanted(consistency)
        if num_workers is not None:
            num_workers = whole_number("num_workers", num_workers, 1)
        #: how many workers to wait for at the beginning
        self.num_workers = num_workers or workers_of_cluster()
        self._scaling = _scaling(opt, self._consistency, rate_for_workers, warm_up_steps)
        self._gated: GatedUpdate | None = None
        #: how stale the gradient of a step is, after `minimize` or `apply_gradients`: a tensor to fetch
        self.staleness: Tensor | None = None
        #: how much of it is applied: 1 is all of it, 0 nothing
        self.weight: Tensor | None = None
        self._seen: Tensor | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Gradient, Any]]:
        """(gradient, variable) pairs, as the wrapped optimizer gives them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Operation:
        """An operation that applies the gradients as the consistency says, and waits where it says so."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable: the loss depends on none of them.")
        # Slots made inside `cond` would be variables of a branch, and could not be initialized.
        with control_dependencies(None):
            self._opt._create_slots([v for _, v in pairs])
        with name_scope(name, self._name):
            return group(*self._updates(pairs, global_step), name="train")

    def _updates(self, pairs: list[tuple[Any, Any]], step: GlobalStep | None) -> list[Operation]:
        both = self._consistency
        if not both.is_split:
            return [self._update(pairs, step, both.dense, "")]
        sparse = [(g, v) for g, v in pairs if isinstance(g, IndexedSlices)]
        dense = [(g, v) for g, v in pairs if not isinstance(g, IndexedSlices)]
        if not sparse or not dense:
            return [self._update(pairs, step, both.dense if dense else both.sparse, "")]
        # One after the other, in the same order in all workers. The dense update counts the step.
        first = self._update(sparse, None, both.sparse, "/sparse")
        with control_dependencies([first]):
            return [first, self._update(dense, step, both.dense, "/dense")]

    def _update(
        self, pairs: list[tuple[Any, Any]], step: GlobalStep | None, schedule: Schedule, part: str
    ) -> Operation:
        key = _key_of(pairs[0][1], part)
        training = Training(pairs, step, schedule, self.num_workers, key, self._seen)
        update = self._gated = GatedUpdate(
            training, lambda ready, gradients: self._apply_scaled(ready, step, gradients)
        )
        with without_detour():
            made = update.build()
        self.staleness, self.weight = update.age, update.weight
        return made

    def _apply_scaled(
        self, pairs: list[tuple[Any, Any]], step: GlobalStep | None, gradients: Tensor | None
    ) -> Operation:
        if self._scaling is None or gradients is None:
            return self._apply(pairs, step)
        if self._scaling.warm_up_steps and step is None:
            raise ValueError("warm_up_steps are global steps: pass global_step.")
        now = None if step is None else step.read_value() if isinstance(step, Variable) else step
        with multiplied_rate(self._opt, self._scaling.factor(gradients, now)):
            return self._apply(pairs, step)

    def batch_size(self, whole: int) -> Tensor:
        """How many examples this worker's next step needs, for all workers together to have `whole`.

        Call it after `minimize` or `apply_gradients`, and run it before a step: the number follows workers that come
        and go.
        """
        if self._gated is None:
            raise ValueError("Ask for the batch size after apply_gradients() or minimize().")
        most = np.int32(whole_number("whole", whole, 1) - 1)
        return apply("FloorDiv", most, self._gated.workers_now()) + 1

    def _apply(self, pairs: list[tuple[Any, Any]], step: GlobalStep | None) -> Operation:
        """What is put under the gate."""
        return self._opt.apply_gradients(pairs, step)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The slot that the wrapped optimizer keeps for a variable."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """Everything that the wrapped optimizer keeps."""
        return self._opt.variables()


def _scaling(
    opt: Optimizer, consistency: Consistency, workers: int | None, warm_up_steps: int
) -> RateScaling | None:
    steps = whole_number("warm_up_steps", warm_up_steps, 0)
    if workers is None:
        if steps:
            raise ValueError(
                "warm_up_steps needs rate_for_workers, the number of workers the rate was chosen for."
            )
        return None
    count = whole_number("rate_for_workers", workers, 1)
    if not consistency.dense.aggregates and not consistency.sparse.aggregates:
        raise ValueError(
            f"rate_for_workers is for updates from several gradients, and with {consistency.text!r} each has one. "
            "Leave it out, or use 'bsp' or 'backup:2'."
        )
    rate_of(opt)
    return RateScaling(count, steps)


def wanted(consistency: str | None) -> Consistency:
    """The consistency of a program: that of its run, else its own, else `asp`."""
    of_run = settings.CONSISTENCY()
    if of_run:
        return parse(of_run, settings.CONSISTENCY.name)
    return parse("asp" if consistency is None else consistency)


def workers_of_cluster() -> int:
    """How many workers `TF_CONFIG` tells of; 1 without it."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        return max(sum(len(cluster.get(job, ())) for job in _JOBS_THAT_TRAIN), 1)
    except (ValueError, AttributeError, TypeError):
        return 1


def _key_of(first: Variable, part: str) -> str:
    """A name that is the same in the graphs of all workers: that of the first variable, numbered if it is trained twice."""
    name = f"consistency/{first.op.name}{part}"
    counts = _trainings.setdefault(get_default_graph(), Counter())
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}/{counts[name]}"
