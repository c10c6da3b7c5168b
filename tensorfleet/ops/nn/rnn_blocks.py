"""Whole recurrent cells, and whole LSTM layers, as single ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.operation import Operation
from tensorfleet.graph.registry import op
from tensorfleet.kernels.arrays import is_numpy
from tensorfleet.kernels.openblas import times
from tensorfleet.ops.samples import case

_RANDOM = np.random.RandomState(3)


def _some(*shape: int) -> Array:
    return _RANDOM.uniform(-0.5, 0.5, shape).astype(np.float32)


def _sigmoid(xp: ArrayModule, x: Array) -> Array:
    half = x.dtype.type(0.5)
    result: Array = half * (xp.tanh(half * x) + x.dtype.type(1))
    return result


def _lstm_step(
    xp: ArrayModule,
    x: Array,
    cs_prev: Array,
    h_prev: Array,
    weights: tuple[Array, ...],
    forget_bias: float,
    clip: float,
    peephole: bool,
) -> tuple[Array, ...]:
    w, wci, wcf, wco, b = weights
    gates = times(xp, xp.concatenate([x, h_prev], 1), w) + b
    i, ci, f, o = xp.split(gates, 4, 1)
    f = f + x.dtype.type(forget_bias)
    if peephole:
        i, f = i + cs_prev * wci, f + cs_prev * wcf
    i, f, ci = _sigmoid(xp, i), _sigmoid(xp, f), xp.tanh(ci)
    cs = ci * i + cs_prev * f
    if clip > 0:
        cs = xp.clip(cs, x.dtype.type(-clip), x.dtype.type(clip))
    o = _sigmoid(xp, o + cs * wco if peephole else o)
    co = xp.tanh(cs)
    return i, cs, f, o, ci, co, co * o


_LSTM_ATTRS = "forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false; T: {half, float}"
_LSTM_WEIGHTS = "w: T, wci: T, wcf: T, wco: T"
_LSTM_OUTPUTS = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"


def _cell_case(**attrs: Any) -> case:
    return case(
        _some(2, 3), _some(2, 4), _some(2, 4), _some(7, 16), _some(4), _some(4), _some(4), _some(16), **attrs
    )


def _state_shape(op: Operation) -> TensorShape:
    """As many rows as the input, as many columns as the state."""
    x, state = (t.shape.with_rank(2).as_list() for t in op._inputs[:2])
    return TensorShape([x[0], state[1]])


@op(
    "LSTMBlockCell",
    f"x: T, cs_prev: T, h_prev: T, {_LSTM_WEIGHTS}, b: T -> {_LSTM_OUTPUTS}",
    _LSTM_ATTRS,
    shape=_state_shape,
    examples=[_cell_case(), _cell_case(use_peephole=True, cell_clip=-1.0)],
)
def _lstm_block_cell(
    xp: ArrayModule,
    x: Array,
    cs_prev: Array,
    h_prev: Array,
    w: Array,
    wci: Array,
    wcf: Array,
    wco: Array,
    b: Array,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> tuple[Array, ...]:
    weights = (w, wci, wcf, wco, b)
    return _lstm_step(xp, x, cs_prev, h_prev, weights, forget_bias, cell_clip, use_peephole)


def _layer_shape(op: Operation) -> TensorShape:
    x, (units,) = op._inputs[1].shape.with_rank(3).as_list(), op._inputs[8].shape.with_rank(1).as_list()
    if units is not None and units % 4:
        raise ValueError(f"Dimension size must be evenly divisible by 4 but is {units}")
    return TensorShape([*x[:2], None if units is None else units // 4])


def _layer_case(**attrs: bool) -> case:
    inputs = (_some(5, 2, 3), _some(2, 4), _some(2, 4), _some(7, 16), _some(4), _some(4), _some(4), _some(16))
    return case(np.int64(4), *inputs, **attrs)


@op(
    "BlockLSTM",
    f"seq_len_max: int64, x: T, cs_prev: T, h_prev: T, {_LSTM_WEIGHTS}, b: T -> {_LSTM_OUTPUTS}",
    _LSTM_ATTRS,
    shape=_layer_shape,
    heavy=True,
    examples=[_layer_case(), _layer_case(use_peephole=True)],
)
def _block_lstm(
    xp: ArrayModule,
    seq_len_max: Array,
    x: Array,
    cs_prev: Array,
    h_prev: Array,
    w: Array,
    wci: Array,
    wcf: Array,
    wco: Array,
    b: Array,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> tuple[Array, ...]:
    weights = (w, wci, wcf, wco, b)

    def step(cs: Array, h: Array, now: Array, inside: Array) -> tuple[Array, ...]:
        outputs = _lstm_step(xp, now, cs, h, weights, forget_bias, cell_clip, use_peephole)
        return tuple(v * inside for v in outputs)  # past the longest sequence there are only zeros

    steps = xp.arange(x.shape[0])
    inside = (steps < seq_len_max).astype(x.dtype)
    if is_numpy(xp):
        outputs = []
        for t in range(x.shape[0]):
            outputs.append(step(cs_prev, h_prev, x[t], inside[t]))
            cs_prev, h_prev = outputs[-1][1], outputs[-1][6]
        if not outputs:
            return tuple(np.zeros((0, *cs_prev.shape), x.dtype) for _ in range(7))
        return tuple(np.stack(column) for column in zip(*outputs, strict=True))
    import jax

    def scanned(
        carry: tuple[Array, Array], given: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        outputs = step(*carry, *given)
        return (outputs[1], outputs[6]), outputs

    return tuple(jax.lax.scan(scanned, (cs_prev, h_prev), (x, inside))[1])


@op(
    "GRUBlockCell",
    "x: T[2], h_prev: T[2], w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T",
    "T: {float}",
    shape=_state_shape,
    examples=[case(_some(2, 3), _some(2, 4), _some(7, 8), _some(7, 4), _some(8), _some(4))],
)
def _gru_block_cell(
    xp: ArrayModule, x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array
) -> tuple[Array, Array, Array, Array]:
    gates = _sigmoid(xp, times(xp, xp.concatenate([x, h_prev], 1), w_ru) + b_ru)
    r, u = xp.split(gates, 2, 1)
    c = xp.tanh(times(xp, xp.concatenate([x, h_prev * r], 1), w_c) + b_c)
    return r, u, c, u * h_prev + (x.dtype.type(1) - u) * c
