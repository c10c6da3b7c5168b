"""Readers: records of files whose names come from a queue."""

import gzip

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.waiting import in_background


def names(session, *paths):
    queue = tf.FIFOQueue(100, [tf.string], shapes=[()])
    session.run(queue.enqueue_many([[str(p) for p in paths]]))
    session.run(queue.close())
    return queue


def everything(session, reader, queue):
    key, value = reader.read(queue)
    result = []
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        while True:
            result.append(tuple(session.run([key, value])))
    return result


def write(path, data):
    path.write_bytes(data)
    return path


def test_lines(session, tmp_path):
    a, b = write(tmp_path / "a", b"head\none\r\ntwo"), write(tmp_path / "b", b"head\n\nx\n")
    reader = tf.TextLineReader(skip_header_lines=1)
    result = everything(session, reader, names(session, a, write(tmp_path / "e", b""), b))
    assert [v for _, v in result] == [b"one", b"two", b"", b"x"]
    assert result[0][0] == f"{a}:2".encode()
    assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [4, 3]


def test_whole_files_and_names(session, tmp_path):
    a = write(tmp_path / "a", b"1\n2")
    assert everything(session, tf.WholeFileReader(), names(session, a)) == [(str(a).encode(), b"1\n2")]
    assert everything(session, tf.IdentityReader(), names(session, "x", "y")) == [(b"x", b"x"), (b"y", b"y")]


@pytest.mark.parametrize(
    ("hop", "expected"), [(None, [b"aaa", b"bbb"]), (1, [b"aaa", b"aab", b"abb", b"bbb"])]
)
def test_records_of_fixed_length(session, tmp_path, hop, expected):
    plain, packed = write(tmp_path / "p", b"HHaaabbbF"), write(tmp_path / "z", gzip.compress(b"HHaaabbbF"))
    for path, encoding in ((plain, None), (packed, "GZIP")):
        reader = tf.FixedLengthRecordReader(3, 2, 1, hop_bytes=hop, encoding=encoding)
        assert [v for _, v in everything(session, reader, names(session, path))] == expected


@pytest.mark.parametrize("kind", ["NONE", "ZLIB", "GZIP"])
def test_tf_records(session, tmp_path, kind):
    options = tf.python_io.TFRecordOptions(getattr(tf.python_io.TFRecordCompressionType, kind))
    path = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for i in range(3):
            writer.write(b"rec%d" % i)
    result = everything(session, tf.TFRecordReader(options=options), names(session, path))
    assert result == [(f"{path}:{20 * i}".encode(), b"rec%d" % i) for i in range(3)]


def test_a_damaged_file_gives_what_stands_before_the_damage(session, tmp_path):
    path = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(3):
            writer.write(b"rec%d" % i)
    data = bytearray((tmp_path / "r").read_bytes())
    data[33] ^= 1
    bad = write(tmp_path / "bad", bytes(data))
    key, value = tf.TFRecordReader().read(names(session, bad))
    assert session.run(value) == b"rec0"
    for _ in range(2):
        with pytest.raises(
            tf.errors.DataLossError, match=rf"corrupted record at 32 \(file: {bad}, record 1\)"
        ):
            session.run(value)


def test_a_missing_file_is_passed_over_after_its_error(session, tmp_path):
    a = write(tmp_path / "a", b"one\n")
    _, value = tf.TextLineReader().read(names(session, tmp_path / "nope", a))
    with pytest.raises(tf.errors.NotFoundError, match="nope; No such file or directory"):
        session.run(value)
    assert session.run(value) == b"one"


def test_read_up_to_stops_at_the_end_of_a_file(session, tmp_path):
    a, b = write(tmp_path / "a", b"1\n2\n3\n"), write(tmp_path / "b", b"4\n")
    keys, values = tf.TextLineReader().read_up_to(names(session, a, b), 2)
    assert values.shape.as_list() == [None]
    assert [session.run(values).tolist() for _ in range(3)] == [[b"1", b"2"], [b"3"], [b"4"]]


def test_state_is_saved_and_restored(session):
    reader = tf.IdentityReader()
    _, value = reader.read(names(session, "a", "b"))
    session.run(value)
    state = session.run(reader.serialize_state())
    session.run(reader.reset())
    assert session.run(reader.num_records_produced()) == 0
    session.run(reader.restore_state(state))
    assert session.run(reader.num_records_produced()) == 1 and reader.supports_serialize
    for bad in (b"bogus", state[:-1]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state for IdentityReader"):
            session.run(reader.restore_state(bad))
    with pytest.raises(tf.errors.UnimplementedError, match="Reader SerializeState"):
        session.run(tf.TextLineReader().serialize_state())


def test_a_reader_waits_for_a_name_and_others_wait_for_the_reader(session, tmp_path):
    path = write(tmp_path / "a", b"1\n2\n")
    queue = tf.FIFOQueue(10, [tf.string], shapes=[()])
    add, close = queue.enqueue([str(path)]), queue.close()
    _, value = tf.TextLineReader().read(queue)
    readers = [in_background(session.run, value) for _ in range(2)]
    session.run(add)
    assert sorted(reader.result(60) for reader in readers) == [b"1", b"2"]
    session.run(close)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(value)


def test_waiting_for_a_name_ends_with_the_deadline(session):
    _, value = tf.TextLineReader().read(tf.FIFOQueue(10, [tf.string], shapes=[()]))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(value, options=tf.RunOptions(timeout_in_ms=50))


def test_files_and_patterns(session, tmp_path):
    path = str(tmp_path / "some" / "where")
    session.run(tf.write_file(path, "hello"))
    assert session.run(tf.read_file(path)) == b"hello"
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        session.run(tf.read_file(path + "x"))
    once = tf.train.match_filenames_once(str(tmp_path / "s*" / "*"))
    session.run(tf.local_variables_initializer())
    session.run(tf.write_file(str(tmp_path / "some" / "other"), ""))
    assert session.run(once).tolist() == [path.encode()]
    both = session.run(tf.matching_files([str(tmp_path / "some/o*"), str(tmp_path / "some/w*")]))
    assert [name.rpartition(b"/")[2] for name in both] == [b"other", b"where"]
    assert session.run(tf.matching_files(str(tmp_path / "z*"))).shape == (0,)
    assert np.asarray(both).dtype == object


def test_a_state_is_one_string_and_errors_name_the_reader(session):
    reader = tf.IdentityReader("mine")
    with pytest.raises(ValueError, match="rank 0"):
        reader.restore_state(["a", "b"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="for IdentityReader 'mine'"):
        session.run(reader.restore_state(b"junk"))
