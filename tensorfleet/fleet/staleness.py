"""`tf.fleet.StalenessOptimizer`: asynchronous training that knows how old its gradients are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.hooks import step_for
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import counters, dtypes, logging, nest
from tensorfleet.base.naming import export
from tensorfleet.fleet.checking import positive_number, whole_number
from tensorfleet.graph.apply import apply, apply_any, constant
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.basic import group, placeholder_with_default
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.math.cast import cast

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.session_run_hook import SessionRunContext, SessionRunValues
    from tensorfleet.graph.graph import Graph
    from tensorfleet.session.session import BaseSession

G = TypeVar("G", Tensor, IndexedSlices)
POLICIES = ("measure", "scale", "drop", "wait")
# Between two looks at how far the others are; each look is a run that reads one small variable.
_POLL_SECONDS = 0.005
# Half of the largest number: steps may still be added to it.
_ENDED_STEPS = np.iinfo(np.int64).max // 2


@export("fleet.StalenessOptimizer")
class StalenessOptimizer(Optimizer):
    """Wraps an optimizer of workers that do not wait for each other.

    The staleness of a gradient is the number of updates that others made after its variables were read. After
    `apply_gradients` (or `minimize`) it is the tensor `staleness`, to fetch, log or summarize.

    policy "measure": every gradient is applied as it is.
    policy "scale": a gradient is divided by one more than its staleness.
    policy "drop": a gradient staler than `bound` is not applied, and the global step does not count it.
    policy "wait": a worker that is more than `bound` steps ahead of the slowest waits for it; say here how many
    they are, `num_workers`.
    `rate` multiplies the wrapped optimizer's learning rate: less than 1 lowers it.
    For the first `warm_up_steps` global steps only worker 0 trains, and the others wait.

    Pass `make_session_run_hook(task_index)` to the `MonitoredTrainingSession` of every worker: it keeps the
    histogram of this worker's staleness, and does the waiting of the policy "wait" and of the warm-up. With one of
    these, a training step without the hook is an InvalidArgumentError. With the defaults, training is what it would be
    without this.
    """

    def __init__(
        self,
        opt: Optimizer,
        policy: str = "measure",
        bound: int | None = None,
        num_workers: int | None = None,
        name: str = "staleness",
        rate: float = 1.0,
        warm_up_steps: int = 0,
    ) -> None:
        super().__init__(False, name)
        if not isinstance(opt, Optimizer):
            raise TypeError(f"opt must be a tf.train.Optimizer, not {opt!r}.")
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}.")
        if (bound is not None) != (policy in ("drop", "wait")):
            raise ValueError(f"The policies drop and wait need a bound of 0 or more; {policy!r} got {bound}.")
        if policy == "wait" and num_workers is None:
            raise ValueError("The policy wait needs num_workers, the number of workers to wait for.")
        self._policy = policy
        self._bound = None if bound is None else whole_number("bound", bound, 0)
        self._num_workers = None if num_workers is None else whole_number("num_workers", num_workers, 1)
        self._warm_up_steps = whole_number("warm_up_steps", warm_up_steps, 0)
        if positive_number("rate", rate) != 1.0:
            _lower_rate(opt, rate)
        self._opt = opt
        self._seen: Tensor | None = None
        self._steps: Variable | None = None
        self.staleness: Tensor | None = None
        #: how many gradients of this worker had which staleness when they were applied, as its hook has seen them
        self.histogram: Counter[int] = Counter()
        #: how many of them were too stale
        self.dropped = 0
        self._update_op: Operation | None = None
        #: what the hook feeds: without it a step that should wait is refused
        self._hooked: Tensor | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[Any]:
        """As the wrapped optimizer; also notes at which step the variables were read."""
        step = get_global_step()
        if step is None:
            raise ValueError(
                "Staleness is counted in global steps: call tf.train.create_global_step() first."
            )
        self._seen = apply("Identity", step, name=f"{self._name}_seen")
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """An operation that applies the gradients as the policy says."""
        if self._seen is None:
            raise ValueError("Make the gradients with compute_gradients() of this optimizer.")
        global_step = get_global_step() if global_step is None else global_step
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        with name_scope(name, self._name):
            ready = [g.values if isinstance(g, IndexedSlices) else g for g, _ in pairs]
            # The step is read when the gradients are ready, where the step lives: no update can come between.
            with control_dependencies([*ready, *self._demand_hook()]), colocate_with(global_step.op):
                now = global_step.read_value()
                self.staleness = apply("Sub", now, self._seen, name="staleness")
            if self._policy == "scale":
                pairs = [(_divided(g, self.staleness), v) for g, v in pairs]
            if self._policy == "wait":
                zeros = np.zeros(self._num_workers or 0, np.int64)
                self._steps = Variable(zeros, trainable=False, name="worker_steps")
        if self._policy == "drop":
            result = self._unless_stale(pairs, global_step)
        else:
            with control_dependencies([self.staleness]):
                result = self._opt.apply_gradients(pairs, global_step, name)
        self._update_op = result.op if isinstance(result, Tensor) else result
        return result

    def _demand_hook(self) -> list[Operation]:
        """An operation that fails without this worker's hook, which does the waiting."""
        if self._policy != "wait" and not self._warm_up_steps:
            return []
        self._hooked = placeholder_with_default(False, [], name="hooked")
        waits = "the policy 'wait'" if self._policy == "wait" else "warm_up_steps"
        text = (
            f"StalenessOptimizer with {waits} trains without its hook, and so nobody waits. Pass "
            "make_session_run_hook(task_index) to the MonitoredTrainingSession of every worker, and run training steps with it."
        )
        return [Assert(self._hooked, [text], name="has_hook")]

    def _count(self, age: int) -> None:
        is_dropped = self._policy == "drop" and age > (self._bound or 0)
        if is_dropped:
            self.dropped += 1
        else:
            self.histogram[age] += 1
        counters.note_staleness(age, is_dropped)

    def _unless_stale(self, pairs: list[tuple[Any, Variable]], global_step: Variable) -> Operation:
        # Slots made inside `cond` would be variables of a branch, and could not be initialized.
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

    def get_slot_names(self, *args: object, **kwargs: object) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """Everything that the wrapped optimizer keeps."""
        return self._opt.variables()

    def make_session_run_hook(self, task_index: int, max_wait_secs: float = 60.0) -> SessionRunHook:
        """A hook for this worker: counts in `histogram` how stale its gradients are, and waits where it has to.

        With the policy "wait", a worker that makes no step for `max_wait_secs` is not waited for until it makes one;
        nor is worker 0, while it warms up.
        """
        if self.staleness is None:
            raise ValueError("Make the hook after apply_gradients() or minimize().")
        task_index = whole_number("task_index", task_index, 0)
        if self._num_workers is not None and task_index >= self._num_workers:
            raise ValueError(
                f"task_index must be less than num_workers: there are workers 0 to {self._num_workers - 1}, and no {task_index}."
            )
        max_wait_secs = positive_number("max_wait_secs", max_wait_secs)
        hooks: list[SessionRunHook] = [
            _Histogram(self, task_index, self._count, self._update_op, self._hooked)
        ]
        if self._warm_up_steps and task_index:
            hooks.append(_WarmUp(self._warm_up_steps, max_wait_secs))
        if self._steps is not None and self._bound is not None:
            hooks.append(_WaitForSlowest(self._steps, task_index, self._bound, max_wait_secs))
        return hooks[0] if len(hooks) == 1 else _All(hooks)


