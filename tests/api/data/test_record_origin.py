"""A bad record is named by file, record and byte, whatever stands between the file and the function that fails."""

import re

import pytest

import tensorfleet as tf
from tests.support.sessions import elements

Lines = tf.data.TextLineDataset
experimental = tf.data.experimental


@pytest.fixture
def files(tmp_path):
    """Three files of twelve lines; the eighth of the second has too few fields."""
    results = []
    for k in range(3):
        lines = ["oops" if (k, i) == (1, 7) else f"{k},{i}" for i in range(12)]
        results.append(tmp_path / f"{k}.csv")
        results[-1].write_text("\n".join(lines) + "\n")
    return [str(path) for path in results]


def decoded(line, *rest):
    return (tf.stack(tf.decode_csv(line, [[0], [0]])), *rest)


def outcome(dataset):
    """How many elements came, and the errors."""
    following = dataset.make_one_shot_iterator().get_next()
    count, failed = 0, []
    with tf.Session() as session:
        while True:
            try:
                session.run(following)
                count += 1
            except tf.errors.OutOfRangeError:
                return count, failed
            except tf.errors.OpError as e:
                failed.append(e)


WAYS = {
    "shuffled": lambda names: Lines(names).shuffle(20),
    "repeated": lambda names: Lines(names).repeat(2),
    "shuffled and repeated": lambda names: Lines(names).apply(experimental.shuffle_and_repeat(6, 2)),
    "interleaved": lambda names: tf.data.Dataset.from_tensor_slices(names).interleave(Lines, 3, 2).shuffle(5),
    "interleaved by threads": lambda names: (
        tf.data.Dataset.from_tensor_slices(names)
        .apply(experimental.parallel_interleave(Lines, 3))
        .prefetch(3)
    ),
    "filtered": lambda names: Lines(names).filter(lambda line: tf.not_equal(line, "0,3")),
    "sharded": lambda names: Lines(names).shard(2, 1),
    "skipped and taken": lambda names: Lines(names).skip(3).take(30),
    "batched and unbatched": lambda names: Lines(names).batch(5).apply(experimental.unbatch()),
    "cached": lambda names: Lines(names).cache().repeat(2),
    "zipped": lambda names: tf.data.Dataset.zip((Lines(names), tf.data.Dataset.range(99))),
    "concatenated": lambda names: tf.data.Dataset.from_tensors("9,9").concatenate(Lines(names)).shuffle(4),
    "in windows": lambda names: Lines(names).window(5).flat_map(lambda window: window),
    "in groups": lambda names: Lines(names).apply(
        experimental.group_by_window(lambda line: tf.constant(0, tf.int64), lambda key, group: group, 6)
    ),
    "twice each": lambda names: Lines(names).flat_map(
        lambda line: tf.data.Dataset.from_tensors(line).repeat(2)
    ),
    "mapped by threads": lambda names: Lines(names).map(lambda line: line, num_parallel_calls=3).shuffle(3),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("parallel", [None, 3])
def test_the_place_of_a_record_is_not_lost(files, way, parallel):
    if way == "sharded":  # so that the bad line is of this shard
        files = files[1:]
    dataset = WAYS[way](files)
    total, none = outcome(dataset)
    good, failed = outcome(dataset.map(decoded, num_parallel_calls=parallel))
    assert not none and failed and good == total - len(failed)
    for error in failed:
        assert type(error) is tf.errors.InvalidArgumentError
        assert error.message.startswith("Expect 2 fields but have 1 in record 0 (in element ")
        assert f"; file: {files[0 if way == 'sharded' else 1]}, record 7, at byte 28)" in error.message


def test_the_record_of_a_batch_is_named_when_the_error_tells_which(files):
    for dataset in (Lines(files).batch(5), Lines(files).shuffle(9).batch(5)):
        good, (error,) = outcome(dataset.map(decoded))
        assert good == 7 and f"; file: {files[1]}, record 7, at byte 28)" in error.message


def test_the_records_of_a_batch_are_named_when_it_does_not(files):
    failing = lambda lines: tf.decode_raw(lines, tf.int32)  # noqa: E731
    _, failed = outcome(Lines(files).batch(4).map(failing))
    assert f"; file: {files[0]}, records 4 to 7, from byte 16)" in failed[1].message


@pytest.mark.parametrize("size", [None, 5])
def test_a_cache_in_a_file_keeps_the_places(files, tmp_path, size):
    expected = f"; file: {files[1]}, record 7, at byte 28)"
    for _ in range(2):  # written, then read
        with tf.Graph().as_default():
            dataset = Lines(files) if size is None else Lines(files).shuffle(9).batch(size)
            cached = dataset.cache(str(tmp_path / "cache"))
            elements(cached)  # all of it, so that it is kept
            good, (error,) = outcome(cached.map(decoded))
            assert good == (35 if size is None else 7) and expected in error.message


def test_a_function_over_all_names_the_record(files):
    total = Lines(files).shuffle(3).reduce(0, lambda total, line: total + decoded(line)[0][0])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(total)
    assert f"; file: {files[1]}, record 7, at byte 28)" in caught.value.message


def test_a_record_behind_a_csv_dataset(files):
    rows = experimental.CsvDataset(files[:1], [tf.int32, tf.int32]).shuffle(4)
    third = rows.map(lambda a, b: tf.check_numerics(1.0 / tf.cast(b - 3, tf.float32), "third"))
    good, (error,) = outcome(third)
    assert good == 11 and f"; file: {files[0]}, record 3, at byte 12)" in error.message


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_damage_is_told_behind_every_stage(tmp_path, kind):
    path, options = str(tmp_path / "records"), tf.python_io.TFRecordOptions(kind)
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for i in range(9):
            writer.write(b"record %d" % i)
    whole = bytearray((tmp_path / "records").read_bytes())
    whole[len(whole) * 2 // 3] ^= 1
    (tmp_path / "records").write_bytes(bytes(whole))
    names = tf.data.Dataset.from_tensors(path)
    dataset = (
        names.interleave(lambda name: tf.data.TFRecordDataset(name, kind), 2).shuffle(4).batch(2).prefetch(1)
    )
    _, failed = outcome(dataset)
    for error in failed:
        assert type(error) is tf.errors.DataLossError
        assert re.search(
            rf"at (?:byte )?\d+.*file: {path}, record \d|file: {path}, record \d+, at byte", error.message
        )
    assert len(failed) == 1
