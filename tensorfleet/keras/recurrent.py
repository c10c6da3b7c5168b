"""Keras's recurrent layers: `SimpleRNN`, `GRU`, `LSTM`, and what wraps layers."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature
from typing import Any

from tensorfleet.api import find
from tensorfleet.arguments import signature_of, taking
from tensorfleet.graph.operation import Tensor
from tensorfleet.keras import getting
from tensorfleet.keras.base import Layer
from tensorfleet.layers.specs import InputSpec
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
_OWN = ["units", "activation", "use_bias", "return_sequences", "return_state", "go_backwards", "unroll"]
_OWN += [f"{part}_{what}" for part in _PARTS for what in _WHATS]


class _Recurrent(Layer):
    """A sequence to its last output, or to all of them."""

    _gates = 1
    _states = 1
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any
    use_bias: bool
    return_sequences: bool
    return_state: bool
    go_backwards: bool

    @taking(_arguments())
    def __init__(self, given: dict[str, Any]) -> None:
        for what in ("dropout", "recurrent_dropout", "stateful", "time_major"):
            if given.pop(what, False):
                raise ValueError(
                    f"{type(self).__name__} does not support `{what}` here: use tf.nn.dynamic_rnn with the cells of "
                    "tf.nn.rnn_cell, DropoutWrapper among them."
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
        """Makes the kernels and the bias, all gates side by side."""
        width = TensorShape(input_shape)[-1].value
        columns = self.units * self._gates
        self.kernel = self._weight("kernel", (width, columns), "kernel")
        self.recurrent_kernel = self._weight("recurrent_kernel", (self.units, columns), "recurrent")
        self.bias = self._weight("bias", (columns,), "bias") if self.use_bias else None
        held = {"kernel": self.kernel, "recurrent_kernel": self.recurrent_kernel, "bias": self.bias}
        self._held = {k: v for k, v in held.items() if v is not None}
        self.built = True

    def _checkpoint_dependencies(self) -> Any:
        """What checkpoints of objects hold: the weights, which are a cell's in TensorFlow."""
        if self.built:
            yield "cell", self._held

    def _weight(self, name: str, dims: tuple, part: str) -> Any:
        options = {w: getattr(self, f"{part}_{w}") for w in _WHATS}
        return self.add_weight(name, dims, **options)

    def _projected(self, inputs: Tensor) -> Tensor:
        made = find("matmul")(inputs, self.kernel)
        return made if self.bias is None else find("nn.bias_add")(made, self.bias)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        raise AssertionError

    def call(  # type: ignore[override]
        self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None
    ) -> Any:
        """Runs through the sequence."""
        if self.go_backwards:
            inputs = find("reverse")(inputs, [1])
        cell = _Cell(self._step, self.units, self._states)
        first = initial_state
        if isinstance(first, (list, tuple)):
            first = tuple(first) if self._states > 1 else first[0]
        outputs, state = find("nn.dynamic_rnn")(cell, inputs, initial_state=first, dtype=inputs.dtype)
        last = state[0] if self._states > 1 else state
        result = outputs if self.return_sequences else last
        if not self.return_state:
            return result
        return [result, *(state if self._states > 1 else [state])]


class SimpleRNN(_Recurrent):
    """Each output is the next state: `activation(inputs @ kernel + state @ recurrent_kernel + bias)`."""

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        made = self.activation(self._projected(inputs) + find("matmul")(state, self.recurrent_kernel))
        return made, made


class GRU(_Recurrent):
    """Gated recurrent units, the gates in the order update, reset, new."""

    _gates = 3

    @taking(_arguments(_GATES, how=_HOW, last="reset_after=False,"))
    def __init__(self, given: dict[str, Any]) -> None:
        if given.pop("reset_after"):
            raise ValueError("GRU does not support `reset_after` here.")
        del given["implementation"]
        self.recurrent_activation = getting.activation(given.pop("recurrent_activation"))
        super().__init__(**given)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        matmul, n = find("matmul"), self.units
        update, reset, new = find("split")(self._projected(inputs), 3, axis=1)
        past = find("convert_to_tensor")(self.recurrent_kernel)
        z = self.recurrent_activation(update + matmul(state, past[:, :n]))
        r = self.recurrent_activation(reset + matmul(state, past[:, n : 2 * n]))
        candidate = self.activation(new + matmul(r * state, past[:, 2 * n :]))
        made = z * state + (1 - z) * candidate
        return made, made


