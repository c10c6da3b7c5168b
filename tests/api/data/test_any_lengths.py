"""Features of any length: a block of Examples gives what they give one by one."""

import numpy as np
import pytest

import tensorfleet as tf

FEATURES = {
    "ids": tf.VarLenFeature(tf.int64),
    "words": tf.VarLenFeature(tf.string),
    "rows": tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
    "label": tf.FixedLenFeature([], tf.int64, default_value=7),
}


def example(i, **more):
    features = {
        "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 4))),
        "rows": tf.train.Feature(float_list=tf.train.FloatList(value=np.arange(2 * (i % 3)))),
        **more,
    }
    if i % 5:
        words = [b"w%d" % k for k in range(i % 5)]
        features["words"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=words))
    if i % 2:
        features["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def parsed(record):
    result = tf.parse_single_example(record, FEATURES)
    dense = tf.sparse_tensor_to_dense(result["words"], default_value="")
    return {**result, "dense": dense, "first": tf.sparse_tensor_to_dense(result["ids"])[:1]}


def test_a_block_gives_what_each_gives_alone(session):
    records = [example(i) for i in range(40)]
    record = tf.placeholder(tf.string, [])
    alone = parsed(record)
    dataset = tf.data.Dataset.from_tensor_slices(records).map(parsed).prefetch(40)
    following = dataset.make_one_shot_iterator().get_next()
    for r in records:
        expected, result = session.run(alone, {record: r}), session.run(following)
        assert result.keys() == expected.keys()
        for key in result:
            pairs = zip(
                tf.nest.flatten(result[key]), tf.nest.flatten(expected[key]), strict=True
            )  # a sparse one has three parts
            for got, want in pairs:
                assert got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_array_equal(got, want)


def test_a_batch_of_sparse_ones_is_what_the_batch_gives_parsed(session):
    records = [example(i) for i in range(40)]
    one = lambda record: tf.parse_single_example(record, FEATURES)["ids"]  # noqa: E731
    many = lambda record: tf.parse_example(record, FEATURES)["ids"]  # noqa: E731
    slices = tf.data.Dataset.from_tensor_slices(records)
    results = [slices.map(one).batch(15), slices.batch(15).map(many)]
    first, second = (d.make_one_shot_iterator().get_next() for d in results)
    for _ in range(3):
        for got, want in zip(session.run(first), session.run(second), strict=True):
            np.testing.assert_array_equal(got, want)


def test_dense_ones_of_any_length_are_padded(session):
    records = [example(i) for i in range(8)]
    dense = tf.data.Dataset.from_tensor_slices(records).map(lambda r: parsed(r)["dense"])
    batch = dense.padded_batch(8, [None]).make_one_shot_iterator().get_next()
    expected = [[b"w%d" % k if k < i % 5 else b"" for k in range(4)] for i in range(8)]
    assert session.run(batch).tolist() == expected


def test_those_before_and_after_a_bad_one_are_given(session):
    bad = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    records = [example(i) for i in range(5)] + [example(5, ids=bad)] + [example(i) for i in range(6, 9)]
    dataset = tf.data.Dataset.from_tensor_slices(records).map(parsed).prefetch(20)
    following = dataset.make_one_shot_iterator().get_next()["ids"].dense_shape
    lengths = []
    for i in range(9):
        if i == 5:
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"ids.*\(in element 5 of the dataset"):
                session.run(following)
        else:
            lengths += session.run(following).tolist()
    assert lengths == [i % 4 for i in range(9) if i != 5]


def test_places_out_of_order_or_outside_fail_as_they_do_alone():
    def record(places):
        size = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
        return example(0, ids=tf.train.Feature(int64_list=tf.train.Int64List(value=places)), label=size)

    def dense(record):
        result = tf.parse_single_example(record, FEATURES)
        places = result["ids"].values
        return tf.sparse_to_dense(places[:, None], result["label"][None], tf.ones_like(places))

    for places in ([1, 0], [1, 1], [0, 5], [-1, 0]):
        records = tf.data.Dataset.from_tensor_slices([record([0, 1]), record(places), record([2])])
        following = records.map(dense).prefetch(3).make_one_shot_iterator().get_next()
        with tf.Session() as session:
            assert session.run(following).tolist() == [1, 1, 0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="element 1 of the dataset"):
                session.run(following)
            assert session.run(following).tolist() == [0, 0, 1]
