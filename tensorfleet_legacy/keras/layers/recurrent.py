"""Keras's recurrent layers: `RNN`, which runs a cell through sequences, and those with a cell of their own."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base import nest
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.backend_rnn import rnn
from tensorfleet_legacy.keras.engine.base_layer import Layer
from tensorfleet_legacy.keras.layers.recurrent_cells import (
    FORGET,
    GATES,
    HOW,
    OF_CELL,
    RESET,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    arguments,
    as_cell,
    sizes_of,
    zero_states,
)
from tensorfleet_legacy.keras.utils.generic_utils import CustomObjectScope


class TakesStates(Layer):
    """A layer of sequences that may be given states to start from, and constants that each step sees."""

    _num_constants = 0

    def __call__(self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any) -> Any:
        """Runs through sequences, from `initial_state` if given; a list has the sequences, then the states."""
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        more = [*(initial_state or []), *(constants or [])]
        if constants:
            self._num_constants = len(constants)
        if not more:
            return super().__call__(inputs, **kwargs)
        if any(hasattr(t, "_keras_history") or hasattr(t, "_keras_input") for t in more):
            # They are inputs of the layer: a model must know what they come from.
            before = self.input_spec
            self.input_spec = [before, *(None for _ in more)]
            try:
                return super().__call__([inputs, *more], **kwargs)
            finally:
                self.input_spec = before
        if initial_state is not None:
            kwargs["initial_state"] = initial_state
        if constants:
            kwargs["constants"] = constants
        return super().__call__(inputs, **kwargs)

    def _parted(self, inputs: Any, initial_state: Any, constants: Any) -> tuple[Any, Any, Any]:
        if isinstance(inputs, list):
            rest = inputs[1:]
            if self._num_constants and constants is None:
                rest, constants = rest[: -self._num_constants], rest[-self._num_constants :]
            inputs, initial_state = inputs[0], (rest or initial_state)
        return inputs, _listed(initial_state), _listed(constants)


class RNN(TakesStates):
    """Runs a cell, or several one above the other, through sequences."""

    cell: Any = None

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
        self.cell = as_cell(cell)
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.unroll, self.time_major = go_backwards, unroll, time_major
        self.stateful = stateful
        self.supports_masking = True
        self.input_spec = self._first_spec()
        self.constants_spec: Any = None
        self._states: list | None = None

    def _first_spec(self) -> Any:
        return InputSpec(min_ndim=3)

    @property
    def states(self) -> list:
        """The states that a stateful layer keeps from batch to batch; None for each state before the first."""
        return [None] * len(sizes_of(self.cell)) if self._states is None else self._states

    def build(self, input_shape: Any) -> None:
        """Makes the cell's variables, named by the layer."""
        shape = TensorShape(input_shape[0] if isinstance(input_shape, list) else input_shape)
        dims = shape.as_list()
        self._batch = dims[1 if self.time_major else 0]
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build(TensorShape([self._batch, *dims[2:]]))
            self.cell.built = True
        if self.stateful:
            self.reset_states()
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any) -> Any:  # type: ignore[override]
        """Sequences have the mask of the input; a last output and states have none."""
        given = mask[0] if isinstance(mask, list) else mask
        own = given if self.return_sequences else None
        return [own, *(None for _ in self.states)] if self.return_state else own

    def get_initial_state(self, inputs: Any) -> list:
        """The first states: zeros, unless the cell says otherwise."""
        batch = find("shape")(nest.flatten(inputs)[0])[1 if self.time_major else 0]
        kind = nest.flatten(inputs)[0].dtype
        own = getattr(self.cell, "get_initial_state", None)
        if own is None:
            return nest.flatten(zero_states(self.cell, None, batch, kind))
        return nest.flatten(own(inputs=None, batch_size=batch, dtype=kind))

    def call(  # type: ignore[override]
        self,
        inputs: Any,
        mask: Any = None,
        training: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        """Runs through the sequence."""
        inputs, initial_state, constants = self._parted(inputs, initial_state, constants)
        mask = mask[0] if isinstance(mask, list) else mask
        self._forget_masks()
        if initial_state is None:
            initial_state = list(self.states) if self.stateful else self.get_initial_state(inputs)
        count = len(sizes_of(self.cell))
        if len(initial_state) != count:
            raise ValueError(f"Layer has {count} states but was passed {len(initial_state)} initial states.")
        last, outputs, after = rnn(
            self._stepper(training, constants),
            inputs,
            [find("convert_to_tensor")(s) for s in initial_state],
            constants=constants,
            go_backwards=self.go_backwards,
            mask=mask,
            unroll=self.unroll,
            time_major=self.time_major,
            zero_output_for_mask=getattr(self, "zero_output_for_mask", False),
        )
        if self.stateful:
            self.add_update([old.assign(new) for old, new in zip(self.states, after, strict=True)])
        result = outputs if self.return_sequences else last
        return [result, *after] if self.return_state else result

    def _stepper(self, training: Any, constants: list | None) -> Any:
        known = inspect.signature(self.cell.call).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
        options = {"training": training} if "training" in known or takes_any else {}
        if constants and "constants" not in known:
            raise ValueError("RNN cell does not support constants")

        def step(inputs: Any, states: tuple) -> tuple:
            if constants:
                states, given = states[: -len(constants)], list(states[-len(constants) :])
                options["constants"] = given
            output, after = self.cell.call(inputs, list(states), **options)
            return output, tuple(nest.flatten(after))

        return step

    def _forget_masks(self) -> None:
        """Chooses a new dropout mask for each call; all its steps share it."""
        for cell in getattr(self.cell, "cells", [self.cell]):
            if hasattr(cell, "reset_dropout_mask"):
                cell.reset_dropout_mask()
                cell.reset_recurrent_dropout_mask()

    def reset_states(self, states: Any = None) -> None:
        """Gives what a stateful layer keeps new values: zeros unless given."""
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        if self._batch is None:
            raise ValueError(
                "If a RNN is stateful, it needs to know its batch size. Specify the batch size of your input tensors: "
                "\n- If using a Sequential model, specify the batch size by passing a `batch_input_shape` argument to "
                "your first layer.\n- If using the functional API, specify the batch size by passing a `batch_shape` "
                "argument to your Input layer."
            )
        shapes = self._state_shapes()
        if self._states is None:
            kind = self.dtype or state.floatx()
            self._states = [state.variable(np.zeros(s), kind) for s in shapes]
            if states is None:
                return
        values = [np.zeros(s) for s in shapes] if states is None else _listed(states)
        if len(values) != len(shapes):
            raise ValueError(
                f"Layer {self.name} expects {len(shapes)} states, but it received {len(values)} state values. Input "
                f"received: {states}"
            )
        for i, (value, shape) in enumerate(zip(values, shapes, strict=True)):
            if np.shape(value) != shape:
                raise ValueError(
                    f"State {i} is incompatible with layer {self.name}: expected shape={shape}, found "
                    f"shape={np.shape(value)}"
                )
        state.batch_set_value(list(zip(self._states, values, strict=True)))

    def _state_shapes(self) -> list[tuple]:
        return [(self._batch, *_dims_of(size)) for size in sizes_of(self.cell)]

    def get_config(self) -> dict[str, Any]:
        from tensorfleet_legacy.keras.saving.model_config import serialize_layer

        more = {"num_constants": self._num_constants} if self._num_constants else {}
        return {**super().get_config(), "stateful": self.stateful, "cell": serialize_layer(self.cell), **more}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Any:
        """A layer from what `get_config` gave."""
        constants = config.pop("num_constants", 0)
        with CustomObjectScope(custom_objects or {}):
            result = cls(**config)
        result._num_constants = constants
        return result


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, (list, tuple)) else None if value is None else [value]


