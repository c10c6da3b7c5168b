"""`tf.keras.layers.ConvLSTM2D`: long short-term memory of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.specs import InputSpec, padding_of, tuple_of
from tensorfleet.base.arguments import signature_of, taking
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import activations as getting
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras import backend_convolution as computing_more
from tensorfleet_legacy.keras.layers.recurrent import RNN, Recurrent
from tensorfleet_legacy.keras.layers.recurrent_cells import OF_CELL, StepCell

_BEFORE = (
    "filters, kernel_size, strides=(1, 1), padding='valid', data_format=None, dilation_rate=(1, 1), activation='tanh', "
    "recurrent_activation='hard_sigmoid', use_bias=True, kernel_initializer='glorot_uniform', "
    "recurrent_initializer='orthogonal', bias_initializer='zeros', unit_forget_bias=True, kernel_regularizer=None, "
    "recurrent_regularizer=None, bias_regularizer=None, {activity} kernel_constraint=None, recurrent_constraint=None, "
    "bias_constraint=None, {runs} dropout=0.0, recurrent_dropout=0.0, **kwargs"
)
_SHAPES = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate")
_OWN = (*_SHAPES, *OF_CELL[1:], "recurrent_activation", "unit_forget_bias")


class ConvLSTM2DCell(StepCell):
    """One step of long short-term memory whose products are convolutions."""

    _gates = 4
    _states = 2
    filters: int
    kernel_size: tuple
    strides: tuple
    padding: str
    data_format: str
    dilation_rate: tuple
    unit_forget_bias: bool
    recurrent_activation: Callable

    @taking(signature_of(_BEFORE.format(activity="", runs="")))
    def __init__(self, given: dict[str, Any]) -> None:
        shapes = {key: given.pop(key) for key in _SHAPES}
        self._take({"units": shapes["filters"], **given}, "recurrent_activation", "unit_forget_bias")
        for key in ("kernel_size", "strides", "dilation_rate"):
            setattr(self, key, tuple_of(shapes[key], 2, key))
        self.filters, self.padding = shapes["filters"], padding_of(shapes["padding"])
        self.data_format = shapes["data_format"] or state.image_data_format()

    def build(self, input_shape: Any) -> None:
        """Makes the kernels of all gates, and the bias."""
        axis = 1 if self.data_format == "channels_first" else -1
        channels = TensorShape(input_shape)[axis].value
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        columns = 4 * self.filters
        self.kernel = self._weight("kernel", (*self.kernel_size, channels, columns), "kernel")
        self.recurrent_kernel = self._weight(
            "recurrent_kernel", (*self.kernel_size, self.filters, columns), "recurrent"
        )
        self.bias = self._weight("bias", (columns,), "bias") if self.use_bias else None
        self.built = True

    def _convolved(self, x: Tensor, kernel: Any, masks: list | None, outer: bool) -> list[Tensor]:
        """Each gate's convolution of an input or of a state."""
        first = self.data_format == "channels_first"
        how: dict[str, Any] = {"data_format": self.data_format}
        if outer:
            how |= {"padding": self.padding, "strides": self.strides, "dilation_rate": self.dilation_rate}
        else:
            how |= {"padding": "same"}
        if masks is None:
            result = computing_more.conv2d(x, kernel, **how)
            return find("split")(result, 4, axis=1 if first else -1)
        parts = find("split")(kernel, 4, axis=-1)
        return [computing_more.conv2d(x * m, part, **how) for m, part in zip(masks, parts, strict=True)]

    def _step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        hidden, cell = state
        sums = self._convolved(inputs, self.kernel, self._input_masks, True)
        if self.bias is not None:
            layout = "NCHW" if self.data_format == "channels_first" else "NHWC"
            biases = find("split")(self.bias, 4)
            sums = [find("nn.bias_add")(x, b, data_format=layout) for x, b in zip(sums, biases, strict=True)]
        past = self._convolved(hidden, self.recurrent_kernel, self._state_masks, False)
        i, f, new, o = (a + b for a, b in zip(sums, past, strict=True))
        gate = self.recurrent_activation
        cell = gate(f) * cell + gate(i) * self.activation(new)
        result = gate(o) * self.activation(cell)
        return result, (result, cell)


class ConvLSTM2D(Recurrent):
    """Long short-term memory of sequences of images: [batch, time, rows, columns, channels]."""

    @taking(
        signature_of(
            _BEFORE.format(
                activity="activity_regularizer=None,",
                runs="return_sequences=False, go_backwards=False, stateful=False,",
            )
        )
    )
    def __init__(self, given: dict[str, Any]) -> None:
        own = {key: given.pop(key) for key in _OWN}
        regularizer = getting.regularizer(given.pop("activity_regularizer"))
        RNN.__init__(self, ConvLSTM2DCell(**own), activity_regularizer=regularizer, **given)

    def _first_spec(self) -> Any:
        return InputSpec(ndim=5)

    def get_initial_state(self, inputs: Any) -> list:
        """Two states of zeros, of the size that the convolution of an image gives."""
        cell = self.cell
        first = find("zeros_like")(inputs)
        nothing = find("reduce_sum")(first, axis=1)
        channels = TensorShape(inputs.shape)[2 if cell.data_format == "channels_first" else -1].value
        kernel = find("zeros")([*cell.kernel_size, channels, cell.filters], inputs.dtype)
        result = computing_more.conv2d(
            nothing,
            kernel,
            strides=cell.strides,
            padding=cell.padding,
            data_format=cell.data_format,
            dilation_rate=cell.dilation_rate,
        )
        return [result, result]

    def build(self, input_shape: Any) -> None:
        """Makes the cell's variables, named by the layer."""
        shape = TensorShape(input_shape[0] if isinstance(input_shape, list) else input_shape)
        self._images = shape.as_list()
        super().build(input_shape)

    def _state_shapes(self) -> list[tuple]:
        return [tuple(self._after_step())] * 2

    def _after_step(self) -> list:
        """The shape of the state: of a convolution of one image."""
        cell, (batch, _, *image) = self.cell, self._images
        first = cell.data_format == "channels_first"
        sides = image[1:] if first else image[:2]
        results = []
        for i, side in enumerate(sides):
            wide = (cell.kernel_size[i] - 1) * cell.dilation_rate[i]
            size = side if cell.padding == "same" else side - wide
            results.append(-(-size // cell.strides[i]))
        return [batch, cell.filters, *results] if first else [batch, *results, cell.filters]

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of a state, for each step if all are given."""
        shape = TensorShape(input_shape[0] if isinstance(input_shape, list) else input_shape)
        self._images = shape.as_list()
        state_shape = self._after_step()
        steps = [self._images[1]] if self.return_sequences else []
        whole = TensorShape([state_shape[0], *steps, *state_shape[1:]])
        return [whole, *(TensorShape(state_shape) for _ in range(2))] if self.return_state else whole

    def get_config(self) -> dict[str, Any]:
        config = {key: value for key, value in RNN.get_config(self).items() if key != "cell"}
        config |= {key: getting.serialized(getattr(self.cell, key)) for key in _OWN}
        for key in ("unroll", "time_major"):
            config.pop(key, None)
        return {**config, "activity_regularizer": getting.serialized(self.activity_regularizer)}


for _name in _OWN:
    setattr(ConvLSTM2D, _name, readonly(f"cell.{_name}", "As given for its cell."))
