"""Every argument of readers and queues gives what it gives in TensorFlow, errors included."""

import gzip
import zlib

import numpy as np
import pytest

import tensorfleet as tf


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of every kind; names are relative, so that both libraries give the same keys."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"head\none\r\ntwo\n\nlast")
    (tmp_path / "b").write_bytes(b"head\nthree\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "pieces").write_bytes(b"Haabbccddee-F")
    for kind, pack in (("zlib", zlib.compress), ("gzip", gzip.compress)):
        (tmp_path / f"pieces.{kind}").write_bytes(pack(b"Haabbccddee-F"))
    for kind in ("", "ZLIB", "GZIP"):
        with tf.python_io.TFRecordWriter(f"records{kind}", tf.python_io.TFRecordOptions(kind)) as writer:
            for i in range(4):
                writer.write(b"record %d" % i * (i + 1))
    return tmp_path


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return np.asarray(value).tolist()


def outcome(tf, build, names, runs):
    """What some runs of the operations of a reader give; in place of what fails, the class of the error."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
            reader = build(tf)
            ops = {
                "read": reader.read(queue),
                "several": reader.read_up_to(queue, 3),
                "none": reader.read_up_to(queue, 0),
                "counts": [reader.num_records_produced(), reader.num_work_units_completed()],
                "state": reader.serialize_state(),
                "reset": reader.reset(),
            }
        except (TypeError, ValueError) as e:
            return type(e)
        session.run(queue.enqueue_many([names]))
        session.run(queue.close())
        results = []
        for run in runs:
            try:
                results.append((run, plain(session.run(ops[run]))))
            except tf.errors.OpError as e:
                results.append((run, type(e).__name__))
        return results, reader.supports_serialize, reader.reader_ref.dtype.name


ALL = ["read", "counts"] * 7 + ["reset", "counts", "several", "none"]
SEVERAL = ["several", "counts"] * 4 + ["read", "state"]

READERS = {
    "lines": lambda tf: tf.TextLineReader(),
    "lines after a header": lambda tf: tf.TextLineReader(skip_header_lines=1),
    "lines after a long header": lambda tf: tf.TextLineReader(skip_header_lines=99),
    "lines after less than nothing": lambda tf: tf.TextLineReader(skip_header_lines=-1),
    "named lines": lambda tf: tf.TextLineReader(name="lines"),
    "whole files": lambda tf: tf.WholeFileReader(),
    "names": lambda tf: tf.IdentityReader(),
    "records": lambda tf: tf.TFRecordReader(),
    "pieces": lambda tf: tf.FixedLengthRecordReader(2),
}


@pytest.mark.parametrize("runs", [ALL, SEVERAL], ids=["one by one", "several"])
@pytest.mark.parametrize("name", READERS)
def test_readers(tensorflow, folder, name, runs):
    names = ["records"] if name == "records" else ["a", "empty", "b"]
    ours, theirs = (outcome(module, READERS[name], names, runs) for module in (tf, tensorflow))
    assert ours == theirs


@pytest.mark.parametrize("encoding", [None, "", "ZLIB", "GZIP", "LZ4"])
@pytest.mark.parametrize(
    ("record", "header", "footer", "hop"),
    [(2, 1, 2, None), (2, 1, 1, None), (3, 0, 0, 1), (1, 1, 2, 3), (2, 20, 0, 0), (2, -1, 0, 0)]
    + [(2, 0, -1, 0), (2, 0, 0, -1), (5, 0, 0, 2)],
)
def test_pieces(tensorflow, folder, encoding, record, header, footer, hop):
    name = {"ZLIB": "pieces.zlib", "GZIP": "pieces.gzip"}.get(encoding, "pieces")
    build = lambda tf: tf.FixedLengthRecordReader(record, header, footer, hop, encoding=encoding)  # noqa: E731
    assert outcome(tf, build, [name], ALL) == outcome(tensorflow, build, [name], ALL)


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
@pytest.mark.parametrize("named", ["", "ZLIB", "GZIP"])
def test_records_with_the_right_and_the_wrong_compression(tensorflow, folder, kind, named):
    def build(tf):
        return tf.TFRecordReader(options=tf.python_io.TFRecordOptions(named), name="r")

    names = [f"records{kind}", f"records{named}"]
    assert outcome(tf, build, names, ALL) == outcome(tensorflow, build, names, ALL)


@pytest.mark.parametrize("kind", ["WholeFileReader", "IdentityReader"])
def test_states_are_saved_and_restored(tensorflow, folder, kind):
    def run(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
            reader = getattr(tf, kind)()
            state, output = reader.serialize_state(), tf.placeholder(tf.string)
            restore, read = reader.restore_state(output), reader.read(queue)
            counts = [reader.num_records_produced(), reader.num_work_units_completed()]
            session.run(queue.enqueue_many([["a", "b", "empty"]]))
            session.run(read)
            kept = session.run(state)
            result = [kept, plain(session.run(read)), plain(session.run(counts))]
            session.run(restore, {output: kept})
            result += [plain(session.run(counts)), plain(session.run(read)), session.run(state)]
            for nonsense in (b"", b"\x08", b"nonsense"):
                try:
                    session.run(restore, {output: nonsense})
                    result.append(plain(session.run(counts)))
                except tf.errors.OpError as e:
                    result.append(type(e).__name__)
            return result

    assert run(tf) == run(tensorflow)


QUEUES = {
    "no capacity": lambda tf: tf.FIFOQueue(0, [tf.int32]),
    "no bound": lambda tf: tf.FIFOQueue(-1, [tf.int32], [[]]),
    "one type": lambda tf: tf.FIFOQueue(3, tf.int32),
    "no types": lambda tf: tf.FIFOQueue(3, []),
    "more shapes than types": lambda tf: tf.FIFOQueue(3, [tf.int32], [[], []]),
    "one shape": lambda tf: tf.FIFOQueue(3, tf.int32, shapes=[2]),
    "a shape that is not known": lambda tf: tf.FIFOQueue(3, [tf.int32], [[None]]),
    "names": lambda tf: tf.FIFOQueue(3, [tf.int32, tf.string], names=["number", "text"]),
    "more names than types": lambda tf: tf.FIFOQueue(3, [tf.int32], names=["a", "b"]),
    "a name": lambda tf: tf.FIFOQueue(3, [tf.int32], names="a", name="queue"),
    "shared": lambda tf: tf.FIFOQueue(3, [tf.int32], shared_name="s", name="queue"),
    "shuffled": lambda tf: tf.RandomShuffleQueue(
        3, 1, [tf.int32], [[]], names=["a"], seed=3, shared_name="s"
    ),
    "shuffled, keeping all": lambda tf: tf.RandomShuffleQueue(3, 3, [tf.int32], [[]]),
    "shuffled, keeping more": lambda tf: tf.RandomShuffleQueue(3, 4, [tf.int32], [[]]),
    "shuffled, keeping less than none": lambda tf: tf.RandomShuffleQueue(3, -1, [tf.int32], [[]]),
    "padded": lambda tf: tf.PaddingFIFOQueue(3, [tf.int32], [[None, 2]], names=["a"]),
    "padded without shapes": lambda tf: tf.PaddingFIFOQueue(3, [tf.int32], None),
    "padded, of any rank": lambda tf: tf.PaddingFIFOQueue(3, [tf.int32], [tf.TensorShape(None)]),
    "by priority": lambda tf: tf.PriorityQueue(3, [tf.string], [[]], names=["priority", "text"]),
    "by priority alone": lambda tf: tf.PriorityQueue(3),
    "by priority, two": lambda tf: tf.PriorityQueue(3, [tf.string, tf.int32], [[], [2]]),
}
ELEMENTS = {
    "a number": 1,
    "numbers": [1, 2],
    "a tuple": (1,),
    "two": (1, "x"),
    "a dictionary": {"a": 1},
    "two by name": {"number": 1, "text": "x"},
    "with priority": (7, "x"),
    "with priority by name": {"priority": 7, "text": "x"},
    "a matrix": [[1, 2]],
    "with priority, two": (7, "x", [1, 2]),
    "a text": "x",
}


def queue_outcome(tf, build, elements):
    """What a queue is like, and what comes of putting elements in."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        try:
            queue = build(tf)
        except (TypeError, ValueError) as e:
            return type(e)
        described = [[d.name for d in queue.dtypes], [str(s) for s in queue.shapes], queue.names, queue.name]
        attrs = sorted((k, str(v)) for k, v in graph.as_graph_def().node[0].attr.items())
        results = []
        for kind, element in elements.items():
            for many in (False, True):
                try:
                    put = queue.enqueue_many(element) if many else queue.enqueue(element)
                    session.run(put, options=tf.RunOptions(timeout_in_ms=20_000))
                    results.append((kind, many, int(session.run(queue.size()))))
                    results.append(came_out(tf, session, queue, results[-1][-1]))
                except (TypeError, ValueError, KeyError, AttributeError) as e:
                    results.append((kind, many, type(e).__name__))
                except tf.errors.OpError as e:
                    results.append((kind, many, type(e).__name__))
        return described, attrs, results


def came_out(tf, session, queue, count):
    """What is in the queue, taken out one by one."""
    taken = []
    for _ in range(count):
        got = session.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=20_000))
        taken.append({k: plain(v) for k, v in got.items()} if isinstance(got, dict) else plain(got))
    return taken


@pytest.mark.parametrize("name", QUEUES)
def test_queues(tensorflow, name):
    waits = name == "no capacity" or "keeping" in name or name == "shuffled"  # for ever: it is only described
    elements = {} if waits else ELEMENTS
    assert queue_outcome(tf, QUEUES[name], elements) == queue_outcome(tensorflow, QUEUES[name], elements)
