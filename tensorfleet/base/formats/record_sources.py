"""Files as streams of records: lines of text, or pieces of equal length."""

from __future__ import annotations

import abc
import re
from typing import TYPE_CHECKING, BinaryIO

from tensorfleet.base import errors
from tensorfleet.base.file_systems import file_system
from tensorfleet.base.files import errors_about, file_path
from tensorfleet.base.formats.records import again, inflated

if TYPE_CHECKING:
    from tensorfleet.base.types import PathLike

_CHUNK_BYTES = 1 << 18


class _Source(abc.ABC):
    """A file being read in blocks. A damaged record is an error when its turn comes, and at every later call."""

    def __init__(self, path: PathLike, compression: str) -> None:
        self.path = file_path(path)
        with errors_about(self.path):
            self._file: BinaryIO = file_system(self.path).open(self.path, "rb", 0)
        self._compression = compression
        self._stream = inflated(self._file, compression)
        self._given = 0
        self._failure: errors.OpError | None = None

    def read_many(self, count: int) -> list[bytes]:
        """Up to `count` records; none only at the end."""
        result: list[bytes] = []
        if self._failure is not None:
            raise again(self._failure)
        try:
            with errors_about(self.path):
                self._read(count, result)
        except errors.DataLossError as e:
            text = f"{e.message} (file: {self.path}, record {self._given + len(result)})"
            self._failure = errors.DataLossError(None, None, text)
            if not result:
                raise again(self._failure) from None
        except errors.OpError as e:
            self._failure = e
            if not result:
                raise
        self._given += len(result)
        return result

    @abc.abstractmethod
    def _read(self, count: int, found: list[bytes]) -> None:
        """Adds up to `count` records."""

    @abc.abstractmethod
    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a record starts."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


class Lines(_Source):
    """The lines of a text file without their ends; all carriage returns are dropped."""

    def __init__(self, path: PathLike, compression: str = "", skip: int = 0) -> None:
        super().__init__(path, compression)
        self._lines: list[bytes] = []  # whole ones, the next one last
        self._rest = b""
        self._ended = False
        self.number = 0  # of the last line read
        self._skipped = skip
        while skip > 0:
            skipped = len(self.read_many(skip))
            if not skipped:
                break
            skip -= skipped

    def _read(self, count: int, found: list[bytes]) -> None:
        while not self._lines and not self._ended:
            self._fill()
        ready = self._lines
        if count >= len(ready):
            found.extend(reversed(ready))
            ready.clear()
        else:
            found.extend(ready[: -count - 1 : -1])
            del ready[-count:]
        self.number += len(found)

    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a line starts. Reads the file again."""
        left, at = index + self._skipped, 0
        with errors_about(self.path), file_system(self.path).open(self.path, "rb") as file:
            stream = inflated(file, self._compression)
            while left and (data := stream.read(_CHUNK_BYTES)):
                cut = -1
                while left and (following := data.find(b"\n", cut + 1)) >= 0:
                    left, cut = left - 1, following
                at += len(data) if left else cut + 1
        return at

    def _fill(self) -> None:
        data = self._stream.read(_CHUNK_BYTES)
        if not data:
            self._ended = True
            if self._rest:
                self._lines = [self._rest.replace(b"\r", b"")]
            return
        text = self._rest + data
        cut = text.rfind(b"\n")
        if cut < 0:
            self._rest = text
            return
        self._rest, text = text[cut + 1 :], text[:cut]
        if b"\r" in text:
            text = text.replace(b"\r", b"")
        self._lines = text.split(b"\n")
        # The next line is last, so that taking it from the list is cheap.
        self._lines.reverse()


class CsvRecords(Lines):
    """The records of a CSV file: lines that end with a newline, a carriage return or both, outside of quotes."""

    def __init__(
        self,
        path: PathLike,
        compression: str = "",
        skip: int = 0,
        delimiter: bytes = b",",
        quotes: bool = True,
    ) -> None:
        self._quotes = quotes
        self._ends = re.compile(b"[\\r\\n" + re.escape(delimiter) + b"]")
        super().__init__(path, compression, skip)
        if skip and not self._given:
            raise errors.invalid(f"Can't read header of file {self.path}")

    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a record starts. Reads the file again."""
        with errors_about(self.path), file_system(self.path).open(self.path, "rb") as file:
            stream, text = inflated(file, self._compression), b""
            while data := stream.read(_CHUNK_BYTES):
                text += data
        at = 0
        for _ in range(index + self._skipped):
            at = self._end(text, at)[1]
        return at

    def _fill(self) -> None:
        data = self._stream.read(_CHUNK_BYTES)
        self._ended = not data
        text, at = self._rest + data, 0
        if not (b"\r" in text or (self._quotes and b'"' in text)):
            *lines, self._rest = text.split(b"\n")
        else:
            lines = []
            while (cut := self._end(text, at))[1] > at:
                lines.append(text[at : cut[0]])
                at = cut[1]
            self._rest = text[at:]
        if self._ended and self._rest:
            lines.append(self._rest)
        self._lines = lines[::-1]

    def _end(self, text: bytes, start: int) -> tuple[int, int]:
        """Where the record ends that starts there, and where the next one starts; `start` while that is not known."""
        at = start
        while True:
            if self._quotes and text[at : at + 1] == b'"':
                at = _behind_quotes(text, at)
            end = self._ends.search(text, at)
            if end is None:
                return (len(text), len(text)) if self._ended else (start, start)
            if end.group() not in b"\r\n":
                at = end.end()
                continue
            both = text.startswith(b"\r\n", end.start())
            if end.group() == b"\r" and end.end() == len(text) and not self._ended:
                return start, start  # the newline may come next
            return end.start(), end.end() + both


