"""Random numbers from a stream in a variable: the ops of `tf.random.experimental.Generator`."""

from __future__ import annotations

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernel_types import Check, HostContext
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.kernels import philox, philox_normal
from tensorfleet.kernels.binomial import binomials
from tensorfleet.ops.common import ints, shape_given_by
from tensorfleet.ops.random.ops import Draw, between_scalars

PHILOX = 1  # the number of the algorithm in TensorFlow
_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_PER_OUTPUT = np.uint64(philox.RESERVED_PER_OUTPUT)


def _stream(xp: ArrayModule, state: Array, algorithm: Array) -> Array:
    """The stream at the place that a variable says: a counter of 128 bits and a key of 64."""
    if int(algorithm) != PHILOX:
        raise errors.invalid(f"Unsupported algorithm id: {int(algorithm)}")
    if state.ndim != 1 or state.shape[0] < 3:
        raise errors.invalid(
            "For the Philox algorithm, the size of state must be at least 3; got " + str(list(state.shape))
        )
    numbers = xp.asarray(state[:3]).astype(np.uint64)
    return xp.stack([numbers & _WORD, numbers >> _HALF], -1).reshape(6).astype(np.uint32)


def _moved(xp: ArrayModule, state: Array, blocks: Array | np.uint64) -> Array:
    """The state that many blocks further on."""
    low = state[0].astype(np.uint64)
    by = xp.asarray(blocks).astype(np.uint64)
    with np.errstate(
        over="ignore"
    ):  # the counter has 128 bits: a sum that wraps around carries into the upper half
        new = low + by
        high = state[1].astype(np.uint64) + (new < low).astype(np.uint64)
    return xp.concatenate([xp.stack([new, high]).astype(np.int64), state[2:]])


def _size(dims: tuple[int, ...]) -> np.uint64:
    return np.uint64(int(np.prod(dims, dtype=np.int64))) * _PER_OUTPUT


def _declare(name: str, attrs: str, draw: Draw) -> None:
    """An op that draws numbers of a shape and moves the stream on."""

    def kernel(
        xp: ArrayModule, state: Array, algorithm: Array, shape: Array, *, dtype: dtypes.DType
    ) -> tuple[Array, Array]:
        dims = ints(shape)
        drawn = draw(xp, _stream(xp, state, algorithm), dims, dtype.np_dtype)
        return _moved(xp, state, _size(dims)), drawn

    op(
        name,
        "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
        f"{attrs}; shape_dtype: type = int64",
        shape=lambda op: shape_given_by(op, 2),
        static=["algorithm", "shape"],
        updates=["resource"],
        stateful=True,
    )(kernel)
    not_differentiable(name)


_declare("StatefulUniform", "dtype: type = float32", philox.random_uniform)
_declare("StatefulStandardNormalV2", "dtype: type = float32", philox_normal.random_standard_normal)
_declare("StatefulTruncatedNormal", "dtype: type = float32", philox_normal.truncated_normal)
_declare("StatefulUniformFullInt", "dtype: type = uint64", philox.random_bits)


@op(
    "StatefulUniformInt",
    "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: type = int64; shape_dtype: type = int64",
    shape=lambda op: between_scalars(op, 3, shape_given_by(op, 2)),
    static=["algorithm", "shape"],
    updates=["resource"],
    stateful=True,
)
def _stateful_uniform_int(
    xp: ArrayModule,
    state: Array,
    algorithm: Array,
    shape: Array,
    minval: Array,
    maxval: Array,
    *,
    dtype: dtypes.DType,
    check: Check,
) -> tuple[Array, Array]:
    dims = ints(shape)
    check(minval < maxval, lambda: f"Need minval < maxval, got {minval} >= {maxval}")
    stream = _stream(xp, state, algorithm)
    drawn = philox.random_uniform_int(xp, stream, dims, dtype.np_dtype, minval, maxval)
    return _moved(xp, state, _size(dims)), drawn


@op(
    "RngSkip",
    "resource: resource, algorithm: int64, delta: int64",
    static=["algorithm"],
    updates=["resource"],
    stateful=True,
)
def _rng_skip(xp: ArrayModule, state: Array, algorithm: Array, delta: Array) -> tuple[Array]:
    _stream(xp, state, algorithm)
    return (_moved(xp, state, xp.asarray(delta).astype(np.uint64) * _PER_OUTPUT),)


@op(
    "NonDeterministicInts",
    "shape: shape_dtype -> output: dtype",
    "dtype: type = int64; shape_dtype: type = int64",
    shape=lambda op: shape_given_by(op, 0),
    host=True,
    stateful=True,
)
def _non_deterministic_ints(ctx: HostContext, shape: Array, *, dtype: dtypes.DType) -> Array:
    dims, kind = ints(shape), np.dtype(dtype.np_dtype)
    count = int(np.prod(dims, dtype=np.int64))
    return np.frombuffer(philox.entropy(count * kind.itemsize), kind).reshape(dims)


@op(
    "StatefulRandomBinomial",
    "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype",
    "S: index; T: {half, float, double, int32, int64} = double; dtype: {half, float, double, int32, int64} = int64",
    shape=lambda op: shape_given_by(op, 2),
    updates=["resource"],
    stateful=True,
)
def _stateful_binomial(
    xp: ArrayModule,
    state: Array,
    algorithm: Array,
    shape: Array,
    counts: Array,
    probs: Array,
    *,
    dtype: dtypes.DType,
) -> tuple[Array, Array]:
    dims = ints(shape)
    state = np.asarray(state)
    stream = _stream(np, state, algorithm)
    drawn = binomials(stream, dims, np.asarray(counts), np.asarray(probs), dtype.np_dtype)
    return _moved(np, state, _size(dims)), drawn


not_differentiable("StatefulUniformInt", "RngSkip", "NonDeterministicInts", "StatefulRandomBinomial")
