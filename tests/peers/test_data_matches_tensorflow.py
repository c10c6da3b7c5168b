"""Datasets, parsing and readers against TensorFlow's: the same elements, shapes, types and error classes."""

import collections

import numpy as np
import pytest

import tensorfleet as tf

Pair = collections.namedtuple("Pair", "a b")


def simple(value):
    """An element in a form that both libraries share."""
    if hasattr(value, "nested_row_splits"):
        return value.to_list(), [splits.tolist() for splits in value.nested_row_splits]
    if hasattr(value, "dense_shape"):
        return tuple(np.asarray(part).tolist() for part in value)
    if isinstance(value, dict):
        return {k: simple(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(simple(v) for v in value)
    array = np.asarray(value)
    return array.tolist(), array.shape, "text" if array.dtype.kind in "OSU" else str(array.dtype)


def outcome(tf, build, limit=12):
    """Shapes, types and elements of a dataset; in place of what fails, the class of the error."""
    with tf.Graph().as_default():
        try:
            dataset = build(tf)
        except (TypeError, ValueError) as e:
            return type(e)
        results = []
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        with tf.Session() as session:
            while len(results) < limit:
                try:
                    results.append(simple(session.run(following)))
                except tf.errors.OutOfRangeError:
                    break
                except tf.errors.OpError as e:
                    results.append(type(e).__name__)
        return str(tf.data.get_output_shapes(dataset)), str(tf.data.get_output_types(dataset)), results


def example(tf, **features):
    by_name = {}
    for key, values in features.items():
        if isinstance(values[0], bytes):
            by_name[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], float):
            by_name[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            by_name[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=by_name)).SerializeToString()


def numbers(tf, *args):
    return tf.data.Dataset.range(*args)


def slices(tf, value):
    return tf.data.Dataset.from_tensor_slices(value)


def ragged(tf, *args):
    return numbers(tf, *args).map(lambda x: tf.fill([x], x))


def repeats(tf, times):
    return lambda x: tf.data.Dataset.from_tensors(x).repeat(times)


def pairs(tf):
    return slices(tf, ([1, 2, 3], ["a", "b", "c"]))


def rows(tf):
    return slices(tf, tf.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3]))


def fragile(tf):
    return slices(tf, [2.0, 0.0, 4.0]).map(lambda x: tf.check_numerics(1.0 / x, "oops"))


def records(tf):
    return slices(tf, [example(tf, a=[i, i + 300], b=[b"xy"], c=[i / 2]) for i in range(9)])


def fixed(tf):
    shape = tf.FixedLenFeature
    return {
        "a": shape([2], tf.int64),
        "b": shape([], tf.string),
        "d": shape([1], tf.float32, default_value=[7.0]),
    }


