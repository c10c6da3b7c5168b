"""`tf.contrib.estimator.replicate_model_fn`: a model function on several devices of one machine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import nest
from tensorfleet.base.naming import find
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.estimator.export_output import ClassificationOutput, PredictOutput, RegressionOutput
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.internals.util.tf_decorator import fn_args

_STATES = "replicate_model_fn_graph_states"
_SUMS = (Reduction.SUM,)
_VARIABLES = {"Variable", "VariableV2", "VarHandleOp"}


class _Towers:
    """The state that the towers of one graph share: whose turn it is, and the gradients so far."""

    def __init__(self) -> None:
        self.count, self.current, self.used = 1, 0, False
        self.reduction: str = Reduction.SUM
        self.gradients: list[list] = [[]]
        self.first: tuple[Any, str] = (None, "")

    @contextmanager
    def tower(self, index: int, scope: Any, name: str) -> Iterator[None]:
        """The turn of one tower."""
        self.first = (scope, name) if index == 0 else self.first
        self.current = index
        yield

    def share(self, loss: Any) -> Any:
        """The part of a tower's loss in the loss of all."""
        return loss if self.reduction in _SUMS or self.count == 1 else loss / float(self.count)


def _towers() -> _Towers:
    states = find("get_default_graph")().get_collection_ref(_STATES)
    if not states:
        states.append(_Towers())
    return states[-1]


class TowerOptimizer(Optimizer):
    """An optimizer that adds up the gradients of all towers; the last tower applies them."""

    COLLECTION_FOR_GRAPH_STATES = _STATES

    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        super().__init__(False, "TowerOptimizer")
        self._optimizer_or_fn = optimizer_or_optimizer_fn

    @staticmethod
    def has_been_used() -> bool:
        """Whether a tower of this graph has one."""
        return _towers().used

    def _inner(self) -> Any:
        if callable(self._optimizer_or_fn):
            self._optimizer_or_fn = self._optimizer_or_fn()
        _towers().used = True
        return self._optimizer_or_fn

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._inner().get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._inner().get_slot_names(*args, **kwargs)

    def get_name(self) -> str:
        return self._inner().get_name()

    def variables(self) -> list:
        """The variables of the optimizer inside."""
        return self._inner().variables()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return self._inner().compute_gradients(_towers().share(loss), *args, **kwargs)

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Any, global_step: Any = None, **kwargs: Any
    ) -> Any:
        towers, inner = _towers(), self._inner()
        pairs = list(grads_and_vars)
        if towers.count == 1:
            return inner.apply_gradients(pairs, global_step, **kwargs)
        towers.gradients[towers.current].append(pairs)
        if towers.current < towers.count - 1:
            with control_dependencies([v for g, _ in pairs if g is not None for v in [_tensor(g)]]):
                return find("no_op")(name="train_op_placeholder")
        place = len(towers.gradients[-1]) - 1
        sums: dict[int, tuple[Any, list]] = {}
        for tower in towers.gradients:
            for grad, var in tower[place]:
                if grad is not None:
                    sums.setdefault(id(var), (var, []))[1].append(grad)
        scope, name = towers.first
        with find("variable_scope")(scope), find("name_scope")(name):
            whole = [(_sum(grads), var) for var, grads in sums.values()]
            return inner.apply_gradients(whole, global_step, **kwargs)


def _tensor(grad: Any) -> Any:
    return grad.values if isinstance(grad, IndexedSlices) else grad


def _sum(grads: list) -> Any:
    if not any(isinstance(g, IndexedSlices) for g in grads):
        return find("add_n")(grads)
    if all(isinstance(g, IndexedSlices) for g in grads):
        values, indices = (find("concat")([getattr(g, k) for g in grads], 0) for k in ("values", "indices"))
        return IndexedSlices(values, indices, grads[0].dense_shape)
    return find("add_n")([find("convert_to_tensor")(g) for g in grads])


