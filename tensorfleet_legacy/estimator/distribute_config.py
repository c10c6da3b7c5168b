"""Estimators that train and evaluate with a strategy: the model function is called for each replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorfleet.api.distribute import context
from tensorfleet.api.distribute.values import PerReplica, regroup
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.base import errors, logging
from tensorfleet.graph.apply import constant
from tensorfleet.graph.scopes import get_default_graph
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.estimator_metrics import with_loss
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.internals.util.tf_decorator import fn_args


class DistributeConfig(NamedTuple):
    """The strategies of an Estimator: `RunConfig(experimental_distribute=...)`."""

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None


@contextmanager
def scope_of(strategy: Any) -> Iterator[None]:
    """The scope in which an Estimator builds a graph; without a strategy, nothing."""
    if strategy is None:
        yield
        return
    before = strategy._scale_loss_for_estimator
    strategy._scale_loss_for_estimator = True  # replicas' losses are means over their own batches
    try:
        with strategy.scope():
            yield
    finally:
        strategy._scale_loss_for_estimator = before


class _StartInput(SessionRunHook):
    """Starts the run through the input whenever a session was made."""

    def __init__(self, iterator: Any) -> None:
        self._operation = iterator.initialize()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts at the beginning."""
        session.run(self._operation)


class _LeaveTogether(SessionRunHook):
    """Workers end together: the one at which they meet must not be gone while another finishes its last step."""

    def __init__(self, strategy: Any) -> None:
        self._met = strategy.extended._sum_over_workers([constant(1.0)], context.ReduceOp.SUM)[0]

    def end(self, session: Any) -> None:
        """Waits for the others; those that are gone already are no reason to fail."""
        try:
            session.run(self._met)
        except errors.OpError as error:
            logging.info("Not all workers end together: %s", error)


def elements(strategy: Any, input_fn: Callable, call: Callable) -> tuple[Any, list]:
    """The next features and labels of each replica, and the hooks that the input needs."""
    several = len(strategy.extended.worker_devices) > 1
    iterator = strategy.make_input_fn_iterator(lambda told: _given(input_fn, told, call, several))
    hooks: list = [_StartInput(iterator)]
    if getattr(strategy.extended, "_workers", 1) > 1:
        hooks.append(_LeaveTogether(strategy))
    return iterator.get_next(), hooks


def _given(input_fn: Callable, told: Any, call: Callable, several: bool) -> Any:
    more = {"input_context": told} if "input_context" in fn_args(input_fn) else {}
    result = call(more)
    if hasattr(result, "_variant_tensor"):
        return result
    if several:
        raise ValueError(
            "With several replicas `input_fn` must give a `tf.data.Dataset`, from which each takes batches of its own. "
            f"Given: {result}"
        )
    return lambda: result


def specs(strategy: Any, element: Any, build: Callable[[Any, Any], EstimatorSpec]) -> EstimatorSpec:
    """One spec for all replicas: the loss over all of them, all their updates, the first one's hooks."""
    by_name: dict[int, EstimatorSpec] = {}

    def replica(given: Any) -> None:
        features, labels = given if isinstance(given, (list, tuple)) else (given, None)
        spec = build(features, labels)
        if spec.mode == ModeKeys.EVAL:
            update, values = with_loss(spec.eval_metric_ops, spec.loss)
            metrics = {name: (value, update) for name, value in values.items()}
            loss = metrics.pop("loss")
            spec = spec._replace(eval_metric_ops=metrics)
            losses.append(loss)
        by_name[context.get_replica_context()._replica_index] = spec

    losses: list = []
    strategy.extended.call_for_each_replica(replica, args=(element,))
    every = [by_name[i] for i in sorted(by_name)]
    first = every[0]
    if first.mode == ModeKeys.TRAIN:
        return first._replace(loss=_reported(strategy, every), train_op=group(*[s.train_op for s in every]))
    update = group(*[loss[1] for loss in losses])
    metrics = {name: (value, update) for name, (value, _) in first.eval_metric_ops.items()}
    return first._replace(eval_metric_ops={**metrics, "loss": (losses[0][0], update)})


def _reported(strategy: Any, every: list[EstimatorSpec]) -> Any:
    last = getattr(get_default_graph(), "_last_loss_reduction", None)
    wanted = context.ReduceOp.SUM if last in ("weighted_sum", "sum") else context.ReduceOp.MEAN
    losses = regroup([s.loss for s in every]) if len(every) > 1 else every[0].loss
    assert len(every) == 1 or isinstance(losses, PerReplica)
    return strategy.reduce(wanted, losses)
