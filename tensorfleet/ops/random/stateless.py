"""Random ops whose numbers depend on a seed tensor alone: the same seed gives the same numbers, as TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, ArrayModule, DTypeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.kernel_types import Check
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.kernels import philox, philox_normal
from tensorfleet.ops.common import ints, shape_given_by, static_value
from tensorfleet.ops.nn.shapes import of_rank
from tensorfleet.ops.random.ops import Draw, _checked_shape, _shape_tensor, between_scalars, checked_dtype
from tensorfleet.ops.samples import case

_SHAPE = np.array([3, 5], np.int32)
_SEED = np.array([12, 34], np.int64)


def _check_seed(op: Operation, position: int) -> None:
    dims = of_rank(op._inputs[position].shape, 1).as_list()
    if dims[0] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {dims[0]}")


def _drawn(op: Operation) -> TensorShape:
    _check_seed(op, 1)
    return shape_given_by(op, 0)


def _declare(name: str, draw: Draw) -> None:
    """Declares an op that fills a shape with `draw(xp, stream, dims, dtype)`."""

    def kernel(xp: ArrayModule, shape: Array, seed: Array, *, dtype: dtypes.DType) -> Array:
        return draw(xp, philox.stateless_state(xp, seed), _checked_shape(shape), dtype.np_dtype)

    op(
        name,
        "shape: T[1], seed: Tseed -> output: dtype",
        "dtype: floating = float; T: index = int32; Tseed: index = int64",
        shape=_drawn,
        static=["shape"],
        examples=[
            case(_SHAPE, _SEED),
            case(_SHAPE, np.array([-1, 2**31 - 1], np.int32), dtype=dtypes.float64),
            case(_SHAPE, _SEED, dtype=dtypes.float16),
        ],
    )(kernel)
    not_differentiable(name)


_declare("StatelessRandomUniform", philox.random_uniform)
_declare("StatelessRandomNormal", philox_normal.random_standard_normal)
_declare("StatelessTruncatedNormal", philox_normal.truncated_normal)


@op(
    "StatelessRandomUniformInt",
    "shape: T[1], seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
    "dtype: index; T: index; Tseed: index = int64",
    shape=lambda op: between_scalars(op, 2, _drawn(op)),
    static=["shape"],
    examples=[
        case(_SHAPE, _SEED, np.int32(-3), np.int32(10)),
        case(_SHAPE, _SEED, np.int64(0), np.int64(2**40)),
    ],
)
def _stateless_uniform_int(
    xp: ArrayModule,
    shape: Array,
    seed: Array,
    minval: Array,
    maxval: Array,
    *,
    dtype: dtypes.DType,
    check: Check,
) -> Array:
    check(minval < maxval, lambda: f"Need minval < maxval, got {minval} >= {maxval}")
    dims = _checked_shape(shape)
    return philox.random_uniform_int(
        xp, philox.stateless_state(xp, seed), dims, dtype.np_dtype, minval, maxval
    )


def _classes(op: Operation) -> TensorShape:
    _check_seed(op, 2)
    count = static_value(op, 1)
    rows = of_rank(op._inputs[0].shape, 2).as_list()[0]
    return TensorShape([rows, None if count is None else int(count)])


@op(
    "StatelessMultinomial",
    "logits: T, num_samples: int32[0], seed: Tseed -> output: output_dtype",
    "T: real; Tseed: index = int64; output_dtype: index = int64",
    shape=_classes,
    static=["num_samples"],
    examples=[case(np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32)), np.int32(6), _SEED)],
)
def _stateless_multinomial(
    xp: ArrayModule, logits: Array, count: Array, seed: Array, *, output_dtype: dtypes.DType
) -> Array:
    return philox.multinomial(
        xp, philox.stateless_state(xp, seed), logits, ints(count)[0], output_dtype.np_dtype
    )


not_differentiable("StatelessRandomUniformInt", "StatelessMultinomial")


@export("random.stateless_uniform")
def stateless_uniform(
    shape: TensorLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Uniform numbers in [minval, maxval) that `seed`, two integers, decides; integers need `maxval`."""
    kind = checked_dtype(dtype, maxval)
    maxval = 1 if maxval is None else maxval
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        dims = _shape_tensor(shape)
        low, high = to_tensor(minval, kind, name="min"), to_tensor(maxval, kind, name="max")
        if kind.is_integer:
            return apply("StatelessRandomUniformInt", dims, seed, low, high, name=scope)
        drawn = apply("StatelessRandomUniform", dims, seed, dtype=kind)
        spread = apply("Mul", drawn, apply("Sub", high, low, name="sub"), name="mul")
        return apply("AddV2", spread, low, name=scope)


def _scaled(op_type: str, scope_name: str, doc: str) -> Callable[..., Tensor]:
    def draw(
        shape: TensorLike,
        seed: TensorLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        with name_scope(name, scope_name, [shape, seed, mean, stddev]) as scope:
            dims = _shape_tensor(shape)
            centre, spread = to_tensor(mean, dtype, name="mean"), to_tensor(stddev, dtype, name="stddev")
            drawn = apply(op_type, dims, seed, dtype=dtypes.as_dtype(dtype))
            return apply("AddV2", apply("Mul", drawn, spread, name="mul"), centre, name=scope)

    draw.__doc__ = doc
    return draw


stateless_normal = export("random.stateless_normal")(
    _scaled(
        "StatelessRandomNormal",
        "stateless_random_normal",
        "Normally distributed numbers that `seed`, two integers, decides.",
    )
)
stateless_truncated_normal = export("random.stateless_truncated_normal")(
    _scaled(
        "StatelessTruncatedNormal",
        "stateless_truncated_normal",
        "Normal numbers at most two deviations from the mean, which `seed`, two integers, decides.",
    )
)


def _categories(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    kind: DTypeLike | None,
    name: str | None,
    default: str,
) -> Tensor:
    with name_scope(name, default, [logits, seed]):
        rows = to_tensor(logits, name="logits")
        dtype = dtypes.int64 if kind is None else dtypes.as_dtype(kind)
        return apply("StatelessMultinomial", rows, num_samples, seed, output_dtype=dtype)


@export("random.stateless_multinomial")
def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Classes drawn from each row's unnormalized log-probabilities, as `seed`, two integers, decides."""
    return _categories(logits, num_samples, seed, output_dtype, name, "stateless_multinomial")


@export("random.stateless_categorical")
def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Classes drawn from each row's unnormalized log-probabilities, as `seed`, two integers, decides."""
    return _categories(logits, num_samples, seed, dtype, name, "stateless_categorical")
