"""Keras's recurrent cells: what layers run through sequences, one step of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.specs import known_bool
from tensorfleet.base import nest
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.control.cond import cond
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope


class AbstractRNNCell(Layer):
    """Base of cells: `call(inputs, states)` gives (output, new states); `state_size` and `output_size` are properties."""

    def call(self, inputs: Any, states: Any) -> Any:  # type: ignore[override]
        """The output and the new states."""
        raise TypeError(f"{type(self).__name__} must define call(inputs, states).")

    @property
    def state_size(self) -> Any:
        """The sizes of the states: a number, or a list of them."""
        raise AttributeError("state_size: a cell must define it")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise AttributeError("output_size: a cell must define it")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """States of zeros."""
        return zero_states(self, inputs, batch_size, dtype)


def zero_states(cell: Any, inputs: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros for each state of a cell, for a batch like `inputs` or of the size and type given."""
    if inputs is not None:
        batch_size, dtype = find("shape")(inputs)[0], inputs.dtype
    if batch_size is None or dtype is None:
        raise ValueError(
            "batch_size and dtype cannot be None while constructing initial state: "
            f"batch_size={batch_size}, dtype={dtype}"
        )

    def zeros(size: Any) -> Tensor:
        dims = [size] if isinstance(size, int) else TensorShape(size).as_list()
        result = find("zeros")(find("stack")([batch_size, *dims]), dtype)
        result.set_shape([None, *dims])
        return result

    sizes = cell.state_size
    if isinstance(sizes, (int, TensorShape)):
        return zeros(sizes)
    return [zeros(size) for size in sizes]


def arguments(
    gates: str = "", forget: str = "", how: str = "", more: str = "", of_layer: bool = False
) -> str:
    """The arguments of a cell, or of the layer that runs it, with those that some kinds have besides."""
    activity = "activity_regularizer=None," if of_layer else ""
    runs = "return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False,"
    return (
        f"units, activation='tanh', {gates} use_bias=True, kernel_initializer='glorot_uniform', "
        f"recurrent_initializer='orthogonal', bias_initializer='zeros', {forget} kernel_regularizer=None, "
        f"recurrent_regularizer=None, bias_regularizer=None, {activity} kernel_constraint=None, "
        f"recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, {how} "
        f"{runs if of_layer else ''} {more} **kwargs"
    )


GATES, FORGET, HOW = (
    "recurrent_activation='hard_sigmoid',",
    "unit_forget_bias=True,",
    "implementation=1,",
)
RESET = "reset_after=False,"
_PARTS, _WHATS = ("kernel", "recurrent", "bias"), ("initializer", "regularizer", "constraint")
#: what the layer of a cell takes for it
OF_CELL = ["units", "activation", "use_bias", "dropout", "recurrent_dropout"]
OF_CELL += [f"{part}_{what}" for part in _PARTS for what in _WHATS]


