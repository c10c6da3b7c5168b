"""Recurrent cells with layer normalization."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorfleet.api.layers.rnn_cells import LSTMStateTuple, RNNCell
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly


def normalized(x: Any, scope: str, gain: float, shift: float) -> Any:
    """`x` with mean `beta` and deviation `gamma`, variables of `scope` that begin with `shift` and `gain`."""
    shape, start = x.shape[-1:], find("constant_initializer")
    with find("variable_scope")(scope):
        gamma = find("get_variable")("gamma", shape=shape, dtype=x.dtype, initializer=start(gain))
        beta = find("get_variable")("beta", shape=shape, dtype=x.dtype, initializer=start(shift))
    mean, variance = find("nn.moments")(x, [1], keep_dims=True)
    return find("nn.batch_normalization")(x, mean, variance, beta, gamma, 1e-12)


@export("contrib.rnn.LayerNormBasicLSTMCell")
class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM whose gates and state are layer-normalized, with recurrent dropout."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = None,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._activation = activation or find("tanh")
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._num_units, self._num_units)

    output_size = readonly("_num_units")

    def call(self, inputs: Any, state: Any) -> tuple[Any, LSTMStateTuple]:  # type: ignore[override]
        c, h = state
        norm = partial(normalized, gain=self._gain, shift=self._shift)
        joined = find("concat")([inputs, h], 1)
        size = 4 * self._num_units
        kernel = find("get_variable")("kernel", [joined.shape.as_list()[-1], size], dtype=joined.dtype)
        gates = find("matmul")(joined, kernel)
        if not self._layer_norm:
            gates = find("nn.bias_add")(gates, find("get_variable")("bias", [size], dtype=joined.dtype))
        i, j, f, o = find("split")(gates, 4, axis=1)
        if self._layer_norm:
            i, j = norm(i, "input"), norm(j, "transform")
            f, o = norm(f, "forget"), norm(o, "output")
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = find("nn.dropout")(new, self._keep_prob, seed=self._seed)
        sigmoid = find("sigmoid")
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * new
        if self._layer_norm:
            c = norm(c, "state")
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)
