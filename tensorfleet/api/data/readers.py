"""Datasets of the records of files."""

from __future__ import annotations

from collections.abc import Callable

from tensorfleet.api.data.dataset import Dataset
from tensorfleet.api.data.structure import Leaf
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.checks import Assert
from tensorfleet.ops.array.shape import reshape, shape
from tensorfleet.ops.input.files import matching_files

_LINE = Leaf(dtypes.string, TensorShape([]))


def _names(filenames: TensorLike) -> Tensor:
    names = to_tensor(filenames, preferred=dtypes.string, name="filenames")
    if names.dtype != dtypes.string:
        raise TypeError("`filenames` must be a `tf.data.Dataset` of `tf.string` elements.")
    return names if names.shape.rank == 1 else reshape(names, [-1], name="flat_filenames")


def _packing(compression_type: TensorLike) -> Tensor:
    return to_tensor(
        "" if compression_type is None else compression_type, dtypes.string, name="compression_type"
    )


def _number(value: TensorLike, default: int, name: str) -> Tensor:
    return to_tensor(default if value is None else value, dtypes.int64, name=name)


class _FileDataset(Dataset):
    """A dataset that an operation makes of file names, or of each file name in another dataset."""

    def _read(self, filenames: TensorLike, make: Callable[[Tensor], Dataset], parallel: TensorLike) -> None:
        if isinstance(filenames, Dataset) or parallel is not None:
            names = (
                filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(_names(filenames))
            )
            leaf = names._structure
            if not isinstance(leaf, Leaf) or leaf.dtype != dtypes.string:
                raise TypeError("`filenames` must be a `tf.data.Dataset` of `tf.string` elements.")
            if leaf.shape.rank not in (None, 0):
                raise TypeError("`filenames` must be a `tf.data.Dataset` of scalar `tf.string` elements.")
            one = lambda name: make(reshape(name, [-1]))  # noqa: E731
            if parallel is None:
                inner = names.flat_map(one)
            else:
                inner = names.interleave(one, cycle_length=parallel, num_parallel_calls=parallel)
            self._variant_tensor, self._sources = inner._variant_tensor, (names,)
        else:
            self._variant_tensor, self._sources = make(_names(filenames))._variant_tensor, ()
        self._structure = _LINE


class _DelimitedDataset(_FileDataset):
    """Records of any length, one after the other, as an operation reads them."""

    _operation: str

    def __init__(
        self,
        filenames: TensorLike,
        compression_type: TensorLike = None,
        buffer_size: TensorLike = None,
        num_parallel_reads: TensorLike = None,
    ) -> None:
        packing, size = _packing(compression_type), _number(buffer_size, 256 * 1024, "buffer_size")
        make = lambda names: Dataset._make(self._operation, _LINE, names, packing, size)  # noqa: E731
        self._read(filenames, make, num_parallel_reads)


@export("data.TextLineDataset", "contrib.data.TextLineDataset")
class TextLineDataset(_DelimitedDataset):
    """The lines of text files."""

    _operation = "TextLineDataset"


@export("data.TFRecordDataset", "contrib.data.TFRecordDataset")
class TFRecordDataset(_DelimitedDataset):
    """The records of TFRecord files."""

    _operation = "TFRecordDataset"


@export("data.FixedLengthRecordDataset", "contrib.data.FixedLengthRecordDataset")
class FixedLengthRecordDataset(_FileDataset):
    """Pieces of `record_bytes` bytes of files, between header and footer."""

    def __init__(
        self,
        filenames: TensorLike,
        record_bytes: TensorLike,
        header_bytes: TensorLike = None,
        footer_bytes: TensorLike = None,
        buffer_size: TensorLike = None,
        compression_type: TensorLike = None,
        num_parallel_reads: TensorLike = None,
    ) -> None:
        header, footer = _number(header_bytes, 0, "header_bytes"), _number(footer_bytes, 0, "footer_bytes")
        size, buffer = (
            _number(record_bytes, 0, "record_bytes"),
            _number(buffer_size, 256 * 1024, "buffer_size"),
        )
        packing = _packing(compression_type)

        def make(names: Tensor) -> Dataset:
            given = names, header, size, footer, buffer, packing
            return Dataset._make("FixedLengthRecordDatasetV2", _LINE, *given)

        self._read(filenames, make, num_parallel_reads)


def list_files(file_pattern: TensorLike, shuffle: bool | None, seed: int | None) -> Dataset:
    """See `tf.data.Dataset.list_files`."""
    pattern = to_tensor(file_pattern, dtypes.string, name="file_pattern")
    matches = matching_files(pattern)
    some = apply("Greater", shape(matches)[0], 0, name="match_not_empty")
    check = Assert(some, ["No files matched pattern: ", pattern], summarize=1, name="assert_not_empty")
    # The check runs when the step does: the files may come into being after the graph is built.
    with control_dependencies([check]):
        matches = apply("Identity", matches)
    files = Dataset.from_tensor_slices(matches)
    if shuffle is None or shuffle:
        count = apply(
            "Maximum", apply("Cast", shape(matches)[0], DstT=dtypes.int64), to_tensor(1, dtypes.int64)
        )
        files = files.shuffle(count, seed=seed)
    return files


@export("python.data.experimental.ops.matching_files.MatchingFilesDataset")
class MatchingFilesDataset(Dataset):
    """The names of the files that match patterns, in order; NotFoundError when there are none."""

    def __init__(self, patterns: TensorLike) -> None:
        asked = to_tensor(patterns, dtypes.string, name="patterns")
        self._variant_tensor, self._structure = apply("MatchingFilesDataset", asked), _LINE
        self._sources = ()
