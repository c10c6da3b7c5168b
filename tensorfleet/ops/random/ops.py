"""Random ops on TensorFlow's own streams: an op with its seeds set gives TensorFlow's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tensorfleet.base import dtypes, errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check, HostContext, Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import gradient, not_differentiable, op
from tensorfleet.graph.scopes import get_default_graph, name_scope
from tensorfleet.kernels import philox, philox_normal, philox_rejection
from tensorfleet.ops.array.basic import with_dependencies
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.common import ints, same_as_input, shape_given_by, static_value
from tensorfleet.ops.elementwise import bracketed
from tensorfleet.ops.math.reduce_functions import reduce_all
from tensorfleet.ops.samples import case

# TensorFlow's default, so that an op with a seed in a graph without one gives TensorFlow's numbers.
_DEFAULT_GRAPH_SEED = 87654321
MAX_SEED = 2**31 - 1

#: A function that draws numbers: `draw(xp, stream, dims, dtype)`.
Draw: TypeAlias = Callable[..., Array]


class RandomKernel(Protocol):
    """The kernel of one operation, as the runtime prepares it."""

    def call(self, xp: ArrayModule, arguments: list[Any]) -> tuple[Array, ...]:
        """The outputs for these arguments."""


@export("get_seed", "random.get_seed")
def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The two seeds of a random op, from the graph's seed and its own; (None, None) for a random start."""
    graph = get_default_graph()
    if graph.seed is not None:
        # TensorFlow takes the number of operations as the seed: adding one before this op changes its numbers.
        own = graph._ops[-1]._id + 1 if op_seed is None and graph._ops else op_seed or 0
        graph._seed_used = graph._seed_used or op_seed is None
        seeds = graph.seed, own
    elif op_seed is not None:
        seeds = _DEFAULT_GRAPH_SEED, op_seed
    else:
        return None, None
    first, second = (int(s) % MAX_SEED for s in seeds)
    # Both zero would ask for a random start.
    return (0, MAX_SEED) if (first, second) == (0, 0) else (first, second)


def seeds(seed: int | None) -> dict[str, Any]:
    """The seed attributes of an op, from its own seed and the graph's."""
    first, second = get_seed(seed)
    return {"seed": first or 0, "seed2": second or 0}


def _sized(op_type: str) -> Callable[[Operation, list[Array]], int]:
    """How far a run moves the stream of an op that draws one number per output element."""
    return lambda op, outputs: philox.reserved(op_type, int(np.prod(outputs[0].shape, dtype=np.int64)))


def _checked_shape(shape: Array) -> tuple[int, ...]:
    if np.ndim(shape) != 1:
        text = ",".join(map(str, np.shape(shape)))
        raise errors.invalid(f"shape must be a vector of {{int32,int64}}, got shape [{text}]")
    dims = ints(shape)
    if any(d < 0 for d in dims):
        raise errors.invalid(f"Dimension {min(dims)} must be >= 0 in shape {list(dims)}")
    return dims


def _checked_samples(shape: Array, parameters: Array) -> tuple[int, ...]:
    """The dimensions of `shape`, where that many numbers are drawn for each parameter."""
    dims = _checked_shape(shape)
    if math.prod(dims) * np.size(parameters) >= 1 << 63:
        raise errors.invalid(
            f"Encountered overflow when multiplying {list(dims)} with {np.size(parameters)} parameters"
        )
    return dims


_SHAPED = "seed: int = 0; seed2: int = 0; dtype: floating; T: index"
_EXAMPLES = [case(np.array([2, 3], np.int32), seed=3, seed2=4, dtype=dtypes.float32)]


def _shaped(name: str) -> Callable[[Kernel], Kernel]:
    return op(
        name,
        "shape: T[1] -> output: dtype",
        _SHAPED,
        shape=lambda op: shape_given_by(op, 0),
        static=["shape"],
        rng=_sized(name),
        stateful=True,
        examples=_EXAMPLES,
    )


@_shaped("RandomUniform")
def _random_uniform(xp: ArrayModule, rng: Array, shape: Array, *, dtype: dtypes.DType) -> Array:
    return philox.random_uniform(xp, rng, _checked_shape(shape), dtype.np_dtype)


@_shaped("RandomStandardNormal")
def _random_standard_normal(xp: ArrayModule, rng: Array, shape: Array, *, dtype: dtypes.DType) -> Array:
    return philox_normal.random_standard_normal(xp, rng, _checked_shape(shape), dtype.np_dtype)


@_shaped("TruncatedNormal")
def _truncated_normal(xp: ArrayModule, rng: Array, shape: Array, *, dtype: dtypes.DType) -> Array:
    return philox_normal.truncated_normal(xp, rng, _checked_shape(shape), dtype.np_dtype)


