"""Keras's layers of several inputs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras.engine.base_layer import Layer


class _Merge(Layer):
    """One tensor of several of the same shape."""

    _pair: Callable[[Any, Any], Any]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def _merged(self, inputs: list) -> Tensor:
        return functools.reduce(type(self)._pair, inputs)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        """Merges."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(f"A merge layer should be called on a list of at least 2 inputs. Got {inputs}")
        self._check(inputs)
        return self._merged(_same_rank(list(inputs)))

    def _check(self, inputs: Any) -> None:
        """ValueError when the shapes of examples do not go together."""
        shapes = [tuple(t.shape.as_list()[1:]) for t in inputs if t.shape.ndims]
        for first, second in itertools.pairwise(shapes):
            for a, b in zip(first[::-1], second[::-1], strict=False):
                if None not in (a, b) and a != b and 1 not in (a, b):
                    raise ValueError(f"Operands could not be broadcast together with shapes {first} {second}")

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the result: steps that no input masks."""
        known = [m for m in mask or [] if m is not None]
        return functools.reduce(find("logical_and"), known) if known else None


def _same_rank(tensors: list) -> list:
    """Tensors with as many axes as the one that has most: others get theirs behind the batch."""
    ranks = [t.shape.ndims for t in tensors]
    if None in ranks or len(set(ranks)) == 1:
        return tensors
    result = []
    for tensor in tensors:
        for _ in range(max(ranks) - tensor.shape.ndims):
            tensor = find("expand_dims")(tensor, 1)
        result.append(tensor)
    return result


class Add(_Merge):
    """The sum."""

    _pair = staticmethod(lambda a, b: a + b)


class Subtract(_Merge):
    """The first less the second."""

    _pair = staticmethod(lambda a, b: a - b)


class Multiply(_Merge):
    """The product."""

    _pair = staticmethod(lambda a, b: a * b)


class Maximum(_Merge):
    """The larger of each pair."""

    _pair = staticmethod(lambda a, b: find("maximum")(a, b))


class Minimum(_Merge):
    """The smaller of each pair."""

    _pair = staticmethod(lambda a, b: find("minimum")(a, b))


class Average(_Merge):
    """The mean."""

    def _merged(self, inputs: list) -> Tensor:
        return functools.reduce(lambda a, b: a + b, inputs) / len(inputs)


class Concatenate(_Merge):
    """One behind the other, along an axis."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def _check(self, inputs: Any) -> None:
        shapes = [t.shape.as_list() for t in inputs if t.shape.ndims is not None]
        others = [[d for i, d in enumerate(s) if i != self.axis % len(s)] for s in shapes]
        pairs = [zip(others[0], other, strict=False) for other in others[1:]]
        different = any(None not in (a, b) and a != b for pair in pairs for a, b in pair)
        if different or len({len(s) for s in shapes}) > 1:
            raise ValueError(
                "A `Concatenate` layer requires inputs with matching shapes except for the concat axis. Got inputs "
                f"shapes: {[tuple(s) for s in shapes]}"
            )

    def _merged(self, inputs: list) -> Tensor:
        return find("concat")(inputs, self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks one behind the other, where an input has one."""
        masks = list(mask or [])
        if all(m is None for m in masks):
            return None
        results = []
        for x, m in zip(inputs, masks, strict=True):
            if m is None:
                results.append(find("ones_like")(x, dtype="bool"))
            else:
                results.append(find("broadcast_to")(find("expand_dims")(m, -1), find("shape")(x)))
        return find("reduce_all")(find("concat")(results, self.axis), -1)


class Dot(_Merge):
    """The products of two tensors' vectors along an axis of each, scaled to length one if `normalize`."""

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes, self.normalize = axes, normalize
        self.supports_masking = False

    def _check(self, inputs: Any) -> None:
        """Any two tensors have a product."""

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Products have no steps."""

    def _merged(self, inputs: list) -> Tensor:
        first, second = inputs
        axes = [self.axes] * 2 if isinstance(self.axes, int) else list(self.axes)
        axes = [a % len(t.shape) for a, t in zip(axes, inputs, strict=True)]
        if self.normalize:
            normalized = find("nn.l2_normalize")
            first, second = (normalized(t, axis=a) for t, a in zip(inputs, axes, strict=True))
        if len(first.shape) == len(second.shape) == 2:
            return find("reduce_sum")(first * second, 1, keepdims=True)
        return find("matmul")(
            first,
            second,
            transpose_a=axes[0] != len(first.shape) - 1,
            transpose_b=axes[1] == len(second.shape) - 1,
        )


def _function(kind: Any, name: str, does: str) -> Callable[..., Tensor]:
    def merge(inputs: list, **kwargs: Any) -> Tensor:
        return kind(**kwargs)(inputs)

    merge.__name__ = merge.__qualname__ = name
    merge.__doc__ = does
    return merge


add = _function(Add, "add", "The sum of tensors.")
subtract = _function(Subtract, "subtract", "The first tensor less the second.")
multiply = _function(Multiply, "multiply", "The product of tensors.")
average = _function(Average, "average", "The mean of tensors.")
maximum = _function(Maximum, "maximum", "The larger of each pair.")
minimum = _function(Minimum, "minimum", "The smaller of each pair.")


def concatenate(inputs: list, axis: int = -1, **kwargs: Any) -> Tensor:
    """Tensors one behind the other, along an axis."""
    return Concatenate(axis=axis, **kwargs)(inputs)


def dot(inputs: list, axes: Any, normalize: bool = False, **kwargs: Any) -> Tensor:
    """The products of two tensors' vectors along an axis of each."""
    return Dot(axes=axes, normalize=normalize, **kwargs)(inputs)
