"""Texts as numbers, in batches of pieces that follow each other."""

import numpy as np
import pytest

import tensorfleet as tf

reader = tf.models.rnn.ptb.reader


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ptb.train.txt").write_text("the cat sat\nthe dog sat down\n")
    (tmp_path / "ptb.valid.txt").write_text("the bird sat\n")
    (tmp_path / "ptb.test.txt").write_text("the dog\n")
    return str(tmp_path)


def test_words_are_numbered_by_how_often_they_are_used(folder):
    train, valid, test, count = reader.ptb_raw_data(folder)
    # <eos>, sat and the twice; cat, dog and down once
    assert (train, count) == ([2, 3, 1, 0, 2, 4, 1, 5, 0], 6)
    assert (valid, test) == ([2, 1, 0], [2, 4, 0])  # a word that is not in the first is left out


def test_batches_go_on_where_the_last_ended():
    pairs = list(reader.ptb_iterator(range(20), 2, 3))
    assert len(pairs) == 3
    assert pairs[1][0].tolist() == [[3, 4, 5], [13, 14, 15]]
    assert pairs[1][1].tolist() == [[4, 5, 6], [14, 15, 16]]
    with pytest.raises(ValueError, match="epoch_size == 0, decrease batch_size or num_steps"):
        next(reader.ptb_iterator(range(4), 2, 3))


def test_tensors_give_the_same_batches_over_and_over(graph):
    x, y = reader.ptb_producer(list(range(20)), 2, 3)
    assert x.shape.as_list() == [2, 3]
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        given = [sess.run([x, y]) for _ in range(4)]
        coord.request_stop()
        coord.join(threads)
    for (x_value, y_value), (a, b) in zip(given, [*reader.ptb_iterator(range(20), 2, 3)] * 2, strict=False):
        assert np.array_equal(x_value, a) and np.array_equal(y_value, b)
