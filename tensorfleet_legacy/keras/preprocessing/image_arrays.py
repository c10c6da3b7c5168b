"""`tf.keras.preprocessing.image`: images as files, as PIL's objects and as arrays; arrays moved, turned, lit."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tensorfleet_legacy.keras import backend as state

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def _pil(what: str) -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError(
            f"Could not import PIL.Image. The use of `{what}` requires PIL: `pip install pillow`."
        ) from None


def _first(data_format: str | None) -> bool:
    layout = data_format or state.image_data_format()
    if layout not in ("channels_first", "channels_last"):
        raise ValueError(f"Invalid data_format: {layout}")
    return layout == "channels_first"


# -- files and objects -------------------------------------------------------------------------------------


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """An image of PIL as an array."""
    array = np.asarray(img, dtype=dtype or state.floatx())
    first = _first(data_format)
    if array.ndim == 2:
        return array[None] if first else array[..., None]
    if array.ndim != 3:
        raise ValueError(f"Unsupported image shape: {array.shape}")
    return array.transpose(2, 0, 1) if first else array


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array as an image of PIL; with `scale`, its values are stretched from 0 to 255."""
    image = _pil("array_to_img")
    x = np.asarray(x, dtype=dtype or state.floatx())
    if x.ndim != 3:
        raise ValueError(
            f"Expected image array to have rank 3 (single image). Got array with shape: {x.shape}"
        )
    if _first(data_format):
        x = x.transpose(1, 2, 0)
    if scale:
        x = x - np.min(x)
        most = np.max(x)
        x = (x / most if most != 0 else x) * 255
    channels = x.shape[2]
    if channels in (3, 4):
        return image.fromarray(x.astype("uint8"), {3: "RGB", 4: "RGBA"}[channels])
    if channels != 1:
        raise ValueError(f"Unsupported channel number: {channels}")
    grey = x[:, :, 0]
    return (
        image.fromarray(grey.astype("int32"), "I")
        if np.max(grey) > 255
        else image.fromarray(grey.astype("uint8"), "L")
    )


def load_img(
    path: Any,
    grayscale: bool = False,
    color_mode: str = "rgb",
    target_size: Any = None,
    interpolation: str = "nearest",
) -> Any:
    """An image of a file, as PIL has it; of another size if one is given."""
    image = _pil("load_img")
    color_mode = "grayscale" if grayscale else color_mode
    modes = {"grayscale": ("L", "I;16", "I"), "rgba": ("RGBA",), "rgb": ("RGB",)}
    if color_mode not in modes:
        raise ValueError('color_mode must be "grayscale", "rgb", or "rgba"')
    with open(path, "rb") as file:
        result = image.open(file)
        result.load()
    if result.mode not in modes[color_mode]:
        result = result.convert(modes[color_mode][0])
    if target_size is not None and result.size != (target_size[1], target_size[0]):
        if interpolation not in _INTERPOLATIONS:
            raise ValueError(
                f"Invalid interpolation method {interpolation} specified. Supported methods are "
                f"{', '.join(_INTERPOLATIONS)}"
            )
        result = result.resize((target_size[1], target_size[0]), getattr(image, interpolation.upper()))
    return result


def save_img(
    path: Any,
    x: Any,
    data_format: str | None = None,
    file_format: str | None = None,
    scale: bool = True,
    **kwargs: Any,
) -> None:
    """Writes an array as an image file."""
    result = array_to_img(x, data_format=data_format, scale=scale)
    if result.mode == "RGBA" and file_format in ("jpg", "jpeg"):
        result = result.convert("RGB")  # JPEG has no transparency
    result.save(path, format=file_format, **kwargs)


# -- arrays in other places --------------------------------------------------------------------------------


