"""Queue runners for the time of a block, and record files of images."""

import pytest
from tensorfleet.contrib.slim.python.slim import queues
from tensorfleet.contrib.slim.python.slim.data import prefetch_queue, test_utils

import tensorfleet as tf

slim = tf.contrib.slim


def test_queues_are_filled_while_the_block_lasts():
    numbers = tf.train.range_input_producer(3, shuffle=False).dequeue()
    with tf.Session() as sess, queues.QueueRunners(sess):
        assert [sess.run(numbers) for _ in range(4)] == [0, 1, 2, 0]
    with tf.Session() as sess, pytest.raises(RuntimeError, match="mine"), queues.QueueRunners(sess):
        raise RuntimeError("mine")


def test_images_are_read_from_the_files_that_were_made(tmp_path):
    paths = test_utils.create_tfrecord_files(str(tmp_path), num_files=2, num_records_per_file=3)
    assert [len(list(tf.python_io.tf_record_iterator(p))) for p in paths] == [3, 3]
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {
            "image/encoded": tf.FixedLenFeature([], tf.string),
            "image/format": tf.FixedLenFeature([], tf.string),
            "image/class/label": tf.FixedLenFeature([1], tf.int64),
        },
        {
            "image": slim.tfexample_decoder.Image(),
            "label": slim.tfexample_decoder.Tensor("image/class/label"),
        },
    )
    data = slim.dataset.Dataset(paths, tf.TFRecordReader, decoder, 6, {"image": "", "label": ""})
    image, label = slim.dataset_data_provider.DatasetDataProvider(data).get(["image", "label"])
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        with queues.QueueRunners(sess):
            result, number = sess.run([image, label])
    assert result.shape == (10, 10, 3)
    assert number.tolist() == [0]


@pytest.mark.parametrize("kind", ["png", "raw"])
def test_an_image_comes_with_its_example(kind):
    image, example = test_utils.generate_image((4, 5, 3), kind, label=7)
    features = tf.train.Example.FromString(example).features.feature
    assert features["image/class/label"].int64_list.value[0] == 7
    encoded = features["image/encoded"].bytes_list.value[0]
    with tf.Session() as sess:
        again = (
            tf.image.decode_png(encoded)
            if kind == "png"
            else tf.reshape(tf.decode_raw(encoded, tf.uint8), [4, 5, 3])
        )
        assert (sess.run(again) == image).all()


def test_the_queue_of_prefetched_tensors_has_its_inner_name():
    assert prefetch_queue.prefetch_queue is slim.prefetch_queue.prefetch_queue
