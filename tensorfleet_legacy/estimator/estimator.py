"""`tf.estimator.Estimator`: trains, evaluates, exports and uses the model that a function builds."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.checkpoint_reader import list_variables, load_variable
from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.evaluation import StopAfterNEvalsHook, evaluate_once, get_or_create_eval_step
from tensorfleet.api.train.global_step import create_global_step, get_global_step
from tensorfleet.api.train.hooks import LoggingTensorHook, NanTensorHook, StopAtStepHook
from tensorfleet.api.train.hooks_saving import (
    CheckpointSaverHook,
    StepCounterHook,
    SummarySaverHook,
)
from tensorfleet.api.train.monitored_session import (
    ChiefSessionCreator,
    MonitoredSession,
    MonitoredTrainingSession,
)
from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.base import errors, logging
from tensorfleet.base.files import isdir
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
    device,
    get_collection,
    get_default_graph,
    set_random_seed,
)
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator import distribute_config as distributing
from tensorfleet_legacy.estimator import estimator_export as saving
from tensorfleet_legacy.estimator.estimator_checks import (
    check_arguments,
    check_steps,
    checked_listeners,
    chosen,
    device_setter,
    examples_of,
    saver_of,
    with_folder,
)
from tensorfleet_legacy.estimator.estimator_metrics import summarized, with_loss
from tensorfleet_legacy.estimator.estimator_warm_start import maybe_warm_start, settings_of
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys, checked_hooks
from tensorfleet_legacy.estimator.run_config import EVALUATOR, MASTER, PS, WORKER, RunConfig
from tensorfleet_legacy.estimator.util import features_and_labels
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_MAY_CHANGE = {"model_fn", "latest_checkpoint", "_create_and_assert_global_step", "_export_all_saved_models"}


class Estimator:
    """A model and where it is trained: `model_fn(features, labels, mode, params, config)` builds it for each mode.

    `model_fn` takes those of its arguments that it names and gives an `EstimatorSpec`. Checkpoints and summaries are in
    `model_dir`. Each method builds a graph of its own; input functions are called inside of it and give a `Dataset`, a
    pair of features and labels, or features alone.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        type(self)._assert_members_are_not_overridden(self)  # a library may have put a static function there
        self._config = with_folder(config, model_dir)
        self._model_dir = self._config.model_dir
        self._session_config = self._config.session_config
        self._device_fn = self._config.device_fn or device_setter(self._config)
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        check_arguments(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy({} if params is None else params)
        self._warm_start_settings = settings_of(warm_start_from)
        logging.info("Using config: %s", vars(self._config))

    def _assert_members_are_not_overridden(self) -> None:
        base = {name for name in dir(Estimator) if not name.startswith("__")} - _MAY_CHANGE
        mine = type(self)
        changed = [n for n in base & set(vars(mine)) if getattr(mine, n) is not getattr(Estimator, n)]
        if changed:
            raise ValueError(
                f"Subclasses of Estimator cannot override members of Estimator. {mine} does override {changed}"
            )

    model_dir = readonly("_model_dir", "The folder of the checkpoints.")

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return copy.copy(self._config)

    @property
    def params(self) -> Any:
        """A copy of what the model function gets as `params`."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """A function `(features, labels, mode, config)` that builds the model with this Estimator's `params`."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint."""
        self._check_trained()
        return load_variable(self.model_dir, name)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint."""
        self._check_trained()
        return [name for name, _ in list_variables(self.model_dir)]

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None before the first."""
        return latest_checkpoint(self.model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """Where an evaluation of that name writes its events."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    def _check_trained(self) -> None:
        if not latest_checkpoint(self._model_dir):
            raise ValueError(f"Could not find trained model in model_dir: {self._model_dir}.")

    def train(
        self,
        input_fn: Callable,
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains from the latest checkpoint on: for `steps`, until global step `max_steps`, or to the end of the input."""
        if self._config.task_type in (EVALUATOR, PS):
            raise ValueError(
                "Train has been called wrong configuration. Please use tf.estimator.train_and_evaluate which calls proper "
                f"API according to given configuration. This task is a {self._config.task_type}."
            )
        check_steps(steps, max_steps)
        if max_steps is not None and max_steps <= saving.global_step_in(self._model_dir):
            logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = list(checked_hooks(hooks))
        if steps is not None or max_steps is not None:
            all_hooks.append(StopAtStepHook(steps, max_steps))
        listeners = checked_listeners(saving_listeners)
        strategy = self._config.train_distribute
        place = self._device_fn if strategy is None else None
        with Graph().as_default(), device(place), distributing.scope_of(strategy):
            loss = self._train_in_graph(input_fn, all_hooks, listeners)
        logging.info("Loss for final step: %s.", loss)
        return self

    def _train_in_graph(self, input_fn: Callable, hooks: list, listeners: list) -> Any:
        set_random_seed(self._config.tf_random_seed)
        self._create_and_assert_global_step()
        spec, input_hooks = self._spec(input_fn, ModeKeys.TRAIN, self._config.train_distribute)
        maybe_warm_start(self._warm_start_settings)
        if not any(summary.op.name == "loss" for summary in get_collection(GraphKeys.SUMMARIES)):
            scalar("loss", spec.loss)
        add_to_collection(GraphKeys.LOSSES, spec.loss)
        worker_hooks = [*input_hooks, *hooks, NanTensorHook(spec.loss)]
        config = self._config
        if config.log_step_count_steps is not None:
            by_name = {"loss": spec.loss, "step": get_global_step()}
            worker_hooks.append(LoggingTensorHook(by_name, every_n_iter=config.log_step_count_steps))
        worker_hooks += spec.training_hooks
        if not (spec.scaffold.saver or get_collection(GraphKeys.SAVERS)):
            add_to_collection(GraphKeys.SAVERS, saver_of(config))
        chief_hooks = self._saving_hooks(spec, [*worker_hooks, *spec.training_chief_hooks], listeners)
        summary_steps, log_steps = config.save_summary_steps, config.log_step_count_steps
        if {MASTER, WORKER} <= set(config.cluster_spec.jobs):
            # The master also evaluates; so that summaries come in time, the first worker writes them.
            if config.task_type == WORKER and config.task_id == 0:
                worker_hooks += self._summary_hooks(spec.scaffold)
            summary_steps, log_steps = 0, None
        is_chief, session_config = config.is_chief, self._session_config
        if config.train_distribute is not None:
            does = config.train_distribute.extended
            is_chief = does.experimental_should_init
            session_config = config.train_distribute.update_config_proto(session_config)
            if not does.should_save_summary:
                summary_steps, log_steps = 0, None
            if not does.should_checkpoint:
                chief_hooks = []
        with MonitoredTrainingSession(
            master=config.master,
            is_chief=is_chief,
            checkpoint_dir=self._model_dir,
            scaffold=spec.scaffold,
            hooks=worker_hooks,
            chief_only_hooks=[*chief_hooks, *spec.training_chief_hooks],
            save_checkpoint_secs=0,  # a hook does that
            save_summaries_steps=summary_steps,
            config=session_config,
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=log_steps,
        ) as session:
            loss = None
            any_step = False
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
                any_step = True
        if not any_step:
            logging.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
        return loss

    def _saving_hooks(self, spec: EstimatorSpec, given: list, listeners: list) -> list:
        """The hook that saves, unless one was given; the listeners are told by whichever it is."""
        config = self._config
        savers = [hook for hook in given if isinstance(hook, CheckpointSaverHook)]
        result = []
        if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
            result = savers = [
                CheckpointSaverHook(
                    self._model_dir,
                    save_secs=config.save_checkpoints_secs,
                    save_steps=config.save_checkpoints_steps,
                    scaffold=spec.scaffold,
                )
            ]
        if listeners:
            if not savers:
                raise ValueError(
                    "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                    "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
                )
            savers[0]._listeners.extend(listeners)
        return result

    def _summary_hooks(self, scaffold: Scaffold) -> list:
        steps, log = self._config.save_summary_steps, self._config.log_step_count_steps
        hooks: list = []
        if steps:
            hooks.append(SummarySaverHook(save_steps=steps, output_dir=self._model_dir, scaffold=scaffold))
        if log:
            hooks.append(StepCounterHook(every_n_steps=log, output_dir=self._model_dir))
        return hooks

    def evaluate(
        self,
        input_fn: Callable,
        steps: int | None = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict:
        """The metrics of the latest checkpoint, or of the one given, over `steps` batches or all of the input.

        They are also written as summaries to `eval_dir(name)`. The result has "loss" and "global_step" as well.
        """
        all_hooks = list(checked_hooks(hooks))
        if steps is not None:
            if steps <= 0:
                raise ValueError(f"Must specify steps > 0, given: {steps}")
            all_hooks.append(StopAfterNEvalsHook(steps))
        path = self._checkpoint(checkpoint_path, "evaluate")
        with Graph().as_default(), distributing.scope_of(self._config.eval_distribute):
            scaffold, update, values, all_hooks = self._evaluation(input_fn, all_hooks, path)
            result = evaluate_once(
                checkpoint_path=path,  # type: ignore[arg-type]
                master=self._config.evaluation_master,
                scaffold=scaffold,
                eval_ops=update,
                final_ops=values,
                hooks=all_hooks,
                config=self._session_config,
            )
            summarized(result, self.eval_dir(name), path)
        return result

    def _evaluation(self, input_fn: Callable, hooks: list, path: str | None) -> tuple:
        """Builds a graph that evaluates: its scaffold, the update of all metrics, their values, the hooks."""
        set_random_seed(self._config.tf_random_seed)
        self._create_and_assert_global_step()
        strategy = self._config.eval_distribute
        spec, input_hooks = self._spec(input_fn, ModeKeys.EVAL, strategy)
        if strategy is None:
            update, values = with_loss(spec.eval_metric_ops, spec.loss)
        else:  # the replicas have measured their loss already
            values = {name: value for name, (value, _) in spec.eval_metric_ops.items()}
            update = spec.eval_metric_ops["loss"][1]
        if path is None:
            maybe_warm_start(self._warm_start_settings)
        values[GraphKeys.GLOBAL_STEP] = get_global_step()
        scaffold = spec.scaffold
        if scaffold.local_init_op is not None:
            get_or_create_eval_step()  # metrics have local variables that the given operation does not know
            both = group(scaffold.local_init_op, Scaffold.default_local_init_op())
            scaffold = Scaffold(local_init_op=both, copy_from_scaffold=scaffold)
        return scaffold, update, values, [*input_hooks, *hooks, *spec.evaluation_hooks]

    def predict(
        self,
        input_fn: Callable,
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Gives the predictions, example by example (or batch by batch), until the input ends."""
        all_hooks = list(checked_hooks(hooks))
        path = self._checkpoint(checkpoint_path, "predict")
        graph = Graph()
        with graph.as_default():
            predictions, session = self._prediction(input_fn, predict_keys, all_hooks, path)
        # The caller's graph is the default one whenever a prediction is handed over.
        failure: tuple = (None, None, None)
        try:
            while True:
                with graph.as_default():
                    if session.should_stop():
                        break
                    try:
                        values = session.run(predictions)
                    except (errors.OutOfRangeError, StopIteration):
                        break
                if yield_single_examples:
                    yield from examples_of(values)
                else:
                    yield values
        except BaseException as e:
            failure = (type(e), e, e.__traceback__)
            raise
        finally:
            with graph.as_default():
                session.__exit__(*failure)

    def _prediction(self, input_fn: Callable, keys: Any, hooks: list, path: str | None) -> tuple:
        set_random_seed(self._config.tf_random_seed)
        self._create_and_assert_global_step()
        features, _, input_hooks = self._input(input_fn, ModeKeys.PREDICT)
        if not _ends(input_hooks):
            logging.warning(
                "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict yields forever. "
                "This is probably a mistake."
            )
        spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
        if path is None:
            maybe_warm_start(self._warm_start_settings)
        creator = ChiefSessionCreator(
            checkpoint_filename_with_path=path,
            master=self._config.master,
            scaffold=spec.scaffold,
            config=self._session_config,
        )
        all_hooks = [*input_hooks, *hooks, *spec.prediction_hooks]
        return chosen(spec.predictions, keys), MonitoredSession(creator, all_hooks)

    def _checkpoint(self, given: str | None, purpose: str) -> str | None:
        path = given or latest_checkpoint(self._model_dir)
        if not path:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.",
                self._model_dir,
                purpose,
            )
        return path

    def _create_and_assert_global_step(self, graph: Any = None) -> Any:
        step = create_global_step(graph)
        if not step.dtype.is_integer or step is not get_global_step(graph):
            raise ValueError(f"{step} must be the graph's global step, and an integer.")
        return step

    def _spec(self, input_fn: Callable, mode: str, strategy: Any) -> tuple[EstimatorSpec, list]:
        """The model built for a mode, by all replicas of a strategy if there is one, and the hooks of its input."""
        if strategy is None:
            features, labels, hooks = self._input(input_fn, mode)
            return self._call_model_fn(features, labels, mode, self.config), hooks
        element, hooks = distributing.elements(
            strategy, input_fn, lambda more: self._call_input_fn(input_fn, mode, **more)
        )
        build = lambda features, labels: self._call_model_fn(features, labels, mode, self.config)  # noqa: E731
        return distributing.specs(strategy, element, build), hooks

    def _input(self, input_fn: Callable, mode: str) -> tuple[Any, Any, list]:
        with device("/cpu:0"):
            return features_and_labels(self._call_input_fn(input_fn, mode))

    def _call_input_fn(self, input_fn: Callable, mode: str, **more: Any) -> Any:
        """Calls the input function with those of `mode`, `params` and `config` that it takes."""
        given = {"mode": mode, "params": self.params, "config": self.config, **more}
        asked = fn_args(input_fn)
        return input_fn(**{k: v for k, v in given.items() if k in asked})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        asked = fn_args(self._model_fn)
        if labels is not None and "labels" not in asked:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        given = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        logging.info("Calling model_fn.")
        spec = self._model_fn(features=features, **{k: v for k, v in given.items() if k in asked})
        logging.info("Done calling model_fn.")
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Any,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes the model as a SavedModel to a new folder, named by the time, under `export_dir_base`; gives its path."""
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        functions = {experimental_mode: serving_input_receiver_fn}
        return self._export_all_saved_models(
            export_dir_base, functions, assets_extra, as_text, checkpoint_path, strip_default_attrs=True
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: dict,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Writes one SavedModel with the graphs of several modes: `input_receiver_fn_map` has a function for each."""
        return self._export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True
        )

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Any,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` by its old name."""
        if not serving_input_receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        functions = {ModeKeys.PREDICT: serving_input_receiver_fn}
        return self._export_all_saved_models(
            export_dir_base, functions, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    def _export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: dict,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
    ) -> bytes:
        path = checkpoint_path or latest_checkpoint(self._model_dir)
        if not path and self._warm_start_settings is not None:
            path = self._warm_start_settings.ckpt_to_initialize_from
            path = latest_checkpoint(path) if isdir(path) else path
        if not path:
            raise ValueError(f"Couldn't find trained model at {self._model_dir}.")
        return saving.export(
            self, export_dir_base, input_receiver_fn_map, assets_extra, as_text, path, strip_default_attrs
        )


def _ends(input_hooks: list) -> bool:
    """Whether the input comes from where it may end: a dataset or a queue."""
    operations = get_default_graph().get_operations()
    iterates = any(op.type == "IteratorGetNext" for op in operations)
    return bool(input_hooks or iterates or get_collection(GraphKeys.QUEUE_RUNNERS))
