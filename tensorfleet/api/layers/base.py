"""`tf.layers.Layer`: a function with variables of its own, named and shared by variable scopes."""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tensorfleet.api.autograph.calls import converted_call
from tensorfleet.api.layers.helpers import (
    as_tensor,
    collect_new,
    depending,
    in_keras_style,
    initializer_of,
    of_graph,
    refuse_in_keras_style,
    unique_name,
)
from tensorfleet.api.layers.nodes import Unconnected
from tensorfleet.api.layers.specs import (
    Constraint,
    InitializerLike,
    Nested,
    Regularizer,
    ScopeLike,
    check_inputs,
    snake_case,
)
from tensorfleet.api.metrics.means import mean as tf_mean
from tensorfleet.api.variables.initializers import default_for
from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.api.variables.scope import VariableScope, get_variable, variable_scope
from tensorfleet.api.variables.variable import VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.functions import around
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import GraphKeys, colocate_with, get_default_graph, name_scope, session_for
from tensorfleet.ops.array.basic import placeholder as tf_placeholder
from tensorfleet.ops.array.shape import shape as tf_shape
from tensorfleet.ops.math.cast import cast

_OPTIONS = {
    "_scope",
    "_reuse",
    "activity_regularizer",
    "autocast",
    "dynamic",
    "input_shape",
    "batch_input_shape",
}


