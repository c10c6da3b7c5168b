"""`tf.estimator.tpu` (and `tf.contrib.tpu`) where there is no TPU: estimators that are told `use_tpu=False`."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.base import logging
from tensorfleet.base.properties import readonly
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.estimator.run_config import RunConfig as _RunConfig
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_RESERVED = ("batch_size", "context")


class InputPipelineConfig:
    """How input reaches the cores of a TPU."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class TPUConfig(NamedTuple):
    """Settings of a TPU. Nothing of it matters without one."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: float | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class RunConfig(_RunConfig):
    """A `tf.estimator.RunConfig` that has a `TPUConfig` too."""

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster = cluster
        if cluster is not None:
            if master is not None:
                raise ValueError("Both `cluster` and `master` are set: leave one of them out.")
            master = cluster.master()
        if master is not None:
            self._master = master
        if evaluation_master is not None:
            self._evaluation_master = evaluation_master
        elif not self._evaluation_master and self._task_type != "evaluator":
            self._evaluation_master = self._master

    tpu_config = readonly("_tpu_config", "The settings of a TPU.")
    cluster = readonly("_cluster", "What finds the cluster; None where TF_CONFIG tells it.")

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other settings."""
        config = kwargs.pop("tpu_config", self._tpu_config)
        result = super().replace(**kwargs)
        result._tpu_config = config
        return result


class _SpecFields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: tuple
    evaluation_hooks: tuple
    prediction_hooks: tuple


class TPUEstimatorSpec(_SpecFields):
    """The result of a model function for a `TPUEstimator`.

    `eval_metrics` is a function and what it is called with, a list or a dictionary of tensors: it gives the metrics.
    `host_call` is the same for operations that each step runs besides, `scaffold_fn` makes the `tf.train.Scaffold`.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: Any = None,
        scaffold_fn: Any = None,
        host_call: Any = None,
        training_hooks: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> TPUEstimatorSpec:
        for name, call in (("eval_metrics", eval_metrics), ("host_call", host_call)):
            _check_call(name, call)
        hooks = (tuple(given or ()) for given in (training_hooks, evaluation_hooks, prediction_hooks))
        return super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            eval_metrics,
            export_outputs,
            scaffold_fn,
            host_call,
            *hooks,
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for an ordinary estimator."""
        besides = [_RunsBesides(_called(self.host_call))] if self.host_call else []
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=_called(self.eval_metrics) if self.eval_metrics else None,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=[*self.training_hooks, *besides],
            evaluation_hooks=[*self.evaluation_hooks, *besides],
            prediction_hooks=[*self.prediction_hooks, *besides],
        )


def _check_call(name: str, call: Any) -> None:
    if call is None:
        return
    if not isinstance(call, (tuple, list)) or len(call) != 2:
        raise ValueError(f"{name} should be a tuple of a function and tensors with length 2. Given: {call}")
    if not callable(call[0]):
        raise TypeError(f"{name}[0] should be callable. Given: {call[0]}")
    if not isinstance(call[1], (tuple, list, dict)):
        raise ValueError(f"{name}[1] should be tuple or list, or dict. Given: {type(call[1])}")


def _called(call: Any) -> Any:
    function, tensors = call
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class _RunsBesides(SessionRunHook):
    """Runs operations with each step."""

    def __init__(self, fetches: Any) -> None:
        self._fetches = fetches

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for them."""
        return SessionRunArgs(self._fetches)


class ExportSavedModelApiVersion(enum.Enum):
    """How a model for a TPU is exported."""

    V1 = 1
    V2 = 2


class TPUEstimator(Estimator):
    """A `tf.estimator.Estimator` whose functions are told a batch size: `params["batch_size"]`, that of the mode.

    There are no TPUs: it must be made with `use_tpu=False`, as scripts do that run on CPUs and GPUs too.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = ExportSavedModelApiVersion.V1,
    ) -> None:
        if not isinstance(config, RunConfig):
            raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
        if params is not None and any(key in params for key in _RESERVED):
            raise ValueError(f"{_RESERVED} are reserved keys but existed in params {params}.")
        self._use_tpu = use_tpu
        self._sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        super().__init__(model_fn, model_dir, config, params, warm_start_from)  # type: ignore[arg-type]

    def _assert_members_are_not_overridden(self) -> None:
        """Its functions are called in another way than an ordinary estimator's."""

    def _with_size(self, function: Any, mode: str) -> Any:
        """`params` for a function, with the batch size of a mode."""
        params, size = self.params, self._sizes[mode]
        if size is None:
            return params
        if "params" not in fn_args(function):
            raise ValueError(
                f"{function} does not include params argument, required by TPUEstimator to pass batch size as "
                'params["batch_size"]'
            )
        return _with_item(params, "batch_size", size)

    def _call_input_fn(self, input_fn: Callable, mode: str, **more: Any) -> Any:
        if self._use_tpu:
            raise RuntimeError(
                "Cannot find any TPU cores in the system. Make the TPUEstimator with use_tpu=False to run on this "
                "machine's devices."
            )
        return super()._call_input_fn(input_fn, mode, **{**more, "params": self._with_size(input_fn, mode)})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        own, kept = self._model_fn, self._params
        self._params = _with_item(self._with_size(own, mode), "use_tpu", False)
        self._model_fn = _plain(own)
        try:
            return super()._call_model_fn(features, labels, mode, config)
        finally:
            self._model_fn, self._params = own, kept


def _with_item(params: Any, name: str, value: Any) -> Any:
    """A copy of parameters, a dictionary or an HParams, with one more."""
    params = copy.copy(params)
    if not hasattr(params, "set_hparam"):
        params[name] = value
    elif name in params:
        params.set_hparam(name, value)
    else:
        params.add_hparam(name, value)
    return params


def _plain(model_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A model function that gives the spec of an ordinary estimator."""
    asked = fn_args(model_fn)

    def build(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        given = {"labels": labels, "mode": mode, "params": params, "config": config}
        spec = model_fn(features, **{k: v for k, v in given.items() if k in asked})
        return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

    return build


class CrossShardOptimizer(Optimizer):
    """An optimizer that averages gradients over the shards of a TPU: of one shard, where there is no TPU."""

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = "weighted_sum",
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(  # type: ignore[override]
        self, loss: Any, var_list: Any = None, **kwargs: Any
    ) -> list:
        """The gradients that the optimizer itself computes."""
        logging.warning(
            "CrossShardOptimizer should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1."
        )
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients by the optimizer itself."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list:
        """The names of the optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list:
        """The variables of the optimizer."""
        return self._opt.variables()
