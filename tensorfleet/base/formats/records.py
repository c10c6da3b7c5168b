"""TFRecord files: bytes of any length, one after the other, each with checksums.

A record is its length (8 bytes, little endian), a checksum of those 8 bytes, the data, and a checksum of
the data. Event files are record files; whole files may be compressed with zlib or gzip.
"""

from __future__ import annotations

import re
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias

from tensorfleet.base import errors
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about, file_path
from tensorfleet.base.formats.crc import MASK_DELTA, checksum_function, masked_crc, unmask
from tensorfleet.base.naming import export
from tensorfleet.base.platform.compat import as_bytes

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike

    #: How a file is compressed, as users write it: a name, a number of `TFRecordCompressionType`, or all options.
    RecordOptions: TypeAlias = "TFRecordOptions | str | int | None"

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
# Few system calls, and little memory for each of many open files.
_CHUNK_BYTES = 1 << 18
# Records of one file have few different lengths: the checksum of each length is computed once. The limit bounds memory.
_MAX_KNOWN_LENGTHS = 4096


def framed(record: bytes) -> bytes:
    """A record as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _CHECKSUM.pack(masked_crc(length)), record, _CHECKSUM.pack(masked_crc(record))))


@export("python_io.TFRecordCompressionType", "io.TFRecordCompressionType")
class TFRecordCompressionType:
    """How a record file is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


@export("python_io.TFRecordOptions", "io.TFRecordOptions")
class TFRecordOptions:
    """How to compress a record file: "", "ZLIB" or "GZIP", and zlib's own settings for writing it."""

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: RecordOptions = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)  # refuses what is none
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: RecordOptions) -> str:
        """The name of the compression that options, a `TFRecordCompressionType` or a name ask for."""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if not options:
            return ""
        if isinstance(options, int) and options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if isinstance(options, str) and options in cls.compression_type_map.values():
            return options
        raise ValueError(f'Not a valid compression_type: "{options}"')


def _options(options: RecordOptions) -> TFRecordOptions:
    return options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)


def _window(kind: str) -> int:
    return zlib.MAX_WBITS + (16 if kind == "GZIP" else 0)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


# -- writing -----------------------------------------------------------------------------------------