class StepCell(AbstractRNNCell):
    """A cell whose weights are kernels of all gates side by side."""

    _gates = 1
    _states = 1
    bias: Any
    kernel: Any
    recurrent_kernel: Any
    units: int
    use_bias: bool
    kernel_initializer: Any
    bias_initializer: Any
    activation: Callable
    dropout: float
    recurrent_dropout: float
    # What multiplies the input and the state of each gate in training, for all steps alike.
    _input_masks: list | None = None
    _state_masks: list | None = None

    def _take(self, given: dict[str, Any], *more: str) -> None:
        """Keeps the arguments of the constructor that are the cell's; the others are any layer's."""
        own = {key: given.pop(key) for key in (*OF_CELL, *more)}
        Layer.__init__(self, **given)
        for key, value in own.items():
            kind = key.rpartition("_")[2]
            known = kind in ("activation", *_WHATS)
            setattr(self, key, getattr(getting, kind)(value) if known else value)
        self.units = int(own["units"])
        self.dropout, self.recurrent_dropout = (
            min(1.0, max(0.0, own[key])) for key in ("dropout", "recurrent_dropout")
        )

    @property
    def state_size(self) -> Any:
        return self.units if self._states == 1 else [self.units] * self._states

    @property
    def output_size(self) -> int:
        return self.units

    def build(self, input_shape: Any) -> None:
        width, columns = TensorShape(input_shape)[-1].value, self.units * self._gates
        self.kernel = self._weight("kernel", (width, columns), "kernel")
        self.recurrent_kernel = self._weight("recurrent_kernel", (self.units, columns), "recurrent")
        self.bias = self._weight("bias", self._bias_shape(), "bias") if self.use_bias else None
        self.built = True

    def _bias_shape(self) -> tuple:
        return (self.units * self._gates,)

    def _weight(self, name: str, dims: tuple, part: str) -> Any:
        options = {w: getattr(self, f"{part}_{w}") for w in _WHATS}
        if name == "bias" and getattr(self, "unit_forget_bias", False):
            options["initializer"] = forgetting_little(self.bias_initializer, self.units, dims[0])
        return self.add_weight(name, dims, **options)

    def call(self, inputs: Any, states: Any, training: Any = None) -> tuple:  # type: ignore[override]
        """The output, and the list of new states."""
        given = nest.flatten(states)
        self.get_dropout_mask_for_cell(inputs, training, self._gates)
        self.get_recurrent_dropout_mask_for_cell(given[0], training, self._gates)
        output, after = self._step(inputs, tuple(given) if self._states > 1 else given[0])
        return output, list(after) if self._states > 1 else [after]

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise AssertionError

    def get_dropout_mask_for_cell(self, inputs: Any, training: Any, count: int = 1) -> Any:
        """The dropout mask of each gate's input, chosen once until it is reset; None: nothing is dropped."""
        if self._input_masks is None:
            self._input_masks = masks(inputs, self.dropout, count, training)
        return self._input_masks

    def get_recurrent_dropout_mask_for_cell(self, inputs: Any, training: Any, count: int = 1) -> Any:
        """The same for the state."""
        if self._state_masks is None:
            self._state_masks = masks(inputs, self.recurrent_dropout, count, training)
        return self._state_masks

    def reset_dropout_mask(self) -> None:
        """The next step chooses anew what input is dropped."""
        self._input_masks = None

    def reset_recurrent_dropout_mask(self) -> None:
        """The next step chooses anew what state is dropped."""
        self._state_masks = None

    def _input_bias(self) -> Any:
        return self.bias

    def _projected(self, inputs: Tensor) -> Tensor:
        result = _product(inputs, self.kernel, self._input_masks)
        bias = self._input_bias()
        return result if bias is None else find("nn.bias_add")(result, bias)

    def _recalled(self, state: Tensor) -> Tensor:
        return _product(state, self.recurrent_kernel, self._state_masks)


def masks(like: Tensor, rate: float, count: int, training: Any) -> list | None:
    """For each gate zeros and ones by chance, the ones scaled; None when nothing is dropped."""
    if not 0 < rate < 1:
        return None
    training = state.decided(training)
    ones, known = find("ones_like")(like), known_bool(training)
    drop = find("nn.dropout")

    def dropped() -> Tensor:
        return drop(ones, rate=rate)

    if known is None:
        return [cond(training, dropped, lambda: ones) for _ in range(count)]
    return [dropped() for _ in range(count)] if known else None


def _product(value: Tensor, kernel: Any, gates: list | None) -> Tensor:
    """A value times a kernel; with masks, each gate sees the value through its own."""
    matmul = find("matmul")
    if gates is None:
        return matmul(value, kernel)
    parts = find("split")(kernel, len(gates), axis=1)
    return find("concat")([matmul(value * m, part) for m, part in zip(gates, parts, strict=True)], 1)


class SimpleRNNCell(StepCell):
    """`activation(inputs @ kernel + state @ recurrent_kernel + bias)`."""

    @taking(signature_of(arguments()))
    def __init__(self, given: dict[str, Any]) -> None:
        self._take(given)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        result = self.activation(self._projected(inputs) + self._recalled(state))
        return result, result


class GRUCell(StepCell):
    """Gated recurrent units, the gates in the order update, reset, new."""

    _gates = 3
    reset_after: bool
    recurrent_activation: Callable

    @taking(signature_of(arguments(GATES, how=HOW, more=RESET)))
    def __init__(self, given: dict[str, Any]) -> None:
        self._take(given, "recurrent_activation", "implementation", "reset_after")

    def _bias_shape(self) -> tuple:
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def _input_bias(self) -> Any:
        return self.bias[0] if self.reset_after and self.bias is not None else self.bias

    def _state_bias(self) -> Any:
        return 0.0 if self.bias is None else self.bias[1]

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        n, gate = self.units, self.recurrent_activation
        update, reset, new = find("split")(self._projected(inputs), 3, axis=1)
        if self.reset_after:
            past = self._recalled(state) + self._state_bias()
            z, r = gate(update + past[:, :n]), gate(reset + past[:, n : 2 * n])
            candidate = self.activation(new + r * past[:, 2 * n :])
        else:
            kernel, dropped = find("convert_to_tensor")(self.recurrent_kernel), self._state_masks
            past = _product(state, kernel[:, : 2 * n], dropped and dropped[:2])
            z, r = gate(update + past[:, :n]), gate(reset + past[:, n:])
            kept = _product(r * state, kernel[:, 2 * n :], dropped and dropped[2:])
            candidate = self.activation(new + kept)
        result = z * state + (1 - z) * candidate
        return result, result


