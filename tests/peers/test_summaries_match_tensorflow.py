"""Summaries, event files and record files against TensorFlow's, in both directions."""

import os

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
KINDS = ["", "ZLIB", "GZIP"]
RECORDS = [b"hello", b"", bytes(range(256)) * 300]


def built(tf, build):
    """What a function of `tf` builds: names and types of all operations, tags, what the summaries give."""
    with tf.Graph().as_default() as graph:
        result = build(tf)
        merged = tf.summary.merge_all()
        with tf.Session() as sess:
            summary = tf.Summary.FromString(sess.run(result if merged is None else merged))
    return [(o.name, o.type) for o in graph.get_operations()], summary


def decoded(tensorflow, summary):
    """A summary with the pixels of its images in place of how they are compressed."""
    images = []
    with tensorflow.Graph().as_default(), tensorflow.Session() as sess:
        for value in summary.value:
            if value.WhichOneof("value") == "image":
                images.append(
                    sess.run(tensorflow.image.decode_png(value.image.encoded_image_string)).tolist()
                )
                value.image.encoded_image_string = b""
    return images


def same(tensorflow, build):
    (our_ops, ours), (their_ops, theirs) = built(tf, build), built(tensorflow, build)
    assert our_ops == their_ops
    assert decoded(tensorflow, ours) == decoded(tensorflow, theirs)
    assert ours.SerializeToString() == theirs.SerializeToString(), (str(ours), str(theirs))


def scalars(tf):
    tf.summary.scalar("a b", 1.1)
    with tf.name_scope("sc"):
        tf.summary.scalar("x/y", np.int64(2**40 + 1))
        tf.summary.scalar("x/y", np.float64(1e300))
        tf.summary.scalar("fa", tf.constant(3, tf.uint8), family="fam")
        tf.summary.scalar("fa", float("nan"), family="fam")
    with tf.variable_scope("v"):
        tf.summary.scalar("half", tf.constant(0.1, tf.float16))
        tf.summary.scalar("brain", tf.constant(0.1, tf.bfloat16))


def others(tf):
    tf.summary.text("words", tf.constant([["a", "b"], ["c", "grüße"]]))
    tf.summary.tensor_summary("t", tf.constant([[1.0, 2.0]], tf.float64), summary_description="d", family="f")
    tf.summary.tensor_summary("one", tf.constant(7), display_name="seven")
    tf.summary.audio("sound", np.clip(RANDOM.__class__(1).randn(4, 50, 2), -2, 2).astype(np.float32), 44100)
    tf.summary.audio("mono", np.array([[0.1, np.nan, np.inf]], np.float32), 2.5, max_outputs=1)


@pytest.mark.parametrize("build", [scalars, others], ids=["scalars", "others"])
def test_summaries_are_tensorflows(tensorflow, build):
    same(tensorflow, build)


def test_merging_makes_the_same_operations(tensorflow):
    def build(tf):
        parts = [
            tf.summary.scalar("a", 1.0, collections=["X"]),
            tf.summary.scalar("b", 2.0, collections=["X"]),
        ]
        tf.summary.merge_all("X")
        return tf.summary.merge(parts, name="m")

    same(tensorflow, build)