CASES = {
    "tensors": lambda tf: tf.data.Dataset.from_tensors((1, {"x": 2.0, "a": ["s", "t"]})),
    "slices of dictionaries": lambda tf: slices(tf, {"a": [1, 2, 3], "b": [[1.0], [2.0], [3.0]]}),
    "slices of named tuples": lambda tf: slices(tf, Pair([1, 2], ["a", "b"])),
    "uneven slices": lambda tf: slices(tf, ([1, 2], [1, 2, 3])),
    "range": lambda tf: numbers(tf, 10, 0, -3),
    "zip": lambda tf: tf.data.Dataset.zip((numbers(tf, 3), {"x": numbers(tf, 5).map(lambda x: x * x)})),
    "zip of a list": lambda tf: tf.data.Dataset.zip([numbers(tf, 3)]),
    "concatenate": lambda tf: numbers(tf, 2).concatenate(numbers(tf, 10, 12)),
    "concatenate other shapes": lambda tf: slices(tf, [[1, 2]]).concatenate(slices(tf, [[1, 2, 3]])),
    "concatenate other types": lambda tf: numbers(tf, 2).concatenate(slices(tf, [1.0])),
    "map": lambda tf: numbers(tf, 4).map(lambda x: (x, tf.cast(x, tf.float32) / 2)),
    "map to a list": lambda tf: numbers(tf, 3).map(lambda x: [x, x + 1]),
    "map in parallel": lambda tf: numbers(tf, 9).map(lambda x: x * x, num_parallel_calls=2),
    "map with branches": lambda tf: numbers(tf, 4).map(lambda x: tf.cond(x > 1, lambda: x * 10, lambda: -x)),
    "map that fails": fragile,
    "map in batches": lambda tf: numbers(tf, 9).batch(4).map(lambda x: (tf.reduce_sum(x), x[::-1])),
    "ignored errors": lambda tf: fragile(tf).apply(tf.data.experimental.ignore_errors()),
    "prefetched errors": lambda tf: fragile(tf).prefetch(2),
    "flat map": lambda tf: numbers(tf, 4).flat_map(lambda x: tf.data.Dataset.range(x)),
    "interleave": lambda tf: numbers(tf, 1, 4).interleave(repeats(tf, 4), cycle_length=2, block_length=3),
    "interleave one": lambda tf: numbers(tf, 4).interleave(lambda x: repeats(tf, x)(x), 3, 2),
    "interleave in parallel": lambda tf: numbers(tf, 4).interleave(
        repeats(tf, 3), 2, 1, num_parallel_calls=2
    ),
    "filter": lambda tf: numbers(tf, 10).filter(lambda x: tf.equal(x % 3, 0)),
    "filter by numbers": lambda tf: numbers(tf, 10).filter(lambda x: x),
    "batch": lambda tf: pairs(tf).batch(2),
    "whole batches": lambda tf: pairs(tf).batch(2, drop_remainder=True),
    "batch of nothing": lambda tf: numbers(tf, 5).batch(0),
    "uneven batch": lambda tf: ragged(tf, 1, 4).batch(2),
    "padded batch": lambda tf: ragged(tf, 1, 5).padded_batch(2, [None]),
    "padded to a shape": lambda tf: ragged(tf, 1, 4).padded_batch(2, [5], tf.constant(-1, tf.int64)),
    "padded too small": lambda tf: ragged(tf, 1, 4).padded_batch(2, [1]),
    "unbatch": lambda tf: numbers(tf, 6).batch(4).apply(tf.data.experimental.unbatch()),
    "repeat": lambda tf: numbers(tf, 2).repeat(3),
    "repeat for ever": lambda tf: numbers(tf, 2).repeat(),
    "repeat nothing": lambda tf: numbers(tf, 0).repeat(),
    "skip and take": lambda tf: numbers(tf, 9).skip(2).take(3),
    "skip all": lambda tf: numbers(tf, 5).skip(-1),
    "shard": lambda tf: numbers(tf, 10).shard(3, 1).batch(2),
    "no such shard": lambda tf: numbers(tf, 10).shard(3, 3),
    "cache": lambda tf: pairs(tf).cache().repeat(2),
    "prefetch": lambda tf: numbers(tf, 5).batch(2).prefetch(tf.data.experimental.AUTOTUNE),
    "enumerate": lambda tf: pairs(tf).enumerate(5),
    "window": lambda tf: numbers(tf, 7).window(3, shift=2).flat_map(lambda x: x.batch(3)),
    "window with strides": lambda tf: numbers(tf, 7).window(2, 1, 2, True).flat_map(lambda x: x.batch(3)),
    "scan": lambda tf: numbers(tf, 5).apply(tf.data.experimental.scan(np.int64(10), lambda s, x: (s + x, s))),
    "map and batch": lambda tf: numbers(tf, 5).apply(tf.data.experimental.map_and_batch(lambda x: x * 2, 2)),
    "group by window": lambda tf: numbers(tf, 10).apply(
        tf.data.experimental.group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), window_size=3)
    ),
    "buckets": lambda tf: ragged(tf, 1, 8).apply(
        tf.data.experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2])
    ),
    "groups of many sizes": lambda tf: numbers(tf, 300).apply(
        tf.data.experimental.group_by_window(
            lambda x: x % 7, lambda k, w: w.batch(20), window_size_func=lambda k: 3 * k + 1
        )
    ),
    "random numbers": lambda tf: (
        numbers(tf, 9)
        .map(lambda x: (x, tf.random_uniform([3], -1, 1, seed=7), tf.random_uniform([], seed=8)))
        .batch(4)
    ),
    "random integers": lambda tf: (
        numbers(tf, 9).map(lambda x: tf.random_uniform([5], 0, 99, dtype=tf.int64, seed=7) + x).batch(4)
    ),
    "shuffled": lambda tf: numbers(tf, 9).shuffle(4, seed=3),
    "shuffled again and again": lambda tf: numbers(tf, 4).shuffle(9, seed=3).repeat(3),
    "shuffled in the same order": lambda tf: (
        numbers(tf, 4).shuffle(3, seed=3, reshuffle_each_iteration=False).repeat(3)
    ),
    "shuffled twice": lambda tf: (
        tf.data.Dataset.from_tensor_slices((np.arange(11.0), np.arange(22).reshape(11, 2)))
        .shuffle(5, seed=3)
        .shuffle(7, seed=4)
        .batch(2)
    ),
    "shuffled and repeated": lambda tf: numbers(tf, 5).apply(
        tf.data.experimental.shuffle_and_repeat(3, 2, seed=8)
    ),
    "random orders": lambda tf: (
        numbers(tf, 9).map(lambda x: tf.random_shuffle(x + [1, 2, 3, 4, 5], seed=7)).batch(4)
    ),
    "parts of elements": lambda tf: (
        slices(tf, np.arange(60.0).reshape(5, 4, 3))
        .map(
            lambda x: (
                x[::-1, 1],
                tf.reduce_max(x, -1),
                tf.one_hot(tf.cast(x[0, 0], tf.int32), 4),
                tf.shape(x),
            )
        )
        .batch(2)
    ),
    "take while": lambda tf: numbers(tf, 10).apply(tf.data.experimental.take_while(lambda x: x < 4)),
    "unique": lambda tf: slices(tf, [1, 2, 1, 3, 2]).apply(tf.data.experimental.unique()),
    "counter": lambda tf: tf.data.experimental.Counter(3, 2).take(3),
    "generator": lambda tf: tf.data.Dataset.from_generator(
        lambda: ((i, [i] * i) for i in range(3)), (tf.int32, tf.float32), ((), [None])
    ),
    "generator of other types": lambda tf: tf.data.Dataset.from_generator(lambda: iter([1, "x"]), tf.int64),
    "sparse rows": rows,
    "sparse batch": lambda tf: rows(tf).batch(2),
    "parsed one by one": lambda tf: records(tf).map(lambda s: tf.parse_single_example(s, fixed(tf))),
    "parsed together": lambda tf: records(tf).batch(4).map(lambda s: tf.parse_example(s, fixed(tf))),
    "parsed to sparse": lambda tf: (
        records(tf).map(lambda s: tf.parse_single_example(s, {"a": tf.VarLenFeature(tf.int64)})).batch(4)
    ),
    "parsed without what is needed": lambda tf: records(tf).map(
        lambda s: tf.parse_single_example(s, {"z": tf.FixedLenFeature([], tf.int64)})
    ),
    "decoded": lambda tf: (
        records(tf)
        .map(lambda s: tf.parse_single_example(s, fixed(tf)))
        .map(
            lambda p: (
                tf.reshape(tf.decode_raw(p["b"], tf.uint8), [2, 1]),
                p["a"][0] * 2,
                tf.stack([p["d"], p["d"]]),
            )
        )
        .batch(5)
    ),
    "csv lines": lambda tf: slices(tf, ["1,2.5,x", "2,,y", '3,1e3,"a,b"', "4"]).map(
        lambda line: tf.decode_csv(line, [[0], [1.0], ["d"]])
    ),
}