def _compressor(options: TFRecordOptions) -> Any:
    kind = TFRecordOptions.get_compression_type_string(options)
    if not kind:
        return None
    try:
        return zlib.compressobj(
            _or(options.compression_level, zlib.Z_DEFAULT_COMPRESSION),
            _or(options.compression_method, zlib.DEFLATED),
            _or(options.window_bits, _window(kind)),
            _or(options.mem_level, zlib.DEF_MEM_LEVEL),
            _or(options.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
        )
    except (ValueError, zlib.error) as e:
        raise errors.invalid(f"deflateInit failed: {e}. Check TFRecordOptions.") from None


@export("python_io.TFRecordWriter", "io.TFRecordWriter")
class TFRecordWriter:
    """Writes records to a file, which is emptied first. Any number of threads may use it at once."""

    def __init__(self, path: PathLike, options: RecordOptions = None) -> None:
        chosen = _options(options)
        self._path = file_path(path)
        self._compressor = _compressor(chosen)
        self._flush_mode = _or(chosen.flush_mode, zlib.Z_SYNC_FLUSH)
        self._lock = threading.Lock()
        with errors_about(self._path):
            self._file: BinaryIO | None = file_system(self._path).open(self._path, "wb", _CHUNK_BYTES)

    def write(self, record: str | bytes) -> None:
        """Appends a record: bytes, or text to be encoded."""
        data = framed(as_bytes(record))
        with self._lock, errors_about(self._path):
            self._opened().write(data if self._compressor is None else self._compressor.compress(data))

    def flush(self) -> None:
        """Hands all records so far to the operating system."""
        with self._lock, errors_about(self._path):
            file = self._opened()
            if self._compressor is not None:
                file.write(self._compressor.flush(self._flush_mode))
            file.flush()

    def close(self) -> None:
        """Writes out buffered bytes and closes the file."""
        with self._lock, errors_about(self._path):
            file, self._file = self._file, None
            if file is None:
                return
            with file:
                if self._compressor is not None:
                    file.write(self._compressor.flush(zlib.Z_FINISH))

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise errors.FailedPreconditionError(None, None, "Writer is closed.")
        return self._file

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, unused_type: object, unused_value: object, unused_traceback: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


# -- reading -----------------------------------------------------------------------------------------


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Inflated:
    """Reads the content of a compressed file. A gzip file may have several parts."""

    def __init__(self, file: BinaryIO, kind: str) -> None:
        self._file = file
        self._kind = kind
        self._stream = zlib.decompressobj(_window(kind))
        self._ready = bytearray()

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end of the file."""
        while len(self._ready) < size:
            # A gzip file may be several gzip files, one after the other: the bytes behind the end begin the next.
            packed = self._stream.unused_data
            if self._stream.eof:
                if self._kind != "GZIP":
                    break
                packed = packed or self._file.read(_CHUNK_BYTES)
                self._stream = zlib.decompressobj(_window(self._kind)) if packed else self._stream
            else:
                packed = self._file.read(_CHUNK_BYTES)
            if not packed:
                break
            self._ready += self._inflate(packed)
        result = bytes(self._ready[:size])
        del self._ready[:size]
        return result

    def _inflate(self, packed: bytes) -> bytes:
        try:
            return self._stream.decompress(packed)
        except zlib.error as e:
            match = re.match(r"Error (-?\d+) while decompressing data: (.*)", str(e))
            code, what = match.groups() if match else ("-3", str(e))
            text = f"inflate() failed with error {code}: {what}"
            raise errors.DataLossError(None, None, text) from None


def again(error: errors.OpError) -> errors.OpError:
    """An error to be raised once more, without the traces of the first time."""
    return type(error)(None, None, error.message)  # type: ignore[call-arg]


def inflated(file: BinaryIO, compression: str) -> _Readable:
    """A stream of the content of a file, decompressed if it is "ZLIB" or "GZIP"."""
    return _Inflated(file, compression) if compression else file


class RecordReader:
    """The records of a file, in order. A file whose last header is cut off ends before it.

    A damaged record is an error only when its turn comes, and then for good.
    """

    def __init__(self, path: PathLike, compression: str = "") -> None:
        self._path = file_path(path)
        with errors_about(self._path):
            self._file: BinaryIO = file_system(self._path).open(self._path, "rb", 0)
        self._compression = compression
        self._source: _Readable = inflated(self._file, compression)
        self._at_end = "EOF reached" if compression else "Read less bytes than requested"
        self._buffer = b""
        self._at = 0  # where in the buffer the next record starts
        self._passed = 0  # bytes of the file before the buffer
        self._count = 0
        self._checksums: dict[int, int] = {}  # that belong to the lengths of records
        self._failure: errors.OpError | None = None
        #: where in the file the last record read starts
        self.start = 0

    def read(self) -> bytes | None:
        """The next record, or None at the end. DataLossError when the file is damaged."""
        records = self.read_many(1)
        return records[0] if records else None

    def read_many(self, count: int) -> list[bytes]:
        """Up to `count` records; none only at the end."""
        result: list[bytes] = []
        if self._failure is not None:
            raise again(self._failure)
        try:
            with errors_about(self._path):
                self._collect(count, result)
        except errors.OpError as e:
            self._failure = e
            if not result:
                raise
        return result

    def _collect(self, count: int, found: list[bytes]) -> None:
        # Every record of every training run passes here, so this is one loop without calls into others.
        header, footer, extend = _HEADER.unpack_from, _CHECKSUM.unpack_from, checksum_function()
        known = self._checksums
        while len(found) < count:
            at = self._at
            if at + _HEADER.size > len(self._buffer):
                if not self._fill(_HEADER.size):
                    return
                at = 0
            buffer = self._buffer
            length, stored = header(buffer, at)
            if known.get(length) != stored:
                if extend(0, buffer[at : at + 8]) != unmask(stored):
                    raise self._corrupted(self._passed + at)
                if len(known) < _MAX_KNOWN_LENGTHS:
                    known[length] = stored
            end = at + _HEADER.size + length
            if end + _CHECKSUM.size > len(buffer):
                if not self._fill(end - at + _CHECKSUM.size):
                    text = f"truncated record at {self._passed}' failed with {self._at_end}"
                    raise errors.DataLossError(None, None, f"{text} ({self._place()})")
                at, end, buffer = 0, end - at, self._buffer
            record = buffer[at + _HEADER.size : end]
            crc = extend(0, record)
            if (crc >> 15 | crc << 17) + MASK_DELTA & 0xFFFFFFFF != footer(buffer, end)[0]:
                raise self._corrupted(self._passed + at + _HEADER.size)
            found.append(record)
            self.start = self._passed + at
            self._at = end + _CHECKSUM.size
            self._count += 1

    def _fill(self, size: int) -> bool:
        """Moves on in the file until `size` bytes are ready; False when there are not so many."""
        self._passed += self._at
        parts = [self._buffer[self._at :]]
        have = len(parts[0])
        while have < size:
            try:
                # A damaged length may ask for exabytes: pieces of 16 MiB at most, until the file ends.
                more = self._source.read(max(_CHUNK_BYTES, min(size - have, 64 * _CHUNK_BYTES)))
            except errors.DataLossError as e:
                place = f"{self._place()}, at byte {self._passed}"
                raise errors.DataLossError(None, None, f"{e.message} ({place})") from None
            if not more:
                break
            parts.append(more)
            have += len(more)
        self._buffer, self._at = b"".join(parts), 0
        return have >= size

    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a record starts. Reads the file again."""
        other = RecordReader(self._path, self._compression)
        try:
            other.read_many(index + 1)
            return other.start
        finally:
            other.close()

    def _place(self) -> str:
        return f"file: {self._path}, record {self._count}"

    def _corrupted(self, position: int) -> errors.DataLossError:
        hint = " (Is this even a TFRecord file?)" if position == 0 else ""
        return errors.DataLossError(None, None, f"corrupted record at {position}{hint} ({self._place()})")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        record = None if self._file.closed else self.read()
        if record is None:
            self.close()
            raise StopIteration
        return record

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


@export("python_io.tf_record_iterator", "io.tf_record_iterator")
def tf_record_iterator(path: PathLike, options: RecordOptions = None) -> Iterator[bytes]:
    """The records of a file, in order."""
    return RecordReader(path, TFRecordOptions.get_compression_type_string(options))
