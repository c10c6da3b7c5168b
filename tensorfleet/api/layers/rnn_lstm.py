"""The long short-term memory cells of `tf.nn.rnn_cell`."""

from __future__ import annotations

from typing import Any, TypeAlias

from tensorfleet.api.layers.rnn_cells import (
    BIAS,
    KERNEL,
    LayerCell,
    LSTMStateTuple,
    _activation,
    _affine,
    _constant,
    _depth,
)
from tensorfleet.api.layers.specs import Activation, InitializerLike, InputSpec
from tensorfleet.api.variables.initializers import Zeros
from tensorfleet.api.variables.partitioned import fixed_size_partitioner
from tensorfleet.base import dtypes
from tensorfleet.base.logging import warn
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import DTypeLike, ShapeLike
from tensorfleet.graph.apply import constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.concat import concat, split
from tensorfleet.ops.array.slicing import slice_
from tensorfleet.ops.linalg.matmul import matmul
from tensorfleet.ops.math.binary import add as tf_add
from tensorfleet.ops.math.binary import multiply as tf_multiply
from tensorfleet.ops.math.clip import clip_by_value
from tensorfleet.ops.math.trigonometry import sigmoid as tf_sigmoid

#: The state of an LSTM: a pair, or both parts side by side.
_State: TypeAlias = LSTMStateTuple | Tensor


class _LSTM(LayerCell):
    """The settings that both LSTM cells have."""

    def _set(self, num_units: int, forget_bias: float, state_is_tuple: bool, activation: Activation) -> None:
        if not state_is_tuple:
            warn(
                f"{self}: Using a concatenated state is slower and will soon be deprecated.  Use state_is_tuple=True."
            )
        self.input_spec = InputSpec(ndim=2)
        self._num_units, self._forget_bias = num_units, forget_bias
        self._state_is_tuple, self._activation = state_is_tuple, _activation(activation)


@export("nn.rnn_cell.BasicLSTMCell", "contrib.rnn.BasicLSTMCell")
class BasicLSTMCell(_LSTM):
    """An LSTM without peepholes, clipping or projection."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._set(num_units, forget_bias, state_is_tuple, activation)

    @property
    def state_size(self) -> LSTMStateTuple | int:
        """The sizes of c and h, as a tuple or added up."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    output_size = readonly("_num_units")

    def build(self, input_shape: ShapeLike) -> None:
        """Makes the kernel and the bias of the four gates."""
        units = self._num_units
        self._kernel = self.add_weight(KERNEL, shape=[_depth(input_shape) + units, 4 * units])
        self._bias = self.add_weight(BIAS, shape=[4 * units], initializer=_constant(0.0, self.dtype))
        self.built = True

    def call(self, inputs: Tensor, state: _State) -> tuple[Tensor, Any]:  # type: ignore[override]
        """One step without peepholes."""
        sigmoid, add, multiply = tf_sigmoid, tf_add, tf_multiply
        # TensorFlow's graph has one constant for both splits.
        one = constant(1, dtypes.int32)
        c, h = state if self._state_is_tuple else split(value=state, num_or_size_splits=2, axis=one)
        gates = _affine([inputs, h], self._kernel, self._bias)
        i, j, f, o = split(value=gates, num_or_size_splits=4, axis=one)
        forget = constant(self._forget_bias, f.dtype)
        new_c = add(multiply(c, sigmoid(add(f, forget))), multiply(sigmoid(i), self._activation(j)))
        new_h = multiply(self._activation(new_c), sigmoid(o))
        new = LSTMStateTuple(new_c, new_h) if self._state_is_tuple else concat([new_c, new_h], 1)
        return new_h, new

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        names = ("num_units", "forget_bias", "state_is_tuple", "activation", "reuse")
        return {**super().get_config(), **{n: getattr(self, f"_{n}") for n in names}}


@export("nn.rnn_cell.LSTMCell", "contrib.rnn.LSTMCell")
class LSTMCell(_LSTM):
    """An LSTM with optional peepholes (`use_peepholes`), clipping of its cells, and a projected output."""

    _untracked = LayerCell._untracked | {"_peepholes"}

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._set(num_units, forget_bias, state_is_tuple, activation)
        self._use_peepholes, self._initializer = use_peepholes, initializer
        self._cell_clip, self._proj_clip = cell_clip, proj_clip
        self._num_proj, self._num_proj_shards = num_proj, num_proj_shards
        self._num_unit_shards = num_unit_shards
        self._peepholes: dict[str, Any] = {}

    @property
    def state_size(self) -> LSTMStateTuple | int:
        """The sizes of c and h, as a tuple or added up."""
        c, h = self._num_units, self.output_size
        return LSTMStateTuple(c, h) if self._state_is_tuple else c + h

    @property
    def output_size(self) -> int:
        """The number of units, or of projected units."""
        return self._num_proj or self._num_units

    def build(self, input_shape: ShapeLike) -> None:
        """Makes kernels, biases, peephole weights and the projection."""
        units, first = self._num_units, self._initializer
        shards = fixed_size_partitioner
        pieces = shards(self._num_unit_shards) if self._num_unit_shards is not None else None
        self._kernel = self.add_weight(
            KERNEL,
            shape=[_depth(input_shape) + self.output_size, 4 * units],
            initializer=first,
            partitioner=pieces,
        )
        zeros = _constant(0.0, self.dtype) if first is None else Zeros(self.dtype)
        self._bias = self.add_weight(BIAS, shape=[4 * units], initializer=zeros)
        if self._use_peepholes:
            for gate in "fio":
                weight = self.add_weight(f"w_{gate}_diag", shape=[units], initializer=first)
                self._peepholes[gate] = weight
        if self._num_proj is not None:
            pieces = shards(self._num_proj_shards) if self._num_proj_shards is not None else None
            self._proj_kernel = self.add_weight(
                "projection/" + KERNEL, shape=[units, self._num_proj], initializer=first, partitioner=pieces
            )
        self.built = True

    def call(self, inputs: Tensor, state: _State) -> tuple[Tensor, Any]:  # type: ignore[override]
        """One step, with peepholes, clipping and projection where they are asked for."""
        sigmoid, clip = tf_sigmoid, clip_by_value
        c_old, h_old = self._parts(state)
        gates = _affine([inputs, h_old], self._kernel, self._bias)
        i, j, f, o = split(value=gates, num_or_size_splits=4, axis=1)
        if self._use_peepholes:
            forget = sigmoid(f + self._forget_bias + self._peepholes["f"] * c_old)
            c = forget * c_old + sigmoid(i + self._peepholes["i"] * c_old) * self._activation(j)
        else:
            c = sigmoid(f + self._forget_bias) * c_old + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip(c, -self._cell_clip, self._cell_clip)
        out = sigmoid(o + self._peepholes["o"] * c) if self._use_peepholes else sigmoid(o)
        h = out * self._activation(c)
        if self._num_proj is not None:
            h = matmul(h, self._proj_kernel)
            if self._proj_clip is not None:
                h = clip(h, -self._proj_clip, self._proj_clip)
        new = LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)
        return h, new

    def _parts(self, state: _State) -> tuple[Tensor, Tensor]:
        if self._state_is_tuple:
            c, h = state
            return c, h
        units, outputs = self._num_units, self.output_size
        return slice_(state, [0, 0], [-1, units]), slice_(state, [0, units], [-1, outputs])

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        names = "num_units use_peepholes cell_clip initializer num_proj proj_clip num_unit_shards num_proj_shards "
        names += "forget_bias state_is_tuple activation reuse"
        return {**super().get_config(), **{n: getattr(self, f"_{n}") for n in names.split()}}
