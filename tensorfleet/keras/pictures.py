"""`tf.keras.preprocessing.image`: images in memory, changed at random as they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.keras import state
from tensorfleet.keras.feeding import Sequence


def _moved(image: np.ndarray, matrix: np.ndarray, axes: tuple, mode: str, cval: float) -> np.ndarray:
    """An image (axes: rows, columns, channels) through a map of places, around its middle."""
    from scipy import ndimage

    turned = np.moveaxis(image, axes, (0, 1, 2))
    middle = (np.array(turned.shape[:2]) - 1) / 2
    start = middle - matrix[:2, :2] @ middle + matrix[:2, 2]
    made = [
        ndimage.affine_transform(turned[..., c], matrix[:2, :2], start, order=1, mode=mode, cval=cval)
        for c in range(turned.shape[2])
    ]
    return np.moveaxis(np.stack(made, -1), (0, 1, 2), axes)


def _matrix(theta: float, tx: float, ty: float, shear: float, zx: float, zy: float) -> np.ndarray:
    """Where each place of the new image comes from: turned, moved, sheared, zoomed."""
    angle, slant = np.deg2rad(theta), np.deg2rad(shear)
    made = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    made = made @ np.array([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    made = made @ np.array([[1, -np.sin(slant), 0], [0, np.cos(slant), 0], [0, 0, 1]])
    return made @ np.diag([zx, zy, 1.0])


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
        self.featurewise_center, self.samplewise_center = featurewise_center, samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
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
        if save_to_dir is not None:
            raise ValueError(
                "`save_to_dir` is not supported: write the batches as you draw them from the iterator."
            )
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, self.data_format, subset=subset
        )

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
        """What to do to an image of this shape, drawn at random."""
        if seed is not None:
            np.random.seed(seed)
        rows, columns = img_shape[self._axes[0]], img_shape[self._axes[1]]
        turn = self.rotation_range
        made: dict[str, Any] = {"theta": np.random.uniform(-turn, turn) if turn else 0}
        made["tx"] = _shift(self.height_shift_range, rows)
        made["ty"] = _shift(self.width_shift_range, columns)
        slant = self.shear_range
        made["shear"] = np.random.uniform(-slant, slant) if slant else 0
        low, high = self.zoom_range
        made["zx"], made["zy"] = (1, 1) if low == high == 1 else np.random.uniform(low, high, 2)
        made["flip_horizontal"] = bool((np.random.random() < 0.5) * self.horizontal_flip)
        made["flip_vertical"] = bool((np.random.random() < 0.5) * self.vertical_flip)
        change = self.channel_shift_range
        made["channel_shift_intensity"] = np.random.uniform(-change, change) if change else None
        light = self.brightness_range
        made["brightness"] = None if light is None else np.random.uniform(light[0], light[1])
        return made

    def apply_transform(self, x: np.ndarray, transform_parameters: dict[str, Any]) -> np.ndarray:
        """An image changed in that way."""
        get = transform_parameters.get
        places = [get("theta", 0), get("tx", 0), get("ty", 0), get("shear", 0), get("zx", 1), get("zy", 1)]
        if places != [0, 0, 0, 0, 1, 1]:
            x = _moved(x, _matrix(*places), self._axes, self.fill_mode, self.cval)
        shift = get("channel_shift_intensity")
        if shift is not None:
            x = np.clip(x + shift, np.min(x), np.max(x))
        x = np.flip(x, self._axes[1]) if get("flip_horizontal") else x
        x = np.flip(x, self._axes[0]) if get("flip_vertical") else x
        light = get("brightness")
        return x if light is None else np.clip(x * light, 0, 255 if np.max(x) > 1 else 1)

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
        x = np.copy(x)
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
    """How far to move an image, in pixels: by a share of its size, or by pixels."""
    if not isinstance(given, (int, float)):
        return float(np.random.choice(given)) * float(np.random.choice([-1, 1]))
    if not given:
        return 0.0
    moved = float(np.random.uniform(-given, given))
    return moved * size if given < 1 else moved


class NumpyArrayIterator(Sequence):
    """The batches of arrays of images."""

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: ImageDataGenerator,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        dtype: Any = None,
    ) -> None:
        self.image_data_generator = image_data_generator
        self.batch_size, self.shuffle, self.seed = batch_size, shuffle, seed
        self.dtype = dtype or image_data_generator.dtype
        x = np.asarray(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(
                f"Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape {x.shape}"
            )
        parts = [x, None if y is None else np.asarray(y), sample_weight]
        for name, part in (("images tensor", parts[1]), ("sample_weight", parts[2])):
            if part is not None and len(part) != len(x):
                raise ValueError(
                    f"`x` ({name}) and its labels should have the same length. Found: {len(x)}, {len(part)}"
                )
        if subset is not None:
            if subset not in ("training", "validation"):
                raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
            at = int(len(x) * image_data_generator._validation_split)
            rows = slice(0, at) if subset == "validation" else slice(at, None)
            parts = [None if p is None else p[rows] for p in parts]
        self.x, self.y, self.sample_weight = parts
        self.n = len(self.x)
        self._drawn = 0
        self._order = self._new_order()

    def _new_order(self) -> np.ndarray:
        if self.seed is not None:
            np.random.seed(self.seed + self._drawn)
        return np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, index: int) -> Any:
        """A batch, its images changed at random."""
        if index >= len(self):
            raise ValueError(f"Asked to retrieve element {index}, but the Sequence has length {len(self)}")
        if self.seed is not None:
            np.random.seed(self.seed + self._drawn)
        self._drawn += 1
        rows = self._order[index * self.batch_size : (index + 1) * self.batch_size]
        made = self.image_data_generator
        images = [made.standardize(made.random_transform(self.x[i].astype(self.dtype))) for i in rows]
        batch = np.stack(images).astype(self.dtype)
        if self.y is None:
            return batch
        if self.sample_weight is None:
            return batch, self.y[rows]
        return batch, self.y[rows], np.asarray(self.sample_weight)[rows]

    def on_epoch_end(self) -> None:
        """Draws a new order."""
        self._order = self._new_order()

    def reset(self) -> None:
        """Starts over."""
        self._drawing = None

    _drawing: Any = None

    def _batches(self) -> Any:
        while True:
            for i in range(len(self)):
                yield self[i]
            self.on_epoch_end()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        """The next batch."""
        self._drawing = self._drawing or self._batches()
        return next(self._drawing)

    def next(self) -> Any:
        """The next batch."""
        return self.__next__()


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """An image of PIL as an array."""
    made = np.asarray(img, dtype=dtype or state.floatx())
    first = (data_format or state.image_data_format()) == "channels_first"
    if made.ndim == 2:
        return made[None] if first else made[..., None]
    if made.ndim != 3:
        raise ValueError(f"Unsupported image shape: {made.shape}")
    return made.transpose(2, 0, 1) if first else made