def between_scalars(op: Operation, first: int, drawn: TensorShape) -> TensorShape:
    """The shape `drawn`; ValueError when a limit is not a scalar."""
    for name, t in zip(("minval", "maxval"), op._inputs[first:], strict=True):
        if t.shape.rank:
            raise ValueError(f"{name} must be a scalar; got a tensor of shape {bracketed(t.shape.as_list())}")
    return drawn


@op(
    "RandomUniformInt",
    "shape: T[1], minval: Tout, maxval: Tout -> output: Tout",
    "seed: int = 0; seed2: int = 0; Tout: index; T: index",
    shape=lambda op: between_scalars(op, 1, shape_given_by(op, 0)),
    static=["shape"],
    rng=_sized("RandomUniformInt"),
    stateful=True,
    examples=[case(np.array([5], np.int32), np.int32(2), np.int32(9), seed=1, seed2=2)],
)
def _random_uniform_int(
    xp: ArrayModule,
    rng: Array,
    shape: Array,
    minval: Array,
    maxval: Array,
    *,
    Tout: dtypes.DType,
    check: Check,
) -> Array:
    dims = _checked_shape(shape)
    check(minval < maxval, lambda: f"Need minval < maxval, got {minval} >= {maxval}")
    return philox.random_uniform_int(xp, rng, dims, Tout.np_dtype, minval, maxval)


