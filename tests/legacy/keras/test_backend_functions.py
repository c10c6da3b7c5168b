"""Functions of `tf.keras.backend`: convolutions, sequences of labels, randomness."""

import numpy as np
import pytest

import tensorfleet as tf

K = tf.keras.backend
X = np.random.RandomState(0).uniform(-1, 1, [2, 5, 6, 3]).astype("float32")


@pytest.fixture(autouse=True)
def forgetful():
    with tf.Graph().as_default():
        yield
    K.set_session(None)


def test_channels_may_come_first(session):
    kernel = np.random.RandomState(1).uniform(-1, 1, [2, 3, 3, 4]).astype("float32")
    turned = X.transpose([0, 3, 1, 2])
    for last, first in (
        (K.conv2d(X, kernel), K.conv2d(turned, kernel, data_format="channels_first")),
        (K.pool2d(X, (2, 2)), K.pool2d(turned, (2, 2), data_format="channels_first")),
        (
            K.resize_images(X, 2, 2, "channels_last"),
            K.resize_images(turned, 2, 2, "channels_first"),
        ),
    ):
        last, first = session.run([last, first])
        np.testing.assert_allclose(first.transpose([0, 2, 3, 1]), last, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="Invalid padding"):
        K.conv2d(X, kernel, padding="full")


def test_labels_without_places_are_learned():
    steps = tf.keras.Input((8, 4))
    labels, lengths, known = tf.keras.Input((3,)), tf.keras.Input((1,)), tf.keras.Input((1,))
    chances = tf.keras.layers.Dense(6, activation="softmax")(steps)
    cost = tf.keras.layers.Lambda(lambda given: K.ctc_batch_cost(*given), name="ctc")(
        [labels, chances, lengths, known]
    )
    model = tf.keras.Model([steps, labels, lengths, known], cost)
    model.compile(tf.keras.optimizers.Adam(0.05), loss={"ctc": lambda _, made: made})
    x = np.repeat(np.eye(4)[[0, 1, 2, 3]], 2, 0)[None].repeat(3, 0)
    given = [x, np.tile([1, 2, 4], [3, 1]), np.full([3, 1], 8), np.full([3, 1], 3)]
    history = model.fit(given, np.zeros(3), epochs=100, verbose=0).history["loss"]
    assert history[-1] < history[0] / 2


def test_variables_and_randomness():
    random = K.random_uniform_variable([1000], 2.0, 3.0, seed=1)
    normal = K.random_normal_variable([1000], 5.0, 0.1, seed=1)
    coins = K.eval(K.random_binomial([1000], 0.25, seed=2))
    assert K.eval(random).min() >= 2 and K.eval(random).max() < 3
    assert abs(K.eval(normal).mean() - 5) < 0.05
    assert set(coins) == {0, 1} and abs(coins.mean() - 0.25) < 0.05
    assert K.eval(K.eye(2)).tolist() == [[1, 0], [0, 1]]


def test_folds_and_sparse_tensors(session):
    elements = tf.constant([1.0, 2.0, 3.0])
    left, right = K.foldl(lambda a, b: a - b, elements), K.foldr(lambda a, b: a - b, elements)
    assert session.run([left, right]) == [-4, 0]
    sparse = K.ctc_label_dense_to_sparse([[1, 2], [3, 4]], [1, 2])
    assert K.is_sparse(sparse) and not K.is_sparse(elements)
    assert session.run(K.to_dense(sparse)).tolist() == [[1, 0], [3, 4]]
    assert K.backend() == "tensorflow"


def test_normalization_over_some_axes(session):
    result, mean, variance = K.normalize_batch_in_training(
        tf.constant(X), np.ones(3, "float32"), np.zeros(3, "float32"), [0, 1, 2]
    )
    got, m, v = session.run([result, mean, variance])
    np.testing.assert_allclose(m, X.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got, (X - m) / np.sqrt(v + 1e-3), rtol=1e-4, atol=1e-5)
    old = K.variable(np.zeros(3))
    update = K.moving_average_update(old, m, 0.9)
    session.run(tf.global_variables_initializer())
    session.run(update)
    np.testing.assert_allclose(session.run(old), m, rtol=1e-4)  # as if it had not begun at zero


def test_a_function_runs_what_else_is_fetched_and_fed():
    x, y, seen = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, []), []
    count = K.variable(0.0)
    fed = {y: 2.0}
    double = K.function([x], [x * y], fetches=[count.assign_add(1.0)], feed_dict=fed)
    double.fetch_callbacks[double.fetches[0]] = seen.append
    assert double([3.0]) == [6.0]
    fed[y] = 5.0
    assert double([3.0]) == [15.0]
    assert seen == [1.0, 2.0]
    with pytest.raises(ValueError, match='Invalid argument "foo" passed to K.function'):
        K.function([x], [x], foo=1)


def test_a_function_takes_tensors_in_place_of_arrays():
    x, y = K.placeholder([2]), K.placeholder([2])
    next_pair = tf.data.Dataset.range(4).map(lambda i: (tf.fill([2], i), tf.fill([2], -i)))
    left, right = next_pair.make_one_shot_iterator().get_next()
    total = K.function([x, y], x + y)
    both = [tf.cast(left, tf.float32), tf.cast(right, tf.float32)]
    for _ in range(3):
        np.testing.assert_array_equal(total(both), [0, 0])
    np.testing.assert_array_equal(total([K.variable([1.0, 2.0]), np.ones(2)]), [2, 3])


def test_classes_in_another_dimension_have_labels_of_any_shape(session):
    logits = np.random.RandomState(0).normal(size=[2, 4, 3, 3]).astype("float32")
    labels = np.arange(18).reshape([2, 1, 3, 3]) % 4
    first = K.sparse_categorical_crossentropy(labels, tf.constant(logits), from_logits=True, axis=1)
    last = K.sparse_categorical_crossentropy(
        labels[:, 0], tf.constant(logits.transpose([0, 2, 3, 1])), from_logits=True
    )
    assert first.shape.as_list() == [2, 3, 3]
    np.testing.assert_allclose(*session.run([first, last]), rtol=1e-6)
    with pytest.raises(ValueError, match="with `axis=1` on an output tensor with unknown rank"):
        K.sparse_categorical_crossentropy(labels, tf.placeholder(tf.float32), True, axis=1)
