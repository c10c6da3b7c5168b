"""`tf.contrib.estimator` and `tf.contrib.predictor`: estimators extended, of recurrent networks, and as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.api.saved_model.predictor import Predictor
from tensorfleet.api.train.optimizer import Optimizer
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tensorfleet_legacy.contrib.learn.model_fn import receiver_of
from tensorfleet_legacy.estimator.canned.dnn import optimizer_of
from tensorfleet_legacy.estimator.canned.head import class_head
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.export_output import DEFAULT_KEY, PredictOutput
from tensorfleet_legacy.estimator.extenders_clip_gradients import clip_gradients_by_norm
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys

_RATE, _CLIP = 0.05, 5.0
_DEFAULT = object()
_CELLS = {"basic_rnn": "BasicRNNCell", "lstm": "BasicLSTMCell", "gru": "GRUCell"}


def forward_features(estimator: Estimator, keys: Any = None, sparse_default_values: Any = None) -> Estimator:
    """An estimator that gives some of the features, or all, beside its predictions."""
    wanted = [keys] if isinstance(keys, str) else keys
    if wanted is not None and not isinstance(wanted, (list, tuple)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {type(keys)}")
    for key in wanted or ():
        if not isinstance(key, str):
            raise TypeError(
                f"All items in the given keys list should be a string. There exist an item with type: {type(key)}"
            )

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if spec.predictions is None:
            return spec
        chosen = list(features) if wanted is None else list(wanted)
        _check_forwarded(chosen, features, spec.predictions)
        more = {key: _forwarded(key, features[key], sparse_default_values or {}) for key in chosen}
        outputs = dict(spec.export_outputs or {})
        for key in ("predict", DEFAULT_KEY):
            if isinstance(outputs.get(key), PredictOutput):
                outputs[key] = PredictOutput({**outputs[key].outputs, **more})
        return spec._replace(predictions={**spec.predictions, **more}, export_outputs=outputs or None)

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def _check_forwarded(keys: list, features: dict, predictions: Any) -> None:
    if not isinstance(predictions, dict):
        raise ValueError(
            f"Predictions should be a dict to be able to forward features. Given: {type(predictions)}"
        )
    for key in keys:
        if key not in features:
            raise ValueError(
                f'keys should be exist in features. Key "{key}" is not in features dict. features dict has '
                f"following keys: {list(features)}. Please check arguments of forward_features."
            )
        if key in predictions:
            raise ValueError(
                f"Cannot forward feature key ({key}). Since it does exist in predictions. Existing prediction keys: "
                f"{list(predictions)}. Please check arguments of forward_features."
            )


def _forwarded(key: str, value: Any, defaults: dict) -> Tensor:
    feature = convert_to_tensor_or_sparse_tensor(value)
    if key in defaults:
        if not isinstance(feature, SparseTensor):
            raise ValueError(f"Feature ({key}) is expected to be a `SparseTensor`.")
        return find("sparse_tensor_to_dense")(feature, default_value=defaults[key])
    if not isinstance(feature, Tensor):
        raise ValueError(
            f"Feature ({key}) should be a Tensor. Please use `keys` argument of forward_features to filter unwanted "
            f"features, or add key to argument `sparse_default_values`. Type of features[{key}] is {type(feature)}."
        )
    return feature


def export_saved_model_for_mode(
    estimator: Estimator,
    export_dir_base: Any,
    input_receiver_fn: Callable,
    assets_extra: Any = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
    mode: str = ModeKeys.PREDICT,
) -> Any:
    """`estimator.export_saved_model` for a mode."""
    return estimator.export_saved_model(
        export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, mode
    )


def export_all_saved_models(
    estimator: Estimator,
    export_dir_base: Any,
    input_receiver_fn_map: dict,
    assets_extra: Any = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
) -> Any:
    """`estimator.experimental_export_all_saved_models`."""
    return estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )


def _cell_fn(rnn_cell_fn: Callable | None, num_units: Any, cell_type: Any) -> Callable:
    if rnn_cell_fn is not None:
        if num_units is not None or cell_type is not _DEFAULT:
            raise ValueError("num_units and cell_type must not be specified when using rnn_cell_fn")
        return rnn_cell_fn
    if not num_units:
        raise ValueError("num_units must be specified when rnn_cell_fn is not given")
    kind = "basic_rnn" if cell_type is _DEFAULT else cell_type

    def made(mode: str) -> Any:
        make = find(f"nn.rnn_cell.{_CELLS[kind]}") if isinstance(kind, str) and kind in _CELLS else kind
        if not callable(make):
            raise ValueError(f"The supported cell types are {sorted(_CELLS)}; got {kind}")
        cells = [make(units) for units in num_units]
        return cells[0] if len(cells) == 1 else find("nn.rnn_cell.MultiRNNCell")(cells)

    return made


def _last(activations: Tensor, lengths: Tensor) -> Tensor:
    """The outputs of a network at the last step of each sequence."""
    lengths = find("cast")(lengths, dtypes.int32)
    rows = find("range")(find("shape")(activations)[0])
    return find("gather_nd")(activations, find("stack")([rows, find("maximum")(lengths - 1, 0)], 1))


def _rnn_model_fn(given: dict[str, Any]) -> Callable:
    """A model function of a recurrent network, which ends in `given["head"]`."""
    sequence, context = (tuple(given[f"{k}_feature_columns"] or ()) for k in ("sequence", "context"))
    cell_fn = _cell_fn(given["rnn_cell_fn"], given["num_units"], given["cell_type"])

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        if not isinstance(features, dict):
            raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")
        optimizer = given["optimizer"]
        if not isinstance(optimizer, Optimizer):
            optimizer = clip_gradients_by_norm(optimizer_of(optimizer, _RATE), _CLIP)
        scope = find("variable_scope")
        with scope("rnn", values=tuple(features.values())):
            with scope("sequence_input_layer", partitioner=given["input_layer_partitioner"]):
                inputs, lengths = find("contrib.feature_column.sequence_input_layer")(features, sequence)
                find("summary.histogram")("sequence_length", lengths)
                if context:
                    more = find("expand_dims")(find("feature_column.input_layer")(features, context), 1)
                    inputs = find("concat")([inputs, find("tile")(more, [1, find("shape")(inputs)[1], 1])], 2)
            outputs, _ = find("nn.dynamic_rnn")(
                cell_fn(mode), inputs, sequence_length=lengths, dtype=dtypes.float32
            )
            if not given.get("return_sequences"):
                outputs = _last(outputs, lengths)
            with scope("logits", values=(outputs,)):
                start = find("glorot_uniform_initializer")()
                units = given["head"].logits_dimension
                logits = find("layers.dense")(outputs, units, kernel_initializer=start)
            return given["head"].create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                logits=logits,
                train_op_fn=lambda loss: optimizer.minimize(
                    loss, global_step=find("train.get_global_step")()
                ),
            )

    return model_fn


class RNNClassifier(Estimator):
    """A recurrent network over sequences that tells classes apart, by what it gives at the last step."""

    def __init__(
        self,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_units: Any = None,
        cell_type: Any = _DEFAULT,
        rnn_cell_fn: Callable | None = None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        given = locals()
        head = class_head(n_classes, label_vocabulary, weight_column, loss_reduction)
        Estimator.__init__(self, _rnn_model_fn({**given, "head": head}), model_dir, config)


class RNNEstimator(Estimator):
    """A recurrent network over sequences with a head of one's own."""

    def __init__(
        self,
        head: Any,
        sequence_feature_columns: Any,
        context_feature_columns: Any = None,
        num_units: Any = None,
        cell_type: Any = _DEFAULT,
        rnn_cell_fn: Callable | None = None,
        return_sequences: bool = False,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Any = None,
        config: Any = None,
    ) -> None:
        Estimator.__init__(self, _rnn_model_fn(locals()), model_dir, config)


