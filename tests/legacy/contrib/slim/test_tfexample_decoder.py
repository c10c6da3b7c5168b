"""Datasets of record files, as slim reads them."""

import numpy as np
import pytest

import tensorfleet as tf

slim = tf.contrib.slim
decoder = slim.tfexample_decoder


def picture(i):
    return np.full((2, 3, 3), i, np.uint8)


@pytest.fixture
def files(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        encoded = tf.image.encode_png(image := tf.placeholder(tf.uint8, [2, 3, 3]))
        for part in range(2):
            with tf.python_io.TFRecordWriter(str(tmp_path / f"part-{part}")) as writer:
                for i in (part, part + 2):
                    png = session.run(encoded, {image: picture(i)})
                    feature = {
                        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[png])),
                        "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"png"])),
                        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                        "words": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i))),
                        **{
                            f"box/{side}": tf.train.Feature(float_list=tf.train.FloatList(value=[i, 1.0]))
                            for side in ("ymin", "xmin", "ymax", "xmax")
                        },
                    }
                    example = tf.train.Example(features=tf.train.Features(feature=feature))
                    writer.write(example.SerializeToString())
    return str(tmp_path / "part-*")


def dataset(files):
    features = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value="raw"),
        "label": tf.FixedLenFeature([1], tf.int64),
        "words": tf.VarLenFeature(tf.int64),
        **{f"box/{side}": tf.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")},
    }
    items = {
        "image": decoder.Image(shape=[2, 3, 3]),
        "label": decoder.Tensor("label", shape=[]),
        "words": decoder.Tensor("words"),
        "boxes": decoder.BoundingBox(prefix="box/"),
        "twice": decoder.ItemHandlerCallback("label", lambda tensors: tensors["label"] * 2),
    }
    return slim.dataset.Dataset(
        data_sources=files,
        reader=tf.TFRecordReader,
        decoder=decoder.TFExampleDecoder(features, items),
        num_samples=4,
        items_to_descriptions={"image": "a picture"},
        num_classes=4,
    )


def test_examples_are_read_and_decoded(files, session):
    data = dataset(files)
    assert data.num_classes == 4
    provider = slim.dataset_data_provider.DatasetDataProvider(
        data, num_readers=2, shuffle=False, num_epochs=1
    )
    assert provider.num_samples() == 4
    assert provider.list_items() == ["image", "label", "words", "boxes", "twice", "record_key"]
    got = provider.get(["image", "label", "words", "boxes", "twice"])
    assert got[0].shape.as_list() == [2, 3, 3]
    seen = []
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    for _ in range(4):
        image, label, words, boxes, twice = session.run(got)
        np.testing.assert_array_equal(image, picture(label))
        assert words.tolist() == list(range(label)) and twice.tolist() == [2 * label]
        assert boxes.tolist() == [[label] * 4, [1.0] * 4]
        seen.append(int(label))
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(got)
    coord.request_stop()
    coord.join(threads)
    assert sorted(seen) == [0, 1, 2, 3]


def test_a_single_pass_keeps_the_order(files, session):
    _, value = slim.parallel_reader.single_pass_read(
        sorted(slim.parallel_reader.get_data_files(files)), tf.TFRecordReader
    )
    label = tf.parse_single_example(value, {"label": tf.FixedLenFeature([], tf.int64)})["label"]
    session.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    assert [int(session.run(label)) for _ in range(4)] == [0, 2, 1, 3]
    coord.request_stop()
    coord.join(threads)


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ValueError, match="No data files found"):
        slim.parallel_reader.get_data_files(str(tmp_path / "none*"))
    with pytest.raises(ValueError, match="are not provided"):
        slim.data_provider.DataProvider({"a": tf.zeros([])}, 1).get(["b"])
    with pytest.raises(ValueError, match="Cannot specify both"):
        decoder.Tensor("t", shape_keys="s", shape=[1])


def test_decoders_of_ones_own_have_a_base():
    base = tf.contrib.slim.python.slim.data.data_decoder.DataDecoder
    assert issubclass(decoder.TFExampleDecoder, base)
    with pytest.raises(TypeError, match="abstract"):
        base()


def test_a_sparse_item_has_its_shape_from_the_values_when_none_is_given(session):
    feature = tf.train.Feature
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "indices": feature(int64_list=tf.train.Int64List(value=[1, 2, 5])),
                "values": feature(float_list=tf.train.FloatList(value=[0.5, 1.5, 2.5])),
            }
        )
    )
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {"indices": tf.VarLenFeature(tf.int64), "values": tf.VarLenFeature(tf.float32)},
        {"labels": slim.tfexample_decoder.SparseTensor()},
    )
    [labels] = decoder.decode(tf.constant(example.SerializeToString()), ["labels"])
    result = session.run(labels)
    assert result.indices.tolist() == [[1], [2], [5]] and result.values.tolist() == [0.5, 1.5, 2.5]
    assert result.dense_shape.tolist() == [3]


def test_another_handler_is_asked_where_the_first_finds_nothing(session):
    D = tf.contrib.slim.tfexample_decoder
    handler = D.BackupHandler(D.Tensor("a"), D.Tensor("b"))
    assert handler.keys == ["a", "b"]
    full, empty = tf.constant([1, 2]), tf.constant([], tf.int32)
    items = [handler.tensors_to_item({"a": first, "b": full + 1}) for first in (full, empty)]
    assert [v.tolist() for v in session.run(items)] == [[1, 2], [2, 3]]
    with pytest.raises(ValueError, match="Backup handler is of type"):
        D.BackupHandler(D.Tensor("a"), "b")


def test_several_records_are_read_at_once(session, tmp_path):
    with tf.python_io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for record in (b"a", b"b", b"c"):
            writer.write(record)
    files = tf.train.string_input_producer([str(tmp_path / "records")], num_epochs=1, shuffle=False)
    queue = tf.FIFOQueue(8, [tf.string, tf.string], shapes=[[], []])
    reader = tf.contrib.slim.parallel_reader.ParallelReader(tf.TFRecordReader, queue, num_readers=1)
    _, values = reader.read_up_to(files, 5)
    session.run(tf.local_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coord)
    assert session.run(values).tolist() == [b"a", b"b", b"c"]
    coord.request_stop()
    coord.join(threads)
