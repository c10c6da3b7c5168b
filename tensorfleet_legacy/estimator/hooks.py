"""`tf.estimator.experimental.InMemoryEvaluatorHook`: evaluation during training, without checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.train.evaluation import Evaluation, StopAfterNEvalsHook
from tensorfleet.api.train.hooks import SecondOrStepTimer
from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys, get_collection
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.estimator_metrics import summarized
from tensorfleet_legacy.estimator.model_fn import checked_hooks


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates at the beginning, every `every_n_iter` steps and at the end, with the values of the training's variables.

    The graph of the evaluation is built once. For one machine only.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable,
        steps: int | None = None,
        hooks: Any = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator = estimator
        self._input_fn = input_fn
        self._name = name
        self._hooks = list(checked_hooks(hooks))
        if steps is not None:
            if steps <= 0:
                raise ValueError(f"Must specify steps > 0, given: {steps}")
            self._hooks.append(StopAfterNEvalsHook(steps))
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)
        self._values: dict[str, Any] = {}

    def begin(self) -> None:
        """Builds the graph that evaluates."""
        self._timer.reset()
        self._iterations = 0
        trained = {v.name: v for v in get_collection(GraphKeys.GLOBAL_VARIABLES)}
        self._graph = Graph()
        with self._graph.as_default():
            scaffold, update, values, hooks = self._estimator._evaluation(self._input_fn, self._hooks, None)
            used = {v.name: v for v in get_collection(GraphKeys.GLOBAL_VARIABLES)}
            missing = sorted(set(used) - set(trained))
            if missing:
                raise ValueError(f"The evaluation has variables that the training does not have: {missing}")

            def take(scaffold: Any, session: Any) -> None:
                for name, variable in used.items():
                    variable.load(self._values[name], session)

            scaffold = Scaffold(init_fn=take, copy_from_scaffold=scaffold)
            self._evaluation = Evaluation(scaffold, update, values, None, hooks)
        self._trained = {name: trained[name] for name in used}

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Evaluates what the training begins with."""
        self._evaluate(session)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates when it is due."""
        self._iterations += 1
        if self._timer.should_trigger_for_step(self._iterations):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        """Evaluates the end."""
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        self._values = session.run(self._trained)
        self._timer.update_last_triggered_step(self._iterations)
        with self._graph.as_default():
            result = self._evaluation.run(None, "", None, self._estimator._session_config)
            summarized(result, self._estimator.eval_dir(self._name), None)
