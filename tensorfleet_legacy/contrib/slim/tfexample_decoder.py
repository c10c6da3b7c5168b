"""`tf.contrib.slim`'s data: datasets of record files, what decodes their examples, and the queues that read them."""

from __future__ import annotations

import abc
import glob as globbing
from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Tensor as GraphTensor
from tensorfleet.graph.scopes import name_scope


def _in(module: str, *names: str) -> Callable:
    """Publishes a name of one of slim's modules, in both places where scripts look for it."""
    places = (f"contrib.slim.{module}", f"contrib.slim.python.slim.data.{module}")
    return export(*(f"{place}.{name}" for place in places for name in names))


@_in("dataset", "Dataset")
class Dataset:
    """Where data is, how it is read and decoded, and what it holds."""

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int,
        items_to_descriptions: dict[str, str],
        **kwargs: Any,
    ) -> None:
        self.data_sources, self.reader, self.decoder = data_sources, reader, decoder
        self.num_samples, self.items_to_descriptions = num_samples, items_to_descriptions
        for name, value in kwargs.items():
            setattr(self, name, value)


# -- decoding -----------------------------------------------------------------------------------------


@_in("tfexample_decoder", "ItemHandler")
class ItemHandler:
    """Makes one item from the features of an example. A subclass gives `tensors_to_item`."""

    def __init__(self, keys: Any) -> None:
        self._keys = [keys] if isinstance(keys, str) else list(keys)

    keys = readonly("_keys", "The features it needs.")

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        """The item, from the features by name."""
        raise AssertionError("An ItemHandler of one's own defines `tensors_to_item`.")


@_in("tfexample_decoder", "ItemHandlerCallback")
class ItemHandlerCallback(ItemHandler):
    """An item that a function makes from the features."""

    def __init__(self, keys: Any, func: Callable) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        return self._func(keys_to_tensors)


@_in("tfexample_decoder", "Tensor")
class Tensor(ItemHandler):
    """A feature as it is; a sparse one made dense, in the shape that is given or that other features say."""

    def __init__(
        self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        others = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or [])
        super().__init__([tensor_key, *others])
        self._tensor_key, self._shape_keys = tensor_key, others
        self._shape, self._default_value = shape, default_value

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        value = keys_to_tensors[self._tensor_key]
        shape = self._shape
        if self._shape_keys:
            parts = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = find("cast")(find("concat")([find("reshape")(p, [-1]) for p in parts], 0), dtypes.int32)
        if isinstance(value, find("SparseTensor")):
            if shape is not None:
                value = find("sparse_reshape")(value, shape)
            return find("sparse_tensor_to_dense")(value, default_value=self._default_value)
        return value if shape is None else find("reshape")(value, shape)


@_in("tfexample_decoder", "LookupTensor")
class LookupTensor(Tensor):
    """A feature looked up in a table."""

    def __init__(
        self, tensor_key: str, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = ""
    ) -> None:
        self._table = table
        super().__init__(tensor_key, shape_keys, shape, default_value)

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