def replicate_model_fn(
    model_fn: Callable,
    loss_reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Any = None,
) -> Callable:
    """A model function whose batches are split over devices; its optimizers are `TowerOptimizer`s."""
    if loss_reduction == Reduction.NONE:
        raise ValueError(
            f"Tower losses need to be reduced in some way, yet {loss_reduction} reduction is specified."
        )
    devices = list(devices or _local("GPU") or _local("CPU"))

    def replicated(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> EstimatorSpec:
        options: dict[str, Any] = {"params": params, "config": config}
        asked = {k: copy.deepcopy(v) for k, v in options.items() if k in fn_args(model_fn)}
        feature_parts, label_parts = _split(features, len(devices)), _split(labels, len(devices))
        specs = _specs(model_fn, mode, feature_parts, label_parts, asked, devices, loss_reduction)
        if len(devices) == 1:
            return specs[0]
        if mode == ModeKeys.PREDICT:
            return _predicting(specs)
        loss = find("add_n")([spec.loss for spec in specs], name="loss")
        if mode == ModeKeys.TRAIN:
            return specs[-1]._replace(loss=loss, train_op=group(*(s.train_op for s in specs)))
        return _evaluating(specs, loss)

    return replicated


def _local(kind: str) -> list[str]:
    return [d.name for d in find("python.client.device_lib.list_local_devices")() if d.device_type == kind]


def _split(values: Any, count: int) -> list:
    """The parts of a batch; the batch must divide by their number."""
    if values is None or count == 1:
        return [values] * count

    def parts(value: Any) -> list:
        if isinstance(value, SparseTensor):
            return find("sparse_split")(sp_input=value, num_split=count, axis=0)
        return find("split")(value, count)

    if isinstance(values, dict):
        each = {key: _split(value, count) for key, value in values.items()}
        return [{key: item[i] for key, item in each.items()} for i in range(count)]
    return parts(values)


def _setter(device: str) -> Callable[[Any], str]:
    """Operations are placed on a tower's device, the variables of all towers on the processor."""
    return lambda op: "/device:CPU:0" if op.type in _VARIABLES else device


def _specs(
    model_fn: Callable, mode: str, features: list, labels: list, asked: dict, devices: list, reduction: str
) -> list[EstimatorSpec]:
    towers = _towers()
    towers.count, towers.reduction = len(devices), reduction
    towers.gradients = [[] for _ in devices]
    specs = []
    for i, device in enumerate(devices):
        scope = find("variable_scope")("", reuse=find("AUTO_REUSE") if i == 0 else True)
        with scope as inner, find("name_scope")(f"replica_{i}" if i else "") as name:
            with towers.tower(i, inner, name), find("device")(_setter(device)):
                spec = model_fn(features=features[i], labels=labels[i], mode=mode, **asked)
        if spec.train_op is not None and len(devices) > 1 and not towers.used:
            raise ValueError(
                "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with multiple `devices`."
            )
        specs.append(spec if spec.loss is None else spec._replace(loss=towers.share(spec.loss)))
    if len({len(tower) for tower in towers.gradients}) != 1:
        raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.")
    find("get_default_graph")().clear_collection(_STATES)
    return specs


def _evaluating(specs: list[EstimatorSpec], loss: Any) -> EstimatorSpec:
    """The variables of all towers' metrics are added to those of the first."""
    updates = [update for spec in specs for _, update in (spec.eval_metric_ops or {}).values()]
    variables = get_collection(GraphKeys.METRIC_VARIABLES)
    own = len(variables) // len(specs)
    if own * len(specs) != len(variables):
        raise ValueError(
            f"Different number of local variables expected: {len(variables)} for {len(specs)} towers."
        )
    moved = []
    with control_dependencies(updates):
        for i, first in enumerate(variables[:own]):
            others = [variables[i + own * k] for k in range(1, len(specs))]
            total = first.assign_add(find("add_n")([v.read_value() for v in others]))
            with control_dependencies([total]):
                moved += [v.assign(find("zeros_like")(v)) for v in others]
    update = group(*moved)
    metrics = {name: (value, update) for name, (value, _) in (specs[0].eval_metric_ops or {}).items()}
    return specs[0]._replace(loss=loss, eval_metric_ops=metrics)


def _predicting(specs: list[EstimatorSpec]) -> EstimatorSpec:
    def joined(parts: Any) -> Any:
        return nest.map_structure(lambda *tensors: find("concat")(list(tensors), 0), *parts)

    outputs: dict[str, Any] = {}
    for key, first in (specs[0].export_outputs or {}).items():
        each = [spec.export_outputs[key] for spec in specs]
        if isinstance(first, PredictOutput):
            outputs[key] = PredictOutput(joined([o.outputs for o in each]))
        elif isinstance(first, RegressionOutput):
            outputs[key] = RegressionOutput(joined([o.value for o in each]))
        elif isinstance(first, ClassificationOutput):
            scores, classes = (
                None if getattr(first, k) is None else joined([getattr(o, k) for o in each])
                for k in ("scores", "classes")
            )
            outputs[key] = ClassificationOutput(scores, classes)
    return specs[0]._replace(predictions=joined([s.predictions for s in specs]), export_outputs=outputs)
