"""`tensorfleet run --consistency`: the optimizers of an unedited script train as the run says.

Every optimizer ends in `Optimizer.apply_gradients`, which takes a detour through `tf.fleet.Optimizer` while this is
installed. `tf.train.SyncReplicasOptimizer` becomes a name for that: what it has besides finds nothing to do.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train import optimizer, sync_replicas
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.queue_runner import QueueRunner
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.api.train.sync_replicas import SyncReplicasOptimizer
from tensorfleet.api.variables.lists import global_variables, report_uninitialized_variables
from tensorfleet.base import dtypes, logging, settings
from tensorfleet.fleet.consistency.optimizer import FleetOptimizer, wanted
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import group, no_op
from tensorfleet.ops.state.queues import FIFOQueue

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.types import GlobalStep, GradsAndVars
    from tensorfleet.session.session import BaseSession

_was_used = False


def install() -> None:
    """From here on optimizers train as `TENSORFLEET_CONSISTENCY` says. Raises ValueError if that says nothing."""
    wanted(None)
    optimizer.detour = _through_gate
    sync_replicas.instead = _SyncOfRun
    atexit.register(_say_if_unused)


def uninstall() -> None:
    """Undoes `install`; graphs that are built already stay as they are."""
    optimizer.detour = sync_replicas.instead = None
    atexit.unregister(_say_if_unused)


def _through_gate(
    opt: Optimizer, pairs: Sequence[tuple[Any, Any]], step: GlobalStep | None, name: str | None
) -> Operation:
    global _was_used
    if not _was_used:
        _was_used = True
        logging.info("This script trains with the consistency %r, as its run says.", settings.CONSISTENCY())
    return _OfRun(opt).apply_gradients(pairs, step, name)


def _say_if_unused() -> None:
    if not _was_used and os.environ.get("JOB_NAME") not in (None, "ps"):
        logging.warning(
            "--consistency %s has changed nothing in this task: the script has made no training step with a "
            "tf.train.Optimizer. In-graph and tf.distribute training decide themselves who waits for whom.",
            settings.CONSISTENCY(),
        )


class _OfRun(FleetOptimizer):
    """The optimizer of a script, which was asked to apply gradients."""

    def _apply(self, pairs: list[tuple[Any, Any]], step: GlobalStep | None) -> Operation:
        # Of a class of the script's own this is the part behind its own `apply_gradients`.
        return Optimizer.apply_gradients(self._opt, pairs, step)


class _SyncOfRun(SyncReplicasOptimizer):
    """What `tf.train.SyncReplicasOptimizer` is in a run with a consistency of its own."""

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Operation:
        """As `tf.fleet.Optimizer`."""
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._gradients_applied = True
        self._global_step = global_step
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        self.chief_init_op = self.local_step_init_op = no_op(name="sync_rep_init")
        # Made here: a supervisor finalizes the graph before it is asked for them.
        self._no_threads = _NoThreads(
            FIFOQueue(1, [dtypes.int64], shapes=[()], name="sync_token_q"), [no_op()]
        )
        update = self._opt.apply_gradients(grads_and_vars, global_step, name)
        if self._variable_averages is None:
            return update
        with control_dependencies([update]):
            return group(update, self._variable_averages.apply(self._variables_to_average))

    def get_chief_queue_runner(self) -> Any:
        """A runner without threads: the workers make the updates."""
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._no_threads

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Nothing to put in."""
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        return self.chief_init_op

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that does nothing."""
        return SessionRunHook()


class _NoThreads(QueueRunner):
    """Keeps no queue filled."""

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """None."""
        return []