def _divided(grad: G, staleness: Tensor) -> G:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(_divided(grad.values, staleness), grad.indices, grad.dense_shape)
    quotient: G = grad / (cast(staleness, grad.dtype.base_dtype) + 1)
    return quotient


def _lower_rate(opt: Optimizer, factor: float) -> None:
    """Multiplies the learning rate that an optimizer was made with: a number, a tensor or a function."""
    for name in ("_lr", "_learning_rate"):
        given = getattr(opt, name, None)
        if given is not None:
            lowered = (lambda rate=given: rate() * factor) if callable(given) else given * factor
            setattr(opt, name, lowered)
            return
    raise ValueError(f"{type(opt).__name__} has no learning rate that could be lowered.")


class _All(SessionRunHook):
    """Several hooks as one."""

    def __init__(self, hooks: list[SessionRunHook]) -> None:
        self._hooks = hooks

    def begin(self) -> None:
        """Lets all begin."""
        for hook in self._hooks:
            hook.begin()

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Lets all start."""
        for hook in self._hooks:
            hook.after_create_session(session, coord)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """The arguments of the first hook; the others only wait."""
        asked: list[SessionRunArgs | None] = [hook.before_run(run_context) for hook in self._hooks]
        return asked[0]

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tells all."""
        for hook in self._hooks:
            hook.after_run(run_context, run_values)

    def end(self, session: BaseSession) -> None:
        """Ends all."""
        for hook in self._hooks:
            hook.end(session)