def draw_each(op: Operation, kernel: RandomKernel, stream: Array, n: int, arguments: Sequence[Any]) -> Array:
    """The results of `n` runs in a row of an op whose first argument is the shape of its output."""
    dims = _checked_shape(arguments[0])
    size = int(np.prod(dims, dtype=np.int64))
    group = 16 // max(4, op._outputs[0].dtype.np_dtype.itemsize)  # numbers that are made of one block
    groups = max(1, -(-size // group))
    # Rejected numbers of a truncated normal are drawn again from the blocks that the op sets aside.
    length = groups * (group * philox.reserved(op.type, 1) // 4 if op.type == "TruncatedNormal" else 1)
    stretches = philox.Stretches(stream, length, philox.reserved(op.type, size))
    (drawn,) = kernel.call(np, [stretches, np.array([n, groups * group]), *arguments[1:]])
    return drawn[:, :size].reshape(n, *dims)


# Swapping elements one by one is faster in Python than compiled for XLA, and compiling it takes seconds.
@op(
    "RandomShuffle",
    "value: T -> output: T",
    "seed: int = 0; seed2: int = 0; T: type",
    shape=same_as_input,
    host=True,
    stateful=True,
    examples=[case(np.arange(12, dtype=np.float32).reshape(6, 2), seed=1, seed2=2)],
)
def _random_shuffle(ctx: HostContext, value: Array) -> Array:
    value = np.asarray(value)
    rows = value.shape[0] if value.ndim else 0
    rng = ctx.random(philox.reserved("RandomShuffle", rows))
    return value if rows <= 1 else np.take(value, philox.random_shuffle(np, rng, rows), axis=0)


def shuffle_each(stream: Array, values: Array) -> Array:
    """The results of one run of RandomShuffle after the other, for values that are the rows of an array."""
    n, rows = values.shape[:2]
    if rows < 2:
        return values
    blocks = philox.reserved("RandomShuffle", rows)
    words = philox.random_bits(np, stream, (n, 4 * blocks), np.dtype(np.uint32))[:, : rows - 1]
    targets = (words % np.arange(rows, 1, -1, dtype=np.uint32)).astype(np.int64) + np.arange(rows - 1)
    order, every = np.tile(np.arange(rows), (n, 1)), np.arange(n)
    for i in range(rows - 1):
        there = order[every, targets[:, i]]
        order[every, targets[:, i]] = order[:, i]
        order[:, i] = there
    result: Array = values[every[:, None], order]
    return result


def _multinomial_shape(op: Operation) -> TensorShape:
    count = static_value(op, 1)
    logits = op._inputs[0].shape.with_rank(2)
    return TensorShape([logits.as_list()[0], None if count is None else int(count)])


@op(
    "Multinomial",
    "logits: T[2], num_samples: int32[0] -> output: output_dtype",
    "seed: int = 0; seed2: int = 0; T: real; output_dtype: index = int64",
    shape=_multinomial_shape,
    static=["num_samples"],
    words={"logits": "logits should be a matrix, got shape {}"},
    rng=lambda op, outputs: philox.reserved("Multinomial", outputs[0].shape[0], outputs[0].shape[1]),
    stateful=True,
    examples=[
        case(np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32)), np.int32(4), seed=1, seed2=2)
    ],
)
def _multinomial(
    xp: ArrayModule, rng: Array, logits: Array, num_samples: Array, *, output_dtype: dtypes.DType
) -> Array:
    if not logits.shape[1]:
        raise errors.invalid("num_classes should be positive, got 0")
    if num_samples < 0:
        raise errors.invalid(f"num_samples should be nonnegative, got {int(num_samples)}")
    return philox.multinomial(xp, rng, logits, int(num_samples), output_dtype.np_dtype)


@op(
    "RandomGamma",
    "shape: S, alpha: T -> output: T",
    "seed: int = 0; seed2: int = 0; S: index; T: {half, float, double}",
    shape=lambda op: shape_given_by(op, 0).concatenate(op._inputs[1].shape),
    static=["shape"],
    rng=_sized("RandomGamma"),
    stateful=True,
    compiles_like=400,  # its loop of rejections takes XLA that much longer than an ordinary op
    examples=[
        case(np.array([400], np.int32), np.array([0, 0.2, 0.9, 1, 1.1, 7]), seed=1, seed2=2, grad=False)
    ],
)
def _random_gamma(xp: ArrayModule, rng: Array, shape: Array, alpha: Array) -> Array:
    return philox_rejection.random_gamma(xp, rng, _checked_samples(shape, alpha), alpha)


@gradient("RandomGamma")
def _random_gamma_grad(op: Operation, dy: Tensor) -> tuple[None, Tensor]:
    """Implicit differentiation: a sample moves with `alpha` so that the share of the distribution below it stays."""
    x = op.outputs[0]
    alpha = op.inputs[1] + apply("ZerosLike", x)
    density = apply("Exp", (alpha - 1.0) * apply("Log", x) - x - apply("Lgamma", alpha))
    moved = dy * apply("Neg", apply("IgammaGradA", alpha, x)) / density
    return None, apply("Sum", moved, apply("Range", 0, apply("Size", op.inputs[0]), 1))


@op(
    "RandomPoissonV2",
    "shape: S, rate: R -> output: dtype",
    "seed: int = 0; seed2: int = 0; S: index; R: {half, float, double, int32, int64} = double; "
    "dtype: {half, float, double, int32, int64} = int64",
    shape=lambda op: shape_given_by(op, 0).concatenate(op._inputs[1].shape),
    static=["shape"],
    rng=_sized("RandomPoissonV2"),
    stateful=True,
    compiles_like=200,
    examples=[
        case(np.array([400], np.int32), np.array([0, 0.2, 3, 9.9, 10, 500]), seed=1, seed2=2),
        case(np.array([2, 3], np.int32), np.float32(11), seed=1, dtype="half"),
    ],
)
def _random_poisson(xp: ArrayModule, rng: Array, shape: Array, rate: Array, *, dtype: dtypes.DType) -> Array:
    return philox_rejection.random_poisson(xp, rng, _checked_samples(shape, rate), rate, dtype.np_dtype)


@op(
    "RandomPoisson",
    "shape: S, rate: dtype -> output: dtype",
    "seed: int = 0; seed2: int = 0; S: index; dtype: {half, float, double}",
    shape=lambda op: shape_given_by(op, 0).concatenate(op._inputs[1].shape),
    static=["shape"],
    rng=_sized("RandomPoisson"),
    stateful=True,
    compiles_like=200,
    removed=(25, "Replaced by RandomPoissonV2"),
    examples=[],
)
def _old_random_poisson(
    xp: ArrayModule, rng: Array, shape: Array, rate: Array, *, dtype: dtypes.DType
) -> Array:
    return _random_poisson(xp, rng, shape, rate, dtype=dtype)


not_differentiable("RandomPoisson")
not_differentiable("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt")
not_differentiable("RandomShuffle", "Multinomial", "RandomPoissonV2")


def _shape_tensor(shape: TensorLike) -> Tensor:
    if isinstance(shape, (list, tuple, TensorShape)) and len(shape) == 0:
        return to_tensor(np.zeros(0, np.int32), name="shape")
    return to_tensor(shape, name="shape", preferred=dtypes.int32)


_UNIFORM_TYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64")


def checked_dtype(dtype: DTypeLike, maxval: TensorLike) -> dtypes.DType:
    """The type of uniform numbers; ValueError for another type, and for integers without an upper limit."""
    kind = dtypes.as_dtype(dtype)
    if kind.name not in _UNIFORM_TYPES:
        raise ValueError(f"Invalid dtype {kind}")
    if maxval is None and kind.is_integer:
        raise ValueError(f"Must specify maxval for integer dtype {kind}")
    return kind


@export("random_uniform", "random.uniform")
def random_uniform(
    shape: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniform numbers in [minval, maxval); integers need `maxval`."""
    kind = checked_dtype(dtype, maxval)
    maxval = 1 if maxval is None else maxval
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        dims = _shape_tensor(shape)
        low = to_tensor(minval, kind, name="min")
        high = to_tensor(maxval, kind, name="max")
        if kind.is_integer:
            return apply("RandomUniformInt", dims, low, high, name=scope, **seeds(seed))
        drawn = apply("RandomUniform", dims, dtype=kind, **seeds(seed))
        return apply(
            "AddV2", apply("Mul", drawn, apply("Sub", high, low, name="sub"), name="mul"), low, name=scope
        )


def _normal(op_type: str, public: str, does: str) -> Callable[..., Tensor]:
    def function(
        shape: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        seed: int | None = None,
        name: str | None = None,
    ) -> Tensor:
        with name_scope(name, public, [shape, mean, stddev]) as scope:
            dims = _shape_tensor(shape)
            centre, spread = to_tensor(mean, dtype, name="mean"), to_tensor(stddev, dtype, name="stddev")
            drawn = apply(op_type, dims, dtype=dtypes.as_dtype(dtype), **seeds(seed))
            return apply("AddV2", apply("Mul", drawn, spread, name="mul"), centre, name=scope)

    function.__name__ = function.__qualname__ = public
    function.__doc__ = does
    return export(public, f"random.{public.removeprefix('random_')}")(function)


random_normal = _normal("RandomStandardNormal", "random_normal", "Normally distributed numbers.")
truncated_normal = _normal(
    "TruncatedNormal",
    "truncated_normal",
    "Normally distributed numbers, drawn again where farther than two standard deviations from the mean.",
)


@export("random_shuffle", "random.shuffle")
def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in a random order."""
    return apply("RandomShuffle", value, name=name, **seeds(seed))


def _classes(
    scope: str,
    logits: TensorLike,
    count: TensorLike,
    dtype: DTypeLike | None,
    seed: int | None,
    name: str | None,
) -> Tensor:
    with name_scope(name, scope, [logits]):
        kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
        rows = to_tensor(logits, name="logits")
        return apply("Multinomial", rows, count, output_dtype=kind, **seeds(seed))


@export("multinomial", "random.multinomial")
def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> Tensor:
    """Draws classes from each row's unnormalized log-probabilities."""
    return _classes("multinomial", logits, num_samples, output_dtype, seed, name)


@export("random.categorical")
def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws classes from each row's unnormalized log-probabilities."""
    return _classes("categorical", logits, num_samples, dtype, seed, name)


@export("random_gamma", "random.gamma")
def random_gamma(
    shape: TensorLike,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Gamma-distributed numbers."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        dims = to_tensor(shape, dtypes.int32, name="shape")
        shaped = to_tensor(alpha, dtype, name="alpha")
        scale = to_tensor(1 if beta is None else beta, dtype, name="beta")
        spread = apply("Add", shaped, apply("ZerosLike", scale))
        drawn = apply("RandomGamma", dims, spread, **seeds(seed))
        tiny = np.finfo(dtypes.as_dtype(dtype).np_dtype).tiny
        return apply("Maximum", to_tensor(tiny, dtype), apply("RealDiv", drawn, scale))


@export("random_poisson", "random.poisson")
def random_poisson(
    lam: TensorLike,
    shape: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Poisson-distributed numbers."""
    with name_scope(name, "random_poisson", [lam, shape]):
        dims = to_tensor(shape, dtypes.int32, name="shape")
        return apply("RandomPoissonV2", dims, lam, dtype=dtypes.as_dtype(dtype), **seeds(seed))


@export("random_crop", "image.random_crop")
def random_crop(
    value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None
) -> Tensor:
    """A window of that size at a random place of `value`."""
    with name_scope(name, "random_crop", [value, size]) as scope:
        whole = to_tensor(value, name="value")
        wanted = to_tensor(size, dtypes.int32, name="size")
        shape = apply("Shape", whole)
        # As many operations as TensorFlow makes: the op's seed depends on their number.
        fits = reduce_all(apply("GreaterEqual", shape, wanted))
        check = Assert(fits, ["Need value.shape >= size, got ", shape, wanted], summarize=1000)
        limit = with_dependencies([check], shape) - wanted + 1
        drawn = random_uniform(apply("Shape", shape), dtype=dtypes.int32, maxval=dtypes.int32.max, seed=seed)
        offset = drawn % limit
        return apply("Slice", whole, offset, wanted, name=scope)
