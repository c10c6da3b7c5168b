"""Files as streams of lines, pieces and records."""

import zlib

import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.base.formats.record_sources import Lines, Pieces
from tensorfleet.base.formats.records import RecordReader


def drained(source, count):
    result = []
    while block := source.read_many(count):
        assert len(block) <= count
        result += block
    return result


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_lines_end_with_newlines_or_the_file(tmp_path, count):
    path = tmp_path / "f"
    path.write_bytes(b"a\rb\r\n\nlast")
    assert drained(Lines(path), count) == [b"ab", b"", b"last"]
    path.write_bytes(b"x\n" * 200_000 + b"y" * 600_000 + b"\nz")
    assert drained(Lines(path, skip=1), 5000) == [b"x"] * 199_999 + [b"y" * 600_000, b"z"]


def test_packed_lines(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(zlib.compress(b"a\nb\n"))
    assert drained(Lines(path, "ZLIB"), 9) == [b"a", b"b"]
    path.write_bytes(b"a\nb\n")
    with pytest.raises(errors.DataLossError, match="inflate"):
        Lines(path, "ZLIB").read_many(1)


def test_pieces_fill_the_file_exactly(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"HaabbccF")
    assert drained(Pieces(path, 2, 1, 1), 2) == [b"aa", b"bb", b"cc"]
    path.write_bytes(b"HaabbcF")
    with pytest.raises(
        errors.InvalidArgumentError, match="body length 5 bytes, which is not an exact multiple"
    ):
        Pieces(path, 2, 1, 1).read_many(1)


def records_of(path):
    """The records before the first error, and the error."""
    reader, result = RecordReader(path), []
    try:
        while block := reader.read_many(7):
            result += block
    except errors.DataLossError as e:
        with pytest.raises(errors.DataLossError):
            reader.read_many(1)
        return result, str(e)
    return result, ""


def test_every_cut_and_every_flipped_bit_of_a_record_file(tmp_path):
    path = tmp_path / "f"
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for i in range(4):
            writer.write(b"rec%d" % i)
    data, good = path.read_bytes(), [b"rec%d" % i for i in range(4)]
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        result, error = records_of(path)
        assert result == good[: cut // 20]
        assert ("truncated record at" in error) == (cut % 20 >= 12)
    for at in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            result, error = records_of(path)
            assert result == good[: at // 20]
            assert f"corrupted record at {at // 20 * 20 + (12 if at % 20 >= 12 else 0)}" in error
            assert f"(file: {path}, record {at // 20})" in error
