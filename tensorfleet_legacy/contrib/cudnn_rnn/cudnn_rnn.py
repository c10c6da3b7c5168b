"""`tf.contrib.cudnn_rnn`: the networks that cuDNN has kernels for, with variables as their checkpoints have them."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.rnn_cells import GRUCell, LSTMStateTuple, RNNCell
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.rnn.lstm_ops import LSTMBlockCell

_LSTM, _GRU = "cudnn_compatible_lstm_cell", "cudnn_compatible_gru_cell"
_INPUT, _HIDDEN = "candidate/input_projection", "candidate/hidden_projection"


@export("contrib.cudnn_rnn.CudnnCompatibleLSTMCell")
class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """One step of a `CudnnLSTM`, which needs no GPU and reads its checkpoints."""

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(
            num_units, forget_bias=0, cell_clip=None, use_peephole=False, reuse=reuse, name=_LSTM
        )


class _CudnnRNN(Layer):
    """Layers of cells over sequences, [time, batch, depth], in one direction or in both.

    Gives (outputs, states), where each state is [layers * directions, batch, units].
    """

    _cell_name: str  # of the cell that has the same variables
    _cell: Any  # makes a cell of weights and a number of units
    _states = 1  # how many states a cell has

    def _shapes(self, depth: int) -> dict[str, list[int]]:
        """The weights of a cell for inputs of a depth."""
        raise TypeError(f"{type(self).__name__} has no cell.")

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
            return f"rnn/multi_rnn_cell/cell_{layer}/{self._cell_name}"
        return f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{('fw', 'bw')[way]}/{self._cell_name}"

    def build(self, input_shape: Any) -> None:
        depth = input_shape[2].value if hasattr(input_shape[2], "value") else input_shape[2]
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        self._cells: list[dict] = []
        for layer in range(self._num_layers):
            for way in range(self.num_dirs):
                place = self._place(layer, way)
                self._cells.append(
                    {
                        name: self.add_weight(f"{place}/{name}", shape=shape, initializer=self._start(name))
                        for name, shape in self._shapes(depth).items()
                    }
                )
            depth = self._num_units * self.num_dirs
        self.built = True

    def _start(self, name: str) -> Any:
        kernel, bias = self._starts
        return kernel if name.endswith("kernel") else bias or find("zeros_initializer")()

    def call(self, inputs: Any, initial_state: Any = None, training: Any = True) -> tuple:  # type: ignore[override]
        """Runs over all steps of all layers."""
        batch, count = find("shape")(inputs)[1], len(self._cells)
        if initial_state is None:
            zeros = find("zeros")(find("stack")([count, batch, self._num_units]), inputs.dtype)
            initial_state = (zeros,) * self._states
        given = initial_state if isinstance(initial_state, (list, tuple)) else (initial_state,)
        before = list(zip(*(find("unstack")(state, num=count) for state in given), strict=True))
        x, last = inputs, []
        for layer in range(self._num_layers):
            if layer and self._dropout and training is not False:
                x = self._dropped(x, training)
            results = []
            for way in range(self.num_dirs):
                i = layer * self.num_dirs + way
                outputs, state = self._run(x, self._cells[i], before[i], bool(way))
                results.append(outputs)
                last.append(state)
            x = results[0] if len(results) == 1 else find("concat")(results, 2)
        return x, tuple(find("stack")(list(states)) for states in zip(*last, strict=True))

    def _dropped(self, x: Tensor, training: Any) -> Tensor:
        def drop() -> Tensor:
            return find("nn.dropout")(x, rate=self._dropout, seed=self._seed)

        return drop() if training is True else find("cond")(training, drop, lambda: find("identity")(x))

    def _run(self, x: Tensor, weights: dict, state: tuple, backwards: bool) -> tuple[Tensor, tuple]:
        x = find("reverse")(x, [0]) if backwards else x
        cell = self._cell(weights, self._num_units)
        outputs, after = find("nn.dynamic_rnn")(cell, x, initial_state=cell.packed(state), time_major=True)
        return (find("reverse")(outputs, [0]) if backwards else outputs), cell.unpacked(after)


class _Weighted(RNNCell):
    """A cell whose weights are there already; its states are packed as the layers give them: h first."""

    def __init__(self, weights: dict, units: int) -> None:
        super().__init__()
        self._weights, self._units = weights, units

    state_size: Any = readonly("_units")
    output_size = readonly("_units")

    def packed(self, state: tuple) -> Any:
        """The shape of the input of a step."""
        return state[0]

    def unpacked(self, state: Any) -> tuple:
        """The shape of the output of a step, as a tuple."""
        return (state,)

    def _linear(self, x: Tensor, kernel: str, bias: str) -> Tensor:
        return find("nn.bias_add")(find("matmul")(x, self._weights[kernel]), self._weights[bias])


class _WeightedLSTM(_Weighted):
    @property
    def state_size(self) -> LSTMStateTuple:
        return LSTMStateTuple(self._units, self._units)

    def packed(self, state: tuple) -> Any:
        return LSTMStateTuple(c=state[1], h=state[0])

    def unpacked(self, state: Any) -> tuple:
        return state.h, state.c

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step; the gates in the order input, new, forget, output."""
        sigmoid, tanh = find("sigmoid"), find("tanh")
        joined = self._linear(find("concat")([inputs, state.h], 1), "kernel", "bias")
        i, j, f, o = find("split")(joined, 4, axis=1)
        c = sigmoid(f) * state.c + sigmoid(i) * tanh(j)
        h = sigmoid(o) * tanh(c)
        return h, LSTMStateTuple(c, h)


