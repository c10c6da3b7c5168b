"""`tf.contrib.rnn`: cells and layers that are single ops. The other cells are those of `tf.nn.rnn_cell`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.rnn_cells import LayerCell, LSTMStateTuple, _constant, _depth
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor


class _LSTMWeights(Layer):
    """The variables of an LSTM whose gates come in the order input, cell, forget, output."""

    def _keep(self, units: int, forget_bias: float, cell_clip: float | None, use_peephole: bool) -> None:
        self._num_units, self._use_peephole = units, use_peephole
        self._forget_bias, self._cell_clip = forget_bias, -1.0 if cell_clip is None else cell_clip

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        units, add = self._num_units, self.add_weight
        self._kernel = add("kernel", shape=[_depth(input_shape) + units, 4 * units])
        self._bias = add("bias", shape=[4 * units], initializer=_constant(0.0, self.dtype))
        self._diagonals = [add(f"w_{gate}_diag", shape=[units]) for gate in "ifo" if self._use_peephole]
        self.built = True

    def _attrs(self) -> dict[str, Any]:
        return {n: getattr(self, f"_{n}") for n in ("forget_bias", "cell_clip", "use_peephole")}

    def _peepholes(self, dtype: Any) -> list:
        return self._diagonals or [find("zeros")([self._num_units], dtype=dtype)] * 3


@export("contrib.rnn.LSTMBlockCell")
class LSTMBlockCell(_LSTMWeights, LayerCell):
    """An LSTM cell that is one op."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._keep(num_units, forget_bias, cell_clip, use_peephole)
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    output_size = readonly("_num_units")

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        c, h = state
        _, new_c, *_, new_h = apply_list(
            "LSTMBlockCell",
            inputs,
            c,
            h,
            self._kernel,
            *self._peepholes(inputs.dtype),
            self._bias,
            **self._attrs(),
        )
        return new_h, LSTMStateTuple(new_c, new_h)


@export("contrib.rnn.LSTMBlockWrapper")
class LSTMBlockWrapper(Layer):
    """Base of LSTMs over whole sequences, [time, batch, depth], as one op: (outputs, last state)."""

    @property
    @abstractmethod
    def num_units(self) -> int:
        """The number of units."""

    @abstractmethod
    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple:
        """Cell states and outputs of all steps, [time, batch, num_units] each."""

    def call(  # type: ignore[override]
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple:
        """Runs over all steps."""
        listed = isinstance(inputs, list)
        x = find("stack")(inputs) if listed else to_tensor(inputs)
        steps, batch = (find("shape")(x)[i] if d is None else d for i, d in enumerate(x.shape.as_list()[:2]))
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zeros = find("zeros")(find("stack")([batch, self.num_units]), dtype=dtype)
            c, h = zeros, zeros
        else:
            if len(initial_state) != 2:
                raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
            c, h = initial_state
            dtype = c.dtype
        lengths = None if sequence_length is None else find("cast")(sequence_length, dtypes.int64)
        cs, hs = self._call_cell(x, c, h, dtype, lengths)
        if lengths is None:
            last = LSTMStateTuple(cs[-1], hs[-1])
        else:
            last = LSTMStateTuple(_at_end(cs, c, lengths), _at_end(hs, h, lengths))
            hs = hs * _mask(lengths, steps, dtype)
        return (find("unstack")(hs) if listed else hs), last


@export("contrib.rnn.LSTMBlockFusedCell")
class LSTMBlockFusedCell(_LSTMWeights, LSTMBlockWrapper):
    """An LSTM over whole sequences, [time, batch, depth], that is one op: (outputs, last state)."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._keep(num_units, forget_bias, cell_clip, use_peephole)
        self.input_spec = InputSpec(ndim=3)

    num_units = readonly("_num_units", "The number of units.")

    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple:
        if sequence_length is None:
            longest = find("shape")(inputs, out_type=dtypes.int64)[0]
        else:
            longest = find("reduce_max")(sequence_length)
        _, cs, *_, hs = apply_list(
            "BlockLSTM",
            longest,
            inputs,
            initial_cell_state,
            initial_output,
            self._kernel,
            *self._peepholes(dtype),
            self._bias,
            **self._attrs(),
        )
        return cs, hs


def _mask(lengths: Tensor, steps: Any, dtype: Any) -> Tensor:
    """1 inside each sequence, 0 past its end; [time, batch, 1]."""
    mask = find("transpose")(find("sequence_mask")(lengths, steps, dtype=dtype), [1, 0])
    return find("expand_dims")(mask, 2)


def _at_end(values: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
    """The value of each sequence after its last step; what it began with if it has no step."""
    whole = find("concat")([find("expand_dims")(first, 0), values], 0)
    batch = find("shape")(lengths, out_type=dtypes.int64)[0]
    places = find("stack")([lengths, find("range")(batch)], axis=1)
    return find("gather_nd")(whole, places)


@export("contrib.rnn.GRUBlockCell")
class GRUBlockCell(LayerCell):
    """A GRU cell that is one op."""

    # The names of its variables: gates, their bias, candidate, its bias.
    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._num_units = num_units if num_units is not None else cell_size
        self.input_spec = InputSpec(ndim=2)

    state_size = readonly("_num_units")
    output_size = readonly("_num_units")

    def build(self, input_shape: Any) -> None:
        units: Any = self._num_units
        depth = _depth(input_shape) + units
        gates, gate_bias, candidate, candidate_bias = self._names
        one, zero = _constant(1.0, self.dtype), _constant(0.0, self.dtype)
        self._gates = self.add_weight(gates, shape=[depth, 2 * units])
        self._gate_bias = self.add_weight(gate_bias, shape=[2 * units], initializer=one)
        self._candidate = self.add_weight(candidate, shape=[depth, units])
        self._candidate_bias = self.add_weight(candidate_bias, shape=[units], initializer=zero)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        *_, new = apply_list(
            "GRUBlockCell",
            inputs,
            state,
            self._gates,
            self._candidate,
            self._gate_bias,
            self._candidate_bias,
        )
        return new, new


@export("contrib.rnn.GRUBlockCellV2")
class GRUBlockCellV2(GRUBlockCell):
    """A GRU cell that is one op, with the variables of `GRUCell`."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


class _Projecting(LayerCell):
    """A cell around another one, with weights of its own on the way in or out."""

    def __init__(self, cell: Any, reuse: bool | None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    state_size = readonly("_cell.state_size")
    output_size = readonly("_cell.output_size")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return self._cell.zero_state(batch_size, dtype)

    def build(self, _: Any) -> None:
        """The variables are made in the first step."""
        self.built = True


@export("contrib.rnn.EmbeddingWrapper")
class EmbeddingWrapper(_Projecting):
    """A cell whose inputs are symbols, which are embedded."""

    _takes_symbols = True

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}, {embedding_size}."
            )
        self._classes, self._size, self._initializer = embedding_classes, embedding_size, initializer

    def call(self, inputs: Tensor, state: Any) -> Any:  # type: ignore[override]
        """The cell's step on the embedded symbols."""
        start = self._initializer or find("get_variable_scope")().initializer
        start = start or find("random_uniform_initializer")(-(3**0.5), 3**0.5)
        parts = nest.flatten(state)
        table = find("get_variable")(
            "embedding", [self._classes, self._size], dtype=parts[0].dtype, initializer=start
        )
        symbols = find("reshape")(inputs, [-1])
        return self._cell(find("nn.embedding_lookup")(table, symbols), state)


