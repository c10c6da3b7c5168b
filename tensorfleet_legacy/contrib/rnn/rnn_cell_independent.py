"""`tf.contrib.rnn`: cells each unit of which sees no other unit's state (IndRNN and its kin)."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.rnn_cells import LayerCell, LSTMStateTuple, _activation, _constant, _depth
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor


class _Independent(LayerCell):
    """A cell with a matrix for its inputs and a vector for its state."""

    def __init__(
        self,
        num_units: int,
        activation: Any,
        reuse: bool | None,
        name: str | None,
        dtype: Any,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units, self._activation = num_units, _activation(activation)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    output_size = readonly("_num_units")

    @property
    def state_size(self) -> Any:
        return self._num_units

    def _weights(self, prefix: str, depth: int, size: int, bias: float) -> tuple:
        around = find("random_uniform_initializer")(-1.0, 1.0, dtype=self.dtype)
        start = self._bias_initializer
        return (
            self.add_weight(f"{prefix}kernel_w", shape=[depth, size], initializer=self._kernel_initializer),
            self.add_weight(f"{prefix}kernel_u", shape=[1, size], initializer=around),
            self.add_weight(
                f"{prefix}bias",
                shape=[size],
                initializer=_constant(bias, self.dtype) if start is None else start,
            ),
        )


def _joined(weights: tuple, inputs: Any, state: Any) -> Tensor:
    w, u, bias = weights
    times = u.shape.as_list()[1] // state.shape.as_list()[1]
    repeated = state if times == 1 else find("tile")(state, [1, times])
    return find("nn.bias_add")(find("matmul")(inputs, w) + repeated * u, bias)


@export("contrib.rnn.IndRNNCell")
class IndRNNCell(_Independent):
    """activation(inputs W + state * u + b), the last product unit by unit."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)

    def build(self, input_shape: Any) -> None:
        self._all = self._weights("", _depth(input_shape), self._num_units, 0.0)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        output = self._activation(_joined(self._all, inputs, state))
        return output, output


@export("contrib.rnn.IndyGRUCell")
class IndyGRUCell(_Independent):
    """A GRU whose units see only their own state."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kernel_initializer, bias_initializer)

    def build(self, input_shape: Any) -> None:
        depth, units = _depth(input_shape), self._num_units
        self._gates = self._weights("gates/", depth, 2 * units, 1.0)
        self._candidate = self._weights("candidate/", depth, units, 0.0)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        r, u = find("split")(find("sigmoid")(_joined(self._gates, inputs, state)), 2, axis=1)
        new = u * state + (1 - u) * self._activation(_joined(self._candidate, inputs, r * state))
        return new, new


@export("contrib.rnn.IndyLSTMCell")
class IndyLSTMCell(_Independent):
    """An LSTM whose units see only their own state."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kernel_initializer, bias_initializer)
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, input_shape: Any) -> None:
        self._all = self._weights("", _depth(input_shape), 4 * self._num_units, 0.0)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        (c, h), sigmoid, act = state, find("sigmoid"), self._activation
        i, j, f, o = find("split")(_joined(self._all, inputs, h), 4, axis=1)
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * act(j)
        h = act(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)
