"""Removed functions of scipy: images in `scipy.misc`, filters over arrays of objects.

It is put back when a script imports the module, and only what is gone.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import numpy as np

from tensorfleet.base.formats.images import pillow
from tensorfleet.cli.scripts.module_loaders import OtherLoader

_RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}  # Pillow's numbers
_OF_CHANNELS = {2: "LA", 3: "RGB", 4: "RGBA"}


def install() -> None:
    """From here on the modules have what they had; those that are imported already, too."""
    _LOADER.install()
    for name, complete in _MODULES.items():
        if name in sys.modules:
            complete(sys.modules[name])


def uninstall() -> None:
    """Undoes `install`; modules that are imported already keep what they have."""
    _LOADER.uninstall()


class _Loader(SourceFileLoader):
    """Loads a module, and puts back what it has lost."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _MODULES[module.__name__](module)


def _put_back_pictures(module: ModuleType) -> None:
    from scipy import special

    for function in (imread, imsave, imresize, imrotate, toimage, fromimage, bytescale):
        _put_back(module, function.__name__, function)
    for name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp"):
        _put_back(module, name, getattr(special, name))


def _put_back(module: ModuleType, name: str, value: Any) -> None:
    if name not in vars(module):
        setattr(module, name, value)


def _widen_filters(module: ModuleType) -> None:
    module.lfilter = _of_objects(module.lfilter)  # type: ignore[attr-defined]


def _of_objects(lfilter: Any) -> Any:
    """Numbers in an array of objects were filtered too: rewards, say, that are kept in a list with other things."""

    @functools.wraps(lfilter)
    def filtered(b: Any, a: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        values = np.asarray(x)
        return lfilter(b, a, values.astype(float) if values.dtype == object else x, *args, **kwargs)

    return filtered


_MODULES: dict[str, Callable[[ModuleType], None]] = {
    "scipy.misc": _put_back_pictures,
    "scipy.signal": _widen_filters,
}
_LOADER = OtherLoader(_MODULES.__contains__, _Loader)


# -- pictures, by Pillow --


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> np.ndarray:
    """Numbers as bytes: what lies from `cmin` to `cmax` (all of them, if not given) from `low` to `high`."""
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    first = data.min() if cmin is None else cmin
    span = (data.max() if cmax is None else cmax) - first
    scaled = (data - first) * (high - low) / (span or 1) + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: Any = None,
    cmax: Any = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """A picture of an array: its numbers are scaled to the range of bytes, unless they are bytes or `mode` is F or I.

    `pal` has the colours, three bytes each, that the numbers of a matrix stand for; with the mode P alone these are grays.
    """
    Image = pillow()
    data = np.asarray(arr)
    if data.ndim == 2:
        if mode in ("F", "I"):
            return Image.fromarray(data.astype(np.float32 if mode == "F" else np.int32))
        result = Image.fromarray(bytescale(data, cmin, cmax, high, low))
        if mode not in (None, "L", "P"):
            return result.convert(mode)
        if pal is not None or mode == "P":
            colours = np.arange(256).repeat(3) if pal is None else pal
            result.putpalette(np.asarray(colours, np.uint8).tobytes())
        return result
    if data.ndim != 3 or not {3, 4} & set(data.shape):
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    if channel_axis is None:
        count = 3 if 3 in data.shape else 4
        channel_axis = max(axis for axis in range(3) if data.shape[axis] == count)
    colors = np.moveaxis(bytescale(data, cmin, cmax, high, low), channel_axis, -1)
    return Image.fromarray(np.ascontiguousarray(colors), mode or _OF_CHANNELS[colors.shape[-1]])


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """The array of a picture; of grays with a fraction with `flatten`."""
    if mode is not None:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im.convert("F") if flatten else im)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """The array of a picture in a file."""
    with pillow().open(name) as picture:
        return fromimage(picture, flatten, mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Writes an array as a picture; the numbers are scaled as `toimage` does."""
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> np.ndarray:
    """An array as a picture of another size: percents, a part of what it is, or (height, width)."""
    picture = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        wanted = tuple(int(side * size / 100.0) for side in picture.size)
    elif isinstance(size, (float, np.floating)):
        wanted = tuple(int(side * size) for side in picture.size)
    else:
        wanted = (size[1], size[0])
    return np.array(picture.resize(wanted, resample=_RESAMPLING[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray:
    """An array as a picture turned by degrees."""
    resample = _RESAMPLING[interp]
    return np.array(toimage(arr).rotate(angle, resample=resample))
