"""The base of TensorFlow's tests of datasets that read files: small files, and the expected results."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.formats.records import TFRecordWriter
from tensorfleet.base.naming import find
from tensorfleet_legacy.testing.test_base import DatasetTestBase


def _turns(files: list[Iterator], cycle_length: int) -> Iterator:
    """One of each of so many files in turn; a file that has ended gives its turn to the next one."""
    waiting = iter(files)
    taking: list[Iterator | None] = [f for _, f in zip(range(cycle_length), waiting, strict=False)]
    while any(f is not None for f in taking):
        for i, file in enumerate(taking):
            if file is None:
                continue
            try:
                yield next(file)
            except StopIteration:
                taking[i] = next(waiting, None)


def _rounds(files: Iterable[int], records: int, epochs: int, cycle_length: int) -> Iterator[tuple[int, int]]:
    """The pairs of a file and a record in the order in which they are read, so many files at a time."""
    listed = list(files)
    for _ in range(epochs):
        yield from _turns([zip([f] * records, range(records), strict=True) for f in listed], cycle_length)


class _Files(DatasetTestBase):
    """Files in the test's folder."""

    def _path(self, pattern: str, number: int) -> str:
        return os.path.join(self.get_temp_dir(), pattern % number)

    def _interleave(self, iterators: list[Iterator], cycle_length: int) -> Iterator:
        return _turns(iterators, cycle_length)


class FixedLengthRecordDatasetTestBase(_Files):
    """Files of records of one length, between a header and a footer."""

    def setUp(self) -> None:
        """Says how large everything is."""
        super().setUp()
        self._num_files, self._num_records = 2, 7
        self._header_bytes, self._record_bytes, self._footer_bytes = 5, 3, 2

    def _record(self, f: int, r: int) -> bytes:
        return str(f * 2 + r).encode() * self._record_bytes

    def _createFiles(self) -> list[str]:
        names = [self._path("fixed_length_record.%d.txt", i) for i in range(self._num_files)]
        for i, name in enumerate(names):
            records = b"".join(self._record(i, r) for r in range(self._num_records))
            with open(name, "wb") as f:
                f.write(b"H" * self._header_bytes + records + b"F" * self._footer_bytes)
        return names


