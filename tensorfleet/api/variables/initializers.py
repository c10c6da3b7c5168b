"""Initializers: objects that make a variable's first value, given its shape."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import as_shape
from tensorfleet.base.types import DTypeLike, TensorLike
from tensorfleet.graph.apply import apply, apply_list, constant
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.constructors import fill, ones, zeros
from tensorfleet.ops.random import ops as random_ops

if TYPE_CHECKING:
    from tensorfleet.api.variables.partitioned import PartitionInfo
    from tensorfleet.api.variables.types import AnyShape


@export("keras.initializers.Initializer")
class Initializer:
    """Base of all initializers: call one with a shape to get the tensor of initial values."""

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> TensorLike:
        """The initial value of a variable of this shape; each initializer defines it."""
        raise TypeError(f"{type(self).__name__} must define __call__(shape, dtype, partition_info).")

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same initializer again."""
        names = inspect.signature(type(self).__init__).parameters
        values = {n: getattr(self, n) for n in names if n != "self" and hasattr(self, n)}
        return {n: v.name if isinstance(v, DType) else v for n, v in values.items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer from the result of `get_config`."""
        return cls(**config)


def _float(dtype: DTypeLike) -> DType:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"Expected floating point type, got {kind}.")
    return kind


class _Filled(Initializer):
    _fill: Callable[..., Tensor]

    def __init__(self, dtype: DTypeLike = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return self._fill(shape, dtype or self.dtype)


@export("zeros_initializer", "initializers.zeros")
class Zeros(_Filled):
    """All zeros."""

    _fill = staticmethod(zeros)


@export("ones_initializer", "initializers.ones")
class Ones(_Filled):
    """All ones."""

    _fill = staticmethod(ones)


@export("constant_initializer", "initializers.constant")
class Constant(Initializer):
    """One value, or a list of values that fills the shape row by row."""

    def __init__(
        self, value: object = 0, dtype: DTypeLike = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value)} (expected Python scalar, list or tuple of values, or numpy.ndarray)."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self.verify_shape = self._verify_shape = verify_shape

    def __call__(
        self,
        shape: AnyShape,
        dtype: DTypeLike | None = None,
        partition_info: PartitionInfo | None = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        """The constant in this shape."""
        verify = self._verify_shape if verify_shape is None else verify_shape
        kind = dtypes.as_dtype(dtype or self.dtype)
        if isinstance(shape, (list, tuple)) and any(isinstance(d, Tensor) for d in shape):
            return fill(shape, constant(self.value, kind))
        value = np.asarray(self.value)
        # `constant` refuses a float for an integer variable; NumPy's cast truncates it.
        if value.dtype.kind in "iufb" and kind.np_dtype.kind in "iufbV":
            value = value.astype(kind.np_dtype)
            return constant(value, kind, as_shape(shape), verify_shape=verify)
        return constant(self.value, kind, as_shape(shape), verify_shape=verify)


@export("random_uniform_initializer", "initializers.random_uniform")
class RandomUniform(Initializer):
    """Uniform numbers in [minval, maxval)."""

    def __init__(
        self,
        minval: TensorLike = 0,
        maxval: TensorLike = None,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """Random values between `minval` and `maxval`."""
        return random_ops.random_uniform(shape, self.minval, self.maxval, dtype or self.dtype, seed=self.seed)


class _Normal(Initializer):
    _draw: Callable[..., Tensor]

    def __init__(
        self,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return self._draw(shape, self.mean, self.stddev, dtype or self.dtype, seed=self.seed)


@export("random_normal_initializer", "initializers.random_normal")
class RandomNormal(_Normal):
    """Normally distributed numbers."""

    _draw = staticmethod(random_ops.random_normal)


@export("truncated_normal_initializer", "initializers.truncated_normal")
class TruncatedNormal(_Normal):
    """Normally distributed numbers within two standard deviations of the mean."""

    _draw = staticmethod(random_ops.truncated_normal)


@export("uniform_unit_scaling_initializer", "initializers.uniform_unit_scaling")
class UniformUnitScaling(Initializer):
    """Uniform numbers scaled so that a layer keeps the variance of its input."""

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32
    ) -> None:
        self.factor, self.seed = factor, seed
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """Uniform random values; the number of inputs sets their range."""
        full = as_shape(shape).as_list() if partition_info is None else partition_info.full_shape
        inputs = max(math.prod(int(d) for d in full[:-1]), 1)
        limit = math.sqrt(3 / inputs) * self.factor
        return random_ops.random_uniform(shape, -limit, limit, dtype or self.dtype, seed=self.seed)


@export("variance_scaling_initializer", "initializers.variance_scaling")
class VarianceScaling(Initializer):
    """Numbers whose variance is `scale` over the number of inputs, of outputs, or their average."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}; use fan_in, fan_out or fan_avg.")
        distribution = distribution.lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """Random values of the variance that `scale`, `mode` and the shape give."""
        kind = dtype or self.dtype
        full = as_shape(shape).as_list() if partition_info is None else partition_info.full_shape
        fan_in, fan_out = _fans([int(d) for d in full])
        scale = self.scale / max(
            1.0, {"fan_in": fan_in, "fan_out": fan_out}.get(self.mode, (fan_in + fan_out) / 2)
        )
        if self.distribution in ("normal", "truncated_normal"):
            # A normal cut at two deviations has this much less spread.
            stddev = math.sqrt(scale) / 0.87962566103423978
            return random_ops.truncated_normal(shape, 0.0, stddev, kind, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(shape, 0.0, math.sqrt(scale), kind, seed=self.seed)
        limit = math.sqrt(3.0 * scale)
        return random_ops.random_uniform(shape, -limit, limit, kind, seed=self.seed)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs and outputs a weight of this shape connects."""
    shape = [int(size) for size in shape]
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


@export("glorot_uniform_initializer", "initializers.glorot_uniform")
class GlorotUniform(VarianceScaling):
    """Uniform numbers within sqrt(6 / (inputs + outputs)): the default of `tf.get_variable`."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


@export("glorot_normal_initializer", "initializers.glorot_normal")
class GlorotNormal(VarianceScaling):
    """Truncated normal numbers of variance 2 / (inputs + outputs)."""

    def __init__(self, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


@export("orthogonal_initializer", "initializers.orthogonal")
class Orthogonal(Initializer):
    """A random matrix with orthonormal rows or columns."""

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32) -> None:
        self.gain, self.seed = gain, seed
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """A random matrix with orthonormal rows or columns, in this shape."""
        kind = dtype or self.dtype
        dims = [int(d) for d in as_shape(shape).as_list()]
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, cols = math.prod(dims[:-1]), dims[-1]
        drawn = random_ops.random_normal([max(rows, cols), min(rows, cols)], dtype=kind, seed=self.seed)
        q, r = apply_list("Qr", drawn, full_matrices=False)
        q = apply(
            "Mul", q, apply("Sign", apply("DiagPart", r) if rows == cols else apply("MatrixDiagPart", r))
        )
        if rows < cols:
            q = apply("Transpose", q, [1, 0])
        return apply("Mul", constant(self.gain, kind), apply("Reshape", q, dims))


@export("initializers.identity")
class Identity(Initializer):
    """The identity matrix, times `gain`."""

    def __init__(self, gain: float = 1.0, dtype: DTypeLike = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _float(dtype)

    def __call__(
        self, shape: AnyShape, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """The identity matrix or, of a partitioned variable, a part of it."""
        full = as_shape(shape).as_list() if partition_info is None else partition_info.full_shape
        if len(full) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        kind = dtypes.as_dtype(dtype or self.dtype)
        whole = np.eye(int(full[0]), int(full[1])) * self.gain
        if partition_info is not None:
            cut = [
                slice(o, o + int(n))
                for o, n in zip(partition_info.var_offset, as_shape(shape).as_list(), strict=True)
            ]
            whole = whole[tuple(cut)]
        return constant(whole.astype(kind.np_dtype), kind)


@export("initializers.he_normal")
def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


@export("initializers.he_uniform")
def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


@export("initializers.lecun_normal")
def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


@export("initializers.lecun_uniform")
def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


class WithPartition:
    """An initializer with the part of the whole that it makes."""

    def __init__(self, initializer: Callable[..., TensorLike], info: PartitionInfo) -> None:
        self._initializer = initializer
        self._info = info

    def __call__(self, shape: AnyShape, dtype: DTypeLike | None = None) -> TensorLike:
        """The initial value of one part of a partitioned variable."""
        return self._initializer(shape, dtype=dtype, partition_info=self._info)


def default_for(dtype: DType, name: str) -> Initializer:
    """The initializer of `tf.get_variable` when none is given."""
    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string or dtype.is_unsigned:
        return Zeros(dtype)
    raise ValueError(f"An initializer for variable {name} of {dtype} is required")


def _parameters(f: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(f).parameters
    except (TypeError, ValueError):
        return {}


def names_partition_info(initializer: Callable[..., Any]) -> bool:
    """Whether an initializer has an argument of that name."""
    return "partition_info" in _parameters(initializer)


def takes_partition_info(initializer: Callable[..., Any]) -> bool:
    """Whether an initializer takes the part that it makes."""
    parameters = _parameters(initializer)
    return "partition_info" in parameters or any(p.kind == p.VAR_KEYWORD for p in parameters.values())


def needs_arguments(initializer: Callable[..., Any]) -> bool:
    """Whether an initializer cannot be called without arguments."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in kinds and p.default is p.empty for p in _parameters(initializer).values())


def takes_shape(initializer: Callable[..., Any]) -> bool:
    """Whether an initializer takes a shape, rather than being a function that makes a value."""
    return bool(_parameters(initializer))
