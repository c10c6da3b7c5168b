"""`tf.nn.rnn_cell`: the steps of recurrent networks."""

from __future__ import annotations

import hashlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.specs import Activation, InitializerLike, InputSpec, Nested, ScopeLike
from tensorfleet.api.variables.initializers import Constant
from tensorfleet.api.variables.lists import trainable_variables
from tensorfleet.api.variables.scope import get_variable_scope, variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, unknown_shape
from tensorfleet.base.types import DTypeLike, ShapeLike, TensorLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import convert_to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat, split
from tensorfleet.ops.array.constructors import zeros
from tensorfleet.ops.array.shape import expand_dims
from tensorfleet.ops.array.shape import shape as tf_shape
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.math.trigonometry import sigmoid, tanh
from tensorfleet.ops.nn.activations import bias_add

KERNEL, BIAS = "kernel", "bias"


def _concat(prefix: Tensor | ShapeLike, suffix: Tensor | ShapeLike) -> tuple[Tensor, TensorShape]:
    """Two shapes, or numbers or tensors that stand for shapes, one after the other; also the static shape."""
    parts, known = [], TensorShape(())
    for part in (prefix, suffix):
        if isinstance(part, Tensor):
            tensor = expand_dims(part, 0) if part.shape.rank == 0 else part
            value = constant_value(tensor)
            count = tensor.shape.as_list()[0] if tensor.shape.rank is not None else None
            static = unknown_shape(count) if value is None else TensorShape(value.tolist())
        else:
            static = TensorShape([part] if isinstance(part, int) or part is None else part)
            if not static.is_fully_defined():
                raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
            tensor = constant(static.as_list(), dtypes.int32)
        parts.append(tensor)
        known = known.concatenate(static)
    return concat(parts, 0), known