def rows_of_rows(tf):
    return tf.ragged.constant([[[1, 2], []], [[3]], [], [[4], [5, 6]]])


CASES |= {
    "ragged tensors": lambda tf: tf.data.Dataset.from_tensors(rows_of_rows(tf)),
    "rows of ragged tensors": lambda tf: slices(tf, rows_of_rows(tf)),
    "rows of rows": lambda tf: slices(tf, tf.ragged.constant([[1, 2], [], [3]])),
    "ragged tensors from functions": lambda tf: numbers(tf, 1, 5).map(tf.ragged.range),
    "batches of ragged tensors": lambda tf: slices(tf, rows_of_rows(tf)).batch(3),
    "batches cut again": lambda tf: slices(tf, rows_of_rows(tf)).batch(3).unbatch(),
    "ragged and other components": lambda tf: slices(tf, {"r": rows_of_rows(tf), "n": [1, 2, 3, 4]}).batch(2),
    "functions of ragged tensors": lambda tf: slices(tf, rows_of_rows(tf)).map(lambda r: r.nrows()),
    "ragged tensors one after the other": lambda tf: slices(tf, rows_of_rows(tf)).concatenate(
        slices(tf, rows_of_rows(tf)).take(1)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_datasets(tensorflow, name):
    assert outcome(tf, CASES[name]) == outcome(tensorflow, CASES[name])


def failing(tf, *args):
    """Numbers of which one fails. TensorFlow would make one step of mapping and batching, which drops more."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return numbers(tf, *args).map(lambda x: 12 // (3 - x)).with_options(options)


def apart(tf, name, *args):
    return getattr(tf.data.experimental, name)(*args)


ERRORS = {
    "batch": lambda tf: failing(tf, 9).batch(2),
    "whole batches": lambda tf: failing(tf, 8).batch(3, drop_remainder=True),
    "padded batch": lambda tf: failing(tf, 6).map(lambda x: tf.fill([2], x)).padded_batch(2, [3]),
    "repeat": lambda tf: failing(tf, 5).repeat(2),
    "filter": lambda tf: numbers(tf, 9).filter(lambda x: 12 // (3 - x) > 2),
    "flat map": lambda tf: numbers(tf, 6).flat_map(lambda x: numbers(tf, 12 // (3 - x)).take(1)),
    "interleave": lambda tf: numbers(tf, 6).interleave(lambda x: numbers(tf, 12 // (3 - x)).take(2), 2, 1),
    "zip": lambda tf: tf.data.Dataset.zip((failing(tf, 6), numbers(tf, 6))),
    "zip, the second": lambda tf: tf.data.Dataset.zip((numbers(tf, 6), failing(tf, 6), numbers(tf, 9))),
    "zip in batches": lambda tf: tf.data.Dataset.zip((numbers(tf, 9), failing(tf, 9))).batch(2),
    "concatenate": lambda tf: failing(tf, 5).concatenate(numbers(tf, 2)),
    "skip and take": lambda tf: failing(tf, 9).skip(2).take(4),
    "cache": lambda tf: failing(tf, 5).cache().repeat(2),
    "window": lambda tf: failing(tf, 9).window(2).flat_map(lambda window: window.batch(2)),
    "group": lambda tf: failing(tf, 9).apply(
        tf.data.experimental.group_by_window(lambda x: x % 2, lambda key, group: group.batch(3), 3)
    ),
    "scan": lambda tf: numbers(tf, 6).apply(
        apart(tf, "scan", np.int64(0), lambda s, x: (s + x, s // (3 - x)))
    ),
    "unbatch": lambda tf: failing(tf, 9).batch(2).apply(apart(tf, "unbatch")),
    "map in parallel": lambda tf: numbers(tf, 9).map(lambda x: 12 // (3 - x), num_parallel_calls=3),
    "map and batch": lambda tf: numbers(tf, 9).apply(apart(tf, "map_and_batch", lambda x: 12 // (3 - x), 2)),
    "map and batch of three": lambda tf: numbers(tf, 9).apply(
        apart(tf, "map_and_batch", lambda x: 12 // (3 - x), 3)
    ),
    "prefetch": lambda tf: failing(tf, 9).batch(3).prefetch(2),
    "enumerate": lambda tf: failing(tf, 6).apply(apart(tf, "enumerate_dataset")),
    "shard": lambda tf: failing(tf, 9).shard(2, 1),
    "ignore": lambda tf: failing(tf, 9).apply(apart(tf, "ignore_errors")).batch(2),
    "take while": lambda tf: failing(tf, 9).apply(apart(tf, "take_while", lambda x: x < 100)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_comes_before_and_after_an_error_is_the_same(tensorflow, name):
    assert outcome(tf, ERRORS[name]) == outcome(tensorflow, ERRORS[name])


FILES = {
    "lines": lambda tf, d: tf.data.TextLineDataset([f"{d}/t1", f"{d}/t2"]),
    "lines of a dataset of names": lambda tf, d: tf.data.TextLineDataset(slices(tf, [f"{d}/t2", f"{d}/t1"])),
    "no such file": lambda tf, d: tf.data.TextLineDataset([f"{d}/t1", f"{d}/nope"]).take(3),
    "pieces": lambda tf, d: tf.data.FixedLengthRecordDataset([f"{d}/pieces"], 2, 1, 1),
    "uneven pieces": lambda tf, d: tf.data.FixedLengthRecordDataset([f"{d}/pieces"], 4, 1, 1),
    "names": lambda tf, d: tf.data.Dataset.list_files(f"{d}/t*", shuffle=False),
    "csv": lambda tf, d: tf.data.experimental.CsvDataset([f"{d}/c.csv"], [[7], [8.0], ["d"]], header=True),
    "some columns": lambda tf, d: tf.data.experimental.CsvDataset(
        [f"{d}/c.csv"], [tf.string], header=True, select_cols=[2]
    ),
    "csv by name": lambda tf, d: tf.data.experimental.make_csv_dataset(
        f"{d}/c.csv", 2, label_name="b", num_epochs=1, shuffle=False
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(tensorflow, tmp_path, name):
    (tmp_path / "t1").write_bytes(b"a\rb\r\n\nc\n")
    (tmp_path / "t2").write_bytes(b"last")
    (tmp_path / "pieces").write_bytes(b"HaabbccF")
    (tmp_path / "c.csv").write_bytes(b'a,b,c\n1,2.5,x\n,,"q,r"\n3,4,"two\nlines"\n')
    build = lambda tf: FILES[name](tf, tmp_path)  # noqa: E731
    assert outcome(tf, build) == outcome(tensorflow, build)


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_record_files_cut_off_or_changed_at_every_byte(tensorflow, tmp_path, kind):
    path = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(path, kind) as writer:
        for i in range(3):
            writer.write(b"rec%d" % i)
    data = (tmp_path / "r").read_bytes()
    names = []
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        for what, damaged in (("bad", bytes(changed)), ("cut", data[:at])):
            names.append(tmp_path / f"{what}{at}")
            names[-1].write_bytes(damaged)
    differ = {}
    for name in names:
        build = lambda tf, name=name: tf.data.TFRecordDataset([str(name), path], kind)  # noqa: E731
        ours, theirs = outcome(tf, build), outcome(tensorflow, build)
        if ours != theirs:
            differ[name.name] = ours[-1], theirs[-1]
    assert not differ


BAD = {
    "missing records": lambda tf, at: tf.data.TFRecordDataset([f"{at}/r", f"{at}/nope", f"{at}/r"]),
    "missing lines": lambda tf, at: tf.data.TextLineDataset(f"{at}/nope"),
    "folder": lambda tf, at: tf.data.TextLineDataset(str(at)),
    "not compressed": lambda tf, at: tf.data.TFRecordDataset(f"{at}/r", "GZIP"),
    "few fields": lambda tf, at: tf.data.TextLineDataset(f"{at}/few").map(
        lambda line: tf.decode_csv(line, [[0], [0.0]])
    ),
    "no number": lambda tf, at: tf.data.TextLineDataset(f"{at}/word").map(
        lambda line: tf.decode_csv(line, [[0], [0.0]])
    ),
    "required field": lambda tf, at: tf.data.TextLineDataset(f"{at}/empty").map(
        lambda line: tf.decode_csv(line, [tf.constant([], tf.int32), [0.0]])
    ),
    "few fields of a file": lambda tf, at: tf.data.experimental.CsvDataset(f"{at}/few", [[0], [0.0]]),
    "no number in a file": lambda tf, at: tf.data.experimental.CsvDataset(f"{at}/word", [[0], [0.0]]),
    "required field of a file": lambda tf, at: tf.data.experimental.CsvDataset(
        f"{at}/empty", [tf.int32, [0.0]]
    ),
    "no Example": lambda tf, at: tf.data.TFRecordDataset(f"{at}/r").map(
        lambda record: tf.parse_single_example(record, {"x": tf.FixedLenFeature([], tf.int64)})
    ),
    "no Examples": lambda tf, at: (
        tf.data.TFRecordDataset(f"{at}/r")
        .batch(2)
        .map(lambda records: tf.parse_example(records, {"x": tf.FixedLenFeature([], tf.int64)}))
    ),
    "odd bytes": lambda tf, at: tf.data.TFRecordDataset(f"{at}/r").map(lambda r: tf.decode_raw(r, tf.int32)),
    "odd length": lambda tf, at: tf.data.FixedLengthRecordDataset(f"{at}/r", 7),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_the_same_class_of_error(tensorflow, tmp_path, name):
    def example(value):
        feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        return tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()

    with tf.python_io.TFRecordWriter(str(tmp_path / "r")) as writer:
        for record in (example(1), b"no Example", example(2)):
            writer.write(record)
    (tmp_path / "few").write_bytes(b"1,2.5\n3\n4,5\n")
    (tmp_path / "word").write_bytes(b"1,2.5\n3,x\n4,5\n")
    (tmp_path / "empty").write_bytes(b"1,2.5\n,3\n4,5\n")
    build = lambda tf: BAD[name](tf, tmp_path)  # noqa: E731
    assert outcome(tf, build) == outcome(tensorflow, build)


def test_reading_by_queues(tensorflow, tmp_path):
    (tmp_path / "a").write_bytes(b"head\none\r\ntwo")
    (tmp_path / "b").write_bytes(b"head\n\nx\n")

    def read(tf):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
            session.run(queue.enqueue_many([[str(tmp_path / n) for n in ("a", "nope", "b")]]))
            session.run(queue.close())
            reader = tf.TextLineReader(skip_header_lines=1)
            record = reader.read(queue)
            counts = reader.num_records_produced(), reader.num_work_units_completed()
            results = []
            for _ in range(6):
                try:
                    results.append(session.run(record))
                except tf.errors.OpError as e:
                    results.append(type(e).__name__)
                results.append(session.run(counts))
            return results, [(o.name, o.type) for o in graph.get_operations()]

    assert read(tf) == read(tensorflow)


def pipeline(tf):
    dataset = slices(tf, np.arange(10, dtype=np.int64)).map(lambda x: x * 3)
    dataset = dataset.filter(lambda x: tf.equal(x % 2, 1)).flat_map(lambda x: tf.data.Dataset.range(x, x + 2))
    following = tf.data.make_one_shot_iterator(dataset.batch(4).prefetch(1)).get_next()
    return tf.identity(following, name="result")


@pytest.mark.parametrize("ours", [True, False])
def test_pipelines_travel_between_the_libraries(tensorflow, ours):
    source, target = (tf, tensorflow) if ours else (tensorflow, tf)
    with source.Graph().as_default() as graph:
        pipeline(source)
    data = graph.as_graph_def().SerializeToString()
    with target.Graph().as_default(), target.Session() as session:
        target.import_graph_def(target.GraphDef.FromString(data), name="")
        items = [session.run("result:0").tolist() for _ in range(3)]
        assert items == [[3, 4, 9, 10], [15, 16, 21, 22], [27, 28]]
        with pytest.raises(target.errors.OutOfRangeError):
            session.run("result:0")
