"""Sequences, texts and images become arrays."""

import numpy as np
import pytest

import tensorfleet as tf

sequence, text, image = (getattr(tf.keras.preprocessing, n) for n in ("sequence", "text", "image"))


def test_sequences_are_filled_and_cut():
    rows = [[1], [2, 3], [4, 5, 6]]
    assert sequence.pad_sequences(rows).tolist() == [[0, 0, 1], [0, 2, 3], [4, 5, 6]]
    cut = sequence.pad_sequences(rows, maxlen=2, padding="post", truncating="post", value=9)
    assert cut.tolist() == [[1, 9], [2, 3], [4, 5]]
    assert sequence.pad_sequences(rows, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="not understood"):
        sequence.pad_sequences(rows, padding="middle")


def test_windows_of_a_series():
    generator = sequence.TimeseriesGenerator(np.arange(10), np.arange(10), length=3, batch_size=4)
    x, y = generator[0]
    assert len(generator) == 2 and x[0].tolist() == [0, 1, 2] and y.tolist() == [3, 4, 5, 6]


def test_words_are_numbered_by_how_often_they_come():
    tokenizer = text.Tokenizer(num_words=4, oov_token="<new>")
    tokenizer.fit_on_texts(["The cat sat on the mat.", "The dog!"])
    assert tokenizer.word_index["<new>"] == 1 and tokenizer.word_index["the"] == 2
    assert tokenizer.texts_to_sequences(["the cat flew"]) == [[2, 3, 1]]
    assert tokenizer.sequences_to_texts([[2, 3]]) == ["the cat"]
    assert tokenizer.texts_to_matrix(["the the cat"], "count").tolist() == [[0, 0, 2, 1]]
    again = text.tokenizer_from_json(tokenizer.to_json())
    assert again.texts_to_sequences(["the cat flew"]) == [[2, 3, 1]]
    assert text.text_to_word_sequence("A b, c") == ["a", "b", "c"]
    assert all(1 <= n < 10 for n in text.one_hot("a b c", 10))
    assert text.hashing_trick("a a", 10, "md5")[0] == text.hashing_trick("a a", 10, "md5")[1]


def test_images_flow_in_batches_and_may_be_flipped():
    images = np.random.RandomState(0).rand(10, 4, 4, 3)
    plain = image.ImageDataGenerator(rescale=2.0).flow(images, np.arange(10), batch_size=4, shuffle=False)
    x, y = next(plain)
    assert y.tolist() == [0, 1, 2, 3] and len(plain) == 3
    np.testing.assert_allclose(x, images[:4] * 2, rtol=1e-6)
    flipped = image.ImageDataGenerator().apply_transform(images[0], {"flip_horizontal": True})
    np.testing.assert_array_equal(flipped, images[0][:, ::-1])
    centered = image.ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True)
    centered.fit(images)
    x = centered.flow(images, batch_size=10, shuffle=False)[0]
    np.testing.assert_allclose(x.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(x.std((0, 1, 2)), 1, atol=1e-4)
    parts = image.ImageDataGenerator(validation_split=0.2)
    assert parts.flow(images, subset="validation").n == 2 and parts.flow(images, subset="training").n == 8


def test_images_are_moved():
    pytest.importorskip("scipy")
    one = np.zeros((5, 5, 1))
    one[3, 3] = 1.0  # what Keras turns images around
    generator = image.ImageDataGenerator(fill_mode="constant")
    assert np.argmax(generator.apply_transform(one, {"tx": 1})) == 2 * 5 + 3
    np.testing.assert_allclose(generator.apply_transform(one, {"theta": 90}), one, atol=1e-9)
    model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(5, 5, 1)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    turning = image.ImageDataGenerator(
        rotation_range=20, width_shift_range=0.1, zoom_range=0.1, horizontal_flip=True
    )
    model.fit_generator(turning.flow(np.stack([one] * 6), np.zeros(6), batch_size=2), epochs=2, verbose=0)
    assert tf.keras.backend.get_value(model.optimizer.iterations) == 6
    tf.keras.backend.set_session(None)
