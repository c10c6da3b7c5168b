"""Bad input: TensorFlow's class of error, naming file, record and byte; everything before it is delivered."""

import gzip
import re
import zlib

import pytest

import tensorfleet as tf

RECORDS = [b"first", b"second record", b"3"]


def outcome(following, limit=20):
    """The elements, and in the place of those that fail, the errors; without end, the first error alone."""
    result = []
    with tf.Session() as session:
        while len(result) < limit:
            try:
                result.append(session.run(following))
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.OpError as e:
                if result and str(e) == str(result[-1]):
                    break
                result.append(e)
    return result


def elements(dataset):
    return outcome(dataset.make_one_shot_iterator().get_next())


def frames():
    """Where each record of a file of RECORDS starts, and where the file ends."""
    at, result = 0, []
    for record in RECORDS:
        result.append(at)
        at += 16 + len(record)
    return result, at


def written(path, kind=""):
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:
        for record in RECORDS:
            writer.write(record)
    return path.read_bytes()


def check(found, path, whole):
    """`whole` records, then perhaps an error that tells the file, the number of the record and the byte."""
    assert found[:whole] == RECORDS[:whole]
    starts, end = frames()
    for error in found[whole:]:
        assert type(error) is tf.errors.DataLossError
        assert f"file: {path}, record {whole}" in error.message
        place = int(re.search(r"at (?:byte )?(\d+)", error.message).group(1))
        assert place in ([*starts, end][whole], [*starts, end][whole] + 12)


def test_a_record_file_cut_off_at_any_byte(tmp_path):
    data, path = written(tmp_path / "whole"), tmp_path / "cut"
    starts, end = frames()
    dataset = tf.data.TFRecordDataset(str(path))
    for length in range(end):
        path.write_bytes(data[:length])
        whole = sum(length >= stop for stop in [*starts[1:], end])
        result = elements(dataset)
        check(result, path, whole)
        # The end may be in a header, as it is when the writer has not got further yet; in a record it may not.
        assert len(result) == whole + (length >= starts[whole] + 12)


def test_a_record_file_with_any_bit_flipped(tmp_path):
    data, path = written(tmp_path / "whole"), tmp_path / "flipped"
    starts, end = frames()
    dataset = tf.data.TFRecordDataset(str(path))
    for byte in range(end):
        for bit in (1, 128) if byte % 4 else (1, 2, 4, 8, 16, 32, 64, 128):
            changed = bytearray(data)
            changed[byte] ^= bit
            path.write_bytes(bytes(changed))
            whole = sum(byte >= stop for stop in starts[1:])
            result = elements(dataset)
            check(result, path, whole)
            assert len(result) == whole + 1


@pytest.mark.parametrize("kind", ["ZLIB", "GZIP"])
def test_a_compressed_record_file_damaged_at_any_byte(tmp_path, kind):
    data, path = written(tmp_path / "whole", kind), tmp_path / "damaged"
    dataset = tf.data.TFRecordDataset(str(path), kind)
    for byte in range(len(data)):
        changed = bytearray(data)
        changed[byte] ^= 1 << byte % 8
        for damaged in (bytes(changed), data[:byte]):
            path.write_bytes(damaged)
            result = elements(dataset)
            whole = sum(isinstance(value, bytes) for value in result)
            check(result, path, whole)
            assert len(result) <= whole + 1


@pytest.mark.parametrize("kind", ["", "ZLIB"])
def test_a_reader_names_the_place_too(tmp_path, kind, session):
    path = tmp_path / "cut"
    path.write_bytes(written(path, kind)[:-2])
    queue = tf.FIFOQueue(1, [tf.string], shapes=[()])
    _, value = tf.TFRecordReader(options=tf.python_io.TFRecordOptions(kind)).read(queue)
    session.run(queue.enqueue([str(path)]))
    assert session.run(value) == RECORDS[0] and session.run(value) == RECORDS[1]
    if not kind:
        with pytest.raises(tf.errors.DataLossError, match=f"truncated record at 50.*file: {path}, record 2"):
            session.run(value)


