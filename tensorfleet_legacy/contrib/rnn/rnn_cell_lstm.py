"""`tf.contrib.rnn`: other kinds of LSTM: coupled gates, groups, normalized weights, rhythms in time."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.api.layers.rnn_cells import LSTMStateTuple, RNNCell, _constant
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.rnn.lstm_ops import linear
from tensorfleet_legacy.contrib.rnn.rnn_cell_layer_norm import normalized


def clipped(value: Any, limit: float | None) -> Any:
    """`value` between `-limit` and `limit`; None: as it is."""
    return value if limit is None else find("clip_by_value")(value, -limit, limit)


def sharded(name: str, rows: int, columns: int, dtype: Any, shards: int) -> Any:
    """A matrix whose rows are kept in `shards` variables `name_0`, `name_1`, ..."""
    if shards > rows:
        raise ValueError(f"Too many shards: shape={[rows, columns]}, num_shards={shards}")
    sizes = [rows // shards + (i < rows % shards) for i in range(shards)]
    parts = [find("get_variable")(f"{name}_{i}", [n, columns], dtype=dtype) for i, n in enumerate(sizes)]
    return parts[0] if shards == 1 else find("concat")(parts, 0)


def vector(name: str, size: int, dtype: Any, start: float | None = None) -> Any:
    """A variable of one dimension; `start`: what it begins with, else the scope's initializer says."""
    return find("get_variable")(
        name, [size], dtype=dtype, initializer=None if start is None else _constant(start, dtype)
    )


def own_initializer(initializer: Any) -> Any:
    """A scope in which variables begin with `initializer`, if there is one."""
    return find("variable_scope")(find("get_variable_scope")(), initializer=initializer)


class PairCell(RNNCell):
    """A cell whose state is an `LSTMStateTuple`, and whose output may be projected."""

    _num_units: int
    _num_proj: int | None = None

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units


class _Normalizing(PairCell):
    """A cell that may normalize its gates and its state."""

    _layer_norm: bool
    _gain: float
    _shift: float

    def _norm(self, x: Any, scope: str) -> Any:
        return normalized(x, scope, self._gain, self._shift) if self._layer_norm else x


