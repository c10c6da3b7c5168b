"""Keras's layers that pad, cut and enlarge sequences, images and volumes."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.layers.specs import InputSpec, tuple_of
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.base_layer import Layer


def _sides(given: Any, rank: int, what: str) -> tuple:
    """(before, after) for each axis, from a number, a number for each axis, or a pair for each."""
    each = (given,) * rank if isinstance(given, int) else tuple(given)
    if rank == 1:
        return (tuple_of(given, 2, what),)
    if len(each) != rank:
        raise ValueError(f"`{what}` should have {rank} elements. Found: {given}")
    return tuple(tuple_of(side, 2, f"{what} entry") for side in each)


class _Spatial(Layer):
    """The base of layers that act on the axes between batch and channels."""

    _rank: int

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        last = self._rank == 1
        self.data_format = data_format or ("channels_last" if last else state.image_data_format())
        self.input_spec = InputSpec(ndim=self._rank + 2)

    @property
    def _first(self) -> int:
        """The first of the axes."""
        return 1 if self.data_format == "channels_last" else 2

    def _around(self, middle: list, other: Any) -> list:
        """One entry for each axis of the input: `middle` for those that are meant."""
        return [other, *middle, other] if self._first == 1 else [other, other, *middle]


class _ZeroPadding(_Spatial):
    """Zeros before and behind."""

    def _pad(self, padding: Any, data_format: str | None, kwargs: dict[str, Any]) -> None:
        _Spatial.__init__(self, data_format, **kwargs)
        self._pairs = _sides(padding, self._rank, "padding")
        self.padding = self._pairs[0] if self._rank == 1 else self._pairs

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return find("pad")(inputs, self._around([list(pair) for pair in self._pairs], [0, 0]))


class ZeroPadding1D(_ZeroPadding):
    """Zeros around sequences: a number, or one for each end."""

    _rank = 1

    def __init__(self, padding: Any = 1, **kwargs: Any) -> None:
        self._pad(padding, None, kwargs)


class ZeroPadding2D(_ZeroPadding):
    """Zeros around images: a number, two for rows and columns, or two for each side."""

    _rank = 2

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any) -> None:
        self._pad(padding, data_format, kwargs)


class ZeroPadding3D(_ZeroPadding):
    """Zeros around volumes: a number, three, or two for each of the three axes."""

    _rank = 3

    def __init__(self, padding: Any = (1, 1, 1), data_format: str | None = None, **kwargs: Any) -> None:
        self._pad(padding, data_format, kwargs)


class _Cropping(_Spatial):
    """Without what is at the ends."""

    def _crop(self, cropping: Any, data_format: str | None, kwargs: dict[str, Any]) -> None:
        _Spatial.__init__(self, data_format, **kwargs)
        self._pairs = _sides(cropping, self._rank, "cropping")
        self.cropping = self._pairs[0] if self._rank == 1 else self._pairs

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        kept = [slice(before, -after or None) for before, after in self._pairs]
        return inputs[tuple(self._around(kept, slice(None)))]


class Cropping1D(_Cropping):
    """Sequences without steps at their ends."""

    _rank = 1

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        self._crop(cropping, None, kwargs)


class Cropping2D(_Cropping):
    """Images without their borders."""

    _rank = 2

    def __init__(
        self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any
    ) -> None:
        self._crop(cropping, data_format, kwargs)


class Cropping3D(_Cropping):
    """Volumes without their borders."""

    _rank = 3

    def __init__(
        self,
        cropping: Any = ((1, 1), (1, 1), (1, 1)),
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._crop(cropping, data_format, kwargs)


def _repeated(value: Tensor, axis: int, times: int) -> Tensor:
    """Each element along an axis so many times in a row."""
    known = value.shape.as_list()
    stacked = find("stack")([value] * times, axis=axis + 1)
    sizes = find("shape")(value)
    shape = find("concat")([sizes[:axis], [sizes[axis] * times], sizes[axis + 1 :]], 0)
    result = find("reshape")(stacked, shape)
    known[axis] = None if known[axis] is None else known[axis] * times
    result.set_shape(known)
    return result


class UpSampling1D(_Spatial):
    """Longer sequences: each step repeated."""

    _rank = 1

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = int(size)

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        return _repeated(inputs, 1, self.size)


class UpSampling3D(_Spatial):
    """Larger volumes: each element repeated along three axes."""

    _rank = 3

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format, **kwargs)
        self.size = tuple_of(size, 3, "size")

    def call(self, inputs: Any) -> Tensor:  # type: ignore[override]
        for axis, times in enumerate(self.size, self._first):
            inputs = _repeated(inputs, axis, times)
        return inputs
