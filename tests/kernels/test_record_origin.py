"""What fails on a record behind a reader says where the record was."""

import pytest

import tensorfleet as tf


def names_of(path):
    return tf.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)


def failure_of(batch, count):
    """The error that ends the input after `count` batches."""
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            result = 0
            try:
                while True:
                    session.run(batch)
                    result += 1
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
        assert result == count
    return str(caught.value).splitlines()[0]


def test_a_line_with_too_few_fields(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("head,er\n1,2\n3\n4,5\n")
    _, line = tf.TextLineReader(skip_header_lines=1).read(names_of(path))
    first = failure_of(tf.train.batch(tf.decode_csv(line, [[0], [0]]), 1), 1)
    assert first == f"Expect 2 fields but have 1 in record 0 (file: {path}, record 2, at byte 12)"


def test_one_of_several_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,x\n4,5\n")
    _, lines = tf.TextLineReader().read_up_to(names_of(path), 3)
    first = failure_of(tf.train.batch(tf.decode_csv(lines, [[0], [0]]), 3, enqueue_many=True), 0)
    assert first == f"Field 1 in record 1 is not a valid int32: x (file: {path}, record 1, at byte 4)"


@pytest.mark.parametrize("kind", ["", "ZLIB"])
def test_a_record_that_is_no_example(tmp_path, kind):
    path, options = tmp_path / "examples", tf.python_io.TFRecordOptions(kind)
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    good = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in (good, good, b"no Example", good):
            writer.write(record)
    _, record = tf.TFRecordReader(options=options).read(names_of(path))
    parsed = tf.parse_single_example(record, {"x": tf.FixedLenFeature([], tf.int64)})["x"]
    first = failure_of(tf.train.shuffle_batch([parsed], 1, 10, 0), 2)
    assert first.startswith("Could not parse example input")
    assert first.endswith(f"(file: {path}, record 2, at byte {2 * (16 + len(good))})")


def test_a_piece_of_a_file(tmp_path):
    path = tmp_path / "pieces"
    path.write_bytes(b"head" + b"1" + b"2" + b"x")
    _, piece = tf.FixedLengthRecordReader(1, header_bytes=4).read(names_of(path))
    first = failure_of(tf.train.batch([tf.string_to_number(piece)], 1), 2)
    assert first.endswith(f"(file: {path}, record 2, at byte 6)")


def test_a_whole_file(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nno picture")
    _, contents = tf.WholeFileReader().read(names_of(path))
    first = failure_of(tf.train.batch([tf.shape(tf.image.decode_png(contents))], 1), 0)
    assert first.endswith(f"(file: {path})")


BATCHES = {
    "batch": lambda t, n: tf.train.batch(t, n, capacity=20),
    "shuffle_batch": lambda t, n: tf.train.shuffle_batch(t, n, capacity=20, min_after_dequeue=0, seed=1),
    "batch_join": lambda t, n: tf.train.batch_join([t], n, capacity=20),
    "padded": lambda t, n: tf.train.batch(t, n, capacity=20, dynamic_pad=True),
    "twice": lambda t, n: tf.train.batch([tf.train.batch(t, n)], n, enqueue_many=True),
}


@pytest.mark.parametrize("way", BATCHES)
def test_a_line_decoded_behind_a_queue(tmp_path, way):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\n5,x\n6,7\n")
    _, line = tf.TextLineReader().read(names_of(path))
    lines = BATCHES[way]([line], 4)
    first = failure_of(tf.decode_csv(lines, [[0], [0]]), 0)
    assert first.endswith(f"is not a valid int32: x (file: {path}, record 2, at byte 8)")


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_examples_parsed_behind_a_queue(tmp_path, kind):
    path, options = tmp_path / "examples", tf.python_io.TFRecordOptions(kind)
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    good = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    lacking = tf.train.Example(features=tf.train.Features(feature={"y": feature})).SerializeToString()
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        for record in (good, good, good, lacking):
            writer.write(record)
    _, record = tf.TFRecordReader(options=options).read(names_of(path))
    records = tf.train.batch([record], 2)
    parsed = tf.parse_example(records, {"x": tf.FixedLenFeature([], tf.int64)})["x"]
    first = failure_of(parsed, 1)
    assert first.endswith(f"(file: {path}, record 3, at byte {3 * (16 + len(good))})")


def test_a_feature_decoded_of_what_was_parsed_behind_a_queue(tmp_path):
    path = tmp_path / "examples"
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for raw in (b"1234", b"5678", b"123"):
            feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[raw]))
            example = tf.train.Example(features=tf.train.Features(feature={"raw": feature}))
            writer.write(example.SerializeToString())
    _, record = tf.TFRecordReader().read(names_of(path))
    parsed = tf.parse_example(tf.train.batch([record], 1), {"raw": tf.FixedLenFeature([], tf.string)})["raw"]
    first = failure_of(tf.decode_raw(parsed, tf.int32), 2)
    assert f"(file: {path}, record 2, at byte " in first


def test_the_first_of_a_batch_is_named_when_the_error_does_not_tell_which(tmp_path):
    path = tmp_path / "pieces"
    path.write_bytes(b"head" + b"123412341234123")
    _, piece = tf.FixedLengthRecordReader(3, header_bytes=4).read(names_of(path))
    pieces = tf.train.batch([piece], 2)
    first = failure_of(tf.decode_raw(pieces, tf.int32), 0)
    assert first.endswith(f"(file: {path}, record 0, at byte 4, or one of 1 others of the batch)")


def test_what_was_changed_since_is_not_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("12,x\n")
    _, line = tf.TextLineReader().read(names_of(path))
    queue = tf.FIFOQueue(9, tf.string, [[]])
    put, number = queue.enqueue(line), tf.decode_csv(queue.dequeue(), [[0], [0]])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        session.run(put)
        path.write_text("12,345\n")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(number)
        coordinator.request_stop()
        coordinator.join(threads)
    assert str(path) not in caught.value.message
