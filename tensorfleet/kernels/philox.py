"""Philox4x32-10, and the random ops drawn from it exactly as TensorFlow's CPU kernels draw them.

A stream is six uint32 words: a 128-bit counter (least significant word first) and a 64-bit key.
One *block* is the four 32-bit words made from one value of the counter. An op owns a stream, made by
`initial_state(seed, seed2)`; each execution draws from the stream's position with one of the functions
below and then moves it on: `state = skip(state, reserved(op_type, size))`.

Functions take the array namespace `xp` first: `numpy` (works in cache-sized pieces) or `jax.numpy`
(traceable; needs `jax_enable_x64`). Both give the same numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tensorfleet.base.types import Array, ArrayModule, Dims, TensorLike

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_LOW_WORD = np.uint64(_WORD)
_SHIFT_WORD = np.uint64(32)
CHUNK = 8192  # blocks per pass of the numpy life: three arrays of 128 KiB stay in the cache
RESERVED_PER_OUTPUT = 256  # blocks a filling kernel sets aside for each output
entropy = os.urandom  # where unseeded streams begin; the tests put a repeatable source here
_STATELESS_KEY = (0x3EC8F720, 0x02461E29)


# --- streams ---------------------------------------------------------------------------------------


def initial_state(seed: int, seed2: int) -> Array:
    """The stream of an op with these seed attributes; two zeros ask for an unpredictable one."""
    if seed == 0 and seed2 == 0:
        return random_state()
    # Negative seeds count as unsigned: the first is the key, the second the high half of the counter.
    key, high = int(seed) & (1 << 64) - 1, int(seed2) & (1 << 64) - 1
    return np.array([0, 0, high & _WORD, high >> 32, key & _WORD, key >> 32], np.uint32)


def random_state() -> Array:
    """A stream seeded by the operating system."""
    # The low half of the counter starts at 0: the stream has 2**64 blocks before it reaches another's.
    state = np.zeros(6, np.uint32)
    state[2:] = np.frombuffer(entropy(16), np.uint32)
    return state


def skip(state: Array, blocks: int) -> Array:
    """The stream `blocks` blocks further on (a read-only array)."""
    return np.frombuffer(skip_bytes(state.tobytes(), blocks), np.uint32)


def skip_bytes(state: bytes, blocks: int) -> bytes:
    """`skip` for a stream given as its 24 bytes."""
    counter = int.from_bytes(state[:16], "little") + int(blocks) & (1 << 128) - 1
    return counter.to_bytes(16, "little") + state[16:]


def stateless_state(xp: ArrayModule, seed: Array) -> Array:
    """The stream of a stateless op given its two-element integer `seed` tensor."""
    seed = xp.asarray(seed).astype(np.int64).astype(np.uint64)
    counter = xp.stack([seed & _LOW_WORD, seed >> _SHIFT_WORD], -1).reshape(4).astype(np.uint32)
    key = xp.asarray(np.array(_STATELESS_KEY, np.uint32))
    mixed = blocks(xp, xp.concatenate([counter, key]), xp.zeros(1, np.uint64))[0]
    return xp.concatenate([xp.zeros(2, np.uint32), mixed[2:], mixed[:2]])


def reserved(op_type: str, size: int, num_samples: int = 1) -> int:
    """How many blocks TensorFlow's kernel sets aside for one execution of the op.

    `size` is the number of outputs (rows shuffled for RandomShuffle; rows of logits for Multinomial,
    which also needs `num_samples`; candidates sampled for the candidate samplers).
    """
    size = int(size)
    if op_type == "RandomShuffle":
        # A word for each of the size - 1 swaps, four words in a block.
        return (size + 2) // 4 if size > 1 else 0
    if op_type.endswith("CandidateSampler"):
        return 512 * size
    if op_type == "Multinomial":
        return size * ((int(num_samples) + 3) // 4 * 4) * 2 * RESERVED_PER_OUTPUT
    return size * RESERVED_PER_OUTPUT


class Stretches(NamedTuple):
    """A stream read in parts of `length` blocks, which begin `stride` blocks apart. In numpy only."""

    stream: Array
    length: int
    stride: int


# --- blocks ----------------------------------------------------------------------------------------


def blocks(xp: ArrayModule, rng: Array, offsets: Array) -> Array:
    """The blocks at uint64 `offsets` from the stream's position, as uint32[len(offsets), 4]."""
    if xp is np:
        return _blocks_on_host(rng, offsets)
    return _blocks_traced(xp, rng, offsets)


