"""`tf.fleet.StalenessOptimizer`: asynchronous training that knows how old its gradients are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.hooks import step_for
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base import logging, nest
from tensorfleet.base.naming import export
from tensorfleet.fleet.checking import positive_number, whole_number
from tensorfleet.fleet.consistency.learning_rate import multiply_rate
from tensorfleet.fleet.consistency.optimizer import FleetOptimizer
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import placeholder_with_default
from tensorfleet.ops.array.checks import Assert

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.session_run_hook import SessionRunContext, SessionRunValues
    from tensorfleet.api.train.types import GlobalStep, GradsAndVars
    from tensorfleet.graph.graph import Graph
    from tensorfleet.session.session import BaseSession

#: the consistency that each policy is
POLICIES = {"measure": "asp", "scale": "asp scale", "drop": "asp drop:{}", "wait": "ssp:{}"}
# Between two looks at how far the others are; each look is a run that reads one small variable.
_POLL_SECONDS = 0.005


@export("fleet.StalenessOptimizer")
class StalenessOptimizer(FleetOptimizer):
    """Wraps an optimizer of workers that do not wait for each other: a `tf.fleet.Optimizer` with a policy.

    The staleness of a gradient is the number of updates that others made after its variables were read. After
    `apply_gradients` (or `minimize`) it is the tensor `staleness`, to fetch, log or summarize.

    policy "measure": every gradient is applied as it is. This is the consistency "asp".
    policy "scale": a gradient is divided by one more than its staleness: "asp scale".
    policy "drop": a gradient staler than `bound` is not applied, and the global step does not count it: "asp drop:8".
    policy "wait": a worker that is more than `bound` steps ahead of the slowest waits for it: "ssp:4". Say here how
    many they are, `num_workers`.
    `rate` multiplies the wrapped optimizer's learning rate: less than 1 lowers it.
    For the first `warm_up_steps` global steps only worker 0 trains, and the others wait.

    Pass `make_session_run_hook(task_index)` to the `MonitoredTrainingSession` of every worker: it keeps the
    histogram of this worker's staleness, and does the waiting of the warm-up. With a warm-up, a training step without
    the hook is an InvalidArgumentError. With the defaults, training is what it would be without this.
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
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}.")
        if (bound is not None) != (policy in ("drop", "wait")):
            raise ValueError(f"The policies drop and wait need a bound of 0 or more; {policy!r} got {bound}.")
        if policy == "wait" and num_workers is None:
            raise ValueError("The policy wait needs num_workers, the number of workers to wait for.")
        limit = None if bound is None else whole_number("bound", bound, 0)
        super().__init__(opt, POLICIES[policy].format(limit), num_workers, name)
        self._warm_up_steps = whole_number("warm_up_steps", warm_up_steps, 0)
        if positive_number("rate", rate) != 1.0:
            multiply_rate(opt, rate)
        self._known_workers = num_workers
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
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Operation:
        """An operation that applies the gradients as the policy says."""
        if self._seen is None:
            raise ValueError("Make the gradients with compute_gradients() of this optimizer.")
        step = get_global_step() if global_step is None else global_step
        with control_dependencies(self._demand_hook()):
            self._update_op = super().apply_gradients(grads_and_vars, step, name)
        return self._update_op

    def _demand_hook(self) -> list[Operation]:
        """An operation that fails without this worker's hook, which does the waiting."""
        if not self._warm_up_steps:
            return []
        self._hooked = placeholder_with_default(False, [], name="hooked")
        text = (
            "StalenessOptimizer with warm_up_steps trains without its hook, and so nobody waits. Pass "
            "make_session_run_hook(task_index) to the MonitoredTrainingSession of every worker, and run training steps with it."
        )
        return [Assert(self._hooked, [text], name="has_hook")]

    def _count(self, age: int, weight: float) -> None:
        if weight > 0:
            self.histogram[age] += 1
        else:
            self.dropped += 1

    def make_session_run_hook(self, task_index: int, max_wait_secs: float = 60.0) -> SessionRunHook:
        """A hook for this worker: counts in `histogram` how stale its gradients are, and waits during the warm-up.

        When worker 0 makes no step for `max_wait_secs` while it warms up, the others train without it.
        """
        if self.staleness is None:
            raise ValueError("Make the hook after apply_gradients() or minimize().")
        task_index = whole_number("task_index", task_index, 0)
        if self._known_workers is not None and task_index >= self._known_workers:
            raise ValueError(
                f"task_index must be less than num_workers: there are workers 0 to {self._known_workers - 1}, and no "
                f"{task_index}."
            )
        max_wait_secs = positive_number("max_wait_secs", max_wait_secs)
        args = SessionRunArgs(
            (self.staleness, self.weight), None if self._hooked is None else {self._hooked: True}
        )
        histogram = _Histogram(self, task_index, self._count, self._update_op, args)
        if not self._warm_up_steps or not task_index:
            return histogram
        return _All([histogram, _WarmUp(self._warm_up_steps, max_wait_secs)])


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
        count: Callable[[int, float], None],
        update_op: Operation | None,
        args: SessionRunArgs,
    ) -> None:
        self._opt = opt
        self._me = task_index
        self._count = count
        self._update_op = update_op
        self._args = args
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
            age, weight = run_values.results
            self._count(int(age), float(weight))

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