@_in("tfexample_decoder", "BackupHandler")
class BackupHandler(ItemHandler):
    """The result of a second handler where the first one has none."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for label, given in (("Primary", handler), ("Backup", backup)):
            if not isinstance(given, ItemHandler):
                raise ValueError(f"{label} handler is of type {type(given)} instead of ItemHandler")
        self._handler, self._backup = handler, backup
        super().__init__([*handler.keys, *backup.keys])

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        """The first handler's item unless it has no elements."""
        item = self._handler.tensors_to_item(keys_to_tensors)
        return find("cond")(
            find("equal")(find("size")(item), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


@_in("tfexample_decoder", "SparseTensor")
class SparseTensor(ItemHandler):
    """A sparse tensor from features with its indices and values."""

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key, self._values_key = indices_key or "indices", values_key or "values"
        self._shape_key, self._shape = shape_key, shape
        self._densify, self._default_value = densify, default_value
        super().__init__([self._indices_key, self._values_key, *([shape_key] if shape_key else [])])

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        shape = keys_to_tensors[self._shape_key] if self._shape_key else self._shape or indices.dense_shape
        # The values are the last coordinates; what comes before them is where they stood.
        last = find("reshape")(find("cast")(indices.values, dtypes.int64), [-1, 1])
        places = find("concat")([indices.indices[:, :-1], last], 1)
        result = find("SparseTensor")(places, values.values, find("cast")(_dense(shape), dtypes.int64))
        return find("sparse_tensor_to_dense")(result, self._default_value) if self._densify else result


@_in("tfexample_decoder", "Image")
class Image(ItemHandler):
    """A picture: PNG, JPEG, GIF or BMP, or raw bytes when its format is "raw"."""

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int | None = 3,
        dtype: Any = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image_key, self._format_key])
        self._shape, self._channels, self._dtype = shape, channels, dtypes.as_dtype(dtype)
        self._repeated, self._dct_method = repeated, dct_method

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        buffers, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return find("map_fn")(lambda b: self._decode(b, kind), buffers, dtype=self._dtype)
        return self._decode(buffers, kind)

    def _decode(self, buffer: GraphTensor, kind: GraphTensor) -> GraphTensor:
        buffer = find("reshape")(buffer, [])

        def raw() -> GraphTensor:
            return find("decode_raw")(buffer, self._dtype)

        def picture() -> GraphTensor:
            result = find("image.decode_image")(buffer, channels=self._channels or 0)
            return result if self._dtype == dtypes.uint8 else find("cast")(result, self._dtype)

        equal, either = find("equal"), find("logical_or")
        is_raw = find("reshape")(either(equal(kind, "raw"), equal(kind, "RAW")), [])
        if self._shape is None:
            image = find("cond")(is_raw, lambda: find("reshape")(raw(), [-1, 1, 1]), picture)
            image.set_shape([None, None, self._channels])
            return image
        image = find("cond")(is_raw, raw, lambda: find("reshape")(picture(), [-1]))
        return find("reshape")(image, self._shape)


@_in("tfexample_decoder", "BoundingBox")
class BoundingBox(ItemHandler):
    """Boxes, a row [ymin, xmin, ymax, xmax] for each."""

    def __init__(self, keys: Any = None, prefix: str = "") -> None:
        names = list(keys) if keys is not None else ["ymin", "xmin", "ymax", "xmax"]
        if len(names) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(names)}")
        self._prefix = prefix
        super().__init__([prefix + name for name in names])

    def tensors_to_item(self, keys_to_tensors: dict[str, Any]) -> Any:
        sides = [find("reshape")(_dense(keys_to_tensors[key]), [-1]) for key in self._keys]
        return find("stack")(sides, 1)


def _dense(value: Any) -> Any:
    return value.values if isinstance(value, find("SparseTensor")) else value


@_in("data_decoder", "DataDecoder")
class DataDecoder(abc.ABC):
    """Reads the items of an example from the data of one record."""

    @abc.abstractmethod
    def decode(self, data: Any, items: Any) -> list:
        """The items that are asked for."""

    @abc.abstractmethod
    def list_items(self) -> list[str]:
        """The names of the items."""


@_in("tfexample_decoder", "TFExampleDecoder")
class TFExampleDecoder(DataDecoder):
    """Decodes serialized `tf.train.Example`s: features by `keys_to_features`, items by `items_to_handlers`."""

    def __init__(self, keys_to_features: dict[str, Any], items_to_handlers: dict[str, ItemHandler]) -> None:
        self._keys_to_features, self._items_to_handlers = keys_to_features, items_to_handlers

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Any = None) -> list:
        """The items that are asked for (all of them), of one example."""
        example = find("parse_single_example")(serialized_example, self._keys_to_features)
        for key, feature in sorted(self._keys_to_features.items()):
            if isinstance(feature, find("FixedLenFeature")):
                example[key] = find("reshape")(example[key], feature.shape)
        result = []
        for item in items or self._items_to_handlers:
            handler = self._items_to_handlers[item]
            result.append(handler.tensors_to_item({key: example[key] for key in handler.keys}))
        return result


# -- reading ------------------------------------------------------------------------------------------


@_in("parallel_reader", "get_data_files")
def get_data_files(data_sources: Any) -> list[str]:
    """The files that patterns name."""
    if isinstance(data_sources, (list, tuple)):
        files = [name for source in data_sources for name in get_data_files(source)]
    else:
        text = str(data_sources)
        files = globbing.glob(text) if any(c in text for c in "*?[") else [text]
    if not files:
        raise ValueError(f"No data files found in {data_sources}")
    return files


@_in("parallel_reader", "ParallelReader")
class ParallelReader:
    """Several readers that fill one queue."""

    def __init__(
        self, reader_class: Any, common_queue: Any, num_readers: int = 4, reader_kwargs: dict | None = None
    ) -> None:
        if len(common_queue.dtypes) != 2:
            raise TypeError("common_queue.dtypes must contain two elements")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        """How many there are."""
        return len(self._readers)

    common_queue = readonly("_common_queue", "What they fill.")

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next key and value; `queue` names the files."""
        self._fill(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: int, name: str | None = None) -> Any:
        """The next keys and values, at most `num_records`."""
        self._fill(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def _fill(self, queue: Any) -> None:
        """Makes each reader put what it reads from the files of `queue` into the common one."""
        puts = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        find("train.add_queue_runner")(
            find("train.QueueRunner")(self._common_queue, puts, queue_closed_exception_types=_ended())
        )

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records were read."""
        return find("add_n")([r.num_records_produced() for r in self._readers], name=name)


def _ended() -> tuple:
    return (find("errors.OutOfRangeError"), find("errors.CancelledError"))


@_in("parallel_reader", "parallel_read")
def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: dict | None = None,
    shuffle: bool = True,
    dtypes: Any = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> Any:
    """The next key and value of files that several readers go through, shuffled by a queue if wanted."""
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = find("train.string_input_producer")(
            files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        kinds = dtypes or [find("string"), find("string")]
        if shuffle:
            queue = find("RandomShuffleQueue")(
                capacity=capacity,
                min_after_dequeue=min_after_dequeue,
                dtypes=kinds,
                seed=seed,
                name="common_queue",
            )
        else:
            queue = find("FIFOQueue")(capacity=capacity, dtypes=kinds, name="common_queue")
        find("summary.scalar")(
            f"fraction_of_{capacity}_full", find("to_float")(queue.size()) * (1.0 / capacity)
        )
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


@_in("parallel_reader", "single_pass_read")
def single_pass_read(
    data_sources: Any, reader_class: Any, reader_kwargs: dict | None = None, scope: str | None = None
) -> Any:
    """The next key and value of files that are read once, in order."""
    with name_scope(scope, "single_pass_read"):
        names = find("train.string_input_producer")(
            get_data_files(data_sources), num_epochs=1, shuffle=False, capacity=1, name="filenames"
        )
        return reader_class(**(reader_kwargs or {})).read(names)


@_in("data_provider", "DataProvider")
class DataProvider:
    """Items as tensors, by name."""

    def __init__(self, items_to_tensors: dict[str, Any], num_samples: int | None) -> None:
        self._items_to_tensors, self._num_samples = items_to_tensors, num_samples

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_tensors)

    def num_samples(self) -> int | None:
        """How many examples there are."""
        return self._num_samples

    def get(self, items: list[str]) -> list:
        """The tensors of some items."""
        odd = set(items) - set(self._items_to_tensors)
        if odd:
            raise ValueError(f"Items {sorted(odd)} are not provided; there are {self.list_items()}.")
        return [self._items_to_tensors[item] for item in items]


@_in("dataset_data_provider", "DatasetDataProvider")
class DatasetDataProvider(DataProvider):
    """The items of a `Dataset`, read by `num_readers` readers and decoded."""

    def __init__(
        self,
        dataset: Dataset,
        num_readers: int = 1,
        reader_kwargs: dict | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            reader_class=dataset.reader,
            num_epochs=num_epochs,
            num_readers=num_readers,
            reader_kwargs=reader_kwargs,
            shuffle=shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        if record_key in items:
            raise ValueError(
                f"The item name used for `record_key` cannot also be used for a dataset item: {record_key}"
            )
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        tensors[record_key] = key
        super().__init__(tensors, dataset.num_samples)