class _WeightedGRU(_Weighted):
    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step; what is reset is the state's part of the candidate, after its weights."""
        gates = self._linear(find("concat")([inputs, state], 1), "gates/kernel", "gates/bias")
        r, u = find("split")(find("sigmoid")(gates), 2, axis=1)
        own = self._linear(inputs, f"{_INPUT}/kernel", f"{_INPUT}/bias")
        kept = self._linear(state, f"{_HIDDEN}/kernel", f"{_HIDDEN}/bias")
        new = (1 - u) * find("tanh")(own + r * kept) + u * state
        return new, new


class _WeightedRNN(_Weighted):
    activation = "tanh"

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step."""
        joined = self._linear(find("concat")([inputs, state], 1), "kernel", "bias")
        new = find(self.activation)(joined)
        return new, new


class _WeightedRelu(_WeightedRNN):
    activation = "nn.relu"


@export("contrib.cudnn_rnn.CudnnLSTM")
class CudnnLSTM(_CudnnRNN):
    """Layers of an LSTM over sequences; gives (outputs, (h, c))."""

    _cell_name, _cell, _states = _LSTM, _WeightedLSTM, 2

    def _shapes(self, depth: int) -> dict[str, list[int]]:
        units = self._num_units
        return {"kernel": [depth + units, 4 * units], "bias": [4 * units]}


@export("contrib.cudnn_rnn.CudnnGRU")
class CudnnGRU(_CudnnRNN):
    """Layers of a GRU over sequences; gives (outputs, (h,))."""

    _cell_name, _cell = _GRU, _WeightedGRU

    def _shapes(self, depth: int) -> dict[str, list[int]]:
        units = self._num_units
        return {
            "gates/kernel": [depth + units, 2 * units],
            "gates/bias": [2 * units],
            f"{_INPUT}/kernel": [depth, units],
            f"{_HIDDEN}/kernel": [units, units],
            f"{_INPUT}/bias": [units],
            f"{_HIDDEN}/bias": [units],
        }


@export("contrib.cudnn_rnn.CudnnRNNTanh")
class CudnnRNNTanh(_CudnnRNN):
    """Layers of plain cells over sequences, with tanh; gives (outputs, (h,))."""

    _cell_name, _cell = "basic_rnn_cell", _WeightedRNN

    def _shapes(self, depth: int) -> dict[str, list[int]]:
        return {"kernel": [depth + self._num_units, self._num_units], "bias": [self._num_units]}


@export("contrib.cudnn_rnn.CudnnRNNRelu")
class CudnnRNNRelu(CudnnRNNTanh):
    """Layers of plain cells over sequences, with relu; gives (outputs, (h,))."""

    _cell = _WeightedRelu


@export("contrib.cudnn_rnn.CudnnCompatibleGRUCell")
class CudnnCompatibleGRUCell(GRUCell):
    """One step of a `CudnnGRU`, which reads its checkpoints; biases of the gates begin at 1 as those of a `GRUCell`."""

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer, name=_GRU)
        self._units, self._start = num_units, kernel_initializer

    def build(self, inputs_shape: Any) -> None:
        depth = TensorShape(inputs_shape).as_list()[1]
        if depth is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}")
        units, one, zero = self._units, find("ones_initializer")(), find("zeros_initializer")()
        starts = {"gates/bias": one, f"{_INPUT}/bias": zero, f"{_HIDDEN}/bias": zero}
        shapes = CudnnGRU(1, units)._shapes(depth)
        self._weights = {
            name: self.add_weight(name, shape=shape, initializer=starts.get(name, self._start))
            for name, shape in shapes.items()
        }
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step."""
        return _WeightedGRU(self._weights, self._units).call(inputs, state)
