"""`tf.random.experimental.Generator`: random numbers from a stream that a variable keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.variables.base import Variable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.base.types import Array, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_op, constant
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.concat import concat
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.shape import reshape
from tensorfleet.ops.array.stack import stack
from tensorfleet.ops.math.binary import add
from tensorfleet.ops.random.stateful import PHILOX

if TYPE_CHECKING:
    from tensorfleet.api.variables.types import AnyShape

_THREEFRY = 2
_SIZES = {PHILOX: 3, _THREEFRY: 2}


def _state_size(alg: int) -> int:
    if alg not in _SIZES:
        raise ValueError(f"Unsupported algorithm id: {alg}")
    return _SIZES[alg]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


@export("random.experimental.create_rng_state")
def create_rng_state(seed: int | Sequence[int] | Array, algorithm: int) -> np.ndarray:
    """The state of a stream from an integer of any size, or from a vector."""
    size = _state_size(algorithm)
    if isinstance(seed, int):
        # The lowest 64 bits come first, as in TensorFlow.
        seed = [seed >> 64 * i & (1 << 64) - 1 for i in range(size)]
    words = np.asarray([_signed(int(s)) for s in np.asarray(seed, object).ravel()], np.int64)
    if np.ndim(seed) != 1:
        raise ValueError(f"seed should only have one dimension; got shape: {np.shape(seed)}")
    words = words[:size]
    return np.pad(words, [(size - len(words), 0)])


def _state_tensor(state: TensorLike) -> Tensor:
    if isinstance(state, list):
        state = [_signed(s) if isinstance(s, int) else s for s in state]
    return to_tensor(state, dtypes.int64)


def _shape_tensor(shape: AnyShape) -> Tensor:
    return to_tensor(
        shape, dtypes.int64 if isinstance(shape, (list, tuple)) and not shape else None, name="shape"
    )


@export("random.experimental.Generator")
class Generator:
    """A stream of random numbers: each draw moves it on, whatever else is drawn elsewhere."""

    def __init__(
        self, copy_from: Generator | None = None, state: TensorLike = None, alg: int | None = None
    ) -> None:
        if copy_from is not None:
            assert (alg or state) is None
            first, alg = copy_from.state.initialized_value(), copy_from.algorithm
        else:
            assert alg is not None and state is not None
            first = _state_tensor(state)
            first.shape.assert_is_compatible_with([_state_size(alg)])
        make: Any = Variable
        self._state = make(first, dtype=dtypes.int64, trainable=False, use_resource=True, name="StateVar")
        self._alg = alg

    state = readonly("_state", "The variable that holds the state.")
    algorithm = readonly("_alg", "The number of the algorithm.")

    @classmethod
    def from_state(cls, state: TensorLike, alg: int) -> Generator:
        """A stream with a state."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: int | Sequence[int] | Array, alg: int | None = None) -> Generator:
        """A stream that starts from a seed."""
        alg = PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: int | None = None) -> Generator:
        """A stream that starts from random bits of the system."""
        alg = PHILOX if alg is None else alg
        shape = constant([_state_size(alg)], dtypes.int64)
        return cls(state=apply("NonDeterministicInts", shape, dtype=dtypes.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: TensorLike, alg: int) -> Generator:
        """A stream of a key, at a counter."""
        return cls(state=_key_counter(key, counter, alg), alg=alg)

    def reset(self, state: TensorLike) -> Operation:
        """Sets the state when the operation runs."""
        tensor = _state_tensor(state)
        tensor.shape.assert_is_compatible_with([_state_size(self._alg)])
        assigned: Operation = self._state.assign(tensor, read_value=False)
        return assigned

    def reset_from_seed(self, seed: int | Sequence[int] | Array) -> Operation:
        """Sets the state to the start of a seed."""
        return self.reset(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key: TensorLike, counter: TensorLike) -> Operation:
        """Sets the state to a counter of a key."""
        return self.reset(_key_counter(key, counter, self._alg))

    @property
    def key(self) -> Tensor:
        """The key of the stream."""
        _state_size(self._alg)
        last: Tensor = self._state[-1]
        return last

    def skip(self, delta: TensorLike) -> Operation:
        """Skips `delta` numbers."""
        return apply_op("RngSkip", self._state.handle, self._algorithm(), to_tensor(delta, dtypes.int64))

    def _algorithm(self) -> Tensor:
        return constant(self._alg, dtypes.int64)

    def _draw(self, op_type: str, shape: AnyShape, *limits: Tensor, **options: Any) -> Tensor:
        return apply(op_type, self._state.handle, self._algorithm(), _shape_tensor(shape), *limits, **options)

    def normal(
        self,
        shape: AnyShape,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Numbers of a normal distribution."""
        return self._scaled("StatefulStandardNormalV2", "stateful_normal", shape, mean, stddev, dtype, name)

    def truncated_normal(
        self,
        shape: AnyShape,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Numbers of a normal distribution, drawn again when more than two deviations from the mean."""
        return self._scaled("StatefulTruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, name)

    def _scaled(
        self,
        op_type: str,
        scope_name: str,
        shape: AnyShape,
        mean: TensorLike,
        stddev: TensorLike,
        dtype: DTypeLike,
        name: str | None,
    ) -> Tensor:
        with name_scope(name, scope_name, [shape, mean, stddev]) as scope:
            mean, stddev = to_tensor(mean, dtype, name="mean"), to_tensor(stddev, dtype, name="stddev")
            return add(self._draw(op_type, shape, dtype=dtype) * stddev, mean, name=scope)

    def uniform(
        self,
        shape: AnyShape,
        minval: TensorLike = 0,
        maxval: TensorLike = None,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Uniform numbers between two limits."""
        dtype = dtypes.as_dtype(dtype)
        if maxval is None and dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1 if maxval is None else maxval
        with name_scope(name, "stateful_uniform", [shape, minval, maxval]) as scope:
            low, high = to_tensor(minval, dtype, name="min"), to_tensor(maxval, dtype, name="max")
            if dtype.is_integer:
                return self._draw("StatefulUniformInt", shape, low, high, name=scope)
            drawn = self._draw("StatefulUniform", shape, dtype=dtype)
            return add(drawn * (high - low), low, name=scope)

    def uniform_full_int(
        self, shape: AnyShape, dtype: DTypeLike = dtypes.uint64, name: str | None = None
    ) -> Tensor:
        """Uniform integers over the whole range of the type."""
        with name_scope(name, "stateful_uniform_full_int", [shape]) as scope:
            return self._draw("StatefulUniformFullInt", shape, dtype=dtypes.as_dtype(dtype), name=scope)

    def binomial(
        self,
        shape: AnyShape,
        counts: TensorLike,
        probs: TensorLike,
        dtype: DTypeLike = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:
        """How many of `counts` trials succeed, each with a probability."""
        with name_scope(name, "binomial", [shape, counts, probs]) as scope:
            counts, probs = to_tensor(counts, name="counts"), to_tensor(probs, name="probs")
            options = {"dtype": dtypes.as_dtype(dtype), "name": scope}
            return self._draw("StatefulRandomBinomial", shape, counts, probs, **options)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless operations, [2, count]."""
        _state_size(self._alg)
        keys = self.uniform_full_int([count], dtypes.int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> list[Generator]:
        """New streams with keys from this one. The keys must be known while the graph is built, as in TensorFlow."""
        zeros = [0] * (_state_size(self._alg) - 1)
        keys = self.uniform_full_int([count], dtypes.int64)
        return [Generator(state=[*zeros, int(key)], alg=self._alg) for key in keys.numpy()]  # type: ignore[attr-defined]


def _key_counter(key: TensorLike, counter: TensorLike, alg: int) -> Tensor:
    counter, key = _state_tensor(counter), _state_tensor(key)
    counter.shape.assert_is_compatible_with([_state_size(alg) - 1])
    key.shape.assert_is_compatible_with([])
    return concat([counter, reshape(key, [1])], 0)


_global: list[Generator] = []


@export("random.experimental.get_global_generator")
def get_global_generator() -> Generator:
    """The global generator; it starts from random bits unless you set one."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


@export("random.experimental.set_global_generator")
def set_global_generator(generator: Generator) -> None:
    """Sets the global generator."""
    _global[:] = [generator]
