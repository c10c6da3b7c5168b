"""Keras's recurrent layers: `SimpleRNN`, `GRU`, `LSTM`, and what wraps layers."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature
from typing import Any

from tensorfleet import nest
from tensorfleet.api import find
from tensorfleet.arguments import signature_of, taking
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras import getting
from tensorfleet.keras.base import Layer
from tensorfleet.layers.specs import InputSpec, known_bool
from tensorfleet.ops.control_flow import cond
from tensorfleet.shapes import TensorShape


class _Cell:
    """One step of a recurrent layer, as `tf.nn.dynamic_rnn` takes it."""

    def __init__(self, step: Callable, units: int, states: int) -> None:
        self._step = step
        self.output_size = units
        self.state_size: Any = units if states == 1 else (units,) * states

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The first state."""
        sizes = self.state_size if isinstance(self.state_size, tuple) else (self.state_size,)
        made = tuple(find("zeros")(find("stack")([batch_size, n]), dtype) for n in sizes)
        return made if isinstance(self.state_size, tuple) else made[0]

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """The output and the next state."""
        return self._step(inputs, state)


class _Masked:
    """A cell whose output and state stay as they were in steps that do not count; inputs are (values, 1 or 0)."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell
        self.output_size = cell.output_size
        self.state_size = (cell.state_size, cell.output_size)

    def zero_state(self, batch_size: Any, dtype: Any) -> tuple:
        """The first state, and an output of zeros."""
        size = self.output_size
        dims = [size] if isinstance(size, int) else TensorShape(size).as_list()
        none = find("zeros")(find("stack")([batch_size, *dims]), dtype)
        return self._cell.zero_state(batch_size, dtype), none

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple:
        """The output and the next state."""
        (x, counts), (old, last) = inputs, state
        output, new = self._cell(x, old)
        output = counts * output + (1 - counts) * last
        kept = nest.map_structure(lambda a, b: counts * a + (1 - counts) * b, new, old)
        return output, (kept, output)


def run_through(cell: Any, inputs: Any, mask: Any, first: Any, time_major: bool = False) -> tuple:
    """Runs a cell through sequences: (outputs of all steps, the last output, the last state)."""
    rnn = find("nn.dynamic_rnn")
    options = dict(dtype=inputs.dtype, time_major=time_major)
    if mask is None:
        outputs, state = rnn(cell, inputs, initial_state=first, **options)
        return outputs, outputs[-1] if time_major else outputs[:, -1], state
    counts = find("expand_dims")(find("cast")(mask, inputs.dtype), 2)
    counts = find("transpose")(counts, [1, 0, 2]) if time_major else counts
    cell = _Masked(cell)
    if first is not None:
        batch = find("shape")(inputs)[1 if time_major else 0]
        first = (first, cell.zero_state(batch, inputs.dtype)[1])
    outputs, (state, last) = rnn(cell, (inputs, counts), initial_state=first, **options)
    return outputs, last, state


def _arguments(gates: str = "", forget: str = "", how: str = "", last: str = "") -> Signature:
    """The arguments of a recurrent layer, with those that some kinds have besides."""
    return signature_of(
        f"units, activation='tanh', {gates} use_bias=True, kernel_initializer='glorot_uniform', "
        f"recurrent_initializer='orthogonal', bias_initializer='zeros', {forget} kernel_regularizer=None, "
        "recurrent_regularizer=None, bias_regularizer=None, activity_regularizer=None, kernel_constraint=None, "
        f"recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, {how} "
        f"return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False, {last} **kwargs"
    )


_GATES, _HOW = "recurrent_activation='hard_sigmoid',", "implementation=1,"
_PARTS, _WHATS = ("kernel", "recurrent", "bias"), ("initializer", "regularizer", "constraint")
_OWN = [
    "units",
    "activation",
    "use_bias",
    "dropout",
    "recurrent_dropout",
    "return_sequences",
    "return_state",
    "go_backwards",
    "unroll",
]
_OWN += [f"{part}_{what}" for part in _PARTS for what in _WHATS]


class Steps:
    """The weights of a recurrent layer or cell, all gates side by side, and what one step does with them."""

    _gates = 1
    _states = 1
    bias: Any
    units: int
    use_bias: bool
    activation: Callable
    recurrent_activation: Callable
    dropout: float
    recurrent_dropout: float
    # What multiplies the input and the state of each gate in training, for all steps alike.
    _input_masks: list | None = None
    _state_masks: list | None = None

    def _bias_shape(self) -> tuple:
        return (self.units * self._gates,)

    def _make_weights(self: Any, input_shape: Any) -> None:
        width = TensorShape(input_shape)[-1].value
        columns = self.units * self._gates
        self.kernel = self._weight("kernel", (width, columns), "kernel")
        self.recurrent_kernel = self._weight("recurrent_kernel", (self.units, columns), "recurrent")
        self.bias = self._weight("bias", self._bias_shape(), "bias") if self.use_bias else None

    def _weight(self: Any, name: str, dims: tuple, part: str) -> Any:
        options = {w: getattr(self, f"{part}_{w}") for w in _WHATS}
        return self.add_weight(name, dims, **options)

    def _draw_masks(self, inputs: Tensor, state: Tensor, training: Any) -> None:
        """Chooses what is dropped from the input and the state."""
        self._input_masks = _masks(inputs, self.dropout, self._gates, training)
        self._state_masks = _masks(state, self.recurrent_dropout, self._gates, training)

    def _input_bias(self) -> Any:
        return self.bias

    def _projected(self: Any, inputs: Tensor) -> Tensor:
        made = _product(inputs, self.kernel, self._input_masks)
        bias = self._input_bias()
        return made if bias is None else find("nn.bias_add")(made, bias)

    def _recalled(self: Any, state: Tensor) -> Tensor:
        return _product(state, self.recurrent_kernel, self._state_masks)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise AssertionError


def _masks(like: Tensor, rate: float, count: int, training: Any) -> list | None:
    if not 0 < rate < 1:
        return None
    ones, known = find("ones_like")(like), known_bool(training)
    drop = find("nn.dropout")

    def dropped() -> Tensor:
        return drop(ones, rate=rate)

    if known is None:
        return [cond(training, dropped, lambda: ones) for _ in range(count)]
    return [dropped() for _ in range(count)] if known else None


def _product(value: Tensor, kernel: Any, masks: list | None) -> Tensor:
    """A value times a kernel; with masks, each gate sees the value through its own."""
    matmul = find("matmul")
    if masks is None:
        return matmul(value, kernel)
    parts = find("split")(kernel, len(masks), axis=1)
    return find("concat")([matmul(value * m, part) for m, part in zip(masks, parts, strict=True)], 1)


class SimpleSteps(Steps):
    """`activation(inputs @ kernel + state @ recurrent_kernel + bias)`."""

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        made = self.activation(self._projected(inputs) + self._recalled(state))
        return made, made


class GRUSteps(Steps):
    """Gated recurrent units, the gates in the order update, reset, new."""

    _gates = 3
    reset_after: bool

    def _bias_shape(self) -> tuple:
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def _input_bias(self) -> Any:
        return self.bias[0] if self.reset_after and self.bias is not None else self.bias

    def _state_bias(self) -> Any:
        return 0.0 if self.bias is None else self.bias[1]

    def _step(self: Any, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        n, gate = self.units, self.recurrent_activation
        update, reset, new = find("split")(self._projected(inputs), 3, axis=1)
        if self.reset_after:
            past = self._recalled(state) + self._state_bias()
            z, r = gate(update + past[:, :n]), gate(reset + past[:, n : 2 * n])
            candidate = self.activation(new + r * past[:, 2 * n :])
        else:
            kernel, masks = find("convert_to_tensor")(self.recurrent_kernel), self._state_masks
            past = _product(state, kernel[:, : 2 * n], masks and masks[:2])
            z, r = gate(update + past[:, :n]), gate(reset + past[:, n:])
            kept = _product(r * state, kernel[:, 2 * n :], masks and masks[2:])
            candidate = self.activation(new + kept)
        made = z * state + (1 - z) * candidate
        return made, made


class LSTMSteps(Steps):
    """Long short-term memory, the gates in the order input, forget, cell, output."""

    _gates = 4
    _states = 2
    unit_forget_bias: bool

    def _weight(self: Any, name: str, dims: tuple, part: str) -> Any:
        if name != "bias" or not self.unit_forget_bias:
            return Steps._weight(self, name, dims, part)
        plain, n = getting.initializer(self.bias_initializer), self.units

        def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
            ones = find("ones_initializer")()([n], dtype=dtype)
            rest = dims[0] - 2 * n
            return find("concat")([plain([n], dtype=dtype), ones, plain([rest], dtype=dtype)], 0)

        others = {w: getattr(self, f"bias_{w}") for w in ("regularizer", "constraint")}
        return self.add_weight(name, dims, initializer=initial, **others)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, cell = state
        i, f, new, o = find("split")(self._projected(inputs) + self._recalled(hidden), 4, axis=1)
        gate = self.recurrent_activation
        cell = gate(f) * cell + gate(i) * self.activation(new)
        made = gate(o) * self.activation(cell)
        return made, (made, cell)


class _Recurrent(Steps, Layer):
    """A sequence to its last output, or to all of them."""

    return_sequences: bool
    return_state: bool
    go_backwards: bool

    @taking(_arguments())
    def __init__(self, given: dict[str, Any]) -> None:
        for what in ("stateful", "time_major"):
            if given.pop(what, False):
                raise ValueError(
                    f"{type(self).__name__} does not support `{what}` here: use tf.nn.dynamic_rnn with the cells of "
                    "tf.nn.rnn_cell."
                )
        own = {key: given.pop(key) for key in _OWN}
        regularizer = getting.regularizer(given.pop("activity_regularizer"))
        super().__init__(activity_regularizer=regularizer, **given)
        for key, value in own.items():
            setattr(self, key, value)
        self.units = int(own["units"])
        self.activation = getting.activation(own["activation"])
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        """Makes the kernels and the bias."""
        self._make_weights(input_shape)
        held = {"kernel": self.kernel, "recurrent_kernel": self.recurrent_kernel, "bias": self.bias}
        self._held = {k: v for k, v in held.items() if v is not None}
        self.built = True

    def _checkpoint_dependencies(self) -> Any:
        """What checkpoints of objects hold: the weights, which are a cell's in TensorFlow."""
        if self.built:
            yield "cell", self._held

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask if self.return_sequences else None

    def call(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """Runs through the sequence."""
        if self.go_backwards:
            inputs = find("reverse")(inputs, [1])
            mask = None if mask is None else find("reverse")(mask, [1])
        if self.dropout or self.recurrent_dropout:
            zeros = find("zeros")(find("stack")([find("shape")(inputs)[0], self.units]), inputs.dtype)
            self._draw_masks(inputs[:, 0], zeros, training)
        cell = _Cell(self._step, self.units, self._states)
        first = initial_state
        if isinstance(first, (list, tuple)):
            first = tuple(first) if self._states > 1 else first[0]
        outputs, last, state = run_through(cell, inputs, mask, first)
        result = outputs if self.return_sequences else last
        if not self.return_state:
            return result
        return [result, *(state if self._states > 1 else [state])]


class SimpleRNN(SimpleSteps, _Recurrent):
    """Each output is the next state: `activation(inputs @ kernel + state @ recurrent_kernel + bias)`."""


class GRU(GRUSteps, _Recurrent):
    """Gated recurrent units, the gates in the order update, reset, new."""

    @taking(_arguments(_GATES, how=_HOW, last="reset_after=False,"))
    def __init__(self, given: dict[str, Any]) -> None:
        self.reset_after = given.pop("reset_after")
        self.implementation = given.pop("implementation")
        self.recurrent_activation = getting.activation(given.pop("recurrent_activation"))
        super().__init__(**given)


class LSTM(LSTMSteps, _Recurrent):
    """Long short-term memory, the gates in the order input, forget, cell, output."""

    @taking(_arguments(_GATES, forget="unit_forget_bias=True,", how=_HOW))
    def __init__(self, given: dict[str, Any]) -> None:
        self.implementation = given.pop("implementation")
        self.recurrent_activation = getting.activation(given.pop("recurrent_activation"))
        self.unit_forget_bias = given.pop("unit_forget_bias")
        super().__init__(**given)
