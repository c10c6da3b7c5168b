"""Record files: what is written is read back, and damage is noticed where it is."""

import zlib
from functools import partial

import pytest

import tensorfleet as tf
from tensorfleet.base.formats.records import framed
from tests.support.waiting import together

RECORDS = [b"hello", b"", b"x" * 70_000, bytes(range(256))]
KINDS = ["", "ZLIB", "GZIP"]


def write(path, records, options=None):
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)


def read_until_error(path, options=None):
    """The records before the first error, and the error."""
    records = []
    try:
        for record in tf.python_io.tf_record_iterator(str(path), options):
            records.append(record)
    except tf.errors.DataLossError as e:
        return records, e.message
    return records, None


@pytest.mark.parametrize("kind", KINDS)
def test_records_come_back(tmp_path, kind):
    path = tmp_path / "r"
    write(path, RECORDS, tf.python_io.TFRecordOptions(kind))
    assert list(tf.python_io.tf_record_iterator(str(path), tf.python_io.TFRecordOptions(kind))) == RECORDS


def test_the_format_is_tensorflows(tmp_path):
    path = tmp_path / "r"
    write(path, [b"hello"])
    assert path.read_bytes() == bytes.fromhex("0500000000000000eab2043e68656c6c6fbb1f1c19")


@pytest.mark.parametrize("kind", KINDS)
def test_flushed_records_can_be_read_while_the_file_is_open(tmp_path, kind):
    path = tmp_path / "r"
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:
        writer.write(b"one")
        writer.flush()
        assert list(tf.python_io.tf_record_iterator(str(path), kind)) == [b"one"]


@pytest.mark.parametrize("length", [0, 1, 11])
def test_a_file_cut_off_in_a_header_ends_before_it(tmp_path, length):
    path = tmp_path / "r"
    whole = framed(b"hello")
    path.write_bytes(whole + whole[:length])
    assert read_until_error(path) == ([b"hello"], None)


@pytest.mark.parametrize("length", [12, 14, 20])
def test_a_file_cut_off_in_a_record_is_an_error(tmp_path, length):
    path = tmp_path / "r"
    whole = framed(b"hello")
    path.write_bytes(whole + whole[:length])
    records, message = read_until_error(path)
    assert records == [b"hello"]
    assert "truncated record at 21' failed with Read less bytes than requested" in message


@pytest.mark.parametrize(
    ("byte", "phrase"),
    [
        (2, "corrupted record at 0 (Is this even a TFRecord file?)"),
        (9, "corrupted record at 0 (Is this even a TFRecord file?)"),
        (14, "corrupted record at 12"),
        (18, "corrupted record at 12"),
        (21 + 2, "corrupted record at 21"),
        (21 + 14, "corrupted record at 33"),
    ],
)
def test_a_changed_byte_is_an_error_that_says_where(tmp_path, byte, phrase):
    path = tmp_path / "r"
    data = bytearray(framed(b"hello") + framed(b"world"))
    data[byte] ^= 1
    path.write_bytes(data)
    records, message = read_until_error(path)
    assert records == ([b"hello"] if byte >= 21 else [])
    assert phrase in message and str(path) in message


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
def test_damaged_compressed_files_are_errors(tmp_path, kind):
    path = tmp_path / "r"
    path.write_bytes(framed(b"hello"))
    assert "inflate() failed with error -3: incorrect header check" in read_until_error(path, kind)[1]
    write(path, [bytes(range(256))] * 3, kind)
    path.write_bytes(path.read_bytes()[:-60])
    assert "failed with EOF reached" in read_until_error(path, kind)[1]


def test_a_compressed_file_read_as_plain_is_no_record_file(tmp_path):
    path = tmp_path / "r"
    write(path, [b"hello"] * 10, "GZIP")
    assert "Is this even a TFRecord file?" in read_until_error(path)[1]


def test_gzip_files_may_be_joined(tmp_path):
    path = tmp_path / "r"
    write(path, [b"a", b"b"], "GZIP")
    path.write_bytes(path.read_bytes() * 2)
    assert list(tf.python_io.tf_record_iterator(str(path), "GZIP")) == [b"a", b"b"] * 2


def test_missing_files_and_folders_are_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
        tf.python_io.tf_record_iterator(str(tmp_path / "nothing"))
    with pytest.raises(tf.errors.NotFoundError, match="No such file or directory"):
        tf.python_io.TFRecordWriter(str(tmp_path / "no" / "folder"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        tf.python_io.TFRecordWriter(str(tmp_path))


def test_a_closed_writer_refuses(tmp_path):
    writer = tf.python_io.TFRecordWriter(str(tmp_path / "r"))
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.write(b"x")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.flush()


def test_only_bytes_and_text_are_records(tmp_path):
    with tf.python_io.TFRecordWriter(str(tmp_path / "r")) as writer:
        writer.write("grüße")
        with pytest.raises(TypeError, match="Expected binary or unicode string"):
            writer.write(3)
    assert list(tf.python_io.tf_record_iterator(str(tmp_path / "r"))) == ["grüße".encode()]


@pytest.mark.parametrize("kind", KINDS)
def test_many_threads_may_write_at_once(tmp_path, kind):
    path = tmp_path / "r"
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:

        def work(number):
            for i in range(200):
                writer.write(b"%d:%d" % (number, i))

        together(*(partial(work, n) for n in range(8)))
    result = list(tf.python_io.tf_record_iterator(str(path), kind))
    assert len(result) == 1600
    for n in range(8):
        mine = [r for r in result if r.startswith(b"%d:" % n)]
        assert mine == [b"%d:%d" % (n, i) for i in range(200)]


def test_options_name_the_compression():
    options, kinds = tf.python_io.TFRecordOptions, tf.python_io.TFRecordCompressionType
    name = options.get_compression_type_string
    assert [name(k) for k in (None, "", kinds.NONE, kinds.ZLIB, kinds.GZIP, "GZIP", options("ZLIB"))] == [
        "", "", "", "ZLIB", "GZIP", "GZIP", "ZLIB",
    ]  # fmt: skip
    assert options("GZIP", compression_level=3).compression_level == 3
    for wrong in ("BAD", 5):
        with pytest.raises(ValueError, match=f'Not a valid compression_type: "{wrong}"'):
            options(wrong)


def test_zlib_settings_are_used(tmp_path):
    path = tmp_path / "r"
    write(path, [b"a" * 1000], tf.python_io.TFRecordOptions("ZLIB", compression_level=0))
    assert len(path.read_bytes()) > 1000
    assert zlib.decompress(path.read_bytes()) == framed(b"a" * 1000)
    with pytest.raises(tf.errors.InvalidArgumentError, match="deflateInit failed"):
        tf.python_io.TFRecordWriter(str(path), tf.python_io.TFRecordOptions("ZLIB", window_bits=3))
