"""Initializers as TensorFlow 2 has them: the type of the numbers is told when they are made."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tensorfleet.api.variables import initializers, orthogonal
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.internals.framework.ops_conversion import constant

_HERE = "python.ops.init_ops_v2."
publish(orthogonal._ConvolutionOrthogonal, "python.ops.init_ops.ConvolutionOrthogonal")


@export(_HERE + "Initializer")
class Initializer:
    """Base of the initializers: call one with a shape, and a type, to get the tensor of initial values."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define __call__(shape, dtype).")

    def get_config(self) -> dict:
        """The arguments to make the same initializer again."""
        names = inspect.signature(type(self).__init__).parameters
        return {n: getattr(self, n) for n in names if n != "self" and hasattr(self, n)}

    @classmethod
    def from_config(cls, config: dict) -> Initializer:
        """An initializer from what `get_config` gave."""
        return cls(**{k: v for k, v in config.items() if k != "dtype"})


def _checked(dtype: Any, allowed: str) -> dtypes.DType:
    kind = dtypes.as_dtype(dtype)
    number = kind.is_floating or kind.is_integer or kind.is_complex
    fits = {
        "numeric or boolean": number or kind.is_bool,
        "float or integer": kind.is_floating or kind.is_integer,
        "floating point": kind.is_floating,
    }
    if not fits[allowed]:
        raise ValueError(f"Expected {allowed} dtype, got {kind}.")
    return kind


@export(_HERE + "Zeros", _HERE + "zeros_initializer")
class Zeros(Initializer):
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:
        return find("zeros")(shape, _checked(dtype, "numeric or boolean"))


@export(_HERE + "Ones", _HERE + "ones_initializer")
class Ones(Initializer):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:
        return find("ones")(shape, _checked(dtype, "numeric or boolean"))


@export(_HERE + "Constant", _HERE + "constant_initializer")
class Constant(Initializer):
    """One value, or as many as the shape has."""

    def __init__(self, value: Any = 0) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value: {type(value)} (expected Python scalar, list or tuple of values, "
                "or numpy.ndarray)."
            )
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return constant(self.value, None if dtype is None else dtypes.as_dtype(dtype), shape)


class _Drawn(Initializer):
    """Random numbers, as the initializer of version 1 draws them."""

    _first: type
    _allowed = "floating point"

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:
        kind = _checked(dtype, self._allowed)
        return self._first(**self.get_config())(shape, kind)


@export(_HERE + "RandomUniform", _HERE + "random_uniform_initializer")
class RandomUniform(_Drawn):
    """Uniform numbers in [minval, maxval)."""

    _first, _allowed = initializers.RandomUniform, "float or integer"

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed


@export(_HERE + "RandomNormal", _HERE + "random_normal_initializer")
class RandomNormal(_Drawn):
    """Normal numbers."""

    _first = initializers.RandomNormal

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed


@export(_HERE + "TruncatedNormal", _HERE + "truncated_normal_initializer")
class TruncatedNormal(_Drawn):
    """Normal numbers within two deviations."""

    _first = initializers.TruncatedNormal

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed


@export(_HERE + "VarianceScaling", _HERE + "variance_scaling_initializer")
class VarianceScaling(_Drawn):
    """Numbers whose variance is `scale` over the number of inputs, of outputs, or their average."""

    _first = initializers.VarianceScaling

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        result = initializers.VarianceScaling(scale, mode, distribution, seed)
        named = "truncated_normal" if result.distribution == "normal" else result.distribution
        self.scale, self.mode, self.distribution, self.seed = scale, mode, named, seed


class _Scaled(VarianceScaling):
    """A variance scaling that is known by a name."""

    _how: tuple[float, str, str]

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(*self._how, seed)

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:
        return self._first(*self._how, self.seed)(shape, _checked(dtype, self._allowed))


@export(_HERE + "GlorotUniform", _HERE + "glorot_uniform_initializer")
class GlorotUniform(_Scaled):
    """Uniform numbers within sqrt(6 / (inputs + outputs))."""

    _how = (1.0, "fan_avg", "uniform")


@export(_HERE + "GlorotNormal", _HERE + "glorot_normal_initializer")
class GlorotNormal(_Scaled):
    """Truncated normal numbers of variance 2 / (inputs + outputs)."""

    _how = (1.0, "fan_avg", "truncated_normal")


def _named(name: str, scale: float, distribution: str) -> None:
    def make(seed: int | None = None) -> VarianceScaling:
        return VarianceScaling(scale, "fan_in", distribution, seed)

    make.__name__ = name
    make.__doc__ = f"A variance of {scale:g} over the number of inputs."
    publish(make, _HERE + name)


for _name, _scale in (("lecun", 1.0), ("he", 2.0)):
    _named(f"{_name}_normal", _scale, "truncated_normal")
    _named(f"{_name}_uniform", _scale, "uniform")


@export(_HERE + "Orthogonal", _HERE + "orthogonal_initializer")
class Orthogonal(_Drawn):
    """A random matrix with orthonormal rows or columns."""

    _first = initializers.Orthogonal

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        self.gain, self.seed = gain, seed


@export(_HERE + "Identity", _HERE + "identity_initializer")
class Identity(_Drawn):
    """The identity matrix, times `gain`."""

    _first = initializers.Identity

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain
