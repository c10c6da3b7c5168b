"""Keras's recurrent cells, the layer that runs them, and the layers that cuDNN has kernels for."""

from __future__ import annotations

import inspect
from typing import Any

from tensorfleet import nest
from tensorfleet.api import find
from tensorfleet.arguments import signature_of, taking
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras import getting
from tensorfleet.keras.base import Layer
from tensorfleet.keras.recurrent import (
    _GATES,
    _HOW,
    _OWN,
    GRU,
    LSTM,
    GRUSteps,
    LSTMSteps,
    SimpleSteps,
    Steps,
    run_through,
)
from tensorfleet.layers.specs import InputSpec
from tensorfleet.shapes import TensorShape


class AbstractRNNCell(Layer):
    """Base of cells: `call(inputs, states)` gives (output, new states); `state_size` and `output_size` are properties."""

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
        made = find("zeros")(find("stack")([batch_size, *dims]), dtype)
        made.set_shape([None, *dims])
        return made

    sizes = cell.state_size
    if isinstance(sizes, (int, TensorShape)):
        return zeros(sizes)
    return [zeros(size) for size in sizes]


_CELL = (
    "units, activation='tanh', {gates} use_bias=True, kernel_initializer='glorot_uniform', "
    "recurrent_initializer='orthogonal', bias_initializer='zeros', {forget} kernel_regularizer=None, "
    "recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None, "
    "bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, {how} **kwargs"
)


_OF_STEPS = [key for key in _OWN if not key.startswith(("return_", "go_", "unroll"))]


class _StepCell(Steps, AbstractRNNCell):
    """One step of a recurrent layer, as a layer."""

    @taking(signature_of(_CELL.format(gates="", forget="", how="")))
    def __init__(self, given: dict[str, Any]) -> None:
        own = {key: given.pop(key) for key in _OF_STEPS}
        super().__init__(**given)
        for key, value in own.items():
            setattr(self, key, value)
        self.activation = getting.activation(own["activation"])

    @property
    def state_size(self) -> Any:
        return self.units if self._states == 1 else [self.units] * self._states

    @property
    def output_size(self) -> int:
        return self.units

    def build(self, input_shape: Any) -> None:
        self._make_weights(input_shape)
        self.built = True

    def call(self, inputs: Any, states: Any, training: Any = None) -> tuple:  # type: ignore[override]
        """The output, and the list of new states."""
        given = nest.flatten(states)
        if (self.dropout or self.recurrent_dropout) and self._input_masks is None:
            self._draw_masks(inputs, given[0], training)
        output, after = self._step(inputs, tuple(given) if self._states > 1 else given[0])
        return output, list(after) if self._states > 1 else [after]

    def reset_dropout_mask(self) -> None:
        """The next step chooses anew what input is dropped."""
        self._input_masks = None

    def reset_recurrent_dropout_mask(self) -> None:
        """The next step chooses anew what state is dropped."""
        self._state_masks = None


class SimpleRNNCell(SimpleSteps, _StepCell):
    """The cell of `SimpleRNN`."""


class GRUCell(GRUSteps, _StepCell):
    """The cell of `GRU`."""

    @taking(signature_of(_CELL.format(gates=_GATES, forget="", how=_HOW + "reset_after=False,")))
    def __init__(self, given: dict[str, Any]) -> None:
        extra = {key: given.pop(key) for key in ("recurrent_activation", "implementation", "reset_after")}
        super().__init__(**given)
        self.implementation, self.reset_after = extra["implementation"], extra["reset_after"]
        self.recurrent_activation = getting.activation(extra["recurrent_activation"])


class LSTMCell(LSTMSteps, _StepCell):
    """The cell of `LSTM`."""

    @taking(signature_of(_CELL.format(gates=_GATES, forget="unit_forget_bias=True,", how=_HOW)))
    def __init__(self, given: dict[str, Any]) -> None:
        extra = {
            key: given.pop(key) for key in ("recurrent_activation", "implementation", "unit_forget_bias")
        }
        super().__init__(**given)
        self.implementation, self.unit_forget_bias = extra["implementation"], extra["unit_forget_bias"]
        self.recurrent_activation = getting.activation(extra["recurrent_activation"])


class StackedRNNCells(AbstractRNNCell):
    """Cells one above the other, as one cell."""

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = [_as_cell(cell) for cell in cells]
        for i, cell in enumerate(self.cells):
            if isinstance(cell, Layer):
                setattr(self, f"_cell_{i}", cell)

    @property
    def state_size(self) -> Any:
        return [size for cell in self.cells for size in _sizes(cell)]

    @property
    def output_size(self) -> Any:
        return getattr(self.cells[-1], "output_size", None) or _sizes(self.cells[-1])[0]

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()
        for cell in self.cells:
            _build(cell, [*dims[:-1], dims[-1]])
            dims[-1] = getattr(cell, "output_size", None) or _sizes(cell)[0]
        self.built = True

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> tuple:  # type: ignore[override]
        """The last cell's output, and the new states of all."""
        given, after = list(nest.flatten(states)), []
        for cell in self.cells:
            mine, given = given[: len(_sizes(cell))], given[len(_sizes(cell)) :]
            inputs, new = cell.call(inputs, mine, **kwargs)
            after += nest.flatten(new)
        return inputs, after

    def get_config(self) -> dict[str, Any]:
        from tensorfleet.keras.configuring import serialize_layer

        return {**super().get_config(), "cells": [serialize_layer(cell) for cell in self.cells]}