class _Histogram(SessionRunHook):
    """Counts how stale the gradients of this worker are, and says so at the end."""

    def __init__(
        self,
        opt: StalenessOptimizer,
        task_index: int,
        count: Callable[[int], None],
        update_op: Operation | None,
        hooked: Tensor | None,
    ) -> None:
        self._opt = opt
        self._me = task_index
        self._count = count
        self._update_op = update_op
        self._args = SessionRunArgs(opt.staleness, None if hooked is None else {hooked: True})
        self._trains: dict[Any, bool] = {}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the staleness, in runs that train, and shows them that there is a hook."""
        graph = run_context.session.graph
        fetched = nest.flatten(run_context.original_args.fetches)
        return self._args if any(self._leads_to_update(graph, f) for f in fetched) else None

    def _leads_to_update(self, graph: Graph, fetched: object) -> bool:
        """Whether to fetch this is to train."""
        known = self._trains.get(fetched)
        if known is None:
            element = graph.as_graph_element(fetched)
            stack, seen = [element.op if isinstance(element, Tensor) else element], set()
            while stack:
                op = stack.pop()
                if op not in seen:
                    seen.add(op)
                    stack += [*op.control_inputs, *(t.op for t in op.inputs)]
            known = self._trains[fetched] = self._update_op in seen
        return known

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Counts it."""
        if run_values.results is not None:
            self._count(int(run_values.results))

    def end(self, session: BaseSession) -> None:
        """Logs the histogram."""
        each = ", ".join(f"{age}: {n}" for age, n in sorted(self._opt.histogram.items()))
        lost = f"; {self._opt.dropped} dropped" if self._opt.dropped else ""
        logging.info("Staleness of the gradients of worker %d: %s%s", self._me, each or "none", lost)


class _WarmUp(SessionRunHook):
    """Holds a worker back until another one has made the first steps."""

    def __init__(self, steps: int, max_wait_secs: float) -> None:
        self._steps = steps
        self._max_wait_secs = max_wait_secs
        self._over = False

    def begin(self) -> None:
        """Finds the global step."""
        self._read = step_for("StalenessOptimizer")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits for the first steps."""
        began, seen = time.monotonic(), -1
        while not self._over:
            step = int(run_context.session.run(self._read))
            # The limit is for a chief that makes no step, not for one that is slow.
            if step != seen:
                began, seen = time.monotonic(), step
            if step >= self._steps:
                self._over = True
            elif time.monotonic() - began > self._max_wait_secs:
                logging.warning(
                    "Worker 0 has made %d of %d steps to warm up and no more for %g s: training without it. Is it running?",
                    step,
                    self._steps,
                    self._max_wait_secs,
                )
                self._over = True
            else:
                time.sleep(_POLL_SECONDS)


class _WaitForSlowest(SessionRunHook):
    """Counts this worker's steps where all workers see them, and waits for the slowest."""

    def __init__(self, steps: Variable, task_index: int, bound: int, max_wait_secs: float) -> None:
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
        counts: Any = self._steps  # a reference variable: only it has `_ref`
        self._tell = apply_any(
            "ScatterUpdate", counts._ref(), [self._me], apply("ExpandDims", self._value, 0)
        )

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Starts where the slowest is."""
        # A restarted worker has lost its own count. From zero, all others would wait for it to catch up.
        self._mine = int(session.run(self._steps).min())
        session.run(self._tell, {self._value: self._mine})

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits while this worker is too far ahead."""
        if self._mine - self._slowest <= self._bound:
            return
        began, seen = time.monotonic(), None
        while True:
            steps = run_context.session.run(self._steps)
            # A worker that was given up counts again as soon as its number of steps changes.
            counted = [int(n) for i, n in enumerate(steps) if i != self._me and self._lost.get(i) != int(n)]
            self._slowest = min(counted, default=_ENDED_STEPS)
            if self._mine - self._slowest <= self._bound:
                return
            if seen != self._slowest:
                began, seen = time.monotonic(), self._slowest
            if time.monotonic() - began > self._max_wait_secs:
                self._lost.update({i: int(n) for i, n in enumerate(steps) if int(n) == self._slowest})
                logging.warning("Workers %s made no step; not waiting for them.", sorted(self._lost))
            time.sleep(_POLL_SECONDS)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tells that a step is done."""
        self._mine += 1
        run_context.session.run(self._tell, {self._value: self._mine})

    def end(self, session: BaseSession) -> None:
        """Nobody needs to wait for this worker any more."""
        session.run(self._tell, {self._value: _ENDED_STEPS})
