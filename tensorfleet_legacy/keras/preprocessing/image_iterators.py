"""The batches of images that an `ImageDataGenerator` gives: from arrays, from folders, from tables of files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator as Drawn
from typing import Any

import numpy as np

from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.engine.data_adapter import Sequence
from tensorfleet_legacy.keras.preprocessing.image_arrays import array_to_img, img_to_array, load_img

_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_MODES = ("categorical", "binary", "sparse", "input", None)

# What `set_processing_attrs` takes.
_PROCESSING = """
    image_data_generator target_size color_mode data_format save_to_dir save_prefix save_format subset interpolation
"""


class Iterator(Sequence):
    """Base of batches of images: which examples come next. A subclass says what they are."""

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: int | None) -> None:
        self.n, self.batch_size, self.seed, self.shuffle = n, batch_size, seed, shuffle
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.Lock()
        self.index_array: Any = None
        self.index_generator = self._flow_index()

    def _set_index_array(self) -> None:
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def __len__(self) -> int:
        return -(-self.n // self.batch_size)

    def __getitem__(self, idx: int) -> Any:
        """A batch of the order that is now."""
        if idx >= len(self):
            raise ValueError(f"Asked to retrieve element {idx}, but the Sequence has length {len(self)}")
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1
        if self.index_array is None:
            self._set_index_array()
        rows = self.index_array[self.batch_size * idx : self.batch_size * (idx + 1)]
        return self._get_batches_of_transformed_samples(rows)

    def on_epoch_end(self) -> None:
        """Draws a new order."""
        self._set_index_array()

    def reset(self) -> None:
        """Starts over."""
        self.batch_index = 0

    def _flow_index(self) -> Drawn:
        """The rows of one batch after the other, over and over."""
        self.reset()
        while True:
            if self.seed is not None:
                np.random.seed(self.seed + self.total_batches_seen)
            if self.batch_index == 0:
                self._set_index_array()
            start = (self.batch_index * self.batch_size) % self.n
            self.batch_index = self.batch_index + 1 if self.n > start + self.batch_size else 0
            self.total_batches_seen += 1
            yield self.index_array[start : start + self.batch_size]

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        """The next batch."""
        return self.next()

    def next(self) -> Any:
        """The next batch."""
        with self.lock:
            rows = next(self.index_generator)
        return self._get_batches_of_transformed_samples(rows)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        raise TypeError(
            f"{type(self).__name__} must define _get_batches_of_transformed_samples(index_array)."
        )


class _Written(Iterator):
    """Batches that are written to files too, if asked for."""

    save_to_dir: str | None
    save_prefix: str
    save_format: str
    data_format: str

    def _write(self, batch: np.ndarray, rows: Any) -> None:
        if not self.save_to_dir:
            return
        for image, row in zip(batch, rows, strict=True):
            name = f"{self.save_prefix}_{row}_{np.random.randint(10_000_000)}.{self.save_format}"
            array_to_img(image, self.data_format, scale=True).save(os.path.join(self.save_to_dir, name))


def _share(count: int, split: float, subset: str) -> slice:
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
    at = int(count * split)
    return slice(0, at) if subset == "validation" else slice(at, None)


class NumpyArrayIterator(_Written):
    """The batches of arrays of images."""

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Any,
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
        self.dtype = dtype or image_data_generator.dtype
        self.data_format = data_format or image_data_generator.data_format
        self.save_to_dir, self.save_prefix, self.save_format = save_to_dir, save_prefix, save_format
        several = isinstance(x, (tuple, list))
        x, others = (x[0], [np.asarray(other) for other in x[1]]) if several else (x, [])
        x = np.asarray(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(
                f"Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape {x.shape}"
            )
        parts = [x, None if y is None else np.asarray(y)]
        parts.append(None if sample_weight is None else np.asarray(sample_weight))
        for name, part in (("images tensor", parts[1]), ("sample_weight", parts[2])):
            if part is not None and len(part) != len(x):
                raise ValueError(
                    f"`x` ({name}) and its labels should have the same length. Found: {len(x)}, {len(part)}"
                )
        if subset is not None:
            rows = _share(len(x), image_data_generator._validation_split, subset)
            parts = [None if p is None else p[rows] for p in parts]
            others = [other[rows] for other in others]
        self.x, self.y, self.sample_weight = parts
        self.x_misc = others
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        result = self.image_data_generator
        images = []
        for row in index_array:
            x = self.x[row]
            x = result.apply_transform(x.astype(self.dtype), result.get_random_transform(x.shape))
            images.append(result.standardize(x))
        batch = np.stack(images).astype(self.dtype)
        self._write(batch, index_array)
        inputs = [batch, *(other[index_array] for other in self.x_misc)] if self.x_misc else batch
        if self.y is None:
            return inputs
        if self.sample_weight is None:
            return inputs, self.y[index_array]
        return inputs, self.y[index_array], self.sample_weight[index_array]


class _FileIterator(_Written):
    """The batches of images in files."""

    class_mode: str | None
    classes: Any
    class_indices: dict[str, int]
    image_data_generator: Any
    dtype: Any
    filepaths: Any
    labels: Any
    sample_weight: Any = None

    def set_processing_attrs(
        self,
        image_data_generator: Any,
        target_size: Any,
        color_mode: str,
        data_format: str | None,
        save_to_dir: str | None,
        save_prefix: str,
        save_format: str,
        subset: str | None,
        interpolation: str,
    ) -> None:
        """Says how files become images."""
        self.image_data_generator = image_data_generator
        self.target_size = tuple(target_size)
        channels = {"rgb": 3, "rgba": 4, "grayscale": 1}
        if color_mode not in channels:
            raise ValueError(f'Invalid color mode: {color_mode}; expected "rgb", "rgba", or "grayscale".')
        self.color_mode, self.interpolation = color_mode, interpolation
        self.data_format = data_format or state.image_data_format()
        last = self.data_format == "channels_last"
        count = channels[color_mode]
        self.image_shape = (*self.target_size, count) if last else (count, *self.target_size)
        self.save_to_dir, self.save_prefix, self.save_format = save_to_dir, save_prefix, save_format
        if subset is not None and subset not in ("training", "validation"):
            raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation"')
        self.subset = subset

    def _process(self, given: dict[str, Any]) -> None:
        """Says how files become images, by the `locals()` of a constructor."""
        self.set_processing_attrs(*(given[name] for name in _PROCESSING.split()))

    def _kept(self, names: list) -> list:
        """The files of a class in the subset."""
        split = self.image_data_generator._validation_split
        if self.subset is None or not split:
            return names
        at = int(len(names) * split)
        return names[:at] if self.subset == "validation" else names[at:]

    def _image(self, path: str) -> np.ndarray:
        result = load_img(
            path, color_mode=self.color_mode, target_size=self.target_size, interpolation=self.interpolation
        )
        x = img_to_array(result, data_format=self.data_format)
        if self.image_data_generator:
            change = self.image_data_generator.get_random_transform(x.shape)
            x = self.image_data_generator.apply_transform(x, change)
            x = self.image_data_generator.standardize(x)
        return x

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        paths = self.filepaths
        batch = np.zeros((len(index_array), *self.image_shape), dtype=self.dtype)
        for i, row in enumerate(index_array):
            batch[i] = self._image(paths[row])
        self._write(batch, index_array)
        targets = self._targets(batch, index_array)
        if targets is None:
            return batch
        if self.sample_weight is None:
            return batch, targets
        return batch, targets, np.asarray(self.sample_weight)[index_array]

    def _targets(self, batch: np.ndarray, rows: Any) -> Any:
        if self.class_mode is None:
            return None
        if self.class_mode == "input":
            return batch.copy()
        labels = np.asarray(self.labels)[rows]
        if self.class_mode in ("binary", "sparse"):
            return labels.astype(self.dtype)
        result = np.zeros((len(rows), len(self.class_indices)), dtype=self.dtype)
        result[np.arange(len(rows)), labels] = 1.0
        return result


class DirectoryIterator(_FileIterator):
    """The batches of images in folders, one folder for each class."""

    def __init__(
        self,
        directory: str,
        image_data_generator: Any,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        dtype: Any = None,
    ) -> None:
        self._process(locals())
        if class_mode not in _MODES:
            raise ValueError(f"Invalid class_mode: {class_mode}; expected one of: {_MODES}")
        self.directory, self.classes, self.class_mode = directory, classes, class_mode
        self.dtype = dtype or state.floatx()
        if not classes:
            classes = sorted(n for n in os.listdir(directory) if os.path.isdir(os.path.join(directory, n)))
        self.num_classes = len(classes)
        self.class_indices = {name: i for i, name in enumerate(classes)}
        self.filenames: list[str] = []
        numbers: list[int] = []
        for name, number in self.class_indices.items():
            result = self._kept(_images_in(os.path.join(directory, name), follow_links))
            self.filenames += [os.path.join(name, path) for path in result]
            numbers += [number] * len(result)
        self.samples, self.classes = len(self.filenames), np.array(numbers, dtype="int32")
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        self._paths = [os.path.join(directory, name) for name in self.filenames]
        super().__init__(self.samples, batch_size, shuffle, seed)

    @property
    def filepaths(self) -> list[str]:
        """The files."""
        return self._paths

    @property
    def labels(self) -> np.ndarray:
        """The number of the class of each."""
        return self.classes

    @property
    def sample_weight(self) -> None:
        """Files in folders have no weights."""
        return None


def _images_in(folder: str, follow_links: bool) -> list[str]:
    """The image files of a folder and of those in it, as paths from there."""
    result = []
    for root, _, names in sorted(os.walk(folder, followlinks=follow_links), key=lambda part: part[0]):
        for name in sorted(names):
            if name.lower().endswith(_ENDINGS):
                result.append(os.path.relpath(os.path.join(root, name), folder))
    return result


class DataFrameIterator(_FileIterator):
    """The batches of images that a table of pandas lists."""

    def __init__(
        self,
        dataframe: Any,
        directory: str | None = None,
        image_data_generator: Any = None,
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
        data_format: str | None = "channels_last",
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        interpolation: str = "nearest",
        dtype: Any = "float32",
        validate_filenames: bool = True,
    ) -> None:
        self._process(locals())
        if class_mode not in (*_MODES, "raw", "multi_output"):
            raise ValueError(
                f"Invalid class_mode: {class_mode}; expected one of: {(*_MODES, 'raw', 'multi_output')}"
            )
        self.class_mode, self.directory, self.dtype = class_mode, directory or "", dtype
        table = dataframe.copy()
        table[x_col] = [os.path.join(self.directory, str(name)) for name in table[x_col]]
        if validate_filenames:
            there = [p.lower().endswith(_ENDINGS) and os.path.isfile(p) for p in table[x_col]]
            table = table[there]
        by_class = class_mode in ("categorical", "binary", "sparse")
        if by_class:
            names = sorted(set(table[y_col])) if classes is None else list(classes)
            table = table[[name in names for name in table[y_col]]]
            self.class_indices = {name: i for i, name in enumerate(names)}
        rows = self._kept(list(range(len(table))))
        table = table.iloc[rows]
        self.filepaths = list(table[x_col])
        self.filenames = [os.path.relpath(p, self.directory) if directory else p for p in self.filepaths]
        if by_class:
            self.labels = self.classes = np.array([self.class_indices[name] for name in table[y_col]])
        elif class_mode in ("raw", "multi_output"):
            columns = [y_col] if isinstance(y_col, str) else list(y_col)
            self._raw = [table[column].values for column in columns]
            if class_mode == "raw":
                self._raw = [table[y_col].values]
        self.sample_weight = None if weight_col is None else table[weight_col].values
        self.samples = len(table)
        belonging = f" belonging to {len(self.class_indices)} classes" if by_class else ""
        print(f"Found {self.samples} validated image filenames{belonging}.")
        super().__init__(self.samples, batch_size, shuffle, seed)

    def _targets(self, batch: np.ndarray, rows: Any) -> Any:
        if self.class_mode in ("raw", "multi_output"):
            items = [values[rows] for values in self._raw]
            return items[0] if self.class_mode == "raw" else items
        return super()._targets(batch, rows)