def test_lines_of_a_damaged_compressed_file(tmp_path):
    packed = gzip.compress(b"".join(b"line %d\n" % i for i in range(5000)))
    path = tmp_path / "lines"
    path.write_bytes(packed[: len(packed) // 2] + b"\0" * 9 + packed[len(packed) // 2 :])
    following = tf.data.TextLineDataset(str(path), "GZIP").make_one_shot_iterator().get_next()
    with tf.Session() as session, pytest.raises(tf.errors.DataLossError, match=f"file: {path}, record"):
        for _ in range(5001):
            session.run(following)


@pytest.mark.parametrize("parallel", [None, 3])
def test_a_line_with_too_few_fields_or_a_bad_number_names_its_place(tmp_path, parallel):
    path = tmp_path / "a.csv"
    path.write_bytes(b"head\r\n5,6\r\n7\r\n8,x\r\n9,10\r\n")
    decode = lambda line: tf.stack(tf.decode_csv(line, [[0], [0]]))  # noqa: E731
    lines = tf.data.TextLineDataset([str(path)]).skip(1).map(decode, num_parallel_calls=parallel)
    a, few, bad, b = elements(lines)
    assert a.tolist() == [5, 6] and b.tolist() == [9, 10]
    assert type(few) is type(bad) is tf.errors.InvalidArgumentError
    assert few.message.startswith("Expect 2 fields but have 1")
    assert f"in element 1 of the dataset; file: {path}, record 2, at byte 11" in few.message
    assert bad.message.startswith("Field 1 in record 0 is not a valid int32: x")
    assert f"in element 2 of the dataset; file: {path}, record 3, at byte 14" in bad.message


def test_the_second_of_several_files_is_named(tmp_path):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_bytes(b"1,2\n3,4\n")
    second.write_bytes(b"5,6\n7\n")
    lines = tf.data.TextLineDataset([str(first), str(second)])
    *_, error = elements(lines.map(lambda line: tf.decode_csv(line, [[0], [0]])).prefetch(2))
    assert f"in element 3 of the dataset; file: {second}, record 1, at byte 4" in error.message


def test_a_csv_file_names_record_and_byte_with_headers_quotes_and_compression(tmp_path):
    text = b'a,b\n1,"two\nlines"\n2,x\nbad,y\n3,z\n'
    plain, packed = tmp_path / "plain.csv", tmp_path / "packed.csv"
    plain.write_bytes(text)
    packed.write_bytes(zlib.compress(text))
    for path, kind in ((plain, ""), (packed, "ZLIB")):
        rows = tf.data.experimental.CsvDataset(str(path), [tf.int32, tf.string], kind, header=True)
        one, two, error, three = elements(rows)
        assert [one, two, three] == [(1, b"two\nlines"), (2, b"x"), (3, b"z")]
        assert type(error) is tf.errors.InvalidArgumentError
        assert "Field 0 in record 2 is not a valid int32: bad" in error.message
        assert f"(file: {path}, at byte 22)" in error.message


def test_a_malformed_example_names_its_place(tmp_path):
    path = tmp_path / "examples"
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    good = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for record in [good] * 10 + [b"no Example", good]:
            writer.write(record)
    parse = lambda r: tf.parse_single_example(r, {"x": tf.FixedLenFeature([], tf.int64)})["x"]  # noqa: E731
    *before, error, after = elements(tf.data.TFRecordDataset(str(path)).map(parse))
    assert before == [7] * 10 and after == 7
    assert type(error) is tf.errors.InvalidArgumentError and "Could not parse example input" in error.message
    place = 10 * (16 + len(good))
    assert f"in element 10 of the dataset; file: {path}, record 10, at byte {place}" in error.message


def test_missing_files_and_unknown_compressions(tmp_path):
    there, absent = tmp_path / "there", tmp_path / "absent"
    there.write_bytes(b"x\n")
    result = elements(tf.data.TextLineDataset([str(there), str(absent)]))
    assert (
        result[0] == b"x" and type(result[1]) is tf.errors.NotFoundError and str(absent) in result[1].message
    )
    for dataset in (tf.data.TextLineDataset(str(there), "LZ4"), tf.data.TFRecordDataset(str(there), "LZ4")):
        (error,) = elements(dataset)
        assert type(error) is tf.errors.InvalidArgumentError
        assert "Unsupported compression_type" in error.message and "LZ4" in error.message
    with pytest.raises(ValueError, match='Not a valid compression_type: "LZ4"'):
        tf.python_io.TFRecordOptions("LZ4")
    with pytest.raises(tf.errors.NotFoundError, match=str(absent)):
        next(tf.python_io.tf_record_iterator(str(absent)))


def test_a_shape_that_does_not_match_the_queue(session):
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[2]])
    fed = tf.placeholder(tf.float32)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Shape mismatch in tuple component 0. Expected \[2\]"
    ):
        session.run(queue.enqueue(fed), {fed: [1.0, 2.0, 3.0]})
    assert session.run(queue.size()) == 0


def damaged_pipeline(tmp_path):
    """Batches of two out of a file whose fourth record is damaged."""
    path = tmp_path / "records"
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for i in range(5):
            writer.write(b"%d" % i)
    data = bytearray(path.read_bytes())
    data[3 * 17 + 12] ^= 1
    path.write_bytes(bytes(data))
    names = tf.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
    _, record = tf.TFRecordReader().read(names)
    return tf.train.batch([record], 1, capacity=8), path


def test_a_producer_that_dies_is_the_consumers_first_line(tmp_path):
    batch, path = damaged_pipeline(tmp_path)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        results = []
        with pytest.raises(tf.errors.DataLossError) as caught:
            try:
                while True:
                    results.append(session.run(batch)[0])
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    assert results == [b"0", b"1", b"2"]
    first = str(caught.value).splitlines()[0]
    assert first.startswith("corrupted record at 63") and f"file: {path}, record 3" in first


def test_a_monitored_session_raises_what_the_producer_died_of(tmp_path):
    batch, path = damaged_pipeline(tmp_path)
    tf.train.create_global_step()
    results = []
    with (
        pytest.raises(tf.errors.DataLossError, match=f"^corrupted record at 63 .*{path}, record 3"),
        tf.train.MonitoredTrainingSession() as session,
    ):
        while not session.should_stop():
            results.append(session.run(batch)[0])
    assert results == [b"0", b"1", b"2"][: len(results)]