class LSTMCell(StepCell):
    """Long short-term memory, the gates in the order input, forget, cell, output."""

    _gates = 4
    _states = 2
    unit_forget_bias: bool
    recurrent_activation: Callable

    @taking(signature_of(arguments(GATES, forget=FORGET, how=HOW)))
    def __init__(self, given: dict[str, Any]) -> None:
        self._take(given, "recurrent_activation", "implementation", "unit_forget_bias")

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, cell = state
        i, f, new, o = find("split")(self._projected(inputs) + self._recalled(hidden), 4, axis=1)
        gate = self.recurrent_activation
        cell = gate(f) * cell + gate(i) * self.activation(new)
        result = gate(o) * self.activation(cell)
        return result, (result, cell)


def forgetting_little(plain: Any, units: int, width: int) -> Callable:
    """An initializer of a bias that is one for the gate of forgetting, the second of them."""

    def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        ones = find("ones_initializer")()([units], dtype=dtype)
        rest = width - 2 * units
        return find("concat")([plain([units], dtype=dtype), ones, plain([rest], dtype=dtype)], 0)

    return initial


class PeepholeLSTMCell(LSTMCell):
    """An `LSTMCell` whose gates see the cell's state too (Gers and Schmidhuber 2000)."""

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        weights = [
            self.add_weight(
                f"{gate}_gate_peephole_weights", (self.units,), initializer=self.kernel_initializer
            )
            for gate in ("input", "forget", "output")
        ]
        self.input_gate_peephole_weights, self.forget_gate_peephole_weights = weights[:2]
        self.output_gate_peephole_weights = weights[2]

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, cell = state
        i, f, new, o = find("split")(self._projected(inputs) + self._recalled(hidden), 4, axis=1)
        gate = self.recurrent_activation
        i = gate(i + self.input_gate_peephole_weights * cell)
        f = gate(f + self.forget_gate_peephole_weights * cell)
        cell = f * cell + i * self.activation(new)
        result = gate(o + self.output_gate_peephole_weights * cell) * self.activation(cell)
        return result, (result, cell)


class StackedRNNCells(Layer):
    """Cells one above the other, as one cell."""

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = [as_cell(cell) for cell in cells]
        for i, cell in enumerate(self.cells):
            if isinstance(cell, Layer):
                setattr(self, f"_cell_{i}", cell)

    @property
    def state_size(self) -> Any:
        """The sizes of the states of all cells."""
        return [size for cell in self.cells for size in sizes_of(cell)]

    @property
    def output_size(self) -> Any:
        """The size of the last cell's output."""
        return getattr(self.cells[-1], "output_size", None) or sizes_of(self.cells[-1])[0]

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """The first states of all cells."""
        result = []
        for cell in self.cells:
            own = getattr(cell, "get_initial_state", None)
            if own is None:
                result += nest.flatten(zero_states(cell, inputs, batch_size, dtype))
            else:
                result += nest.flatten(own(inputs=inputs, batch_size=batch_size, dtype=dtype))
        return result

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(TensorShape(dims))
                cell.built = True
            dims = [dims[0], getattr(cell, "output_size", None) or sizes_of(cell)[0]]
        self.built = True

    def call(self, inputs: Any, states: Any, constants: Any = None, **kwargs: Any) -> tuple:  # type: ignore[override]
        """The last cell's output, and the new states of all."""
        given, after = list(nest.flatten(states)), []
        for cell in self.cells:
            mine, given = given[: len(sizes_of(cell))], given[len(sizes_of(cell)) :]
            known = inspect.signature(cell.call).parameters
            options = {k: v for k, v in kwargs.items() if k in known}
            if constants is not None and "constants" in known:
                options["constants"] = constants
            inputs, new = cell.call(inputs, mine, **options)
            after += nest.flatten(new)
        return inputs, after

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """Cells from what `get_config` gave."""
        with CustomObjectScope(custom_objects or {}):
            return cls(**config)

    def get_config(self) -> dict[str, Any]:
        from tensorfleet_legacy.keras.saving.model_config import serialize_layer

        return {**super().get_config(), "cells": [serialize_layer(cell) for cell in self.cells]}


def sizes_of(cell: Any) -> list:
    """The sizes of a cell's states."""
    result = cell.state_size
    return [result] if isinstance(result, (int, TensorShape)) else list(result)


def as_cell(cell: Any) -> Any:
    """A cell; also from its description, or from several cells."""
    from tensorfleet_legacy.keras.saving.model_config import layer_from

    if isinstance(cell, dict):
        return layer_from(cell)
    if isinstance(cell, (list, tuple)):
        return StackedRNNCells(cell)
    for what in ("call", "state_size"):
        if not hasattr(cell, what):
            raise ValueError(
                f"`cell` should have a `call` method and an attribute `state_size`. The RNN was passed: {cell}"
            )
    return cell
