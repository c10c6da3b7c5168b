"""Summary operations: names, tags, collections, values and their errors."""

import io

import numpy as np
import pytest
from PIL import Image

import tensorfleet as tf


def value_of(summary):
    """The `Summary` that a summary tensor gives."""
    with tf.Session() as sess:
        return tf.Summary.FromString(sess.run(summary))


def pixels_of(encoded):
    """The bytes of an image, [height, width, channels]."""
    assert encoded[:8] == b"\x89PNG\r\n\x1a\n"
    pixels = np.array(Image.open(io.BytesIO(encoded)))
    return pixels.reshape(*pixels.shape[:2], -1)


def test_a_tag_is_the_name_with_its_scopes(graph):
    with tf.name_scope("train"):
        first = tf.summary.scalar("loss", 1.5)
        second = tf.summary.scalar("loss", 2.5)
    assert [o.name for o in graph.get_operations()] == [
        "train/loss/tags", "train/loss/values", "train/loss",
        "train/loss_1/tags", "train/loss_1/values", "train/loss_1",
    ]  # fmt: skip
    assert [(v.tag, v.simple_value) for v in value_of(first).value] == [("train/loss", 1.5)]
    assert [v.tag for v in value_of(second).value] == ["train/loss_1"]


def test_a_family_comes_first_in_the_tag():
    with tf.name_scope("sc"):
        result = tf.summary.scalar("a", 1.0, family="f am")
    assert result.op.name == "sc/f_am/a"
    assert value_of(result).value[0].tag == "f_am/sc/f_am/a"


