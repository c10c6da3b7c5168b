"""`tf.train.SyncReplicasOptimizer`: replicas compute gradients, one update is made from several of them.

    every replica                                the chief's queue runner
    ─────────────                                ────────────────────────
    gradient ──► accumulator of the variable ──► takes the mean of `replicas_to_aggregate` gradients,
                                                 updates the variables, adds one to the global step
    local step ◄── token queue ◄──────────────── puts in as many tokens as replicas may start

A token carries the global step. A replica adds its gradient together with its local step; a gradient that
was computed for a step that is over is stale, and the accumulator drops it; it counts those of each replica.
When too few replicas are left for an update, the queue of tokens ends the wait of the others with an error.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.train.coordinator import Coordinator
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.queue_runner import QueueRunner, failure_in, repeater
from tensorfleet.api.train.session_manager import ready
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.api.variables.lists import global_variables, report_uninitialized_variables
from tensorfleet.api.variables.variable import ResourceVariable, Variable
from tensorfleet.base import errors, logging
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, colocate_with, control_dependencies, device, name_scope
from tensorfleet.ops.array.basic import group, no_op
from tensorfleet.ops.state.accumulators import OVER_ALL, ConditionalAccumulator, SparseConditionalAccumulator
from tensorfleet.ops.state.queue_ops import AGGREGATE, FIRST_AND_LAST, REPLICAS
from tensorfleet.ops.state.queues import FIFOQueue

if TYPE_CHECKING:
    from tensorfleet.api.train.moving_averages import ExponentialMovingAverage
    from tensorfleet.api.train.types import AnySession, GlobalStep, Gradient, GradsAndVars
    from tensorfleet.base.protos import RunOptions
    from tensorfleet.session.session import BaseSession

# Often enough to see a slow replica while a program is watched; each report asks all tasks of the session.
_REPORT_SECONDS = 30.0
# A program that ends must not hang at its exit because a server is gone already.
_RELEASE_TIMEOUT_MS = 2000

#: the class that stands for `SyncReplicasOptimizer` where the run asks for a consistency
instead: type[SyncReplicasOptimizer] | None = None


@export("train.SyncReplicasOptimizer", "python.training.sync_replicas_optimizer.SyncReplicasOptimizer")
class SyncReplicasOptimizer(Optimizer):
    """Lets `opt` make one update from the gradients of `replicas_to_aggregate` replicas.

    The mean of a sparse gradient's row is over all of them too, those without the row included, so that an
    update is the one that a single replica with all their data would make.

    With more replicas in total (`total_num_replicas`) the others are backups: the first gradients count, late
    ones are dropped. With fewer, replicas work on several batches for one update.
    `variable_averages` (an ExponentialMovingAverage) is applied to `variables_to_average` after each update.

    Pass `make_session_run_hook(is_chief)` to the `MonitoredTrainingSession` of every replica. With a
    `Supervisor`: `local_init_op` is `chief_init_op` on the chief and `local_step_init_op` elsewhere,
    `ready_for_local_init_op` as here, and the chief starts `get_chief_queue_runner()` and runs
    `get_init_tokens_op()`.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: ExponentialMovingAverage | None = None,
        variables_to_average: Iterable[Variable] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
        replica_id: object = None,
    ) -> None:
        if instead is not None:
            self._become(instead)
        if replica_id is not None:
            logging.log_first_n(logging.WARN, "SyncReplicasOptimizer needs no replica_id any more.", 1)
        if total_num_replicas is None:
            total_num_replicas = replicas_to_aggregate
        super().__init__(use_locking, name)
        logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate,
            total_num_replicas,
        )
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total_num_replicas
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        # Every replica gets one, and there are enough for the gradients that the next update needs.
        self._tokens_per_step = max(total_num_replicas, replicas_to_aggregate)
        self._gradients_applied = False
        self._global_step: Any = None
        self._sync_token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulator_list: list[tuple[Any, str]] = []

    def _become(self, kind: type[SyncReplicasOptimizer]) -> None:
        if type(self) is not SyncReplicasOptimizer:
            raise TypeError(
                f"{type(self).__name__} is a SyncReplicasOptimizer of the script's own, which --consistency cannot "
                "replace. Leave out --consistency."
            )
        self.__class__ = kind

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Gradient, Any]]:
        """(gradient, variable) pairs, as the wrapped optimizer gives them."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: GlobalStep | None = None, name: str | None = None
    ) -> Any:
        """An operation that hands in the gradients and waits for the update made from them and others."""
        grads_and_vars = list(grads_and_vars)
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        self._make_local_step(global_step)
        with name_scope(None, self._name):
            handed_in, taken = self._accumulate(grads_and_vars)
            # Updates and tokens are beside the global step, so that an update needs no other task to count
            # it. The names are those of TensorFlow's graph: an empty scope puts the update at the top.
            with device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(taken, global_step)
                self._sync_token_queue = FIFOQueue(
                    -1,
                    global_step.dtype.base_dtype,
                    shapes=(),
                    name="sync_token_q",
                    shared_name="sync_token_q",
                )
                # The token is taken after the gradients are handed in: the replica waits here for the update
                # made from them.
                with control_dependencies(handed_in):
                    token = self._sync_token_queue.dequeue()
                with colocate_with(self._local_step.op):
                    train_op = self._local_step.assign(token)
                self._make_queue_runner(update)
            self.chief_init_op = group(self.local_step_init_op, *self._set_steps())
        self._gradients_applied = True
        return train_op

    def _make_local_step(self, global_step: GlobalStep) -> None:
        """Each replica's own step, kept where the replica runs and not with the other variables."""
        with colocate_with(no_op()):
            self._local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
        self.local_step_init_op = self._local_step.assign(global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

    def _accumulate(
        self, grads_and_vars: list[tuple[Gradient, Variable]]
    ) -> tuple[list[Operation], list[tuple[Any, Any]]]:
        """Accumulators on the variables' devices: the operations that hand in, and the gradients taken out."""
        handed_in: list[Operation] = []
        taken: list[tuple[Any, Any]] = []
        enough = self._replicas_to_aggregate
        accumulator: Any
        for grad, var in grads_and_vars:
            with device(var.device):
                if grad is None:
                    taken.append((None, var))
                    continue
                shared = f"{var.name}/grad_accum"
                if isinstance(grad, Tensor):
                    accumulator = ConditionalAccumulator(
                        grad.dtype, shape=var.get_shape(), shared_name=shared
                    )
                    handed_in.append(accumulator.apply_grad(grad, local_step=self._local_step))
                    taken.append((accumulator.take_grad(enough), var))
                elif isinstance(grad, IndexedSlices):
                    accumulator = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared)
                    # TensorFlow divides a row by the number of replicas that had it. See the class: here it
                    # is all of them.
                    accumulator.accumulator_ref.op._set_attr(OVER_ALL, True)
                    handed_in.append(accumulator.apply_indexed_slices_grad(grad, local_step=self._local_step))
                    taken.append((accumulator.take_indexed_slices_grad(enough), var))
                else:
                    raise ValueError(f"Unknown grad type! {grad}")
                self._accumulator_list.append((accumulator, var.device))
        return handed_in, taken

    def _make_queue_runner(self, update: Operation) -> None:
        """After each update tokens are put in, so that replicas begin the next step."""
        with control_dependencies([update]):
            tokens = apply("Fill", [self._tokens_per_step], _current(self._global_step), name="Fill")
            sync = self._sync_token_queue.enqueue_many((tokens,))
        if self._variable_averages is not None:
            with control_dependencies([sync]), name_scope(""):
                sync = self._variable_averages.apply(self._variables_to_average)
        self._chief_queue_runner = self._make_runner([sync])

    def _make_runner(self, enqueue_ops: Sequence[Operation]) -> _UpdateRunner:
        queue = self._sync_token_queue.queue_ref.op
        # The queue ends waits that nobody can satisfy: it must know how many replicas there are.
        queue._set_attr(REPLICAS, self._total_num_replicas)
        queue._set_attr(AGGREGATE, self._replicas_to_aggregate)
        return _UpdateRunner(self._sync_token_queue, enqueue_ops)

    def _set_steps(self) -> list[Operation]:
        ops = []
        for accumulator, place in self._accumulator_list:
            with device(place):
                ops.append(accumulator.set_global_step(self._global_step, name="SetGlobalStep"))
        return ops

    def get_chief_queue_runner(self) -> _UpdateRunner:
        """The runner that makes the updates; only the chief starts it."""
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        if not isinstance(self._chief_queue_runner, _UpdateRunner):  # of a subclass that makes its own
            self._chief_queue_runner = self._make_runner(self._chief_queue_runner.enqueue_ops)
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Puts in the first tokens; the chief runs it once, before training starts."""
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)"
            )
        if num_tokens > 0:
            put = self._tokens_of_no_update(num_tokens, "")
            self.get_chief_queue_runner().release_ops = [put] * -(-self._total_num_replicas // num_tokens)
            return put
        scope = f"{self._name}_no_init_tokens"  # of their own: names of later operations stay TensorFlow's
        begin, end = (self._tokens_of_no_update(n, scope) for n in (0, self._total_num_replicas))
        self.get_chief_queue_runner().release_ops = [end]
        with control_dependencies([begin]):
            return no_op(name="no_init_tokens")

    def _tokens_of_no_update(self, count: int, scope: str) -> Operation:
        """Puts in the tokens of the start or the end of a training, and marks them as such for the queue."""
        with device(self._global_step.device), name_scope(scope):
            tokens = apply("Fill", [count], self._global_step, name="Fill")
            put: Operation = self._sync_token_queue.enqueue_many((tokens,))
        put._set_attr(FIRST_AND_LAST, True)
        return put

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The slot that the wrapped optimizer keeps for a variable."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """Everything that the wrapped optimizer keeps."""
        return self._opt.variables()

    def dropped_gradients(self, session: AnySession) -> dict[str, int]:
        """For each replica, how many of the gradients it handed in were stale: `tf.fleet.dropped_gradients`."""
        return dropped_gradients(session)

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook for the `MonitoredTrainingSession` of this replica."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


@export("fleet.dropped_gradients")
def dropped_gradients(session: AnySession) -> dict[str, int]:
    """How many gradients came too late and were dropped, by the task that computed them.

    All accumulators in the tasks of `session` are counted, since those tasks started: the gradients that
    one replica computed for one step count once. `session` may be a monitored one.
    """
    if hasattr(session, "_tf_sess"):
        session = session._tf_sess()
    if not hasattr(session, "_engine"):
        raise TypeError(f"session must be an open tf.Session or a monitored session, but got {session!r}")
    return dict(sorted(session._engine.dropped().items()))


class _Report:
    """Logs how many gradients were dropped, whenever that has changed."""

    def __init__(self) -> None:
        self._logged: dict[str, int] = {}
        self._next = time.monotonic() + _REPORT_SECONDS

    def when_due(self, sess: BaseSession) -> None:
        """Logs, but at most once per interval."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _REPORT_SECONDS
            self.now(sess)

    def now(self, sess: BaseSession) -> None:
        """Logs new numbers. A task that does not answer does not disturb the training."""
        try:
            dropped = dropped_gradients(sess)
        except errors.OpError:
            return
        if dropped != self._logged:
            self._logged = dropped
            each = ", ".join(f"{n} of {task}" for task, n in dropped.items())
            logging.info("Stale gradients dropped so far: %s", each)


