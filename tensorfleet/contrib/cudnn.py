"""`tf.contrib.cudnn_rnn`: the LSTM that cuDNN has kernels for, with variables as its checkpoints have them."""

from __future__ import annotations

from typing import Any

from tensorfleet import dtypes
from tensorfleet.api import export, find
from tensorfleet.contrib.rnn import LSTMBlockCell
from tensorfleet.graph.operation import Tensor
from tensorfleet.layers.base import Layer
from tensorfleet.layers.rnn_cells import LSTMStateTuple, RNNCell
from tensorfleet.layers.specs import InputSpec
from tensorfleet.properties import readonly

_CELL = "cudnn_compatible_lstm_cell"


@export("contrib.cudnn_rnn.CudnnCompatibleLSTMCell")
class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """One step of a `CudnnLSTM`, which needs no GPU and reads its checkpoints."""

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(
            num_units, forget_bias=0, cell_clip=None, use_peephole=False, reuse=reuse, name=_CELL
        )


@export("contrib.cudnn_rnn.CudnnLSTM")
class CudnnLSTM(Layer):
    """Layers of an LSTM over sequences, [time, batch, depth], in one direction or in both.

    Gives (outputs, (h, c)), where h and c are [layers * directions, batch, units].
    """

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        if direction not in ("unidirectional", "bidirectional"):
            raise ValueError(f"Invalid direction: {direction}. Expecting unidirectional or bidirectional.")
        if input_mode not in ("linear_input", "auto_select", "skip_input"):
            raise ValueError(f"Invalid input_mode: {input_mode}")
        if input_mode == "skip_input":
            raise ValueError("skip_input is not supported here: use linear_input.")
        self._num_layers, self._num_units, self._direction = num_layers, num_units, direction
        self._dropout, self._seed = dropout, seed
        self._starts = kernel_initializer, bias_initializer
        self.input_spec = InputSpec(ndim=3)

    num_layers = readonly("_num_layers", "The number of layers.")
    num_units = readonly("_num_units", "The units of each layer and direction.")
    direction = readonly("_direction", '"unidirectional" or "bidirectional".')

    @property
    def num_dirs(self) -> int:
        """How many directions there are."""
        return 2 if self._direction == "bidirectional" else 1

    def _place(self, layer: int, way: int) -> str:
        if self.num_dirs == 1:
            return f"rnn/multi_rnn_cell/cell_{layer}/{_CELL}"
        return f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{('fw', 'bw')[way]}/{_CELL}"

    def build(self, input_shape: Any) -> None:
        depth = input_shape[2].value if hasattr(input_shape[2], "value") else input_shape[2]
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        kernel_start, bias_start = self._starts
        units, self._cells = self._num_units, []
        for layer in range(self._num_layers):
            for way in range(self.num_dirs):
                place = self._place(layer, way)
                shape = [depth + units, 4 * units]
                kernel = self.add_weight(f"{place}/kernel", shape=shape, initializer=kernel_start)
                start = bias_start or find("zeros_initializer")()
                self._cells.append(
                    (kernel, self.add_weight(f"{place}/bias", shape=[4 * units], initializer=start))
                )
            depth = units * self.num_dirs
        self.built = True

    def call(self, inputs: Any, initial_state: Any = None, training: Any = True) -> tuple:  # type: ignore[override]
        """Runs over all steps of all layers."""
        batch, count = find("shape")(inputs)[1], len(self._cells)
        if initial_state is None:
            zeros = find("zeros")(find("stack")([count, batch, self._num_units]), inputs.dtype)
            initial_state = zeros, zeros
        h, c = (find("unstack")(state, num=count) for state in initial_state)
        x, last = inputs, []
        for layer in range(self._num_layers):
            if layer and self._dropout and training is not False:
                x = self._dropped(x, training)
            made = []
            for way in range(self.num_dirs):
                i = layer * self.num_dirs + way
                outputs, state = self._run(x, self._cells[i], LSTMStateTuple(c[i], h[i]), bool(way))
                made.append(outputs)
                last.append(state)
            x = made[0] if len(made) == 1 else find("concat")(made, 2)
        return x, (find("stack")([s.h for s in last]), find("stack")([s.c for s in last]))

    def _dropped(self, x: Tensor, training: Any) -> Tensor:
        def drop() -> Tensor:
            return find("nn.dropout")(x, rate=self._dropout, seed=self._seed)

        return drop() if training is True else find("cond")(training, drop, lambda: find("identity")(x))

    def _run(self, x: Tensor, weights: tuple, state: LSTMStateTuple, backwards: bool) -> tuple:
        x = find("reverse")(x, [0]) if backwards else x
        outputs, after = find("nn.dynamic_rnn")(
            _Weighted(weights, self._num_units), x, initial_state=state, time_major=True
        )
        return (find("reverse")(outputs, [0]) if backwards else outputs), after


class _Weighted(RNNCell):
    """An LSTM cell whose weights are there already."""

    def __init__(self, weights: tuple, units: int) -> None:
        super().__init__()
        self._weights, self._units = weights, units

    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._units, self._units)

    output_size = readonly("_units")

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step; the gates in the order input, new, forget, output."""
        kernel, bias = self._weights
        sigmoid, tanh = find("sigmoid"), find("tanh")
        joined = find("nn.bias_add")(find("matmul")(find("concat")([inputs, state.h], 1), kernel), bias)
        i, j, f, o = find("split")(joined, 4, axis=1)
        c = sigmoid(f) * state.c + sigmoid(i) * tanh(j)
        h = sigmoid(o) * tanh(c)
        return h, LSTMStateTuple(c, h)