def test_characters_no_operation_may_have_are_replaced(caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    try:
        assert tf.summary.scalar("/a b:0", 1.0).op.name == "a_b_0"
    finally:
        tf.logging.set_verbosity(tf.logging.WARN)
    assert "Summary name /a b:0 is illegal; using a_b_0 instead." in caplog.text


def test_collections(graph):
    plain = tf.summary.scalar("a", 1.0)
    tf.summary.histogram("b", [1.0], collections=["mine"])
    tf.summary.scalar("c", 1.0, collections=[])
    assert graph.get_collection("summaries") == [plain]
    assert [t.op.name for t in graph.get_collection("mine")] == ["b"]


def test_merge_all_merges_the_collection():
    assert tf.summary.merge_all() is None
    tf.summary.scalar("a", 1.0)
    tf.summary.text("words", tf.constant(["x", "y"]))
    tf.summary.scalar("other", 1.0, collections=["mine"])
    merged = tf.summary.merge_all()
    assert merged.op.name == "Merge/MergeSummary"
    assert [v.tag for v in value_of(merged).value] == ["a", "words"]
    assert [v.tag for v in value_of(tf.summary.merge_all("mine")).value] == ["other"]
    assert tf.summary.merge_all(scope="b") is None


def test_merge_names_and_collections(graph):
    merged = tf.summary.merge([tf.summary.scalar("a", 1.0)], collections=["X"], name="m m")
    assert merged.op.name == "m_m/m_m"
    assert graph.get_collection("X") == [merged]


def test_merge_refuses_nothing_and_the_same_tag_twice():
    with pytest.raises(ValueError, match="length 0 shorter than minimum length 1"):
        tf.summary.merge([])
    same = tf.summary.scalar("a", 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag a found in summary inputs"):
        value_of(tf.summary.merge([same, same]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse one of the summary inputs"):
        value_of(tf.summary.merge([tf.constant(b"\xff\xff")]))


def test_a_scalar_must_be_one():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"not the same shape: \[\] != \[2\] \(tag 'a'\)"
    ):
        value_of(tf.summary.scalar("a", [1.0, 2.0]))


@pytest.mark.parametrize(
    ("values", "buckets"),
    [
        ([], [(1.7976931348623157e308, 0)]),
        ([0.0], [(0.0, 0), (1e-12, 1), (1.7976931348623157e308, 0)]),
        ([2.0] * 5, [(1.9661990955585713, 0), (2.1628190051144287, 5), (1.7976931348623157e308, 0)]),
    ],
)
def test_histogram_buckets(values, buckets):
    histo = value_of(tf.summary.histogram("h", np.array(values))).value[0].histo
    assert list(zip(histo.bucket_limit, histo.bucket, strict=True)) == buckets
    assert (histo.num, histo.sum) == (len(values), sum(values))


def test_histogram_buckets_of_many_numbers():
    limits = 1e-12 * np.multiply.accumulate(np.full(700, 1.1))
    random = np.random.RandomState(0)
    many = [
        random.randn(9000),
        10.0 ** random.uniform(-150, 150, 9000),
        limits,
        limits / 1.1,
        [0.0, 5e-324, 1e-12],
    ]
    values = np.concatenate([*many, np.nextafter(limits, 0), np.nextafter(limits, 1e300)])
    values = np.concatenate([values, -values])
    histo = value_of(tf.summary.histogram("h", values)).value[0].histo
    places = np.searchsorted(histo.bucket_limit, values, side="right")
    assert list(np.bincount(places, minlength=len(histo.bucket))) == list(histo.bucket)


def test_histograms_of_what_is_not_finite_are_refused():
    for bad, phrase in [
        (np.nan, "Nan in summary histogram for: s/h"),
        (-np.inf, "Infinity in Histogram for: "),
    ]:
        with tf.name_scope("s"):
            result = tf.summary.histogram("h", [1.0, bad])
        with pytest.raises(tf.errors.InvalidArgumentError, match=phrase):
            value_of(result)


def test_bytes_of_images_are_kept():
    images = np.random.RandomState(0).randint(0, 256, (2, 3, 5, 3)).astype(np.uint8)
    result = value_of(tf.summary.image("im", images)).value
    assert [v.tag for v in result] == ["im/image/0", "im/image/1"]
    assert (result[0].image.height, result[0].image.width, result[0].image.colorspace) == (3, 5, 3)
    for value, image in zip(result, images, strict=True):
        np.testing.assert_array_equal(pixels_of(value.image.encoded_image_string), image)


@pytest.mark.parametrize(
    ("values", "pixels"),
    [
        ([0, 0.1, 0.5, 1], [0, 25, 127, 255]),
        ([0, 1, 200, 1000], [0, 0, 51, 255]),
        ([-1, 0, 1, 2], [64, 128, 191, 255]),
        ([-5, -1], [1, 102]),
        ([1e-10, 1e-9], [0, 0]),
        ([-1e-10, 1e-9], [128, 128]),
        ([np.nan, 1, 2, -np.inf], [255, 127, 255, 255]),
        ([np.nan], [255]),
    ],
)
def test_floats_are_scaled_to_bytes(values, pixels):
    image = np.array(values, np.float32).reshape(1, 1, -1, 1)
    result = value_of(tf.summary.image("im", image, max_outputs=1)).value[0]
    assert result.tag == "im/image"
    assert pixels_of(result.image.encoded_image_string).ravel().tolist() == pixels


def test_images_have_four_dimensions_and_colors():
    for shape in [(3, 3), (1, 2, 2, 2)]:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Tensor must be 4-D with last dim 1, 3, or 4"
        ):
            value_of(tf.summary.image("a", np.zeros(shape, np.float32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have non-zero dims"):
        value_of(tf.summary.image("a", np.zeros((1, 0, 2, 1), np.uint8)))
    with pytest.raises(ValueError, match="passed 0 less than minimum 1"):
        tf.summary.image("a", np.zeros((1, 2, 2, 1), np.uint8), max_outputs=0)


def test_sounds_become_wav_files():
    result = tf.summary.audio("a", np.array([[0, 1, -1, 0.5]], np.float32), 44100)
    audio = value_of(result).value[0].audio
    assert (audio.sample_rate, audio.num_channels, audio.length_frames) == (44100, 1, 4)
    samples = np.frombuffer(audio.encoded_audio_string[44:], np.int16)
    assert samples.tolist() == [0, 32767, -32768, 16384]


def test_text_is_a_tensor_for_the_text_plugin():
    value = value_of(tf.summary.text("t", tf.constant(["a", "b"]))).value[0]
    assert value.metadata.plugin_data.plugin_name == "text"
    assert tf.make_ndarray(value.tensor).tolist() == [b"a", b"b"]
    with pytest.raises(ValueError, match="to have dtype string, got"):
        tf.summary.text("t", tf.constant(1.0))


def test_tensor_summaries_leave_the_metadata_given_to_them_alone():
    metadata = tf.SummaryMetadata(summary_description="z")
    result = tf.summary.tensor_summary("a", [1.0, 2.0], summary_metadata=metadata, display_name="shown")
    value = value_of(result).value[0]
    assert (value.metadata.summary_description, value.metadata.display_name) == ("z", "shown")
    assert tf.make_ndarray(value.tensor).tolist() == [1.0, 2.0]
    assert metadata.display_name == ""


def test_old_names_take_tags_and_warn_once(graph, caplog):
    from tensorfleet.api.summary import old_names

    old_names._warned.clear()
    tf.scalar_summary(["a", "b"], [1.0, 2.0])
    tf.scalar_summary("c", 1.0, name="named")
    tf.histogram_summary("h", [1.0])
    tf.image_summary("i", np.zeros((1, 2, 2, 1), np.float32))
    merged = tf.merge_all_summaries()
    assert [v.tag for v in value_of(merged).value] == ["a", "b", "c", "h", "i/image/0"]
    assert {"ScalarSummary", "named", "HistogramSummary", "ImageSummary"} <= {
        o.name for o in graph.get_operations()
    }
    messages = [r.getMessage() for r in caplog.records]
    assert messages.count("tf.scalar_summary is now tf.summary.scalar.") == 1
    assert caplog.records[0].filename == "test_summary.py"