def run_traced(xp: ArrayModule, rng: Array, count: int, offset_of: Callable[[Array], Array]) -> Array:
    """The blocks at `offset_of(i)` for i in range(count), made piece by piece.

    XLA computes what one loop leaves behind only once, and would repeat a block for each of its words.
    """
    from tensorfleet.kernels.xla import lax

    pieces = -(-count // CHUNK)
    length = -(-count // pieces) if pieces else 0
    places = xp.arange(length, dtype=np.uint64)
    if pieces < 2:
        return _blocks_traced(xp, rng, offset_of(places))

    def piece(number: Array) -> Array:
        return _blocks_traced(xp, rng, offset_of(places + number * np.uint64(length)))

    return lax.map(piece, xp.arange(pieces, dtype=np.uint64)).reshape(-1, 4)[:count]


def _blocks_traced(xp: ArrayModule, rng: Array, offsets: Array) -> Array:
    # A stack would compute all of the words once for each of its operands.
    place = xp.arange(4)
    c0, c1, c2, c3 = (c[:, None] for c in _words_traced(rng, offsets))
    return xp.where(place < 2, xp.where(place == 0, c0, c1), xp.where(place == 2, c2, c3))


def doubles_traced(rng: Array, offsets: Array) -> list[Array]:
    """Both numbers in [0, 1) that the blocks at `offsets` make: two arrays of float64."""
    return doubles_of(_words_traced(rng, offsets))


def doubles_of(words: Array | tuple[Array, Array, Array, Array]) -> list[Array]:
    """Both numbers in [0, 1) that the four words of traced blocks make."""
    c0, c1, c2, c3 = (c.astype(np.uint64) for c in words)
    bits = ((high & np.uint64(0xFFFFF)) << _SHIFT_WORD | low for high, low in ((c0, c1), (c2, c3)))
    return [(b | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0 for b in bits]


def _words_traced(rng: Array, offsets: Array) -> tuple[Array, Array, Array, Array]:
    """The four words of each of the blocks at `offsets`: arrays of uint32."""
    wide = rng.astype(np.uint64)
    base, high = wide[0] | wide[1] << _SHIFT_WORD, wide[2] | wide[3] << _SHIFT_WORD
    low = base + offsets
    high = high + (low < base).astype(np.uint64)
    c0, c1 = low.astype(np.uint32), (low >> _SHIFT_WORD).astype(np.uint32)
    c2, c3 = high.astype(np.uint32), (high >> _SHIFT_WORD).astype(np.uint32)
    k0, k1 = rng[4], rng[5]
    for _ in range(10):
        p0, p1 = (c.astype(np.uint64) * np.uint64(m) for c, m in zip((c0, c2), _MULTIPLIERS, strict=True))
        c0, c1 = (p1 >> _SHIFT_WORD).astype(np.uint32) ^ c1 ^ k0, p1.astype(np.uint32)
        c2, c3 = (p0 >> _SHIFT_WORD).astype(np.uint32) ^ c3 ^ k1, p0.astype(np.uint32)
        k0, k1 = k0 + np.uint32(_KEY_STEPS[0]), k1 + np.uint32(_KEY_STEPS[1])
    return c0, c1, c2, c3


def _blocks_on_host(rng: Array, offsets: Array) -> Array:
    if isinstance(rng, Stretches):
        part, within = np.divmod(offsets, np.uint64(rng.length))
        rng, offsets = rng.stream, part * np.uint64(rng.stride) + within
    count = len(offsets)
    words = np.empty((count, 2), np.uint64)
    # One scratch for all passes: it stays in the cache.
    scratch = np.empty((3, 2 * min(count, CHUNK)), np.uint64)
    for start in range(0, count, CHUNK):
        part = offsets[start : start + CHUNK]
        _fill_blocks(rng, part, scratch[:, : 2 * len(part)], words[start : start + len(part)])
    return words.view(np.uint32)


def _fill_blocks(rng: Array, offsets: Array, scratch: Array, words: Array) -> None:
    """Write the blocks at `offsets` into `words`, uint64[n, 2].

    The two halves of a counter lie in one flat array, the second half mirrored, so that the exchange
    of halves in every round is a reversed view and each step of a round is one whole-array call.
    """
    n = len(offsets)
    even, odd, product = scratch
    _load_counters(rng, offsets, even, odd)
    keys, multipliers = _round_keys(int(rng[4]), int(rng[5]), n)
    swapped = product[::-1]
    for key in keys:
        np.multiply(even, multipliers, product)
        np.right_shift(swapped, _SHIFT_WORD, even)
        np.bitwise_xor(even, odd, even)
        np.bitwise_xor(even, key, even)
        np.bitwise_and(swapped, _LOW_WORD, odd)
    np.left_shift(odd, _SHIFT_WORD, odd)
    np.bitwise_or(even, odd, even)
    words[:, 0] = even[:n]
    words[:, 1] = even[: n - 1 : -1]


def _load_counters(rng: Array, offsets: Array, even: Array, odd: Array) -> None:
    n = len(offsets)
    c0, c1, c2, c3 = rng[:4].tolist()
    base = np.uint64(c0 | c1 << 32)
    low = offsets + base
    np.bitwise_and(low, _LOW_WORD, even[:n])
    np.right_shift(low, _SHIFT_WORD, odd[:n])
    even[n:] = c2
    odd[n:] = c3
    # Carrying out of the low half is so rare that only its possibility is checked on the fast path.
    if c1 == _WORD and (low < base).any():
        high = np.uint64(c2 | c3 << 32) + (low < base)[::-1].astype(np.uint64)
        np.bitwise_and(high, _LOW_WORD, even[n:])
        np.right_shift(high, _SHIFT_WORD, odd[n:])


@lru_cache(maxsize=8)
def _round_keys(k0: int, k1: int, n: int) -> tuple[list[Array], Array]:
    """The ten keys and the multipliers, each spread over both (mirrored) halves of n counters."""
    keys = np.empty((10, 2 * n), np.uint64)
    for i in range(10):
        keys[i, :n] = (k0 + i * _KEY_STEPS[0]) & _WORD
        keys[i, n:] = (k1 + i * _KEY_STEPS[1]) & _WORD
    return list(keys), np.repeat(np.array(_MULTIPLIERS, np.uint64), n)


def filled(
    xp: ArrayModule,
    rng: Array,
    shape: Dims,
    dtype: np.dtype[Any] | type,
    per_block: int,
    convert: Callable[[Array], Array],
) -> Array:
    """An array of `shape` whose elements `convert` makes, `per_block` from each consecutive block."""
    size = int(np.prod(shape, dtype=np.int64))
    count = -(-size // per_block)
    if xp is not np:
        values = convert(run_traced(xp, rng, count, lambda i: i))
        return values.reshape(-1)[:size].reshape(shape)
    values = np.empty((count, per_block), dtype)
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        values[start:stop] = convert(blocks(np, rng, np.arange(start, stop, dtype=np.uint64)))
    return values.reshape(-1)[:size].reshape(shape)


# --- uniform ---------------------------------------------------------------------------------------

# Random mantissa bits under the exponent of 1.0 make a number in [1, 2). Augmented assignments below
# work in place on numpy arrays and rebind the name for traced ones.
_SMALL_MANTISSA = {"float16": 10, "bfloat16": 7}


def _unit_small(words: Array, dtype: np.dtype[Any]) -> Array:
    bits = _SMALL_MANTISSA[dtype.name]
    exponent = 15 if dtype.name == "float16" else 127
    halves = words.astype(np.uint16)
    halves &= np.uint16((1 << bits) - 1)
    halves |= np.uint16(exponent << bits)
    result: Array = halves.view(dtype) - dtype.type(1)
    return result


def unit_float(words: Array) -> Array:
    """Numbers in [0, 1) of float32 from random words, in place: 23 bits of each are the mantissa."""
    words &= np.uint32(0x7FFFFF)
    words |= np.uint32(0x3F800000)
    unit = words.view(np.float32)
    unit -= np.float32(1)
    return unit


def unit_double(words: Array) -> Array:
    """Numbers in [0, 1) of float64, each from two random words: 52 bits are the mantissa."""
    mantissa = words[:, 0::2].astype(np.uint64)
    mantissa &= np.uint64(0xFFFFF)
    mantissa <<= _SHIFT_WORD
    mantissa |= words[:, 1::2]
    mantissa |= np.uint64(0x3FF0000000000000)
    unit = mantissa.view(np.float64)
    unit -= np.float64(1)
    return unit


def random_uniform(xp: ArrayModule, rng: Array, shape: Dims, dtype: np.dtype[Any] | type | str) -> Array:
    """RandomUniform: float16, bfloat16, float32 or float64 in [0, 1)."""
    dtype = np.dtype(dtype)
    if dtype == np.float64:
        return filled(xp, rng, shape, dtype, 2, unit_double)
    if dtype == np.float32:
        return filled(xp, rng, shape, dtype, 4, unit_float)
    return filled(xp, rng, shape, dtype, 4, lambda words: _unit_small(words, dtype))


def random_uniform_int(
    xp: ArrayModule,
    rng: Array,
    shape: Dims,
    dtype: np.dtype[Any] | type | str,
    minval: TensorLike,
    maxval: TensorLike,
) -> Array:
    """RandomUniformInt: int32 or int64 in [minval, maxval), with TensorFlow's slight modulo bias."""
    dtype = np.dtype(dtype)
    low = xp.asarray(minval, dtype=dtype).reshape(1)
    high = xp.asarray(maxval, dtype=dtype).reshape(1)
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    span = high.view(unsigned) - low.view(unsigned)

    def convert(words: Array) -> Array:
        bits = words if unsigned.itemsize == 4 else _pairs(words)
        result: Array = (bits % span).view(dtype) + low
        return result

    return filled(xp, rng, shape, dtype, 16 // unsigned.itemsize, convert)


def random_bits(xp: ArrayModule, rng: Array, shape: Dims, dtype: np.dtype[Any] | type | str) -> Array:
    """Full-range integers: StatelessRandomUniformFullInt of int32, uint32, int64 or uint64."""
    dtype = np.dtype(dtype)
    if dtype.itemsize == 4:
        return filled(xp, rng, shape, dtype, 4, lambda words: words.view(dtype))
    return filled(xp, rng, shape, dtype, 2, lambda words: _pairs(words).view(dtype))


def _pairs(words: Array) -> Array:
    result: Array = words[:, 0::2] | words[:, 1::2].astype(np.uint64) << _SHIFT_WORD
    return result


# --- choices ---------------------------------------------------------------------------------------


def random_shuffle(xp: ArrayModule, rng: Array, size: int) -> Array:
    """RandomShuffle's permutation of `size` rows: output[i] = input[permutation[i]], as int32."""
    if size < 2:
        return xp.arange(size, dtype=np.int32)
    words = random_bits(xp, rng, (size - 1,), np.uint32)
    steps = (words % xp.arange(size, 1, -1, dtype=np.uint32)).astype(np.int32)
    targets = steps + xp.arange(size - 1, dtype=np.int32)
    if xp is np:
        order = list(range(size))
        for i, j in enumerate(targets.tolist()):
            order[i], order[j] = order[j], order[i]
        return np.array(order, np.int32)
    from tensorfleet.kernels.xla import at, lax

    def swap(i: Array, order: Array) -> Array:
        j = targets[i]
        at_i, at_j = order[i], order[j]
        return at(at(order, i).set(at_j), j).set(at_i)

    return lax.fori_loop(0, size - 1, swap, xp.arange(size, dtype=np.int32))


def multinomial(
    xp: ArrayModule, rng: Array, logits: Array, num_samples: int, output_dtype: Any = np.int64
) -> Array:
    """Multinomial: `num_samples` class indices for each row of unnormalized log-probabilities.

    Drawn row after row from one stream, as TensorFlow does where one thread takes all rows (its
    kernel restarts the stream for every share of rows a further thread takes).
    """
    logits = xp.asarray(logits)
    rows = len(logits)
    # As in TensorFlow, a class whose logit is not finite is never drawn.
    finite = xp.isfinite(logits)
    wide = logits.astype(np.float64)
    top = xp.max(xp.where(finite, wide, -np.inf), 1, keepdims=True, initial=-np.inf)
    weights = xp.exp(xp.where(finite, wide - xp.where(xp.isfinite(top), top, 0), -np.inf))
    if xp is not np and 4 * num_samples < logits.shape[1]:
        return _picked_in_blocks(xp, rng, weights, num_samples).astype(output_dtype)
    bounds = xp.cumsum(weights, 1)
    wanted = random_uniform(xp, rng, (rows, num_samples), np.float64) * bounds[:, -1:]
    if xp is np:
        picked = [row.searchsorted(w, "right") for row, w in zip(bounds, wanted, strict=True)]
        return np.array(picked, output_dtype).reshape(rows, num_samples)
    from tensorfleet.kernels.xla import vmap

    search = vmap(lambda row, w: xp.searchsorted(row, w, side="right"))
    return search(bounds, wanted).astype(output_dtype)


def _picked_in_blocks(xp: ArrayModule, rng: Array, weights: Array, num_samples: int) -> Array:
    """Classes by their weights, found in blocks of them: XLA adds up all weights of many classes much slower."""
    rows, classes = weights.shape
    size = math.isqrt(classes)
    count = -(-classes // size)
    blocks = xp.pad(weights, ((0, 0), (0, count * size - classes))).reshape(rows, count, size)
    bounds = xp.cumsum(blocks.sum(-1), 1)
    wanted = random_uniform(xp, rng, (rows, num_samples), np.float64) * bounds[:, -1:]
    block = xp.minimum((bounds[:, None] <= wanted[..., None]).sum(-1, dtype=np.int32), count - 1)
    before = xp.where(block > 0, xp.take_along_axis(bounds, xp.maximum(block - 1, 0), 1), 0.0)
    within = before[..., None] + xp.cumsum(xp.take_along_axis(blocks, block[..., None], 1), -1)
    place = (within <= wanted[..., None]).sum(-1, dtype=np.int32)
    # Where all weights are zero, it is none of the classes, as TensorFlow has it.
    return xp.where(wanted < bounds[:, -1:], block * size + xp.minimum(place, size - 1), classes)


def later(jnp: ArrayModule, stream: Array, blocks: Array) -> Array:
    """A random stream, some blocks further on: its first four words are a counter, the lowest first."""
    words = stream[:4].astype(np.uint64)
    low = words[0] + (words[1] << np.uint64(32))
    high = words[2] + (words[3] << np.uint64(32))
    moved = low + blocks
    high = high + (moved < low).astype(np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    counter = jnp.stack([moved & mask, moved >> np.uint64(32), high & mask, high >> np.uint64(32)])
    return jnp.concatenate([counter.astype(np.uint32), stream[4:]])