def _sizes(cell: Any) -> list:
    found = cell.state_size
    return [found] if isinstance(found, (int, TensorShape)) else list(found)


def _build(cell: Any, input_shape: Any) -> None:
    if isinstance(cell, Layer) and not cell.built:
        with find("name_scope")(cell.name):
            cell.build(input_shape)
        cell.built = True


def _as_cell(cell: Any) -> Any:
    """A cell; also from its description, or from several cells."""
    from tensorfleet.keras.configuring import layer_from

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


class _Run:
    """A Keras cell as `tf.nn.dynamic_rnn` takes it."""

    def __init__(self, cell: Any, options: dict[str, Any]) -> None:
        self._cell, self._options = cell, options
        self.state_size = tuple(_sizes(cell))
        self.output_size = getattr(cell, "output_size", None) or self.state_size[0]

    def zero_state(self, batch_size: Any, dtype: Any) -> tuple:
        """The first states."""
        return tuple(nest.flatten(zero_states(self._cell, None, batch_size, dtype)))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple:
        """The output and the next states."""
        output, after = self._cell.call(inputs, list(state), **self._options)
        return output, tuple(nest.flatten(after))


class RNN(Layer):
    """Runs a cell, or several one above the other, through sequences."""

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if stateful:
            raise ValueError("RNN does not support `stateful` here: feed the states of the last batch.")
        self.cell = _as_cell(cell)
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.unroll, self.time_major = go_backwards, unroll, time_major
        self.input_spec = InputSpec(min_ndim=3)

    def build(self, input_shape: Any) -> None:
        dims = TensorShape(input_shape).as_list()
        _build(self.cell, [dims[1 if self.time_major else 0], *dims[2:]])
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask if self.return_sequences else None

    def call(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """Runs through the sequence."""
        if self.go_backwards:
            inputs = find("reverse")(inputs, [0 if self.time_major else 1])
            mask = None if mask is None else find("reverse")(mask, [1])
        options = {"training": training} if "training" in inspect.signature(self.cell.call).parameters else {}
        first = None if initial_state is None else tuple(nest.flatten(initial_state))
        self._choose_masks(inputs, training)
        outputs, last, states = run_through(_Run(self.cell, options), inputs, mask, first, self.time_major)
        result = outputs if self.return_sequences else last
        return [result, *states] if self.return_state else result

    def _choose_masks(self, inputs: Tensor, training: Any) -> None:
        """What is dropped is chosen before the loop, for all steps alike."""
        batch = find("shape")(inputs)[1 if self.time_major else 0]
        step = inputs[0] if self.time_major else inputs[:, 0]
        for cell in getattr(self.cell, "cells", [self.cell]):
            if isinstance(cell, _StepCell) and (cell.dropout or cell.recurrent_dropout):
                zeros = find("zeros")(find("stack")([batch, cell.units]), inputs.dtype)
                cell._draw_masks(step, zeros, training)
            step = find("zeros")(find("stack")([batch, _sizes(cell)[0]]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        from tensorfleet.keras.configuring import serialize_layer

        return {**super().get_config(), "cell": serialize_layer(self.cell)}


_CUDNN = (
    "units, kernel_initializer='glorot_uniform', recurrent_initializer='orthogonal', bias_initializer='zeros', {forget} "
    "kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None, activity_regularizer=None, "
    "kernel_constraint=None, recurrent_constraint=None, bias_constraint=None, return_sequences=False, "
    "return_state=False, {late} stateful=False, **kwargs"
)


class CuDNNLSTM(LSTM):
    """An `LSTM` with the weights of cuDNN's: a bias for the input and one for the state."""

    @taking(signature_of(_CUDNN.format(forget="unit_forget_bias=True,", late="go_backwards=False,")))
    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(recurrent_activation="sigmoid", **given)

    def _bias_shape(self) -> tuple:
        return (8 * self.units,)

    def _input_bias(self) -> Any:
        n = 4 * self.units
        return self.bias[:n] + self.bias[n:]


class CuDNNGRU(GRU):
    """A `GRU` with the weights of cuDNN's: a bias for the input and one for the state."""

    @taking(signature_of(_CUDNN.format(forget="", late="go_backwards=False,")))
    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(recurrent_activation="sigmoid", reset_after=True, **given)

    def _bias_shape(self) -> tuple:
        return (6 * self.units,)

    def _input_bias(self) -> Any:
        return self.bias[: 3 * self.units]

    def _state_bias(self) -> Any:
        return self.bias[3 * self.units :]
