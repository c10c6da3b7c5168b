"""`tf.keras.regularizers` and `tf.keras.constraints`: losses for weights, and what weights may be."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state


class Regularizer:
    """Base of regularizers: a loss for a weight."""

    def __call__(self, x: Any) -> Tensor:
        """The loss."""
        return to_tensor(0.0)

    def get_config(self) -> dict[str, float]:
        """The arguments to make the same one again."""
        return {k: float(v) for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Regularizer:
        """A regularizer from what `get_config` gave."""
        return cls(**config)


class L1L2(Regularizer):
    """`l1` times the sum of absolute values, and `l2` times that of the squares."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = l1, l2

    def __call__(self, x: Any) -> Tensor:
        x = to_tensor(x)
        losses = []
        if self.l1:
            losses.append(self.l1 * find("reduce_sum")(find("abs")(x)))
        if self.l2:
            losses.append(self.l2 * find("reduce_sum")(find("square")(x)))
        return sum(losses[1:], losses[0]) if losses else to_tensor(0.0, dtypes.float32)


def l1(l: float = 0.01) -> L1L2:  # noqa: E741 - its name in Keras
    """`l` times the sum of absolute values."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741 - its name in Keras
    """`l` times the sum of squares."""
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """Both."""
    return L1L2(l1=l1, l2=l2)


class Constraint:
    """Base of constraints: a function of a weight, applied after each of its updates."""

    def __call__(self, w: Any) -> Any:
        """The weight as it may be."""
        return w

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same one again."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Constraint:
        """A constraint from what `get_config` gave."""
        return cls(**config)


class MaxNorm(Constraint):
    """Keeps the norms of columns at most `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Tensor:
        """The weight, scaled down where it is too long."""
        norms = _norms(w, self.axis)
        return w * (find("clip_by_value")(norms, 0.0, self.max_value) / (state.epsilon() + norms))


class NonNeg(Constraint):
    """Makes negative weights zero."""

    def __call__(self, w: Any) -> Tensor:
        """The weight without its negative entries."""
        return w * find("cast")(find("greater_equal")(w, 0.0), w.dtype.base_dtype)


class UnitNorm(Constraint):
    """Makes the norms of columns one."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        """The weight, scaled."""
        return w / (state.epsilon() + _norms(w, self.axis))


class MinMaxNorm(Constraint):
    """Moves the norms of columns between two values, by a share `rate` of the way at each update."""

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Tensor:
        """The weight, scaled."""
        norms = _norms(w, self.axis)
        wanted = self.rate * find("clip_by_value")(norms, self.min_value, self.max_value)
        return w * ((wanted + (1 - self.rate) * norms) / (state.epsilon() + norms))


class RadialConstraint(Constraint):
    """Makes the kernels of images the same at places equally far from their middle."""

    def __call__(self, w: Any) -> Tensor:
        """The kernel, each ring of it with the value above its middle."""
        dims = w.shape.as_list()
        if len(dims) != 4:
            raise ValueError(f"The weight tensor must be of rank 4, but is of shape: {tuple(dims)}")
        height, width = dims[:2]
        if height != width:
            raise ValueError(f"The weight tensor must be of square images, but is of shape: {tuple(dims)}")
        start, even = height // 2, height % 2 == 0
        value = find("convert_to_tensor")(w)[height // 2, width // 2]
        value = find("reshape")(value, [1, 1, *dims[2:]])
        paddings = [[1, 1], [1, 1], [0, 0], [0, 0]]
        result = value if not even else find("tile")(value, [2, 2, 1, 1])
        for i in range(1, start if even else start + 1):
            edge = find("convert_to_tensor")(w)[start + i, width // 2]
            ring = find("pad")(find("zeros_like")(result), paddings, constant_values=1)
            result = find("pad")(result, paddings) + ring * edge
        return result


def _norms(w: Any, axis: Any) -> Tensor:
    return find("sqrt")(find("reduce_sum")(find("square")(w), axis, keepdims=True))
