"""Pooling layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.layers.specs import InputSpec, data_format_of, layout_of, padding_of, tuple_of
from tensorfleet.api.nn.pooling import Sizes, avg_pool, avg_pool3d, max_pool, max_pool3d
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Dims, ShapeLike, TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.array.transpose import transpose


class _Pooling(Layer):
    """One number for each window of each channel."""

    _rank: int
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        pool_size: Sizes,
        strides: Sizes | None,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = tuple_of(pool_size, self._rank, "pool_size")
        self.strides = tuple_of(pool_size if strides is None else strides, self._rank, "strides")
        self.padding = padding_of(padding)
        self.data_format = data_format_of(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        first = self.data_format == "channels_first"
        if self._rank == 1:
            axis = 3 if first else 2
            flat = self._windows(apply("ExpandDims", inputs, axis), (1,))
            return apply("Squeeze", flat, squeeze_dims=[axis])
        # As TensorFlow's layer does, whose op for volumes takes channels last only.
        if self._rank == 3 and first:
            last = transpose(inputs, (0, 2, 3, 4, 1))
            return transpose(self._windows(last, (), "channels_last"), (0, 4, 1, 2, 3))
        return self._windows(inputs, ())

    def _windows(self, inputs: Tensor, more: Dims, data_format: str | None = None) -> Tensor:
        layout = layout_of(data_format or self.data_format, max(self._rank, 2))

        def around(sizes: Dims) -> list[int]:
            sizes = (*sizes, *more)
            return [1, 1, *sizes] if layout.startswith("NC") else [1, *sizes, 1]

        size, steps = around(self.pool_size), around(self.strides)
        return self._pool(inputs, size, steps, self.padding.upper(), layout)

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """One entry for each window."""
        dims = TensorShape(input_shape).as_list()
        start = 2 if self.data_format == "channels_first" else 1
        for i in range(self._rank):
            size, window, step = dims[start + i], self.pool_size[i], self.strides[i]
            if size is not None:
                dims[start + i] = -(-(size - (window - 1 if self.padding == "valid" else 0)) // step)
        return TensorShape(dims)


def _declare(
    name: str, rank: int, pool: Callable[..., Tensor], what: str
) -> tuple[type[_Pooling], Callable[..., Tensor]]:
    """The class and the function of one kind of pooling."""
    kind = type(name, (_Pooling,), {"_rank": rank, "_pool": staticmethod(pool), "__doc__": what})
    export(f"layers.{name}")(kind)

    def function(
        inputs: TensorLike,
        pool_size: Sizes,
        strides: Sizes | None,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        result: Tensor = kind(pool_size, strides, padding, data_format, name)(inputs)
        return result

    public = name.replace("Max", "max_").replace("Average", "average_").replace("Pooling", "pooling").lower()
    function.__name__ = function.__qualname__ = public
    function.__doc__ = what
    export(f"layers.{public}")(function)
    return kind, function


_MAX, _MEAN = "The largest value in each window of {}.", "The average of each window of {}."
_KINDS = ("sequences", "images", "volumes")
MaxPooling1D, max_pooling1d = _declare("MaxPooling1D", 1, max_pool, _MAX.format(_KINDS[0]))
MaxPooling2D, max_pooling2d = _declare("MaxPooling2D", 2, max_pool, _MAX.format(_KINDS[1]))
MaxPooling3D, max_pooling3d = _declare("MaxPooling3D", 3, max_pool3d, _MAX.format(_KINDS[2]))
AveragePooling1D, average_pooling1d = _declare("AveragePooling1D", 1, avg_pool, _MEAN.format(_KINDS[0]))
AveragePooling2D, average_pooling2d = _declare("AveragePooling2D", 2, avg_pool, _MEAN.format(_KINDS[1]))
AveragePooling3D, average_pooling3d = _declare("AveragePooling3D", 3, avg_pool3d, _MEAN.format(_KINDS[2]))