@export("contrib.rnn.python.ops.core_rnn_cell._Linear", "python.ops.rnn_cell_impl._Linear")
class _Linear:
    """Some tensors side by side times a matrix, plus a bias, with variables of the scope it is made in."""

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        first, *others = nest.flatten(args)
        dtype, depth = first.dtype, sum(t.shape[1].value for t in (first, *others))
        get_variable = find("get_variable")
        self._kernel = get_variable("kernel", [depth, output_size], dtype, kernel_initializer)
        self._bias = None
        if build_bias:
            start = bias_initializer or find("zeros_initializer")(dtype=dtype)
            self._bias = get_variable("bias", [output_size], dtype, start)

    def __call__(self, args: Any) -> Tensor:
        parts = nest.flatten(args)
        joined = parts[0] if len(parts) == 1 else find("concat")(parts, 1)
        product = find("matmul")(joined, self._kernel)
        return product if self._bias is None else find("nn.bias_add")(product, self._bias)


@export("contrib.rnn.python.ops.core_rnn_cell._linear", "python.ops.rnn_cell_impl._linear")
def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Tensor:
    """Some tensors side by side times a new matrix, plus a new bias if `bias`."""
    return _Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


@export("contrib.rnn.InputProjectionWrapper")
class InputProjectionWrapper(_Projecting):
    """A cell behind a dense layer of `num_proj` units."""

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Tensor, state: Any) -> Any:  # type: ignore[override]
        """The cell's step on the projected inputs."""
        projected = linear(inputs, self._num_proj, True)
        return self._cell(self._activation(projected) if self._activation else projected, state)


@export("contrib.rnn.OutputProjectionWrapper")
class OutputProjectionWrapper(_Projecting):
    """A cell before a dense layer of `output_size` units."""

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None
    ) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._projected, self._activation = output_size, activation

    output_size = readonly("_projected", "The units of the dense layer.")

    def call(self, inputs: Tensor, state: Any) -> Any:  # type: ignore[override]
        """The cell's step, and its output projected."""
        output, after = self._cell(inputs, state)
        projected = linear(output, self._projected, True)
        return (self._activation(projected) if self._activation else projected), after
