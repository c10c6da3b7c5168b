"""`tf.data.experimental` and specs: TensorFlow's elements, sizes and texts."""

import numpy as np
import pytest

import tensorfleet


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return np.asarray(value).tolist()


def elements(tf, dataset, limit=20):
    result, following = [], tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        try:
            while len(result) < limit:
                result.append(plain(session.run(following)))
        except tf.errors.OutOfRangeError:
            pass
    return result


def numbers(tf, *args):
    return tf.data.Dataset.range(*args)


def counting(tf):
    return tf.data.experimental.Reducer(
        lambda key: (key, tf.constant(0, tf.int64)),
        lambda state, n: (state[0], state[1] + n),
        lambda key, total: {"key": key, "total": total},
    )


ELEMENTS = {
    "one per key": lambda tf: numbers(tf, 10).apply(
        tf.data.experimental.group_by_reducer(lambda n: 2 - n % 3, counting(tf))
    ),
    "windows at the end": lambda tf: numbers(tf, 10).apply(
        tf.data.experimental.group_by_window(lambda n: 2 - n % 3, lambda k, w: w.batch(9), 100)
    ),
    "sparse batches": lambda tf: (
        numbers(tf, 1, 6)
        .map(lambda n: tf.fill([n], n))
        .apply(tf.data.experimental.dense_to_sparse_batch(2, [6]))
    ),
    "sparse matrices": lambda tf: (
        numbers(tf, 1, 4)
        .map(lambda n: tf.fill([n, 2], n))
        .apply(tf.data.experimental.dense_to_sparse_batch(2, [3, 2]))
    ),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements(tensorflow, name):
    def run(tf):
        with tf.Graph().as_default():
            return elements(tf, ELEMENTS[name](tf))

    assert run(tensorfleet) == run(tensorflow)


SIZES = {
    "range": lambda tf: numbers(tf, 9, 0, -2),
    "take": lambda tf: numbers(tf, 10).take(3),
    "take all": lambda tf: numbers(tf, 4).take(-1),
    "skip": lambda tf: numbers(tf, 3).skip(5),
    "skip all": lambda tf: numbers(tf, 4).skip(-1),
    "batch": lambda tf: numbers(tf, 10).batch(3),
    "whole batches": lambda tf: numbers(tf, 10).batch(3, True),
    "repeat": lambda tf: numbers(tf, 3).repeat(2),
    "never": lambda tf: numbers(tf, 3).repeat(0),
    "for ever": lambda tf: numbers(tf, 3).repeat(),
    "some of for ever": lambda tf: numbers(tf, 3).repeat().take(5),
    "filter": lambda tf: numbers(tf, 3).filter(lambda n: n > 0),
    "flat_map": lambda tf: numbers(tf, 3).flat_map(lambda n: numbers(tf, 2)),
    "zip": lambda tf: tf.data.Dataset.zip((numbers(tf, 3), numbers(tf, 2))),
    "concatenate": lambda tf: numbers(tf, 3).concatenate(numbers(tf, 4)),
    "shard": lambda tf: numbers(tf, 10).shard(3, 0),
    "kept": lambda tf: numbers(tf, 2).cache(),
    "tensors": lambda tf: tf.data.Dataset.from_tensors([1, 2]),
    "slices": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2]),
}


@pytest.mark.parametrize("name", SIZES)
def test_cardinality(tensorflow, name):
    def run(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.data.experimental.cardinality(SIZES[name](tf)))

    assert run(tensorfleet) == run(tensorflow)


def test_optional_elements(tensorflow):
    def run(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            iterator = tf.data.make_one_shot_iterator(numbers(tf, 2).map(lambda n: (n, n * 2)))
            following = tf.data.experimental.get_next_as_optional(iterator)
            there, value = following.has_value(), following.get_value()
            result = [plain(session.run([there, value])) for _ in range(2)]
            result.append(plain(session.run(there)))
            with pytest.raises(tf.errors.InvalidArgumentError) as error:
                session.run(value)
            assert "The given optional does not have a value." in str(error.value)
            return result

    assert run(tensorfleet) == run(tensorflow)


SPECS = {
    "tensor": lambda tf: tf.TensorSpec([None, 2], tf.int32, "x"),
    "sparse": lambda tf: tf.SparseTensorSpec([None, 2], tf.int32),
    "ragged": lambda tf: tf.RaggedTensorSpec([2, None, 3], tf.int32, 1),
    "slices": lambda tf: tf.IndexedSlicesSpec([2], tf.float64),
    "array": lambda tf: tf.TensorArraySpec([2]),
    "dataset": lambda tf: tf.data.DatasetSpec({"a": tf.TensorSpec([])}),
    "optional": lambda tf: tf.OptionalSpec((tf.TensorSpec([]), tf.TensorSpec([2], tf.string))),
    "of tensors": lambda tf: tf.TensorSpec.from_tensor(tf.zeros([2, 3], name="zeros")),
    "common": lambda tf: tf.TensorSpec([1, 2]).most_specific_compatible_type(tf.TensorSpec([3, 2])),
    "elements": lambda tf: (
        numbers(tf, 9).batch(2).map(lambda n: {"a": n, "b": tf.cast(n, tf.float32)}).element_spec
    ),
    "fits": lambda tf: [
        tf.TensorSpec([None, 2]).is_compatible_with(other)
        for other in (tf.zeros([3, 2]), tf.zeros([2]), tf.zeros([1, 2], tf.int32), tf.TensorSpec([4, None]))
    ],
}


@pytest.mark.parametrize("name", SPECS)
def test_specs(tensorflow, name):
    def run(tf):
        with tf.Graph().as_default():
            return repr(SPECS[name](tf))

    assert run(tensorfleet) == run(tensorflow)
