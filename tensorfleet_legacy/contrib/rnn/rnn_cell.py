"""`tf.contrib.rnn`: cells for other kinds of recurrence, and layers of cells in both directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tensorfleet.api.layers.rnn_cells import LayerCell, LSTMStateTuple, RNNCell, _constant, _depth
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet_legacy.contrib.rnn.lstm_ops import linear


@export("contrib.rnn.NASCell")
class NASCell(LayerCell):
    """The cell that neural architecture search found; its state is an `LSTMStateTuple`."""

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units, self._num_proj, self._use_bias = num_units, num_proj, use_bias
        self._output_size = num_proj or num_units
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self._output_size)

    output_size = readonly("_output_size")

    def build(self, input_shape: Any) -> None:
        wide = 8 * self._num_units
        self.recurrent_kernel = self.add_weight("recurrent_kernel", shape=[self._output_size, wide])
        self.kernel = self.add_weight("kernel", shape=[_depth(input_shape), wide])
        if self._use_bias:
            self.bias = self.add_weight("bias", shape=[wide], initializer=_constant(0.0, self.dtype))
        if self._num_proj is not None:
            self.projection_weights = self.add_weight(
                "projection_weights", shape=[self._num_units, self._num_proj]
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        tanh, sigmoid, relu, split = (find(f) for f in ("tanh", "sigmoid", "nn.relu", "split"))
        c, m = state
        old = find("matmul")(m, self.recurrent_kernel)
        if self._use_bias:
            old = find("nn.bias_add")(old, self.bias)
        new = split(find("matmul")(inputs, self.kernel), 8, axis=1)
        a, b, d, e, f, g, h, i = (
            act(x * y if at == 3 else x + y)
            for at, (x, y, act) in enumerate(
                zip(
                    new,
                    split(old, 8, axis=1),
                    (sigmoid, relu, sigmoid, relu, tanh, sigmoid, tanh, sigmoid),
                    strict=True,
                )
            )
        )
        c = tanh(tanh(a * b) + c) * tanh(d + e)
        m = tanh(c * tanh(tanh(f * g) + sigmoid(h + i)))
        if self._num_proj is not None:
            m = find("matmul")(m, self.projection_weights)
        return m, LSTMStateTuple(c, m)


class _OneState(LayerCell):
    """A cell whose state is one vector of `num_units`."""

    _num_units: int
    state_size = readonly("_num_units")
    output_size = readonly("_num_units")


@export("contrib.rnn.SRUCell")
class SRUCell(_OneState):
    """The simple recurrent unit: gates that look at the input only. Inputs have `num_units` columns."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = num_units
        self._activation = activation or find("tanh")
        self.input_spec = InputSpec(ndim=2)

    def build(self, input_shape: Any) -> None:
        self._kernel = self.add_weight("kernel", shape=[_depth(input_shape), 4 * self._num_units])
        self._bias = self.add_weight(
            "bias", shape=[2 * self._num_units], initializer=_constant(0.0, self.dtype)
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        result, forget, reset, _ = find("split")(find("matmul")(inputs, self._kernel), 4, axis=1)
        gates = find("sigmoid")(find("nn.bias_add")(find("concat")([forget, reset], 1), self._bias))
        forget, reset = find("split")(gates, 2, axis=1)
        c = forget * state + (1.0 - forget) * result
        return reset * self._activation(c) + (1.0 - reset) * inputs, c


@export("contrib.rnn.UGRNNCell")
class UGRNNCell(_OneState):
    """The update-gate cell: one gate chooses between the old state and a new one."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._initializer = num_units, forget_bias, initializer
        self._activation = activation or find("tanh")

    def build(self, input_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_weight(
            "kernel", shape=[_depth(input_shape) + units, 2 * units], initializer=self._initializer
        )
        self._bias = self.add_weight("bias", shape=[2 * units], initializer=_constant(0.0, self.dtype))
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        joined = find("matmul")(find("concat")([inputs, state], 1), self._kernel)
        gate, result = find("split")(find("nn.bias_add")(joined, self._bias), 2, axis=1)
        gate = find("sigmoid")(gate + self._forget_bias)
        new = gate * state + (1.0 - gate) * self._activation(result)
        return new, new


@export("contrib.rnn.IntersectionRNNCell")
class IntersectionRNNCell(RNNCell):
    """The +RNN cell: one gate for the way through time, another for the way through layers."""

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_in_proj = num_units, num_in_proj
        self._initializer, self._forget_bias = initializer, forget_bias
        self._activation = y_activation or find("nn.relu")

    state_size = readonly("_num_units")
    output_size = readonly("_num_units")

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        scope, sigmoid = find("variable_scope"), find("sigmoid")
        with scope(find("get_variable_scope")(), initializer=self._initializer):
            if inputs.shape.as_list()[1] != self._num_units:
                if not self._num_in_proj:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, num_in_proj should be set "
                        "to num_units at cell init."
                    )
                with scope("in_projection"):
                    inputs = linear(inputs, self._num_units, True)
            joined = linear([inputs, state], 4 * self._num_units, True)
        through_time, h, through_layers, y = find("split")(joined, 4, axis=1)
        keep = sigmoid(through_time + self._forget_bias)
        carry = sigmoid(through_layers + self._forget_bias)
        new = keep * state + (1.0 - keep) * find("tanh")(h)
        return carry * inputs + (1.0 - carry) * self._activation(y), new


@export("contrib.rnn.ConvLSTMCell")
class ConvLSTMCell(RNNCell):
    """An LSTM whose inputs and state are images (or lines, or volumes), seen through convolutions."""

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._kernel_shape, self._channels = list(kernel_shape), output_channels
        self._use_bias, self._skip, self._forget_bias = use_bias, skip_connection, forget_bias
        sides, depth = list(input_shape[:-1]), input_shape[-1]
        state = TensorShape([*sides, output_channels])
        self._state_size = LSTMStateTuple(state, state)
        self._output_size = TensorShape([*sides, output_channels + (depth if skip_connection else 0)])

    state_size = readonly("_state_size")
    output_size = readonly("_output_size")

    def call(self, inputs: Any, state: Any, scope: Any = None) -> tuple:  # type: ignore[override]
        c, h = state
        joined = find("concat")([inputs, h], -1)
        variable, wide = find("get_variable"), 4 * self._channels
        shape = [*self._kernel_shape, joined.shape.as_list()[-1], wide]
        kernel = variable("kernel", shape, dtype=joined.dtype)
        gates = find("nn.convolution")(joined, kernel, "SAME")
        if self._use_bias:
            gates += variable("biases", [wide], dtype=joined.dtype, initializer=_constant(0.0, joined.dtype))
        i, new, f, o = find("split")(gates, 4, axis=-1)
        sigmoid, tanh = find("sigmoid"), find("tanh")
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(new)
        h = tanh(c) * sigmoid(o)
        return (find("concat")([h, inputs], -1) if self._skip else h), LSTMStateTuple(c, h)


@export("contrib.rnn.Conv1DLSTMCell")
class Conv1DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` over lines."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(1, name=name, **kwargs)


@export("contrib.rnn.Conv2DLSTMCell")
class Conv2DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` over images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(2, name=name, **kwargs)


@export("contrib.rnn.Conv3DLSTMCell")
class Conv3DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` over volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(3, name=name, **kwargs)


# -- whole sequences ---------------------------------------------------------------------------------


@export("contrib.rnn.FusedRNNCell")
class FusedRNNCell(ABC):
    """The base of cells over whole sequences [time, batch, depth]: `cell(inputs, ...)` gives (outputs, last state)."""

    @abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple:
        """Runs over all steps."""


@export("contrib.rnn.FusedRNNCellAdaptor")
class FusedRNNCellAdaptor(FusedRNNCell):
    """Runs an ordinary cell over whole sequences, step by step."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple:
        listed = isinstance(inputs, list)
        options = dict(initial_state=initial_state, dtype=dtype, sequence_length=sequence_length, scope=scope)
        if self._use_dynamic_rnn:
            whole = find("stack")(inputs) if listed else inputs
            outputs, state = find("nn.dynamic_rnn")(self._cell, whole, time_major=True, **options)
            return (find("unstack")(outputs, num=len(inputs)) if listed else outputs), state
        steps = inputs if listed else find("unstack")(inputs)
        outputs, state = find("nn.static_rnn")(self._cell, steps, **options)
        return (outputs if listed else find("stack")(outputs)), state


@export("contrib.rnn.TimeReversedFusedRNN")
class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a fused cell from the end of each sequence to its beginning."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple:
        options = dict(initial_state=initial_state, dtype=dtype, sequence_length=sequence_length, scope=scope)
        outputs, state = self._cell(_turned(inputs, sequence_length), **options)
        return _turned(outputs, sequence_length), state


def _turned(steps: Any, lengths: Any) -> Any:
    if isinstance(steps, list):
        if lengths is None:
            return steps[::-1]
        return find("unstack")(_turned(find("stack")(steps), lengths), num=len(steps))
    if lengths is None:
        return find("reverse")(steps, [0])
    return find("reverse_sequence")(steps, lengths, seq_axis=0, batch_axis=1)


def _layers(
    cells_fw: Any, cells_bw: Any, initial_states_fw: Any, initial_states_bw: Any
) -> list[tuple[Any, Any, Any, Any]]:
    """For each layer its cell and its first state, forwards and backwards; ValueError when these do not fit."""
    both = {"fw": (cells_fw, initial_states_fw), "bw": (cells_bw, initial_states_bw)}
    for way, (cells, _) in both.items():
        if not cells:
            raise ValueError(f"Must specify at least one {way} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{way} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for way, (cells, states) in both.items():
        if states is not None and (not isinstance(states, list) or len(states) != len(cells)):
            raise ValueError(f"initial_states_{way} must be a list of state tensors (one per layer).")
    none = [None] * len(cells_fw)
    return list(zip(cells_fw, cells_bw, initial_states_fw or none, initial_states_bw or none, strict=True))


@export("contrib.rnn.stack_bidirectional_rnn")
def stack_bidirectional_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple:
    """Layers of cells in both directions over a list of inputs: (outputs, last states forwards, backwards)."""
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    last_fw, last_bw, outputs = [], [], inputs
    with find("variable_scope")(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw, first_fw, first_bw) in enumerate(layers):
            with find("variable_scope")(f"cell_{i}") as own:
                outputs, state_fw, state_bw = find("nn.static_bidirectional_rnn")(
                    fw, bw, outputs, first_fw, first_bw, dtype, sequence_length, scope=own
                )
            last_fw.append(state_fw)
            last_bw.append(state_bw)
    return outputs, tuple(last_fw), tuple(last_bw)


@export("contrib.rnn.stack_bidirectional_dynamic_rnn")
def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple:
    """Layers of cells in both directions over one tensor: (outputs, last states forwards, backwards)."""
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    last_fw, last_bw, outputs = [], [], to_tensor(inputs)
    with find("variable_scope")(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw, first_fw, first_bw) in enumerate(layers):
            with find("variable_scope")(f"cell_{i}"):
                pair, (state_fw, state_bw) = find("nn.bidirectional_dynamic_rnn")(
                    fw,
                    bw,
                    outputs,
                    sequence_length,
                    first_fw,
                    first_bw,
                    dtype,
                    parallel_iterations,
                    swap_memory,
                    time_major,
                )
                outputs = find("concat")(pair, 2)
            last_fw.append(state_fw)
            last_bw.append(state_bw)
    return outputs, tuple(last_fw), tuple(last_bw)