@export("contrib.rnn.CoupledInputForgetGateLSTMCell")
class CoupledInputForgetGateLSTMCell(_Normalizing):
    """An LSTM that takes in as much as it forgets: one gate for both."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_proj, self._proj_clip = num_units, num_proj, proj_clip
        self._use_peepholes, self._initializer = use_peepholes, initializer
        self._unit_shards, self._proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._activation = forget_bias, activation or find("tanh")
        self._state_is_tuple = state_is_tuple
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        return super().state_size if self._state_is_tuple else self._num_units + self.output_size

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        c, m = (
            state
            if self._state_is_tuple
            else find("split")(state, [self._num_units, self.output_size], axis=1)
        )
        with own_initializer(self._initializer):
            c, m = self._next(find("concat")([inputs, m], 1), c)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else find("concat")([c, m], 1)

    def _next(self, joined: Tensor, c: Any) -> tuple:
        units, sigmoid = self._num_units, find("sigmoid")
        matrix = sharded("W", joined.shape.as_list()[1], 3 * units, joined.dtype, self._unit_shards)
        gates = find("matmul")(joined, matrix)
        bias = vector("B", 3 * units, joined.dtype, 0.0)
        if not self._layer_norm:
            gates = find("nn.bias_add")(gates, bias)
        new, forget, output = find("split")(gates, 3, axis=1)
        new, forget = self._norm(new, "transform"), self._norm(forget, "forget")
        output = self._norm(output, "output")
        seen = vector("W_F_diag", units, joined.dtype) * c if self._use_peepholes else 0.0
        forget = sigmoid(forget + self._forget_bias + seen)
        c = self._norm(forget * c + (1 - forget) * self._activation(new), "state")
        seen = vector("W_O_diag", units, joined.dtype) * c if self._use_peepholes else 0.0
        m = sigmoid(output + seen) * self._activation(c)
        if self._num_proj is not None:
            projection = sharded("W_P", units, self._num_proj, joined.dtype, self._proj_shards)
            m = clipped(find("matmul")(m, projection), self._proj_clip)
        return c, m


class _Peeping(PairCell):
    """An LSTM cell with peepholes, clipping and a projection, all optional."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool,
        cell_clip: float | None,
        initializer: Any,
        num_proj: int | None,
        proj_clip: float | None,
        forget_bias: float,
        activation: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._num_units, self._num_proj = num_units, num_proj
        self._use_peepholes, self._initializer = use_peepholes, initializer
        self._cell_clip, self._proj_clip = cell_clip, proj_clip
        self._forget_bias, self._activation = forget_bias, activation or find("tanh")

    def _product(self, parts: list, size: int, bias: bool) -> Tensor:
        """The parts side by side times the variable `kernel`, plus `bias`."""
        return linear(parts, size, bias)

    def _norm(self, x: Any, _: str) -> Any:
        return x

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        c, h = state
        sigmoid, units, act = find("sigmoid"), self._num_units, self._activation
        with own_initializer(self._initializer):
            gates = find("split")(self._product([inputs, h], 4 * units, True), 4, axis=1)
            names = ("input", "transform", "forget", "output")
            i, j, f, o = (self._norm(gate, name) for gate, name in zip(gates, names, strict=True))
            peep = {
                g: vector(f"w_{g}_diag", units, inputs.dtype) if self._use_peepholes else 0.0 for g in "fio"
            }
            c = sigmoid(f + self._forget_bias + peep["f"] * c) * c + sigmoid(i + peep["i"] * c) * act(j)
            c = clipped(self._norm(c, "state"), self._cell_clip)
            h = sigmoid(o + peep["o"] * c) * act(c)
            if self._num_proj is not None:
                with find("variable_scope")("projection"):
                    h = clipped(self._product([h], self._num_proj, False), self._proj_clip)
        return h, LSTMStateTuple(c, h)