class TextLineDatasetTestBase(_Files):
    """Files of lines."""

    def _lineText(self, f: int, line: int) -> bytes:
        return b"%d: %d" % (f, line)

    def _createFiles(
        self, num_files: int, num_lines: int, crlf: bool = False, compression_type: str | None = None
    ) -> list[str]:
        pack: dict[str | None, Any] = {None: bytes, "": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
        if compression_type not in pack:
            raise ValueError("Unsupported compression_type", compression_type)
        names = [self._path("text_line.%d.txt", i) for i in range(num_files)]
        end = b"\r\n" if crlf else b"\n"
        for i, name in enumerate(names):
            text = end.join(self._lineText(i, n) for n in range(num_lines))
            with open(name, "wb") as f:  # only the first file ends its last line
                f.write(pack[compression_type](text + end if i == 0 and num_lines else text))
        return names


class _Records(_Files):
    """Files of TFRecords."""

    def setUp(self) -> None:
        """Writes the files."""
        super().setUp()
        self._num_files, self._num_records = 2, 7
        self.test_filenames = self._createFiles()

    def _content(self, f: int, r: int) -> bytes:
        """A record of a file."""
        return b"%d of %d" % (r, f)

    def _createFiles(self) -> list[str]:
        names = [self._path("tf_record.%d.txt", i) for i in range(self._num_files)]
        for i, name in enumerate(names):
            with TFRecordWriter(name) as writer:
                for r in range(self._num_records):
                    writer.write(self._content(i, r))
        return names

    def _indices(self, file_index: Any) -> list[int]:
        if file_index is None:
            return list(range(self._num_files))
        return file_index if isinstance(file_index, list) else [file_index]


class TFRecordDatasetTestBase(_Records):
    """Files whose records tell who they are."""

    def _record(self, f: int, r: int) -> bytes:
        return b"Record %d of file %d" % (r, f)

    _content = _record

    def _next_expected_batch(
        self,
        file_indices: Iterable[int],
        batch_size: int,
        num_epochs: int,
        cycle_length: int,
        drop_final_batch: bool,
        use_parser_fn: bool,
    ) -> Iterator[list[bytes]]:
        batch: list[bytes] = []
        for f, r in _rounds(file_indices, self._num_records, num_epochs, cycle_length):
            batch.append(self._record(f, r)[1 if use_parser_fn else 0 :])
            if len(batch) == batch_size:
                yield batch
                batch = []
        if batch and not drop_final_batch:
            yield batch

    def _verify_records(
        self,
        outputs: Any,
        batch_size: int,
        file_index: Any,
        num_epochs: int,
        interleave_cycle_length: int,
        drop_final_batch: bool,
        use_parser_fn: bool,
    ) -> None:
        for expected in self._next_expected_batch(
            self._indices(file_index),
            batch_size,
            num_epochs,
            interleave_cycle_length,
            drop_final_batch,
            use_parser_fn,
        ):
            self.assertAllEqual(expected, self.evaluate(outputs()))


class MakeBatchedFeaturesDatasetTestBase(_Records):
    """Files of examples with four features; `outputs` gives the next batch."""

    outputs: Any

    def make_batch_feature(
        self,
        filenames: Any,
        num_epochs: int | None,
        batch_size: int,
        label_key: str | None = None,
        reader_num_threads: int = 1,
        parser_num_threads: int = 1,
        shuffle: bool = False,
        shuffle_seed: int | None = None,
        drop_final_batch: bool = False,
    ) -> Any:
        """Batches of the examples of some files."""
        self.filenames, self.num_epochs, self.batch_size = filenames, num_epochs, batch_size
        one = find("io.FixedLenFeature")
        return find("data.experimental.make_batched_features_dataset")(
            file_pattern=filenames,
            batch_size=batch_size,
            features={
                "file": one([], dtypes.int64),
                "record": one([], dtypes.int64),
                "keywords": find("io.VarLenFeature")(dtypes.string),
                "label": one([], dtypes.string),
            },
            label_key=label_key,
            reader=find("data.TFRecordDataset"),
            num_epochs=num_epochs,
            shuffle=shuffle,
            shuffle_seed=shuffle_seed,
            reader_num_threads=reader_num_threads,
            parser_num_threads=parser_num_threads,
            drop_final_batch=drop_final_batch,
        )

    def _get_keywords(self, f: int, r: int) -> list[bytes]:
        return [b"keyword%d" % i for i in range(1 + (f + r) % 2)]

    def _sum_keywords(self, num_files: int) -> int:
        return sum(len(self._get_keywords(f, r)) for f in range(num_files) for r in range(self._num_records))

    def _record(self, f: int, r: int, label: Any) -> bytes:
        example = find("train.Example")()
        features = example.features.feature
        features["file"].int64_list.value.append(f)
        features["record"].int64_list.value.append(r)
        features["keywords"].bytes_list.value.extend(self._get_keywords(f, r))
        features["label"].bytes_list.value.append(find("compat.as_bytes")(label))
        return example.SerializeToString()

    def _content(self, f: int, r: int) -> bytes:
        return self._record(f, r, "fake-label")

    def _run_actual_batch(self, outputs: Any, label_key_provided: bool = False) -> list:
        result = self.evaluate(outputs())
        features, label = result if label_key_provided else (result, result["label"])
        return [features["file"], *features["keywords"], features["record"], label]

    def _next_actual_batch(self, label_key_provided: bool = False) -> list:
        return self._run_actual_batch(self.outputs, label_key_provided)

    def _next_expected_batch(
        self, file_indices: Iterable[int], batch_size: int, num_epochs: int, cycle_length: int = 1
    ) -> Iterator[list]:
        order = list(_rounds(file_indices, self._num_records, num_epochs, cycle_length))
        for start in range(0, len(order), batch_size):
            pairs = order[start : start + batch_size]
            words = [self._get_keywords(f, r) for f, r in pairs]
            places = [[row, i] for row, some in enumerate(words) for i in range(len(some))]
            shape = [len(pairs), max(map(len, words))]
            files, records = (list(column) for column in zip(*pairs, strict=True))
            yield [
                files,
                places,
                [w for some in words for w in some],
                shape,
                records,
                [b"fake-label"] * len(pairs),
            ]

    def verify_records(
        self,
        batch_size: int,
        file_index: int | None = None,
        num_epochs: int = 1,
        label_key_provided: bool = False,
        interleave_cycle_length: int = 1,
    ) -> None:
        """The batches that `outputs` gives are those of the files."""
        for expected in self._next_expected_batch(
            self._indices(file_index), batch_size, num_epochs, interleave_cycle_length
        ):
            result = self._next_actual_batch(label_key_provided)
            for want, value in zip(expected, result, strict=True):
                self.assertAllEqual(want, value)