def _predictor(
    model_fn: Callable, model_dir: str, receiver_fn: Callable, key: Any, graph: Any, config: Any
) -> Predictor:
    graph = graph or Graph()
    with graph.as_default():
        receiver = receiver_fn()
        outputs = model_fn(receiver.features).export_outputs
        wanted = DEFAULT_KEY if key is None else key
        if wanted not in outputs:
            raise KeyError(f"output_key must be one of {list(outputs)}; got {key}")
        signature = outputs[wanted].as_signature_def(receiver.receiver_tensors)
        creator = find("train.ChiefSessionCreator")(config=config, checkpoint_dir=model_dir)
        session = find("train.MonitoredSession")(session_creator=creator)
    feeds, fetches = (
        {k: graph.get_tensor_by_name(info.name) for k, info in infos.items()}
        for infos in (signature.inputs, signature.outputs)
    )
    return Predictor(session, feeds, fetches)


def from_estimator(
    estimator: Estimator,
    serving_input_receiver_fn: Callable,
    output_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """An estimator, with the variables of its latest checkpoint, as a function of arrays."""
    if not isinstance(estimator, Estimator):
        raise TypeError(
            "Espected estimator to be of type core.estimator.Estimator, but got type "
            f"{type(estimator)}. If you used a tf.contrib.learn.Estimator, use from_contrib_estimator."
        )

    def model_fn(features: Any) -> EstimatorSpec:
        return estimator.model_fn(features, None, ModeKeys.PREDICT, estimator.config)

    return _predictor(model_fn, estimator.model_dir, serving_input_receiver_fn, output_key, graph, config)


def from_contrib_estimator(
    estimator: Any,
    prediction_input_fn: Callable,
    input_alternative_key: str | None = None,
    output_alternative_key: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """An estimator of `tf.contrib.learn`, with the variables of its latest checkpoint, as a function of arrays."""
    if isinstance(estimator, Estimator):
        raise TypeError(
            "Expected estimator to be of type tf.contrib.learn.Estimator, but got type "
            f"{type(estimator)}. You likely want to call from_estimator."
        )

    def model_fn(features: Any) -> EstimatorSpec:
        return estimator._core.model_fn(features, None, ModeKeys.PREDICT, estimator.config)

    return _predictor(
        model_fn,
        estimator.model_dir,
        lambda: receiver_of(prediction_input_fn()),
        output_alternative_key,
        graph,
        config,
    )