def _dims_of(size: Any) -> list:
    return [size] if isinstance(size, int) else TensorShape(size).as_list()


def _of_cell(*names: str) -> Any:
    """Decorator of a layer: it shows attributes of its cell as its own."""

    def decorate(cls: type) -> type:
        for name in (*OF_CELL, *names):
            setattr(cls, name, readonly(f"cell.{name}", "As given for its cell."))
        return cls

    return decorate


class Recurrent(RNN):
    """A layer that makes its cell itself."""

    _cell_class: Any = SimpleRNNCell
    _more: tuple[str, ...] = ()

    def _make(self, given: dict[str, Any]) -> None:
        """Takes the arguments of a constructor: some are the cell's, the others the layer's."""
        own = {key: given.pop(key) for key in (*OF_CELL, *self._more)}
        regularizer = getting.regularizer(given.pop("activity_regularizer"))
        for key in ("trainable", "dtype"):
            if given.get(key) is not None:
                own[key] = given[key]
        RNN.__init__(self, self._cell_class(**own), activity_regularizer=regularizer, **given)

    def _first_spec(self) -> Any:
        return InputSpec(ndim=3)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:  # type: ignore[override]
        """A layer from what `get_config` gave."""
        return cls(**config)

    def call(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """Runs through the sequence."""
        return super().call(inputs, mask, training, initial_state)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["cell"]
        config.pop("time_major", None)
        return {**config, "activity_regularizer": getting.serialized(self.activity_regularizer)}


@_of_cell()
class SimpleRNN(Recurrent):
    """Each output is the next state: `activation(inputs @ kernel + state @ recurrent_kernel + bias)`."""

    @taking(signature_of(arguments(of_layer=True)))
    def __init__(self, given: dict[str, Any]) -> None:
        given.pop("implementation", None)  # of older versions
        self._make(given)


@_of_cell("recurrent_activation", "implementation", "reset_after")
class GRU(Recurrent):
    """Gated recurrent units, the gates in the order update, reset, new."""

    _cell_class: Any = GRUCell
    _more = ("recurrent_activation", "implementation", "reset_after")

    @taking(signature_of(arguments(GATES, how=HOW, more=RESET, of_layer=True)))
    def __init__(self, given: dict[str, Any]) -> None:
        self._make(given)


@_of_cell("recurrent_activation", "implementation", "unit_forget_bias")
class LSTM(Recurrent):
    """Long short-term memory, the gates in the order input, forget, cell, output."""

    _cell_class: Any = LSTMCell
    _more = ("recurrent_activation", "implementation", "unit_forget_bias")

    @taking(signature_of(arguments(GATES, forget=FORGET, how=HOW, of_layer=True)))
    def __init__(self, given: dict[str, Any]) -> None:
        self._make(given)


_CUDNN = (
    "units, kernel_initializer='glorot_uniform', recurrent_initializer='orthogonal', bias_initializer='zeros', {forget} "
    "kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None, activity_regularizer=None, "
    "kernel_constraint=None, recurrent_constraint=None, bias_constraint=None, return_sequences=False, "
    "return_state=False, go_backwards=False, stateful=False, **kwargs"
)


class _CuDNNLSTMCell(LSTMCell):
    """A cell with the weights of cuDNN's: a bias for the input and one for the state."""

    def _bias_shape(self) -> tuple:
        return (8 * self.units,)

    def _input_bias(self) -> Any:
        n = 4 * self.units
        return self.bias[:n] + self.bias[n:]


class CuDNNLSTM(LSTM):
    """An `LSTM` with the weights of cuDNN's: a bias for the input and one for the state."""

    _cell_class = _CuDNNLSTMCell

    @taking(signature_of(_CUDNN.format(forget="unit_forget_bias=True,")))
    def __init__(self, given: dict[str, Any]) -> None:
        LSTM.__init__(self, recurrent_activation="sigmoid", **given)


class _CuDNNGRUCell(GRUCell):
    """A cell with the weights of cuDNN's: a bias for the input and one for the state."""

    def _bias_shape(self) -> tuple:
        return (6 * self.units,)

    def _input_bias(self) -> Any:
        return self.bias[: 3 * self.units]

    def _state_bias(self) -> Any:
        return self.bias[3 * self.units :]


class CuDNNGRU(GRU):
    """A `GRU` with the weights of cuDNN's: a bias for the input and one for the state."""

    _cell_class = _CuDNNGRUCell

    @taking(signature_of(_CUDNN.format(forget="")))
    def __init__(self, given: dict[str, Any]) -> None:
        GRU.__init__(self, recurrent_activation="sigmoid", reset_after=True, **given)
