"""`tf.keras.preprocessing.image.ImageDataGenerator`: images changed at random as they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.base.arguments import like, taking
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.preprocessing import image_arrays as picture_arrays
from tensorfleet_legacy.keras.preprocessing.image_iterators import (
    DataFrameIterator,
    DirectoryIterator,
    NumpyArrayIterator,
)


class ImageDataGenerator:
    """Images in memory, turned, moved, zoomed, flipped and scaled at random; `flow` gives their batches."""

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Any = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        dtype: Any = None,
    ) -> None:
        # What divides or whitens centers first.
        self.featurewise_center = featurewise_center or featurewise_std_normalization or zca_whitening
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization and not zca_whitening
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.rotation_range, self.shear_range = rotation_range, shear_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.fill_mode, self.cval = fill_mode, cval
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.data_format = data_format or state.image_data_format()
        self.dtype = dtype or state.floatx()
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(
                '`data_format` should be `"channels_last"` (channel after row and column) or `"channels_first"` (channel '
                f"before row and column). Received: {self.data_format}"
            )
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(
                f"`validation_split` must be strictly between 0 and 1.  Received: {validation_split}"
            )
        self._validation_split = validation_split
        last = self.data_format == "channels_last"
        self._axes = (0, 1, 2) if last else (1, 2, 0)
        if isinstance(zoom_range, (int, float)):
            self.zoom_range = [1 - zoom_range, 1 + zoom_range]
        elif len(zoom_range) == 2:
            self.zoom_range = [zoom_range[0], zoom_range[1]]
        else:
            raise ValueError(
                f"`zoom_range` should be a float or a tuple of two floats. Received: {zoom_range}"
            )
        self.mean: Any = None
        self.std: Any = None
        self.principal_components: Any = None

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
    ) -> NumpyArrayIterator:
        """Batches of images, with their labels and weights if given, over and over."""
        saved = (save_to_dir, save_prefix, save_format)
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, self.data_format, *saved, subset=subset
        )

    @taking(like(DirectoryIterator, without=("image_data_generator", "data_format", "dtype")))
    def flow_from_directory(self, given: dict[str, Any]) -> DirectoryIterator:
        """Batches of the images in folders, one folder for each class, over and over."""
        return DirectoryIterator(
            image_data_generator=self, data_format=self.data_format, dtype=self.dtype, **given
        )

    def flow_from_dataframe(
        self,
        dataframe: Any,
        directory: str | None = None,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: str | None = None,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
        **kwargs: Any,
    ) -> DataFrameIterator:
        """Batches of the images that a table of pandas lists, over and over."""
        ignored = ("self", "dataframe", "directory", "kwargs")
        given = {key: value for key, value in locals().items() if key not in (*ignored, "ignored")}
        if "class_mode" in given and class_mode == "other":
            given["class_mode"] = "raw"
        given |= {"data_format": self.data_format, "dtype": self.dtype}
        return DataFrameIterator(dataframe, directory, self, **given)

    def standardize(self, x: np.ndarray) -> np.ndarray:
        """Scales and centers an image, as was asked for."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        x = x * self.rescale if self.rescale else x
        x = x - np.mean(x, keepdims=True) if self.samplewise_center else x
        x = x / (np.std(x, keepdims=True) + 1e-6) if self.samplewise_std_normalization else x
        if (self.featurewise_center or self.featurewise_std_normalization) and self.mean is None:
            raise ValueError(
                "This ImageDataGenerator specifies featurewise statistics, but it hasn't been fit on any training data. "
                "Fit it first by calling `.fit(numpy_data)`."
            )
        x = x - self.mean if self.featurewise_center else x
        x = x / (self.std + 1e-6) if self.featurewise_std_normalization else x
        if self.zca_whitening:
            flat = np.reshape(x, (-1, np.prod(x.shape[-3:])))
            x = np.reshape(flat @ self.principal_components, x.shape)
        return x

    def get_random_transform(self, img_shape: Any, seed: int | None = None) -> dict[str, Any]:
        """Random transformation parameters for an image of this shape."""
        if seed is not None:
            np.random.seed(seed)
        rows, columns = img_shape[self._axes[0]], img_shape[self._axes[1]]
        turn = self.rotation_range
        result: dict[str, Any] = {"theta": np.random.uniform(-turn, turn) if turn else 0}
        result["tx"] = _shift(self.height_shift_range, rows)
        result["ty"] = _shift(self.width_shift_range, columns)
        slant = self.shear_range
        result["shear"] = np.random.uniform(-slant, slant) if slant else 0
        low, high = self.zoom_range
        result["zx"], result["zy"] = (1, 1) if low == high == 1 else np.random.uniform(low, high, 2)
        result["flip_horizontal"] = bool((np.random.random() < 0.5) * self.horizontal_flip)
        result["flip_vertical"] = bool((np.random.random() < 0.5) * self.vertical_flip)
        change = self.channel_shift_range
        result["channel_shift_intensity"] = np.random.uniform(-change, change) if change else None
        light = self.brightness_range
        result["brightness"] = None if light is None else np.random.uniform(light[0], light[1])
        return result

    def apply_transform(self, x: np.ndarray, transform_parameters: dict[str, Any]) -> np.ndarray:
        """An image changed in that way."""
        get, (rows, columns, channels) = transform_parameters.get, self._axes
        x = picture_arrays.apply_affine_transform(
            x,
            *(get("theta", 0), get("tx", 0), get("ty", 0), get("shear", 0), get("zx", 1), get("zy", 1)),
            row_axis=rows,
            col_axis=columns,
            channel_axis=channels,
            fill_mode=self.fill_mode,
            cval=self.cval,
        )
        shift = get("channel_shift_intensity")
        if shift is not None:
            x = picture_arrays.apply_channel_shift(x, shift, channels)
        x = np.flip(x, columns) if get("flip_horizontal") else x
        x = np.flip(x, rows) if get("flip_vertical") else x
        light = get("brightness")
        return x if light is None else picture_arrays.apply_brightness_shift(x, light)

    def random_transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """An image changed at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Learns the means and deviations of images that featurewise scaling and whitening need."""
        x = np.asarray(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}")
        if seed is not None:
            np.random.seed(seed)
        x = x * self.rescale if self.rescale else np.copy(x)
        if augment:
            x = np.concatenate([np.stack([self.random_transform(i) for i in x]) for _ in range(rounds)])
        over = tuple(a for a in range(4) if a != self._axes[2] + 1)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=over, keepdims=True)[0]
            x = x - self.mean
        if self.featurewise_std_normalization:
            self.mean = np.zeros(1, self.dtype) if self.mean is None else self.mean
            self.std = np.std(x, axis=over, keepdims=True)[0]
            x = x / (self.std + 1e-6)
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            u, s, _ = np.linalg.svd(flat.T @ flat / len(flat))
            self.principal_components = (u / np.sqrt(s + self.zca_epsilon)) @ u.T


def _shift(given: Any, size: int) -> float:
    """How far to move an image, in pixels: by one of several numbers, or up to one; less than 1 is a share."""
    if not np.any(given):
        return 0
    try:  # a whole number stands for those below it
        moved = np.random.choice(given) * np.random.choice([-1, 1])
    except ValueError:
        moved = np.random.uniform(-given, given)
    return moved * size if np.max(given) < 1 else moved