HISTOGRAMS = {
    "normal": RANDOM.randn(5000),
    "float32": RANDOM.randn(40, 30).astype(np.float32),
    "half": RANDOM.randn(200).astype(np.float16),
    "wide": np.concatenate([s * 10.0 ** RANDOM.uniform(-20, 30, 500) for s in (1, -1)]),
    "limits": np.cumprod([1e-12] + [1.1] * 100),
    "empty": np.zeros((0, 3), np.float32),
    "one": np.float32(3),
    "constant": np.full(7, -2.5),
    "zeros": np.zeros(4),
    "integers": RANDOM.randint(-1000, 1000, 500),
    "bytes": np.arange(256, dtype=np.uint8),
    "largest": np.array([1.7e308, -1.7e308, 1e20]),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_are_tensorflows(tensorflow, name):
    same(tensorflow, lambda tf: tf.summary.histogram("h", tf.constant(HISTOGRAMS[name])))


@pytest.mark.parametrize("values", [[1.0, np.nan], [np.inf, 1.0], [np.inf, np.nan], [np.nan, -np.inf]])
def test_histograms_are_refused_in_the_same_words(tensorflow, values):
    said = []
    for lib in (tf, tensorflow):
        with pytest.raises(lib.errors.InvalidArgumentError) as e:
            built(lib, lambda lib: lib.summary.histogram("h", values))
        items = [
            w
            for w in ("Nan in summary histogram for: h", "Infinity in Histogram for: h")
            if w in str(e.value)
        ]
        said.append(items)
    assert said[0] == said[1] and len(said[0]) == 1


IMAGES = {
    "positive": RANDOM.rand(4, 5, 7, 3).astype(np.float32) * 30,
    "negative": RANDOM.randn(2, 6, 3, 1).astype(np.float32),
    "double": RANDOM.randn(3, 6, 3, 4),
    "half": RANDOM.randn(3, 9, 9, 3).astype(np.float16),
    "positive half": RANDOM.rand(3, 9, 9, 3).astype(np.float16),
    "bytes": RANDOM.randint(0, 256, (3, 8, 8, 3)).astype(np.uint8),
    "gray bytes": RANDOM.randint(0, 256, (1, 40, 3, 1)).astype(np.uint8),
    "zeros": np.zeros((1, 2, 2, 1), np.float32),
    "tiny": np.full((1, 2, 2, 1), 1e-7, np.float32),
    "huge": np.full((1, 2, 2, 1), 1e300),
    "none": np.zeros((0, 2, 2, 1), np.float32),
    "bad": np.where(RANDOM.rand(3, 5, 5, 4) < 0.2, np.nan, RANDOM.randn(3, 5, 5, 4)).astype(np.float32),
    "all bad": np.full((1, 2, 2, 3), -np.inf, np.float32),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("count", [1, 3])
def test_images_have_the_same_pixels(tensorflow, name, count):
    same(tensorflow, lambda tf: tf.summary.image("im", tf.constant(IMAGES[name]), max_outputs=count))


def write_events(tf, folder):
    """An event file of each kind of event, with steps; summaries of several kinds twice."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        scalars(tf)
        others(tf)
        tf.summary.image("im", tf.constant(IMAGES["bytes"]))
        tf.summary.histogram("h", tf.constant(HISTOGRAMS["normal"]))
        merged = tf.summary.merge_all()
        with tf.summary.FileWriter(folder, graph) as writer:
            for step in (1, 2):
                writer.add_summary(sess.run(merged), step)
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 3)
            writer.add_run_metadata(tf.RunMetadata(), "run", 4)
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def gist(tensorflow, event):
    """An event without what may differ: times, who wrote it, how an image is compressed."""
    kind = event.WhichOneof("what")
    if kind in ("graph_def", "meta_graph_def"):
        return kind, event.step
    if kind == "summary":
        images = decoded(tensorflow, event.summary)
        return kind, event.step, images, event.summary.SerializeToString()
    content = getattr(event, kind)
    return kind, event.step, content if isinstance(content, str) else content.SerializeToString()


def test_event_files_are_read_by_either(tensorflow, tmp_path):
    files = [write_events(tf, str(tmp_path / "ours")), write_events(tensorflow, str(tmp_path / "theirs"))]
    gists = [
        [gist(tensorflow, e) for e in lib.train.summary_iterator(path)]
        for path in files
        for lib in (tf, tensorflow)
    ]
    assert len(gists[0]) == 7
    assert gists[0] == gists[1] == gists[2] == gists[3]


def test_tensorflow_reads_the_graph_of_our_event_file(tensorflow, tmp_path):
    path = write_events(tf, str(tmp_path / "ours"))
    events = list(tensorflow.train.summary_iterator(path))
    graph_def = tensorflow.GraphDef.FromString(next(e.graph_def for e in events if e.graph_def))
    meta = tensorflow.MetaGraphDef.FromString(next(e.meta_graph_def for e in events if e.meta_graph_def))
    for proto in (graph_def, meta.graph_def):
        with tensorflow.Graph().as_default() as graph:
            tensorflow.import_graph_def(proto, name="")
            assert graph.get_operation_by_name("Merge/MergeSummary").type == "MergeSummary"


@pytest.mark.parametrize("kind", KINDS)
def test_record_files_are_read_by_either(tensorflow, tmp_path, kind):
    for writing, reading in ((tf, tensorflow), (tensorflow, tf)):
        path = str(tmp_path / writing.__name__)
        with writing.python_io.TFRecordWriter(path, writing.python_io.TFRecordOptions(kind)) as writer:
            for record in RECORDS:
                writer.write(record)
        options = reading.python_io.TFRecordOptions(kind)
        assert list(reading.python_io.tf_record_iterator(path, options)) == RECORDS
    if not kind:
        ours, theirs = sorted(tmp_path.iterdir())
        assert ours.read_bytes() == theirs.read_bytes()


def outcome(lib, path, kind):
    """The records before an error and what the error says first."""
    results = []
    try:
        for record in lib.python_io.tf_record_iterator(path, lib.python_io.TFRecordOptions(kind)):
            results.append(record)
    except lib.errors.DataLossError as e:
        return results, e.message.partition(" (file:")[0]
    return results, None


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_noticed_alike(tensorflow, tmp_path, kind):
    path = str(tmp_path / "r")
    with tf.python_io.TFRecordWriter(path, kind) as writer:
        writer.write(b"hello")
        writer.write(bytes(range(60)))
    with open(path, "rb") as file:
        whole = file.read()
    for i in range(0, len(whole), 3):
        changed = whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :]
        for data in [whole[:i]] + ([] if kind else [changed]):
            with open(path, "wb") as file:
                file.write(data)
            assert outcome(tf, path, kind) == outcome(tensorflow, path, kind), (i, data)