def _behind_quotes(text: bytes, at: int) -> int:
    """Where a quoted field is over: behind the first quote that is not doubled."""
    at = text.find(b'"', at + 1)
    while at >= 0 and text[at + 1 : at + 2] == b'"':
        at = text.find(b'"', at + 2)
    return len(text) if at < 0 else at + 1


class Pieces(_Source):
    """Records of equal length between a header and a footer; with `hop`, each starts so many bytes after the last."""

    def __init__(
        self,
        path: PathLike,
        size: int,
        header: int = 0,
        footer: int = 0,
        hop: int = 0,
        compression: str = "",
        exact: bool = True,
    ) -> None:
        super().__init__(path, compression)
        self._size, self._hop, self._footer = size, hop or size, footer
        self._header = header
        self._ready = b""
        self._ended = False
        self.number = -1  # of the last record read
        with errors_about(self.path):
            if exact and not compression:
                self._check_length(header, footer)
            while len(self._ready) < header and not self._ended:
                self._fill(header)
            if len(self._ready) < header and not exact:
                self.close()
                raise errors.OutOfRangeError(None, None, "reached end of file")
            self._ready = self._ready[header:]

    def offset_of(self, index: int) -> int:
        """Where in the file, unpacked, a record starts."""
        return self._header + index * self._hop

    def _check_length(self, header: int, footer: int) -> None:
        body = self._file.seek(0, 2) - header - footer
        self._file.seek(0)
        if body % self._size:
            text = (
                f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{self.path}" has '
                f"body length {body} bytes, which is not an exact multiple of the record length ({self._size} bytes)."
            )
            self.close()
            raise errors.invalid(text)

    def _fill(self, size: int) -> None:
        data = self._stream.read(max(size, _CHUNK_BYTES))
        self._ended = not data
        self._ready += data

    def _read(self, count: int, found: list[bytes]) -> None:
        size, hop = self._size, self._hop
        while len(self._ready) < size + (count - 1) * hop + self._footer and not self._ended:
            self._fill(size + (count - 1) * hop)
        possible = (len(self._ready) - self._footer - size) // hop + 1
        taken = max(0, min(count, possible))
        data = self._ready
        found.extend([data[i : i + size] for i in range(0, taken * hop, hop)])
        self._ready = data[taken * hop :]
        self.number += taken