@export("contrib.rnn.LayerNormLSTMCell")
class LayerNormLSTMCell(_Peeping, _Normalizing):
    """An LSTM with peepholes, projection and layer normalization, all optional."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes,
            cell_clip,
            initializer,
            num_proj,
            proj_clip,
            forget_bias,
            activation,
            _reuse=reuse,
        )
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    def _norm(self, x: Any, scope: str) -> Any:
        return _Normalizing._norm(self, x, scope)

    def _product(self, parts: list, size: int, bias: bool) -> Tensor:
        if not (bias and self._layer_norm):
            return linear(parts, size, bias)
        vector("bias", size, parts[0].dtype, 0.0)  # kept in checkpoints, though the normalization has its own
        return linear(parts, size, False)


@export("contrib.rnn.WeightNormLSTMCell")
class WeightNormLSTMCell(_Peeping):
    """An LSTM whose weights are directions of length one, times a length that is learned apart."""

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1,
        activation: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes,
            cell_clip,
            initializer,
            num_proj,
            proj_clip,
            forget_bias,
            activation,
            _reuse=reuse,
            name="wn_lstm_cell",
        )
        self._normalizes = norm

    def _product(self, parts: list, size: int, bias: bool) -> Tensor:
        if not self._normalizes:
            return linear(parts, size, bias)
        depths, dtype = [part.shape.as_list()[1] for part in parts], parts[0].dtype
        kernel = find("get_variable")("kernel", [sum(depths), size], dtype=dtype)
        blocks = find("split")(kernel, depths, axis=0)
        unit = find("nn.l2_normalize")
        scaled = [unit(block, 0) * vector(f"norm_{i}", size, dtype) for i, block in enumerate(blocks)]
        product = find("matmul")(find("concat")(parts, 1), find("concat")(scaled, 0))
        return find("nn.bias_add")(product, vector("bias", size, dtype, 0.0)) if bias else product


@export("contrib.rnn.GLSTMCell")
class GLSTMCell(PairCell):
    """An LSTM of several groups of units, each of which sees its own part of the input and state."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        for name, size in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if size % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups")
        self._num_units, self._num_proj, self._groups = num_units, num_proj, number_of_groups
        self._initializer, self._forget_bias = initializer, forget_bias
        self._activation = activation or find("tanh")

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        c, m = state
        depth = inputs.shape.as_list()[1]
        if depth % self._groups:
            raise ValueError(f"input size ({depth}) must be divisible by number_of_groups ({self._groups})")
        sigmoid, scope = find("sigmoid"), find("variable_scope")
        with own_initializer(self._initializer):
            i, j, f, o = self._gates(inputs, m)
            c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * find("tanh")(j)
            m = sigmoid(o) * self._activation(c)
            if self._num_proj is not None:
                with scope("projection"):
                    m = linear(m, self._num_proj, False)
        return m, LSTMStateTuple(c, m)

    def _gates(self, inputs: Any, m: Any) -> list:
        split, concat = find("split"), find("concat")
        parts = []
        sides = zip(split(inputs, self._groups, axis=1), split(m, self._groups, axis=1), strict=True)
        for group, (x, old) in enumerate(sides):
            with find("variable_scope")(f"group{group}"):
                product = linear([x, old], 4 * self._num_units // self._groups, False)
            parts.append(split(product, 4, axis=1))
        return [
            find("nn.bias_add")(concat(gate, 1), vector(f"bias_{name}", self._num_units, inputs.dtype, 0.0))
            for name, gate in zip("ijfo", zip(*parts, strict=True), strict=True)
        ]


@export("contrib.rnn.PhasedLSTMCell")
class PhasedLSTMCell(PairCell):
    """An LSTM each unit of which is open only at a time of its own; inputs are pairs (times, values)."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._leak = num_units, use_peepholes, leak
        self._ratio_on, self._trains_ratio = ratio_on, trainable_ratio_on
        self._shortest, self._longest = period_init_min, period_init_max

    def _rhythm(self, dtype: Any) -> tuple:
        """Period, phase and open share of each unit."""
        units, variable = self._num_units, find("get_variable")

        def periods(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
            low, high = math.log(self._shortest), math.log(self._longest)
            return find("exp")(find("random_uniform")(shape, low, high, dtype=dtype))

        period = variable("period", [units], dtype, periods)
        phases = find("random_uniform_initializer")(0.0, period.initial_value)
        phase = variable("phase", [units], dtype, phases)
        start = _constant(self._ratio_on, dtype)
        return period, phase, variable("ratio_on", [units], dtype, start, trainable=self._trains_ratio)

    def _openness(self, times: Tensor, dtype: Any) -> Tensor:
        """How open each unit is: rises, falls, then leaks."""
        cast, where, stop = find("cast"), find("where"), find("stop_gradient")
        period, phase, on = self._rhythm(dtype)
        shifted = times - cast(phase, times.dtype)
        period = cast(period, times.dtype)
        passed = shifted - stop(find("floor")(shifted / period)) * period
        ratio = cast(passed / period, dtype)
        rising = 2 * ratio / on
        closing = where(ratio < on, 2 - rising, self._leak * ratio)
        return where(ratio < 0.5 * on, rising, closing)

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        times, x = inputs
        c_old, h_old = state
        sigmoid, tanh, scope, units = find("sigmoid"), find("tanh"), find("variable_scope"), self._num_units
        with scope("mask_gates"):
            seen = [x, h_old, c_old] if self._use_peepholes else [x, h_old]
            take, forget = find("split")(sigmoid(linear(seen, 2 * units, True)), 2, axis=1)
        with scope("new_input"):
            new = tanh(linear([x, h_old], units, True))
        c = c_old * forget + take * new
        with scope("output_gate"):
            seen = [x, h_old, c] if self._use_peepholes else [x, h_old]
            h = tanh(c) * sigmoid(linear(seen, units, True))
        k = self._openness(times, x.dtype)
        c, h = k * c + (1 - k) * c_old, k * h + (1 - k) * h_old
        return h, LSTMStateTuple(c, h)