def _current(global_step: GlobalStep) -> Any:
    """The step as it is when the operation that takes it runs, not a read from before the update."""
    held_by_reference = isinstance(global_step, Variable) and not isinstance(global_step, ResourceVariable)
    read: Any = global_step
    return read._ref() if held_by_reference else read


class _UpdateRunner(QueueRunner):
    """Makes updates until the training stops.

    An update waits for gradients, so nobody waits for this thread: the session's end is its end too. The queue
    of tokens stays open, for a chief that starts again; only a failed update closes it, to wake the replicas.
    """

    release_ops: Sequence[Operation] = ()  # puts in a last token for each replica

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """One thread for the updates, one that releases the replicas when `coord` stops; daemons, both.

        None when they run for this session already.
        """
        threads = self.start_updates(sess, coord, start)
        if threads and coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(
                threading.Thread(target=self._release_on_stop, args=(sess, coord), name=name, daemon=True)
            )
            coord.register_thread(threads[-1])
            if start:
                threads[-1].start()
        return threads

    def start_updates(
        self, sess: BaseSession, coord: Coordinator | None, start: bool
    ) -> list[threading.Thread]:
        """The thread that makes the updates; none when it runs for this session already."""
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = 1
        name = f"QueueRunnerThread-{self.name}-{self.enqueue_ops[0].name}"
        thread = threading.Thread(target=self._update, args=(sess, coord), name=name, daemon=True)
        atexit.register(self._at_exit, sess)
        if start:
            thread.start()
        return [thread]

    def _at_exit(self, sess: BaseSession) -> None:
        """A program that ends in good order has ended the training, also when it stopped nothing itself."""
        # `last_value` is set when an exception ends the program: then the other replicas get their error from
        # the queue.
        if self._runs_per_session.get(sess) and not hasattr(sys, "last_value"):
            from tensorfleet.base.protos import RunOptions

            with contextlib.suppress(Exception):
                self.release_replicas(sess, RunOptions(timeout_in_ms=_RELEASE_TIMEOUT_MS))

    def _release_on_stop(self, sess: BaseSession, coord: Coordinator) -> None:
        """When the training stops in good order: replicas that wait for the next update see that there is none."""
        coord.wait_for_stop()
        # After a failure nobody is released: a waiting replica has to see the error, not an end in good
        # order.
        if coord._requested_error is not None:
            return
        with contextlib.suppress(Exception):
            self.release_replicas(sess)

    def release_replicas(self, sess: BaseSession, options: RunOptions | None = None) -> None:
        """Lets each replica make one more step; a replica that waits after that learns that the training is over."""
        for put in self.release_ops:
            sess.run(put, options=options)

    def _update(self, sess: BaseSession, coord: Coordinator | None) -> None:
        try:
            update = repeater(sess, self.enqueue_ops[0])
            report = _Report()
            while coord is None or not coord.should_stop():
                update()
                report.when_due(sess)
        except Exception as e:
            if coord is None or not coord.should_stop():
                self._failed(sess, coord, e)
        atexit.unregister(self._at_exit)
        with self._lock:
            self._runs_per_session[sess] = 0

    def _failed(self, sess: BaseSession, coord: Coordinator | None, error: Exception) -> None:
        if coord is None:
            logging.error("Exception in QueueRunner: %s", error)
        else:
            coord.request_stop(failure_in(sess, error))
        # A lost task is recovered by a new session, which uses the same queue; it must stay open for that.
        if not isinstance(error, (errors.AbortedError, errors.UnavailableError, errors.CancelledError)):
            with contextlib.suppress(Exception):
                sess.run(self.cancel_op)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Sets the steps where a training starts; on the chief also starts the updates and puts in tokens."""

    def __init__(self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        """Adds the operations that the chief needs."""
        opt = self._sync_optimizer
        if not opt._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._local_init_op = opt.chief_init_op if self._is_chief else opt.local_step_init_op
        self._q_runner = opt.get_chief_queue_runner() if self._is_chief else None
        self._init_tokens_op = opt.get_init_tokens_op(self._num_tokens) if self._is_chief else None

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Starts."""
        done, missing = ready(
            self._sync_optimizer.ready_for_local_init_op,
            session,
            "Model is not ready for SyncReplicasOptimizer local init.",
        )
        if not done:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: "
                f"{self._local_init_op.name}, error: {missing}"
            )
        # Steps first, then tokens: a replica that gets a token must find the accumulators at that step.
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            self._q_runner.start_updates(session, coord, start=True)

    def end(self, session: BaseSession) -> None:
        """Releases the replicas that wait for an update after the last, so that they see that it was the last."""
        if self._q_runner is not None:
            _Report().now(session)
            self._q_runner.release_replicas(session)