def _matrix(theta: float, tx: float, ty: float, shear: float, zx: float, zy: float) -> np.ndarray:
    """Where each place of the new image comes from: turned, moved, sheared, zoomed."""
    angle, slant = np.deg2rad(theta), np.deg2rad(shear)
    result = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    result = result @ np.array([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    result = result @ np.array([[1, -np.sin(slant), 0], [0, np.cos(slant), 0], [0, 0, 1]])
    return result @ np.diag([zx, zy, 1.0])


def apply_affine_transform(
    x: Any,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 0,
    col_axis: int = 1,
    channel_axis: int = 2,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> np.ndarray:
    """An image turned and sheared by degrees, moved by pixels, zoomed, around its middle."""
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return x
    from scipy import ndimage

    matrix, channels = _matrix(theta, tx, ty, shear, zx, zy), np.moveaxis(x, channel_axis, 0)
    middle = np.array([x.shape[row_axis], x.shape[col_axis]]) / 2 + 0.5
    start = middle - matrix[:2, :2] @ middle + matrix[:2, 2]
    options: dict[str, Any] = {"order": order, "mode": fill_mode, "cval": cval}
    items = [ndimage.affine_transform(one, matrix[:2, :2], start, **options) for one in channels]
    return np.moveaxis(np.stack(items), 0, channel_axis)


def _placed(x: Any, channel: int, mode: str, cval: float, order: int, **given: Any) -> np.ndarray:
    """An image moved around the middle of its first two axes, whichever hold rows and columns: as Keras does."""
    return apply_affine_transform(x, channel_axis=channel, fill_mode=mode, cval=cval, order=order, **given)


def random_rotation(
    x: Any,
    rg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image turned by up to `rg` degrees."""
    theta = np.random.uniform(-rg, rg)
    return _placed(x, channel_axis, fill_mode, cval, interpolation_order, theta=theta)


def random_shift(
    x: Any,
    wrg: float,
    hrg: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image moved by up to shares of its width and height."""
    tx = np.random.uniform(-hrg, hrg) * x.shape[row_axis]
    ty = np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return _placed(x, channel_axis, fill_mode, cval, interpolation_order, tx=tx, ty=ty)


def random_shear(
    x: Any,
    intensity: float,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image sheared by up to `intensity` degrees."""
    shear = np.random.uniform(-intensity, intensity)
    return _placed(x, channel_axis, fill_mode, cval, interpolation_order, shear=shear)


def random_zoom(
    x: Any,
    zoom_range: Any,
    row_axis: int = 1,
    col_axis: int = 2,
    channel_axis: int = 0,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    interpolation_order: int = 1,
) -> np.ndarray:
    """An image zoomed by a factor between two, each way by its own."""
    if len(zoom_range) != 2:
        raise ValueError(f"`zoom_range` should be a tuple or list of two floats. Received: {zoom_range}")
    low, high = zoom_range
    zx, zy = (1, 1) if low == high == 1 else np.random.uniform(low, high, 2)
    return _placed(x, channel_axis, fill_mode, cval, interpolation_order, zx=zx, zy=zy)


# -- arrays in other colours -------------------------------------------------------------------------------


def apply_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> np.ndarray:
    """An image with a number added to all values, which stay between its least and its greatest."""
    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(x: Any, intensity_range: float, channel_axis: int = 0) -> np.ndarray:
    """An image with a number of up to `intensity_range` added."""
    return apply_channel_shift(
        x, np.random.uniform(-intensity_range, intensity_range), channel_axis=channel_axis
    )


def apply_brightness_shift(x: Any, brightness: float) -> np.ndarray:
    """An image darker or brighter by a factor."""
    _pil("apply_brightness_shift")
    enhance = importlib.import_module("PIL.ImageEnhance")
    return img_to_array(enhance.Brightness(array_to_img(x)).enhance(brightness))


def random_brightness(x: Any, brightness_range: Any) -> np.ndarray:
    """An image darker or brighter by a factor between two."""
    if len(brightness_range) != 2:
        raise ValueError(
            f"`brightness_range should be tuple or list of two floats. Received: {brightness_range}"
        )
    return apply_brightness_shift(x, np.random.uniform(brightness_range[0], brightness_range[1]))