class LSTM(_Recurrent):
    """Long short-term memory, the gates in the order input, forget, cell, output."""

    _gates = 4
    _states = 2

    @taking(_arguments(_GATES, forget="unit_forget_bias=True,", how=_HOW))
    def __init__(self, given: dict[str, Any]) -> None:
        del given["implementation"]
        self.recurrent_activation = getting.activation(given.pop("recurrent_activation"))
        self.unit_forget_bias = given.pop("unit_forget_bias")
        super().__init__(**given)

    def _weight(self, name: str, dims: tuple, part: str) -> Any:
        if name == "bias" and self.unit_forget_bias:
            plain, n = getting.initializer(self.bias_initializer), self.units

            def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
                ones = find("ones_initializer")()([n], dtype=dtype)
                return find("concat")([plain([n], dtype=dtype), ones, plain([n * 2], dtype=dtype)], 0)

            return self.add_weight(
                name,
                dims,
                initializer=initial,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        return super()._weight(name, dims, part)

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, cell = state
        both = self._projected(inputs) + find("matmul")(hidden, self.recurrent_kernel)
        i, f, new, o = find("split")(both, 4, axis=1)
        gate = self.recurrent_activation
        cell = gate(f) * cell + gate(i) * self.activation(new)
        made = gate(o) * self.activation(cell)
        return made, (made, cell)


def _made(layer: Any) -> Any:
    """A layer, also from its description."""
    if not isinstance(layer, dict):
        return layer
    from tensorfleet.keras.configuring import layer_from

    return layer_from(layer)


class Bidirectional(Layer):
    """A recurrent layer forwards and a copy of it backwards, joined by `merge_mode` (None: a list of both)."""

    def __init__(
        self, layer: Any, merge_mode: str | None = "concat", weights: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(weights=weights, **kwargs)
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError(
                'Invalid merge mode. Merge mode should be one of {"sum", "mul", "ave", "concat", None}'
            )
        self.merge_mode = merge_mode
        layer = _made(layer)
        config = layer.get_config()
        self._wrapped = {"class_name": type(layer).__name__, "config": config}
        name = layer.name
        self.forward_layer = type(layer)(**{**config, "name": f"forward_{name}"})
        backwards = not layer.go_backwards
        self.backward_layer = type(layer)(**{**config, "name": f"backward_{name}", "go_backwards": backwards})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "layer": self._wrapped}

    def call(self, inputs: Any, training: Any = None) -> Any:  # type: ignore[override]
        """Runs both ways."""
        first, second = self.forward_layer(inputs), self.backward_layer(inputs)
        if self.forward_layer.return_sequences:
            second = find("reverse")(second, [1])
        joined: dict[str | None, Callable] = {
            "concat": lambda: find("concat")([first, second], -1),
            "sum": lambda: first + second,
            "ave": lambda: (first + second) / 2,
            "mul": lambda: first * second,
            None: lambda: [first, second],
        }
        return joined[self.merge_mode]()


class TimeDistributed(Layer):
    """Another layer, applied to each step of a sequence."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = _made(layer)

    def build(self, input_shape: Any) -> None:
        """Makes the layer's variables, named by this one."""
        dims = TensorShape(input_shape)
        if not self.layer.built:
            self.layer.build(TensorShape([dims[0]]).concatenate(dims[2:]))
            self.layer.built = True
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Tensor:  # type: ignore[override]
        sizes = find("shape")(inputs)
        flat = find("reshape")(inputs, find("concat")([[-1], sizes[2:]], 0))
        flat.set_shape([None, *inputs.shape.as_list()[2:]])
        made = self.layer(flat)
        rest = made.shape.as_list()[1:]
        result = find("reshape")(made, find("concat")([sizes[:2], find("shape")(made)[1:]], 0))
        result.set_shape([*inputs.shape.as_list()[:2], *rest])
        return result