def zero_state_tensors(state_size: Nested, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
    """Zeros for each part of a state."""

    def make(size: Tensor | ShapeLike) -> Tensor:
        shape, known = _concat(batch_size, size)
        result = zeros(shape, dtype=dtype)
        result.set_shape(known)
        return result

    return map_sizes(make, state_size)


def starting_state(cell: Any, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
    """The state that a cell begins with: Keras's cells and ours have a method of their own for it."""
    make = getattr(cell, "get_initial_state", None)
    if make is not None:
        return make(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def map_sizes(function: Callable[[Any], Any], sizes: Nested) -> Any:
    """Applies a function to each size of a structure of sizes; a TensorShape is one size."""
    if isinstance(sizes, TensorShape) or not nest.is_nested(sizes):
        return function(sizes)
    return nest.pack_sequence_as(sizes, [function(s) for s in nest.flatten(sizes)])


@export("nn.rnn_cell.RNNCell", "contrib.rnn.RNNCell")
class RNNCell(Layer):
    """One step of a recurrent network: `cell(inputs, state)` gives (output, new state).

    A cell of your own has the properties `state_size` and `output_size` and a method `call(inputs, state)`.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: DTypeLike | None = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._is_tf_rnn_cell = True

    def __call__(
        self, inputs: Nested, state: Nested = None, scope: ScopeLike = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Runs the cell on a batch of inputs, from a state."""
        if scope is not None:
            with variable_scope(scope, custom_getter=self._note) as entered:
                return super().__call__(inputs, state, *args, scope=entered, **kwargs)
        with variable_scope(get_variable_scope(), custom_getter=self._note, auxiliary_name_scope=False):
            return super().__call__(inputs, state, *args, **kwargs)

    def _note(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Keeps the variables that the cell makes itself, by `tf.get_variable`."""
        variable = getter(*args, **kwargs)
        # A partitioned variable counts by its parts, as in `tf.trainable_variables()`.
        parts = list(variable) if hasattr(variable, "_get_variable_list") else [variable]
        known = {id(v) for v in (*self._trainable_weights, *self._non_trainable_weights)}
        for v in parts:
            if id(v) not in known:
                trained = any(v is t for t in trainable_variables())
                (self._trainable_weights if trained else self._non_trainable_weights).append(v)
        return variable

    @property
    def state_size(self) -> Any:
        """The sizes of the state: a number, a shape, or a structure of these."""
        raise AttributeError("state_size: a cell must define it")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise AttributeError("output_size: a cell must define it")

    def build(self, _: Any) -> None:
        """Cells of one's own make their variables when they are called."""

    def get_initial_state(
        self,
        inputs: TensorLike = None,
        batch_size: Tensor | int | None = None,
        dtype: DTypeLike | None = None,
    ) -> Any:
        """A state of zeros for a batch like `inputs`, or of the size and type given."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            rows = inputs.shape.as_list()[0] if inputs.shape.rank else None
            if batch_size is not None and _known(batch_size) != rows:
                raise ValueError(
                    "batch size from input tensor is different from the input param. Input tensor batch: "
                    f"{rows}, batch_size: {batch_size}"
                )
            if dtype is not None and inputs.dtype != dtype:
                raise ValueError(
                    "dtype from input tensor is different from the input param. Input tensor dtype: "
                    f"{inputs.dtype}, dtype: {dtype}"
                )
            batch_size, dtype = rows or tf_shape(inputs)[0], inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Tensor | int, dtype: DTypeLike) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return zero_state_tensors(self.state_size, batch_size, dtype)

    def get_config(self) -> dict[str, Any]:
        """The arguments that every cell takes."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}


class LayerCell(RNNCell):
    """A cell that makes its variables in `build`."""

    _takes_symbols = False

    def __call__(
        self, inputs: Nested, state: Nested = None, scope: ScopeLike = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Runs one step: gives the output and the new state."""
        for given in nest.flatten(state if self._takes_symbols else [inputs, state]):
            dtype = getattr(given, "dtype", None)
            if isinstance(dtype, dtypes.DType) and not (dtype.is_floating or dtype.is_complex):
                raise ValueError(f"RNN cell only supports floating point inputs, but saw dtype: {dtype}")
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)


def _known(size: Tensor | int) -> int | None:
    value = constant_value(size) if isinstance(size, Tensor) else size
    return None if value is None else int(value)


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if given is None:
        return tanh
    if isinstance(given, str):
        result: Callable[[Tensor], Tensor] = find(f"nn.{given}")
        return result
    return given


def _depth(shape: ShapeLike) -> int:
    depth = TensorShape(shape).as_list()[-1]
    if depth is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {shape}")
    result: int = depth
    return result


def _affine(parts: list[Tensor], kernel: TensorLike, bias: TensorLike) -> Tensor:
    product = matmul(concat(parts, 1), kernel)
    return bias_add(product, bias)


@export("nn.rnn_cell.BasicRNNCell", "contrib.rnn.BasicRNNCell")
class BasicRNNCell(LayerCell):
    """output = new state = activation(inputs W + state U + b)."""

    def __init__(
        self,
        num_units: int,
        activation: Activation = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = _activation(activation)

    state_size = readonly("_num_units")
    output_size = readonly("_num_units")

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the kernel and the bias."""
        units = self._num_units
        self._kernel = self.add_weight(KERNEL, shape=[_depth(input_shape) + units, units])
        self._bias = self.add_weight(BIAS, shape=[units], initializer=_constant(0.0, self.dtype))
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The activation of `W * [input, state] + B`, as output and as new state."""
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        own = {"num_units": self._num_units, "activation": self._activation, "reuse": self._reuse}
        return {**super().get_config(), **own}


def _constant(value: float, dtype: DTypeLike | None) -> Constant:
    return Constant(value, dtype=dtypes.as_dtype(dtype or dtypes.float32))


@export("nn.rnn_cell.GRUCell", "contrib.rnn.GRUCell")
class GRUCell(LayerCell):
    """The gated recurrent unit (Cho et al. 2014): a reset gate and an update gate."""

    def __init__(
        self,
        num_units: int,
        activation: Activation = None,
        reuse: bool | None = None,
        kernel_initializer: InitializerLike = None,
        bias_initializer: InitializerLike = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = _activation(activation)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    state_size = readonly("_num_units")
    output_size = readonly("_num_units")

    def build(self, input_shape: ShapeLike) -> None:
        """Makes kernels and biases of the gates and of the candidate."""
        units, depth = self._num_units, _depth(input_shape)
        kernel, bias = self._kernel_initializer, self._bias_initializer
        first = _constant(1.0, self.dtype) if bias is None else bias
        second = _constant(0.0, self.dtype) if bias is None else bias
        add = self.add_weight
        self._gate_kernel = add("gates/" + KERNEL, shape=[depth + units, 2 * units], initializer=kernel)
        self._gate_bias = add("gates/" + BIAS, shape=[2 * units], initializer=first)
        self._candidate_kernel = add("candidate/" + KERNEL, shape=[depth + units, units], initializer=kernel)
        self._candidate_bias = add("candidate/" + BIAS, shape=[units], initializer=second)
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Mixes the old state and the candidate, as the update gate says."""
        gates = sigmoid(_affine([inputs, state], self._gate_kernel, self._gate_bias))
        r, u = split(value=gates, num_or_size_splits=2, axis=1)
        candidate = _affine([inputs, r * state], self._candidate_kernel, self._candidate_bias)
        new = u * state + (1 - u) * self._activation(candidate)
        return new, new

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        own = {
            "num_units": self._num_units,
            "kernel_initializer": self._kernel_initializer,
            "bias_initializer": self._bias_initializer,
            "activation": self._activation,
            "reuse": self._reuse,
        }
        return {**super().get_config(), **own}


_Pair = namedtuple("LSTMStateTuple", ("c", "h"))  # type: ignore[name-match]


@export("nn.rnn_cell.LSTMStateTuple", "contrib.rnn.LSTMStateTuple")
class LSTMStateTuple(_Pair):
    """The state of an LSTM: the cells `c` and the output `h`."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The type of both; TypeError when they differ."""
        c, h = self
        if c.dtype != h.dtype:
            raise TypeError(f"Inconsistent internal state: {c.dtype} vs {h.dtype}")
        result: DType = c.dtype
        return result


def seed_of(base: int | None, salt: str) -> int | None:
    """A seed of its own for each place that draws random numbers, from the user's."""
    if base is None:
        return None
    # TensorFlow's own recipe: the same seed drops the same units.
    text = f"{base}{salt}".encode()
    return int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF
