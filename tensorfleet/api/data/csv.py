"""Datasets of CSV files, and whole pipelines for CSV and Example files."""

from __future__ import annotations

import collections
import csv
import gzip
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data.blocks import Block, unboxed
from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.data.experimental import ignore_errors as skip_errors
from tensorfleet.api.data.experimental import shuffle_and_repeat
from tensorfleet.api.data.nodes import DatasetRun, FilesRun, Node, StartNode
from tensorfleet.api.data.readers import TFRecordDataset, _names, _number, _packing, list_files
from tensorfleet.api.data.record_origin import Opener
from tensorfleet.api.data.structure import Leaf
from tensorfleet.base import dtypes
from tensorfleet.base import files as gfile
from tensorfleet.base.dtypes import DType
from tensorfleet.base.errors import OpError, invalid
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import Array, TensorLike
from tensorfleet.graph.constant import constant_value
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.ops.common import SCALAR
from tensorfleet.ops.input.csv import check_defaults, csv_table
from tensorfleet.ops.input.parsing import parse_example
from tensorfleet.ops.input.readers import ReaderBase

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext
    from tensorfleet.runtime.scheduling.step import ExecutionContext


class _CsvRun(DatasetRun):
    """Records of CSV files, read and decoded in blocks; one that is wrong fails alone."""

    place, inner = ("_waiting", "_file", "_count"), ("_lines",)

    def __init__(
        self, lines: FilesRun, types: list[DType], defaults: list[Array], options: dict[str, Any]
    ) -> None:
        self._lines = lines
        self._types = types
        self._defaults = defaults
        self._options = options
        self._waiting: list[bytes] = []
        self._file = ""
        self._count = 0  # records of this file that were given

    def next(self, n: int, step: ExecutionContext) -> Block | None:
        """The next records."""
        if not self._waiting:
            read = self._lines.next(n, step)
            if read is None:
                return None
            lines: list[bytes] = np.asarray(read.columns[0]).tolist()
            if self._lines.current != self._file:
                self._file, self._count = self._lines.current, 0
            try:
                # All lines of a block are decoded at once; only a block with a bad line is decoded line by line.
                block = self._decoded(lines)
                block.places = read.places
                self._count += block.size
                return block
            except OpError:
                self._waiting = lines  # one by one they tell which it was
        line = self._waiting.pop(0)
        self._count += 1
        try:
            return self._decoded([line])
        except OpError as e:
            raise self._reworded(e.message, self._count - 1) from None

    def _reworded(self, text: str, number: int) -> OpError:
        """The error of a record, in the words for a file; they differ from those for one line."""
        for ours, theirs in _WORDS.items():
            text = re.sub(ours, theirs, text)
        text = text.replace("record 0", f"record {number}")
        byte = self._lines.offset_of(number)
        return invalid(f"{text} (file: {self._file}, at byte {byte})")

    def _decoded(self, lines: list[bytes]) -> Block:
        o = self._options
        given = [(t, np.asarray(d)) for t, d in zip(self._types, self._defaults, strict=True)]
        columns = csv_table(lines, given, o["delimiter"], o["quotes"], o["selected"], o["na"], blank=1)
        return Block(len(lines), [*columns])

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()


# TensorFlow's `CSVDataset` and `decode_csv` have different words for the same mistakes.
_WORDS: dict[str, Any] = {
    "quotes/CRLFs inside": "quotes inside",
    r"missing in record \d+": "missing in record",
    "Quoted field has to end with quote.*": "Reached end of file without closing quoted field in record",
    r"(\d+) fields but have (\d+)(?= in record)": lambda m: (
        f"{m[1]} fields but have {'more' if int(m[2]) > int(m[1]) else m[2]}"
    ),
}


def _csv_shape(op: Operation) -> TensorShape:
    check_defaults(op._inputs[8:])
    return SCALAR


_CSV_TYPES = "{float, double, int32, int64, string}"


@op(
    "CSVDataset",
    "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, "
    "use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: list(output_types) -> "
    "handle: variant",
    f"output_types: list({_CSV_TYPES}); output_shapes: list(shape)",
    shape=_csv_shape,
    host=True,
    stateful=True,
)
def _csv(
    ctx: StepHostContext,
    names: Array,
    compression: Array,
    buffer_size: Array,
    header: Array,
    delimiter: Array,
    quotes: Array,
    na: Array,
    selected: Array,
    defaults: list[Array],
    *,
    output_types: list[DType],
) -> Node:
    separator, packed = unboxed(delimiter), unboxed(compression).decode()
    if len(separator) != 1:
        raise invalid("field_delim should be only 1 char")
    if packed not in ("", "ZLIB", "GZIP"):
        raise invalid(f"Unsupported compression_type: {packed}.")
    options = {"delimiter": separator, "quotes": bool(quotes), "na": unboxed(na)}
    options["selected"] = np.asarray(selected).ravel().tolist()
    files = np.asarray(names, object).ravel().tolist()
    if int(buffer_size) <= 0:
        raise invalid("buffer_size should be positive")
    settings = ("skip", int(bool(header))), ("delimiter", separator), ("quotes", options["quotes"])
    begin = Opener("csv", packed, settings)
    return StartNode(lambda step: _CsvRun(FilesRun(files, begin), output_types, defaults, options))


not_differentiable("CSVDataset")


@export("data.experimental.CsvDataset", "contrib.data.CsvDataset")
class CsvDataset(Dataset):
    """The records of CSV files, as tuples; `record_defaults` has a type or a default value per column."""

    def __init__(
        self,
        filenames: TensorLike,
        record_defaults: Iterable[TensorLike],
        compression_type: TensorLike = None,
        buffer_size: TensorLike = None,
        header: TensorLike = False,
        field_delim: TensorLike = ",",
        use_quote_delim: TensorLike = True,
        na_value: TensorLike = "",
        select_cols: TensorLike = None,
    ) -> None:
        defaults = [_default(d) for d in record_defaults]
        structure = tuple(Leaf(d.dtype.base_dtype, TensorShape([])) for d in defaults)
        self._set(
            "CSVDataset",
            structure,
            _names(filenames),
            _packing(compression_type),
            _number(buffer_size, 4 << 20, "buffer_size"),
            to_tensor(header, dtypes.bool_, name="header"),
            to_tensor(field_delim, dtypes.string, name="field_delim"),
            to_tensor(use_quote_delim, dtypes.bool_, name="use_quote_delim"),
            to_tensor(na_value, dtypes.string, name="na_value"),
            to_tensor([] if select_cols is None else select_cols, dtypes.int64, name="select_cols"),
            defaults,
        )


def _default(value: TensorLike) -> Tensor:
    if isinstance(value, DType):
        return to_tensor(np.zeros(0, value.np_dtype), value)
    return to_tensor(value)


# -- whole pipelines ---------------------------------------------------------------------------------


@export("data.experimental.make_csv_dataset", "contrib.data.make_csv_dataset")
def make_csv_dataset(
    file_pattern: str | Sequence[str],
    batch_size: TensorLike,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[TensorLike] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[int | str] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: TensorLike = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: TensorLike = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Tensor | str | bytes | None = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of CSV records as dictionaries by column (and labels), read, shuffled, repeated and prefetched."""
    names = _file_names(file_pattern)
    reading = field_delim, use_quote_delim, compression_type
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = _header(names, *reading)
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = _chosen(column_names, select_columns)
    if column_defaults is None:
        column_defaults = _inferred(
            _counted(names, len(column_names), header, *reading), chosen, na_value, num_rows_for_inference
        )
    if len(column_defaults) != len(chosen):
        raise ValueError("If specified, column_defaults and select_columns must have same length.")
    kept = [column_names[i] for i in chosen]
    if label_name is not None and label_name not in kept:
        raise ValueError("`label_name` provided must be one of the columns.")

    def rows_of(name: Tensor) -> Dataset:
        return CsvDataset(
            name,
            column_defaults,
            compression_type,
            None,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            chosen,
        )

    def by_name(*columns: Tensor) -> Any:
        features = collections.OrderedDict(zip(kept, columns, strict=True))
        return (features, features.pop(label_name)) if label_name is not None else features

    dataset = list_files(names, shuffle, shuffle_seed).interleave(
        rows_of, cycle_length=num_parallel_reads or 1
    )
    if ignore_errors:
        dataset = dataset.apply(skip_errors())
    dataset = _shuffled(dataset, shuffle, shuffle_buffer_size, num_epochs, shuffle_seed)
    # An endless dataset has no last batch, so that all batches have a known size.
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(by_name)
    return dataset.prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _shuffled(
    dataset: Dataset, shuffle: bool, size: TensorLike, epochs: int | None, seed: int | None
) -> Dataset:
    if shuffle:
        return dataset.apply(shuffle_and_repeat(size, epochs, seed))
    return dataset if epochs == 1 else dataset.repeat(epochs)


def _file_names(pattern: str | Sequence[str]) -> list[str]:
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    if not patterns:
        raise ValueError("File pattern is empty.")
    result = sorted({name for p in patterns for name in gfile.glob(p)})
    if not result:
        raise ValueError(f"No files match {pattern}.")
    return result


def _chosen(names: Sequence[str], asked: Sequence[int | str] | None) -> list[int]:
    if asked is None:
        return list(range(len(names)))
    indices = [c if isinstance(c, int) else list(names).index(c) if c in names else None for c in asked]
    for column, i in zip(asked, indices, strict=True):
        if i is None:
            raise ValueError(
                f"Value '{column}' specified in select_columns not a valid column index or name."
            )
        if not 0 <= i < len(names):
            raise ValueError(f"Column index {i} specified in select_columns out of valid range.")
    if len(set(indices)) != len(indices):
        raise ValueError("select_columns contains duplicate columns")
    return sorted(i for i in indices if i is not None)


def _rows(
    name: str, delimiter: str, quotes: bool, compression: Tensor | str | bytes | None
) -> Iterator[list[str]]:
    """The rows of a file, which is read while the graph is built."""
    packed = constant_value(compression) if isinstance(compression, Tensor) else compression or ""
    packed = packed.decode() if isinstance(packed, bytes) else packed
    if packed == "ZLIB":
        raise ValueError(f"compression_type ({packed}) is not supported for probing columns")
    if packed not in ("", "GZIP"):
        raise ValueError(f"compression_type ({packed}) is not supported")
    quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    path = gfile.file_path(name)
    with (
        file_system(path).open(path, "rb") as stored,
        io.TextIOWrapper(gzip.open(stored) if packed else stored, encoding="utf-8", newline="") as file,
    ):
        yield from csv.reader(file, delimiter=delimiter, quoting=quoting)


def _header(names: list[str], *reading: Any) -> list[str]:
    """The names of the columns in the first line of each file."""
    header: list[str] | None = None
    for name in names:
        line = next(_rows(name, *reading), None)
        if line is None:
            raise ValueError(f"Received StopIteration when reading the header line of {name}.  Empty file?")
        if header is not None and line != header:
            raise ValueError("Files have different column names in the header row.")
        header = line
    return header or []


def _counted(names: list[str], width: int, header: bool, *reading: Any) -> Iterator[list[str]]:
    """The rows of all files without their headers; each must have so many fields."""
    for name in names:
        for line in itertools.islice(_rows(name, *reading), int(header), None):
            if len(line) != width:
                raise ValueError(
                    "Problem inferring types: CSV row has different number of fields than expected."
                )
            yield line


def _inferred(rows: Iterator[list[str]], chosen: list[int], na: str, most: int | None) -> list[Array]:
    """A default per column, of the narrowest type that fits the first rows."""
    # From narrow to wide: a column gets the widest type that one of its values needs.
    order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string]
    kinds: list[Any] = [None] * len(chosen)
    for line in itertools.islice(rows, most):
        for k, i in enumerate(chosen):
            if line[i] not in ("", na):
                kind = order.index(_type_of(line[i]))
                kinds[k] = kind if kinds[k] is None else max(kinds[k], kind)
    types = [order[k] if k is not None else dtypes.string for k in kinds]
    return [np.array([b""], object) if t == dtypes.string else np.zeros(1, t.np_dtype) for t in types]


def _type_of(text: str) -> DType:
    for kind, least, most in ((dtypes.int32, -(2**31), 2**31), (dtypes.int64, -(2**63), 2**63)):
        try:
            if least <= int(text) < most:
                return kind
        except ValueError:
            break
    try:
        value = float(text)
    except ValueError:
        return dtypes.string
    return (
        dtypes.float32 if not np.isfinite(value) or abs(value) <= np.finfo(np.float32).max else dtypes.float64
    )


@export("data.experimental.make_batched_features_dataset", "contrib.data.make_batched_features_dataset")
def make_batched_features_dataset(
    file_pattern: str | Sequence[str],
    batch_size: TensorLike,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: TensorLike = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: TensorLike = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of Examples taken apart (and labels), read, shuffled, repeated and prefetched."""
    open_file: Callable[..., Dataset] = reader
    if isinstance(reader, type) and issubclass(reader, ReaderBase):
        raise TypeError(
            "The `reader` argument must return a `Dataset` object. `tf.ReaderBase` subclasses are not supported. For "
            "example, pass `tf.data.TFRecordDataset` instead of `tf.TFRecordReader`."
        )
    names = _file_names(file_pattern)

    def parsed(serialized: Tensor) -> Any:
        result = parse_example(serialized, features)
        if label_key is None:
            return result
        if label_key not in result:
            raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")
        return result, result.pop(label_key)

    files = list_files(names, shuffle, shuffle_seed)
    dataset = files.interleave(
        lambda n: open_file(n, *(reader_args or [])), cycle_length=reader_num_threads or 1
    )
    dataset = _shuffled(dataset, shuffle, shuffle_buffer_size, num_epochs, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None).map(parsed)
    return dataset.prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)
