"""What code that was taken out of TensorFlow's loops over cells calls from inside of it."""

import pytest

import tensorfleet as tf

impl = tf.python.ops.rnn_cell_impl


def test_sizes_are_put_together(graph):
    batch = tf.placeholder(tf.int32, [])
    with tf.Session() as sess:
        assert sess.run(impl._concat(2, [3, 4])).tolist() == [2, 3, 4]
        assert sess.run(impl._concat(batch, 5), {batch: 7}).tolist() == [7, 5]
        assert sess.run(impl._concat(batch, tf.TensorShape([])), {batch: 7}).tolist() == [7]
    assert impl._concat(tf.TensorShape([None]), 5, static=True) == [None, 5]
    with pytest.raises(ValueError, match="must be known"):
        impl._concat(batch, 5, static=True)


def test_cells_are_told_from_other_things():
    assert impl._like_rnncell(tf.nn.rnn_cell.GRUCell(3))
    assert not impl._like_rnncell(tf.nn.relu)