@export("layers.Layer")
class Layer(Unconnected):
    """Base of all layers.

    A layer of your own makes its variables with `add_weight` in `build(input_shape)`, which runs at the first
    call, and computes in `call(inputs)`.
    """

    _is_tracked = True
    _untracked = frozenset({"_trainable_weights", "_non_trainable_weights", "_named_weights", "_layers"})
    #: the specification of the inputs: an `InputSpec`, or a list with one for each
    input_spec: Any = None

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> None:
        for key in kwargs:
            if key not in _OPTIONS:
                raise TypeError(f"Keyword argument not understood: {key}")
        self._trainable = trainable
        self._reuse = kwargs.get("_reuse")
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype.name
        self._activity_regularizer = kwargs.get("activity_regularizer")
        self._dynamic = bool(kwargs.get("dynamic", False))
        self.built = False
        self.stateful = False
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._named_weights: dict[str, Any] = {}  # by the names they were asked for with
        self._losses: list[Tensor] = []
        self._updates: list[Any] = []
        self._metrics: list[Any] = []
        self._graph: Graph | None = None
        self._scope: VariableScope | None = None
        self._base_name, self._name = name, name
        if not name:
            self._base_name = snake_case(type(self).__name__)
            self._name = unique_name(self._base_name)
        scope = kwargs.get("_scope")
        self._keras_style = in_keras_style()
        if self._keras_style:
            refuse_in_keras_style(scope=scope, reuse=self._reuse)
        if scope:
            with variable_scope(scope) as self._scope:
                pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        result = memo[id(self)] = type(self).__new__(type(self))
        for key, value in self.__dict__.items():
            # Variables and graphs are shared: a copy of a layer has the same weights.
            if key == "_graph" or of_graph(value):
                result.__dict__[key] = value
            elif key in ("_scope", "_named_weights") or (
                isinstance(value, list) and all(of_graph(v) for v in value)
            ):
                result.__dict__[key] = copy.copy(value)
            else:
                result.__dict__[key] = copy.deepcopy(value, memo)
        return result

    # -- names and properties ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The layer's own name; its variables are named after `scope_name`."""
        return self._name or ""

    @property
    def scope_name(self) -> str:
        """The variable scope the layer was first used in, and which its variables' names begin with."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self.name}" has not been used yet. The scope '
                "name is determined the first time the layer instance is called. You must therefore call the layer "
                "before querying `scope_name`."
            )
        return self._scope.name

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """A name scope to put operations beside the layer's own."""
        return name_scope(self._scope.original_name_scope if self._scope is not None else self.name)

    dtype = readonly("_dtype", "The type of its variables, known after the first call if not given.")
    dynamic = readonly("_dynamic", "Whether the layer was declared to run eagerly.")
    graph = readonly("_graph", "The graph the layer was used in.")

    @property
    def trainable(self) -> bool:
        """Whether its variables are trained."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value

    @property
    def activity_regularizer(self) -> Regularizer | None:
        """A function of the output whose value is a loss."""
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, regularizer: Regularizer | None) -> None:
        self._activity_regularizer = regularizer

    # -- variables -----------------------------------------------------------------------------------

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that are trained."""
        return [*self._trainable_weights, *self._of_parts("trainable_weights")] if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that are not."""
        own = [] if self.trainable else self._trainable_weights
        parts = self._of_parts("non_trainable_weights" if self.trainable else "weights")
        return [*own, *self._non_trainable_weights, *parts]

    @property
    def weights(self) -> list[Any]:
        """All variables, the trained ones first."""
        return self.trainable_weights + self.non_trainable_weights

    variables = readonly("weights", "The same as `weights`.")
    trainable_variables = readonly("trainable_weights", "The same as `trainable_weights`.")
    non_trainable_variables = readonly("non_trainable_weights", "The same as `non_trainable_weights`.")

    @property
    def submodules(self) -> tuple[Layer, ...]:
        """The layers among its attributes, and those inside them."""
        direct = [v for v in vars(self).values() if isinstance(v, Layer)]
        return tuple(dict.fromkeys(layer for d in direct for layer in (d, *d.submodules)))

    def _of_parts(self, what: str) -> list[Any]:
        own = {id(v) for v in (*self._trainable_weights, *self._non_trainable_weights)}
        variables = [
            v for part in vars(self).values() if isinstance(part, Layer) for v in getattr(part, what)
        ]
        return [v for v in variables if id(v) not in own]

    def add_weight(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        initializer: InitializerLike = None,
        regularizer: Regularizer | None = None,
        trainable: bool | None = None,
        constraint: Constraint | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Callable[..., Sequence[int]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Makes a variable in the layer's scope, or finds it there when the scope is reused."""
        for key in kwargs:
            if key != "experimental_autocast":
                raise TypeError(f"Unknown keyword argument: {key}")
        on_read = synchronization == VariableSynchronization.ON_READ
        if on_read and trainable:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables. "
                "You have specified trainable=True and synchronization=VariableSynchronization.ON_READ."
            )
        wanted = not on_read if trainable is None else trainable
        # A variable that is shared was regularized when it was made: a second loss would count twice.
        before = {id(v) for v in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)}
        kind = dtypes.as_dtype(dtype or self.dtype or dtypes.float32)
        with self._inside(self.built or self._reuse) as scope:
            first = scope.initializer if initializer is None else initializer_of(initializer)
            result = get_variable(
                name,
                shape=shape,
                dtype=kind,
                initializer=default_for(kind, name) if first is None else first,
                trainable=bool(wanted and self.trainable),
                constraint=constraint,
                partitioner=partitioner,
                use_resource=use_resource,
                synchronization=synchronization,
                aggregation=aggregation,
            )
            parts = list(result) if isinstance(result, PartitionedVariable) else [result]
            if regularizer is not None:
                self._regularize(name, [p for p in parts if id(p) not in before], regularizer)
        # A custom getter may have decided against training it.
        trained = {id(v) for v in get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        for part in parts:
            kept = self._trainable_weights if wanted and (id(part) in trained or not self.trainable) else None
            (self._non_trainable_weights if kept is None else kept).append(part)
        self._named_weights[name] = result
        return result

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        """The old name of `add_weight`."""
        return self.add_weight(*args, **kwargs)

    def _regularize(self, name: str, variables: Sequence[Any], regularizer: Regularizer) -> None:
        for variable in variables:
            with colocate_with(variable.op), name_scope(name + "/Regularizer"):
                loss = regularizer(variable)
            if loss is not None:
                self.add_loss(loss)

    def count_params(self) -> int:
        """How many numbers its variables hold."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't built. You can build it "
                f"manually via: `{self.name}.build(batch_input_shape)`."
            )
        return sum(math.prod(v.shape.as_list()) for v in self.weights)

    def get_weights(self) -> list[Array]:
        """The values of all variables, from the default session."""
        weights = self.weights
        result: list[Array] = session_for(None, get_default_graph(), "evaluate tensor", "get_weights").run(
            weights
        )
        return result

    def set_weights(self, weights: list[Any]) -> None:
        """Gives all variables values, in the default session."""
        own = self.weights
        if len(own) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a weight list of length '
                f"{len(weights)}, but the layer was expecting {len(own)} weights."
            )
        session = session_for(None, get_default_graph(), "execute operation", "set_weights")
        for variable, value in zip(own, weights, strict=True):
            if variable.shape.as_list() != list(np.shape(value)):
                raise ValueError(
                    f"Layer weight shape {variable.shape} not compatible with provided weight shape {np.shape(value)}"
                )
            variable.load(value, session)

    # -- losses and updates --------------------------------------------------------------------------

    @property
    def losses(self) -> list[Tensor]:
        """The losses it added: of its variables, and of its outputs."""
        return [*self._losses, *self._of_parts("losses")]

    @property
    def updates(self) -> list[Any]:
        """Operations to run with each training step."""
        if not self.trainable and not self.stateful:
            return []
        return [*self._updates, *self._of_parts("updates")]

    @property
    def metrics(self) -> list[Any]:
        """The values of the metrics it added."""
        return [*self._metrics, *self._of_parts("metrics")]

    def add_loss(self, losses: object, inputs: object = None) -> None:
        """Adds losses to the layer and to the collection of regularization losses."""
        for item in nest.flatten(losses):
            loss = item() if callable(item) else item
            if loss is not None:
                self._losses.append(to_tensor(loss))
                collect_new([self._losses[-1]], GraphKeys.REGULARIZATION_LOSSES)

    def add_update(self, updates: object, inputs: object = None) -> None:
        """Adds operations that belong to a training step; they go to the collection of update operations."""
        for item in nest.flatten(updates):
            update = item() if callable(item) and not isinstance(item, (Tensor, Operation)) else item
            self._updates.append(update if isinstance(update, Operation) else update.op)

    def add_metric(self, value: TensorLike, aggregation: str | None = None, name: str | None = None) -> None:
        """Averages a value over batches, as `tf.metrics.mean` does."""
        if aggregation not in (None, "mean"):
            raise ValueError(
                "We currently support only `mean` sample-wise metric aggregation. You provided "
                f"aggregation=`{aggregation}`"
            )
        if aggregation is None:
            self._metrics.append(value)
            return
        mean, update = tf_mean(value, name=name)
        self._metrics.append(mean)
        self.add_update(update)

    def get_losses_for(self, inputs: object) -> list[Tensor]:
        """The losses that depend on these inputs; with None, those that depend on no input."""
        return depending(self.losses, inputs)

    def get_updates_for(self, inputs: object) -> list[Any]:
        """The updates that depend on these inputs; with None, those that depend on no input."""
        return depending(self.updates, inputs)

    # -- use -----------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the variables, given the shape of the input. Runs once, at the first call."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        return inputs

    def __call__(self, inputs: Nested, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer if this is the first call, and applies it."""
        self._set_scope(kwargs.pop("scope", None))
        inputs = nest.map_structure(as_tensor, inputs)
        flat = nest.flatten(inputs)
        self._check_graph(flat)
        # A layer that is built shares its variables with itself, whatever the scope around it says.
        with self._inside(True if self.built else self._reuse):
            if not self.built:
                self._first_call(inputs, flat)
            check_inputs(self.name, self.input_spec, flat)
            outputs = converted_call(self.call, (inputs, *args), kwargs)
            if outputs is None:
                raise ValueError(
                    f"A layer's `call` method should return a Tensor or a list of Tensors, not None (layer: {self.name})."
                )
            self._regularize_outputs(outputs)
        # After the call: `call` may have added updates.
        collect_new(self.updates, GraphKeys.UPDATE_OPS)
        return outputs

    def apply(self, inputs: Nested, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def _first_call(self, inputs: Nested, flat: list[Any]) -> None:
        check_inputs(self.name, self.input_spec, flat)
        if self._dtype is None and flat and isinstance(flat[0], Tensor):
            self._dtype = flat[0].dtype.base_dtype.name
        self.build(nest.map_structure(lambda t: t.shape, inputs))
        self.built = True

    def _regularize_outputs(self, outputs: object) -> None:
        if self._activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                # The mean over the batch, so that its size does not matter.
                self.add_loss(loss / cast(tf_shape(output)[0], loss.dtype))

    def _check_graph(self, flat: list[Any]) -> None:
        # Inside a function's body the layer belongs to the graph around it, as its variables do.
        graph = around(next((t.graph for t in flat if isinstance(t, Tensor)), get_default_graph()))
        if self._graph is not None and graph is not self._graph:
            raise ValueError(
                f"Input graph and Layer graph are not the same: layer {self.name} was used in another graph. Make a "
                "new layer for this one."
            )
        self._graph = graph

    def _set_scope(self, scope: ScopeLike = None) -> None:
        if self._keras_style:
            refuse_in_keras_style(scope=scope)
        if self._scope is not None:
            return
        if self._keras_style:
            with name_scope(self.name) as own:  # no two are alike in a graph
                self._scope = VariableScope(False, own.rstrip("/"), name_scope=own)
            return
        if self._reuse:
            with variable_scope(self._base_name if scope is None else scope) as self._scope:
                return
        with variable_scope(scope, default_name=self._base_name) as self._scope:
            return

    @contextmanager
    def _inside(self, reuse: bool | None) -> Iterator[VariableScope]:
        """The layer's variable scope and its name scope."""
        self._set_scope()
        assert self._scope is not None
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            with name_scope(self._scope.original_name_scope):
                yield scope

    # -- shapes and configuration --------------------------------------------------------------------

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output, found by applying the layer to a placeholder of that shape."""
        with Graph().as_default():
            placeholder = functools.partial(tf_placeholder, self.dtype or dtypes.float32)
            if (
                isinstance(input_shape, list)
                and input_shape
                and not isinstance(input_shape[0], (int, type(None)))
            ):
                inputs: Any = [placeholder(s) for s in input_shape]
            else:
                inputs = placeholder(input_shape)
            outputs = type(self).from_config(self.get_config())(inputs)
        return nest.map_structure(lambda t: t.shape, outputs)

    def compute_output_signature(self, input_signature: Nested) -> Any:
        """The specifications of the outputs, given those of the inputs."""
        specs = nest.flatten(input_signature)
        shape = self.compute_output_shape(nest.map_structure(lambda s: s.shape, input_signature))
        make, kind = type(specs[0]), self.dtype or specs[0].dtype
        return nest.map_structure(lambda s: make(shape=TensorShape(s), dtype=kind), shape)

    def compute_mask(self, inputs: Nested, mask: Nested = None) -> None:
        """Layers pass no masks on."""
        if mask is not None and any(m is not None for m in nest.flatten(mask)):
            raise TypeError(
                f"Layer {self.name} does not support masking, but was passed an input_mask: {mask}"
            )

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same layer again."""
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}
        for key in inspect.signature(type(self).__init__).parameters:
            if key not in ("self", "kwargs") and key not in config and hasattr(self, key):
                config[key] = getattr(self, key)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A layer from the configuration that `get_config` gave."""
        return cls(**config)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for a method: its operations are named inside the layer."""

        @functools.wraps(method)
        def wrapped(self: Layer, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return wrapped
