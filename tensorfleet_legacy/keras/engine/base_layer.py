"""`tf.keras.layers.Layer`: named by name scopes, with resource variables, and trained in the learning phase."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.autograph.calls import converted_call
from tensorfleet.api.layers.base import Layer as Scoped
from tensorfleet.api.layers.specs import check_inputs, snake_case
from tensorfleet.api.variables.initializers import GlorotUniform, Zeros
from tensorfleet.api.variables.scope import get_variable_scope
from tensorfleet.api.variables.variable import VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.indexed_slices import CompositeTensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph, name_scope
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.activations import constraint as constraint_of
from tensorfleet_legacy.keras.activations import initializer as initializer_of
from tensorfleet_legacy.keras.activations import regularizer as regularizer_of
from tensorfleet_legacy.keras.activations import serialized
from tensorfleet_legacy.keras.engine.node import Call, Connected

_SHAPES = ("input_shape", "batch_input_shape", "input_dim", "input_length", "batch_size", "weights")


class Layer(Connected, Scoped):
    """Base of Keras's layers.

    A layer of your own makes its variables with `add_weight` in `build(input_shape)`, which runs at the first
    call, and computes in `call(inputs)`. A `training` argument of `call` is the learning phase unless given.
    """

    #: whether the steps that count in its input are those that count in its output
    _passes_masks = False

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        given = {key: kwargs.pop(key) for key in _SHAPES if key in kwargs}
        if kwargs.get("groups") == 1:
            del kwargs["groups"]  # in the files of later versions
        name = name or state.unique_name(snake_case(type(self).__name__))
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._dynamic = dynamic
        self._scope = get_variable_scope()
        self._batch_input_shape = _batch_shape(given)
        self._initial_weights = given.get("weights")
        self.supports_masking = self._passes_masks
        self._calls: list[Call] = []

    @property
    def name_scope(self) -> Any:
        return name_scope(self.name)

    @contextmanager
    def _inside(self, reuse: Any) -> Iterator[Any]:
        """Variables are named by the name scope they are made in."""
        yield self._scope

    def add_weight(  # type: ignore[override]
        self,
        name: str | None = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        **kwargs: Any,
    ) -> Any:
        """Makes a variable, named inside the layer."""
        on_read = synchronization == VariableSynchronization.ON_READ
        wanted = not on_read if trainable is None else trainable
        kind = dtypes.as_dtype(dtype or self.dtype or state.floatx())
        first = initializer_of(initializer)
        if first is None:
            first = GlorotUniform() if kind.is_floating else Zeros()
        dims = [] if shape is None else [d for d in _dims(shape)]
        result = find("Variable")(
            lambda: first(dims, dtype=kind),
            trainable=bool(wanted and self.trainable),
            name=name or "Variable",
            dtype=kind,
            constraint=constraint_of(constraint),
            use_resource=True if use_resource is None else use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )
        state.track(result)
        (self._trainable_weights if wanted else self._non_trainable_weights).append(result)
        if name is not None:
            self._named_weights[name] = result
        if regularizer is not None:
            self._regularize(result.op.name.rpartition("/")[2], [result], regularizer_of(regularizer))
        return result

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Lets something belong to the layer, under a name: what libraries call for layers inside of theirs."""
        if overwrite or not hasattr(self, name):
            setattr(self, name, trackable)
        return trackable

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses to the layer; the graph's collections stay as they are."""
        for item in nest.flatten(losses):
            loss = item() if callable(item) else item
            if loss is not None:
                self._losses.append(to_tensor(loss))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = nest.map_structure(_as_tensor, inputs)
        flat = nest.flatten(inputs)
        self._check_graph(flat)
        if any(not hasattr(t, "_keras_history") for t in flat) and not state.is_calling():
            from tensorfleet_legacy.keras.engine.base_layer_operations import connect

            connect(flat)
        known = inspect.signature(self.call).parameters
        given, training = dict(kwargs), _take_training(known, args, kwargs)
        if "training" not in kwargs:
            given.pop("training", None)
        masks = nest.map_structure(lambda t: getattr(t, "_keras_mask", None), inputs)
        if "mask" in known and kwargs.get("mask") is None and any(m is not None for m in nest.flatten(masks)):
            kwargs["mask"] = masks
        with name_scope(self.name):
            if not self.built:
                self._first_call(inputs, flat)
                if self._initial_weights is not None:
                    self._start_with(self._initial_weights)
            check_inputs(self.name, self.input_spec, flat)
            with state.calling(training):
                outputs = converted_call(self.call, (inputs, *args), kwargs)
            if outputs is None:
                raise ValueError(
                    f"A layer's `call` method should return a Tensor or a list of Tensors, not None (layer: {self.name})."
                )
            self._end_call(inputs, masks, outputs)
        return self._remember(inputs, args, given, outputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs from the mask of the inputs; None: no mask."""
        return mask if self.supports_masking else None

    def _end_call(self, inputs: Any, masks: Any, outputs: Any) -> None:
        self._regularize_outputs(outputs)
        self._mark(outputs, self.compute_mask(inputs, masks))

    def _mark(self, outputs: Any, mask: Any) -> None:
        """Lets outputs carry their masks, for the layers that take them."""
        if mask is not None:
            for output, own in zip(nest.flatten(outputs), nest.flatten(mask), strict=False):
                if own is not None and isinstance(output, Tensor):
                    output._keras_mask = own  # type: ignore[attr-defined]

    def _start_with(self, values: list) -> None:
        for variable, value in zip(self.weights, values, strict=True):
            start = variable.assign(value)
            variable._initializer_op = start if isinstance(start, Operation) else start.op

    def _remember(self, inputs: Any, args: tuple, kwargs: dict, outputs: Any) -> Any:
        """Notes how the outputs came about, for a `Model` made from them; they come from this layer, not one inside."""
        given = {id(t) for t in nest.flatten(inputs)}
        known = any(hasattr(t, "_keras_history") for t in nest.flatten(inputs))
        if known and any(id(t) in given for t in nest.flatten(outputs)):
            with name_scope(self.name):
                outputs = nest.map_structure(lambda t: _copied(t) if id(t) in given else t, outputs)
        call = self._last = Call(self, inputs, args, kwargs, outputs)
        if known:
            self._calls.append(call)
            call_graph(outputs).append(call)
            for i, output in enumerate(nest.flatten(outputs)):
                if isinstance(output, Tensor):
                    output._keras_history = (call, i)  # type: ignore[attr-defined]
        return outputs

    def add_metric(self, value: Any, aggregation: str | None = None, name: str | None = None) -> None:
        """Shows a value beside the losses of training: a metric's, or the mean of any over batches."""
        from tensorfleet_legacy.keras.metrics_base import Mean

        metric: Any = getattr(value, "_metric_obj", None)
        if metric is None:
            if aggregation != "mean" or name is None:
                raise ValueError(
                    "We currently support only `mean` sample-wise metric aggregation, and it needs a `name`: pass "
                    "aggregation='mean', or the value that a tf.keras.metrics object gave."
                )
            metric = Mean(name=name)
            value = metric(value)
        metric._keras_value = value
        self._metrics.append(metric)

    def get_weights(self) -> list:
        """The values of all variables, from the session."""
        weights = self.weights
        return state.get_session().run(weights) if weights else []

    def set_weights(self, weights: list) -> None:
        """Gives all variables values, in the session."""
        with state.get_session().as_default():
            super().set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same layer again; functions by name, other objects as dictionaries."""
        config = {k: serialized(v) for k, v in super().get_config().items()}
        config.pop("weights", None)
        if self._batch_input_shape is not None:
            config["batch_input_shape"] = self._batch_input_shape
        return config


def _copied(tensor: Tensor) -> Tensor:
    """The same values, and the same mask, as a tensor of its own."""
    result = find("identity")(tensor)
    if hasattr(tensor, "_keras_mask"):
        result._keras_mask = tensor._keras_mask
    return result


def call_graph(outputs: Any) -> list[Call]:
    """All uses of layers in the graph of some tensors."""
    graph = next((t.graph for t in nest.flatten(outputs) if isinstance(t, Tensor)), get_default_graph())
    return graph.__dict__.setdefault("_keras_calls", [])


def _take_training(known: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Whether a call is for training: as told, or as it is around the call; else None.

    A layer that does not ask for it is not told, but those inside of it are.
    """
    if "training" in known and _is_positional(known, args):
        return args[list(known).index("training") - 1]
    training = kwargs.get("training")
    training = state.training_around() if training is None else training
    if "training" in known:
        # None is left to the layer: most ask for the learning phase then, one of a user's may know better.
        if training is not None:
            kwargs["training"] = training
    elif not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        kwargs.pop("training", None)
    return training


def _is_positional(known: Any, args: tuple) -> bool:
    """Whether `training` was given by its place."""
    return list(known).index("training") - 1 < len(args)


def _batch_shape(given: dict[str, Any]) -> tuple | None:
    if "batch_input_shape" in given:
        return tuple(given["batch_input_shape"])
    batch = given.get("batch_size")
    if "input_shape" in given:
        return (batch, *given["input_shape"])
    if given.get("input_length") is not None and "input_dim" not in given:
        return (batch, given["input_length"])
    return (batch, given["input_dim"]) if given.get("input_dim") is not None else None


def _dims(shape: Any) -> list[int]:
    dims = (
        shape.as_list()
        if hasattr(shape, "as_list")
        else list(shape)
        if hasattr(shape, "__iter__")
        else [shape]
    )
    return [int(getattr(d, "value", d)) for d in dims]


def _as_tensor(value: Any) -> Any:
    return value if value is None or isinstance(value, (Tensor, CompositeTensor)) else to_tensor(value)


class InputLayer(Layer):
    """Where a model's inputs come in: a placeholder, or `input_tensor`."""

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool = False,
        name: str | None = None,
        ragged: bool = False,
        **kwargs: Any,
    ) -> None:
        dims = kwargs.pop("batch_input_shape", None)
        kwargs.pop("optional", None)  # in the files of later versions
        if ragged:
            raise ValueError("Ragged inputs are not supported: use tf.RaggedTensor in the graph itself.")
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments: {list(kwargs)}")
        name = name or _input_name()
        kind = dtype or (input_tensor.dtype.base_dtype.name if input_tensor is not None else state.floatx())
        super().__init__(name=name, dtype=kind)
        self.sparse, self.ragged, self.built = sparse, ragged, True
        if input_tensor is None:
            if dims is None:
                dims = (batch_size, *_loose(input_shape))
            make = find("sparse_placeholder" if sparse else "placeholder")
            tensor = make(kind, list(dims), name=name)
        else:
            tensor = to_tensor(input_tensor)
            dims = state.int_shape(tensor)
        self.is_placeholder = input_tensor is None
        self._batch_input_shape = None if dims is None else tuple(getattr(d, "value", d) for d in dims)
        part: Any = tensor if isinstance(tensor, Tensor) else tensor.values
        part._keras_history = None
        tensor._keras_input = self
        self._last = Call(self, tensor, (), {}, tensor)

    def get_config(self) -> dict[str, Any]:
        return {
            "batch_input_shape": self._batch_input_shape,
            "dtype": self.dtype,
            "sparse": self.sparse,
            "ragged": self.ragged,
            "name": self.name,
        }


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    ragged: bool = False,
    **kwargs: Any,
) -> Any:
    """A placeholder for a batch of inputs of this shape; or `tensor`, as an input of a `Model`."""
    dims = kwargs.pop("batch_shape", None)
    if shape is None and tensor is None and dims is None:
        raise ValueError("Please provide to Input either a `shape` or a `tensor` argument.")
    more = {} if dims is None else {"batch_input_shape": dims}
    result = InputLayer(shape, batch_size, dtype, tensor, sparse, name, ragged, **more, **kwargs)
    return result.output


def _loose(shape: Any) -> list:
    return shape.as_list() if hasattr(shape, "as_list") else list(shape)


def _input_name() -> str:
    return f"input_{state.get_uid('input')}"
