"""`partial_run`: one step in several calls, each feeding a bit more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.passes.plan import Plan
from tensorfleet.passes.prune import prune
from tensorfleet.runtime.engine_protocol import Engine
from tensorfleet.session.feeds import feed_plan
from tensorfleet.session.fetches import fetch_plan

if TYPE_CHECKING:
    from tensorfleet.base.types import FeedDict


class _Partial:
    """A step in progress: its declared feeds and fetches, and every value so far."""

    def __init__(self, feeds: list[Tensor], tensors: list[Tensor], targets: list[Operation]) -> None:
        self.feeds = dict.fromkeys(feeds, False)  # and whether it came already
        self.fetches: dict[Tensor | Operation, bool] = dict.fromkeys([*tensors, *targets], False)
        self.values: dict[Tensor, Any] = {}
        self.done: set[Operation] = set()


class PartialRuns:
    """The partial runs of one session."""

    def __init__(self, graph: Graph, engine: Engine[Any]) -> None:
        self._graph = graph
        self._engine = engine
        self._handles = itertools.count()
        self._steps: dict[str, _Partial] = {}

    def setup(self, fetches: object, feeds: Iterable[object] | None) -> str:
        """Declares a step and returns its handle."""
        tensors, _ = feed_plan(self._graph, list(feeds or ()))
        wanted, targets, _ = fetch_plan(self._graph, fetches, tensors)
        if not wanted and not targets:
            raise errors.InvalidArgumentError(
                None, None, "Must specify at least one target to fetch or execute."
            )
        handle = f"partial-{next(self._handles)}"
        self._steps[handle] = _Partial(tensors, wanted, targets)
        return handle

    def run(self, handle: str, fetches: object, feed_dict: FeedDict | None) -> Any:
        """Feeds more, computes the fetches that were not computed before, and returns their values."""
        step = self._steps.get(handle)
        if step is None:
            raise errors.InvalidArgumentError(
                None, None, f"Must run 'setup' before performing partial runs! There is no step {handle!r}."
            )
        tensors, convert = feed_plan(self._graph, list(feed_dict or ()))
        given: list[Any] = []
        for c, v in zip(convert, (feed_dict or {}).values(), strict=True):
            array = c(v)
            given += array if type(array) is list else [array]
        wanted, targets, arrange = fetch_plan(self._graph, fetches, [*step.values, *tensors])
        _check(tensors, step.feeds, "feed", "fed")
        _check([*wanted, *targets], step.fetches, "fetch", "fetched")
        step.feeds.update(dict.fromkeys(tensors, True))
        step.fetches.update(dict.fromkeys([*wanted, *targets], True))
        step.values.update(zip(tensors, given, strict=True))
        self._compute(step, wanted, targets)
        return arrange([step.values[t] for t in wanted])

    def _compute(self, step: _Partial, wanted: list[Tensor], targets: list[Operation]) -> None:
        known = list(step.values)
        left = [op for op in targets if op not in step.done]
        plan = prune(Plan(self._graph, tuple(wanted), tuple(left), tuple(known)))
        # All results of this piece are kept, not only the fetched ones: later pieces must not run an operation twice.
        new = [op for op in plan.ops if op not in step.done and not op.spec.variable]
        outputs = [t for op in new for t in op._outputs if t.dtype.name != "resource"]
        asked = [*dict.fromkeys([*outputs, *(t for t in wanted if t not in step.values)])]
        program = self._engine.program(asked, left, known)
        results = self._engine.run(program, [step.values[t] for t in known])
        step.values.update(zip(asked, results, strict=True))
        step.done.update(new)


def _check(asked: Sequence[Tensor | Operation], declared: dict[Any, bool], what: str, past: str) -> None:
    """Refuses feeds or fetches that the setup did not name, or that came before."""
    for one in asked:
        if one not in declared or declared[one]:
            fault = (
                f"has already been {past}" if one in declared else "was not specified in partial_run_setup"
            )
            raise errors.InvalidArgumentError(None, None, f"The {what} '{one.name}' {fault}.")
