"""From a schedule to a training operation: each worker's step asks a gate that all workers share.

    gradients ──► judge ──► update of this gradient alone ─────────────────────► arrive (waits)
                     └────► accumulators ──► arrive (waits) ──► the leader: update from the mean, updated

The waits are in the graph. A training step needs no hook and no particular kind of session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import counters
from tensorfleet.fleet.consistency.asp import Asynchronous
from tensorfleet.fleet.consistency.scheme import WHOLE, Dropped, Scaled, StaleRule
from tensorfleet.fleet.consistency.text import Schedule
from tensorfleet.graph.apply import apply, apply_list, apply_op, constant
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, device
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.math.cast import cast
from tensorfleet.ops.state.accumulators import OVER_ALL, ConditionalAccumulator, SparseConditionalAccumulator

if TYPE_CHECKING:
    from tensorfleet.api.train.types import GlobalStep

G = TypeVar("G", Tensor, IndexedSlices)
# An accumulator takes a gradient for a step that is not before its own: every one, and none.
_FOR_ANY_STEP, _FOR_NO_STEP = np.int64(2**62), np.int64(-1)


@dataclass(frozen=True)
class Training:
    """One way of gradients into variables."""

    pairs: list[tuple[Any, Any]]
    #: counts the updates, if anything does
    step: GlobalStep | None
    schedule: Schedule
    #: how many workers to wait for at the beginning
    workers: int
    #: the same in the graphs of all workers, and different for each training
    key: str
    #: how many updates there were when the variables were read, where somebody has looked already
    seen: Tensor | None = None


class GatedUpdate:
    """Builds the training operation of one worker."""

    def __init__(
        self, training: Training, apply_gradients: Callable[[list[tuple[Any, Any]], Tensor | None], Any]
    ) -> None:
        """`apply_gradients` is given the pairs and, of an update from several gradients, how many these are."""
        self._it = training
        self._apply_gradients = apply_gradients
        self._place = training.pairs[0][1].op if training.step is None else training.step.op
        #: how old the gradient is, how much it counts, and how many workers train: tensors, once it is built
        self.age: Any = None
        self.weight: Any = None
        self.workers: Any = None

    def build(self) -> Operation:
        """The operation. It waits where the schedule says so."""
        counters.leave_staleness_to_others()  # the gate counts
        self._seen = self._read_step_early()
        values = [g.values if isinstance(g, IndexedSlices) else g for g, _ in self._it.pairs]
        with control_dependencies(values):
            self._judge()
        made = [self.weight.op]
        schedule = self._it.schedule
        if schedule.aggregates:
            made += self._hand_in()
        if not all(scheme.aggregates for scheme in schedule.schemes):
            made.append(self._update_alone())
        if all(isinstance(scheme, Asynchronous) for scheme in schedule.schemes):
            return group(*made)
        with control_dependencies(made), colocate_with(self._place):
            gradients = apply("FleetConsistencyArrive", self._gate(), name="arrive")
        return self._update_together(gradients) if schedule.aggregates else gradients.op

    def workers_now(self) -> Tensor:
        """How many workers train."""
        with colocate_with(self._place):
            return apply("FleetConsistencyWorkers", self._gate(), name="workers")

    def _gate(self) -> Tensor:
        with colocate_with(self._place):
            return apply(
                "FleetConsistency",
                consistency=self._it.schedule.text,
                workers=self._it.workers,
                shared_name=self._it.key,
                name="gate",
            )

    def _read_step_early(self) -> Tensor:
        """How many updates there were when this step began to read variables."""
        if self._it.seen is not None:
            return self._it.seen
        # The dependencies are those of the update: a read after them would be too late.
        with control_dependencies(None):
            if self._it.step is not None:
                return apply("Identity", self._it.step, name="seen")
            with colocate_with(self._place):
                seen = apply("FleetConsistencySeen", self._gate(), name="seen")
            return apply("Identity", seen, name="seen_by_worker")

    def _judge(self) -> None:
        """Asks what becomes of the gradient, where the step lives and when the gradient is ready."""
        with colocate_with(self._place):
            if self._it.step is not None:
                step = self._it.step
                read = step.read_value() if isinstance(step, Variable) else apply("Identity", step)
                now = cast(read, np.int64)
            else:
                now = apply("FleetConsistencySeen", self._gate(), name="now")
            self.age = apply("Sub", now, cast(self._seen, np.int64), name="age")
            self.weight, self._is_for_all, self.workers = apply_list(
                "FleetConsistencyJudge", self._gate(), self.age, now, name="judge"
            )
            self._counts = apply("Greater", self.weight, np.float32(0), name="counts")

    # -- alone ---------------------------------------------------------------------------------------

    def _rules(self) -> list[StaleRule]:
        return [getattr(scheme, "rule", WHOLE) for scheme in self._it.schedule.schemes]

    def _update_alone(self) -> Any:
        """The update from this worker's gradient alone, if it counts."""
        rules, pairs = self._rules(), self._it.pairs
        if any(isinstance(rule, Scaled) for rule in rules):
            pairs = [(_weighed(g, self.weight), v) for g, v in pairs]
        if not self._it.schedule.aggregates and not any(isinstance(rule, Dropped) for rule in rules):
            with control_dependencies([self.weight]):
                return self._apply_gradients(pairs, None)
        with colocate_with(self._place):
            alone = apply("LogicalAnd", self._counts, apply("LogicalNot", self._is_for_all), name="alone")
        with device(self._place.device):
            return cond(alone, lambda: _after([self._apply_gradients(pairs, None)]), lambda: constant(False))

    # -- together ------------------------------------------------------------------------------------

    def _accumulator(self, grad: Tensor | IndexedSlices, var: Variable) -> Any:
        name = f"{self._it.key}/{var.op.name}"
        if isinstance(grad, IndexedSlices):
            accumulator = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=name)
            accumulator.accumulator_ref.op._set_attr(OVER_ALL, True)
            return accumulator
        return ConditionalAccumulator(grad.dtype, shape=var.get_shape(), shared_name=name)

    def _hand_in(self) -> list[Any]:
        """Adds the gradient to the accumulators beside the variables, if it is for an update of several."""
        with colocate_with(self._place):
            wanted = apply("LogicalAnd", self._counts, self._is_for_all, name="together")
        if not all(scheme.aggregates for scheme in self._it.schedule.schemes):
            with device(self._place.device):
                return [
                    cond(wanted, lambda: _after(self._add(_FOR_ANY_STEP)), lambda: constant(False)),
                ]
        # Nearly all gradients are: the accumulators themselves drop the others, and count them.
        with colocate_with(self._place):
            accepted = apply("Select", wanted, _FOR_ANY_STEP, _FOR_NO_STEP, name="accepted")
        return self._add(accepted)

    def _add(self, step: Any) -> list[Operation]:
        handed_in = []
        for grad, var in self._it.pairs:
            with device(var.device):
                accumulator = self._accumulator(grad, var)
                if isinstance(grad, IndexedSlices):
                    handed_in.append(accumulator.apply_indexed_slices_grad(grad, local_step=step))
                else:
                    handed_in.append(accumulator.apply_grad(grad, local_step=step))
        return handed_in

    def _update_together(self, gradients: Tensor) -> Operation:
        """What the worker does that the gate has chosen to make the update: the others go on when it is made."""

        def update() -> Tensor:
            taken = []
            for grad, var in self._it.pairs:
                with device(var.device):
                    accumulator = self._accumulator(grad, var)
                    # All gradients of the update are there. One alone is asked for: a worker that was lost while it
                    # handed in may have left one in some accumulators only.
                    if isinstance(grad, IndexedSlices):
                        taken.append((accumulator.take_indexed_slices_grad(1), var))
                    else:
                        taken.append((accumulator.take_grad(1), var))
            with control_dependencies([self._apply_gradients(taken, gradients)]), colocate_with(self._place):
                return _after([apply_op("FleetConsistencyUpdated", self._gate(), name="updated")])

        with colocate_with(self._place):
            leads = apply("Greater", gradients, np.int32(0), name="leads")
        # The decision is where the step lives: it need not travel to the worker and back.
        with device(self._place.device):
            return group(cond(leads, update, lambda: constant(False)))


def _after(ops: Sequence[Any]) -> Tensor:
    with control_dependencies(ops):
        return constant(True)


def _weighed(grad: G, weight: Tensor) -> G:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(_weighed(grad.values, weight), grad.indices, grad.dense_shape)
    product: G = grad * cast(weight, grad.dtype.base_dtype)
    return product
