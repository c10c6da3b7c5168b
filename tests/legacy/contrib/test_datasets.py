"""`tf.contrib.data`: what it has besides `tf.data.experimental`."""

import numpy as np
import pytest

import tensorfleet as tf

D = tf.contrib.data


def elements(dataset):
    following, result = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as sess:
        while True:
            try:
                result.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return result


def test_padded_batches_of_one_size():
    rows = tf.data.Dataset.range(1, 6).map(lambda n: tf.fill([n], n))
    batches = elements(rows.apply(D.padded_batch_and_drop_remainder(2, [None], np.int64(-1))))
    assert [b.tolist() for b in batches] == [[[1, -1], [2, 2]], [[3, 3, 3, -1], [4, 4, 4, 4]]]


def test_windows_slide_over_the_elements():
    numbers = tf.data.Dataset.range(7).map(lambda x: (x, x * x))
    result = elements(numbers.apply(D.sliding_window_batch(3, window_shift=2)))
    assert [x.tolist() for x, _ in result] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert result[1][1].tolist() == [4, 9, 16]
    wide = tf.data.Dataset.range(7).apply(D.sliding_window_batch(2, stride=1, window_stride=3))
    assert [x.tolist() for x in elements(wide)] == [[0, 3], [1, 4], [2, 5], [3, 6]]
    with pytest.raises(ValueError, match="Cannot specify both"):
        D.sliding_window_batch(3, stride=1, window_shift=1)


def test_a_reducer_makes_one_value_of_all_elements(session):
    reducer = D.Reducer(lambda _: np.int64(0), lambda state, x: state + x, lambda state: state * 2)
    assert session.run(D.reduce_dataset(tf.data.Dataset.range(5), reducer)) == 20


def test_elements_of_several_datasets_in_turn():
    def three(x):
        return tf.data.Dataset.from_tensors(x).repeat(3)

    result = elements(tf.data.Dataset.range(4).apply(D.sloppy_interleave(three, cycle_length=2)))
    assert sorted(result) == sorted([0, 1, 2, 3] * 3)


def test_elements_have_the_shapes_that_are_told():
    result = tf.data.Dataset.range(3).map(lambda n: (tf.ones([n + 1, 2]), n))
    output = result.apply(D.assert_element_shape(([None, 2], [])))
    assert output.output_shapes[0].as_list() == [None, 2]
    assert len(elements(output)) == 3
    with pytest.raises(tf.errors.InvalidArgumentError):
        elements(result.apply(D.assert_element_shape(([1, 2], []))))


def test_features_are_read_in_batches(tmp_path, session):
    with tf.python_io.TFRecordWriter(str(tmp_path / "records")) as writer:
        for i in range(6):
            example = tf.train.Example()
            example.features.feature["x"].int64_list.value.append(i)
            writer.write(example.SerializeToString())
    batch = D.read_batch_features(
        str(tmp_path / "*"), 3, {"x": tf.FixedLenFeature([], tf.int64)}, randomize_input=False, num_epochs=1
    )
    assert session.run(batch)["x"].tolist() == [0, 1, 2]
    assert session.run(batch)["x"].tolist() == [3, 4, 5]
