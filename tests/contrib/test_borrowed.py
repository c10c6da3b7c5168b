"""Parts of `tf.contrib`, and names from before 1.0, that are other modules' in another place."""

import pytest

import tensorfleet as tf


def test_parts_that_scripts_import_and_do_not_use_are_there_and_say_what_is_missing():
    assert tf.contrib.bigtable.__name__.endswith("contrib.bigtable")
    with pytest.raises(AttributeError, match="'tf.contrib.bigtable' has no attribute 'BigtableClient'"):
        tf.contrib.bigtable.BigtableClient()


def test_recurrent_networks_are_where_they_were_before_one():
    assert tf.models.rnn.rnn_cell.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell
    assert tf.python.ops.seq2seq.rnn_decoder is tf.contrib.legacy_seq2seq.rnn_decoder
    assert tf.models.rnn.seq2seq.sequence_loss is tf.contrib.legacy_seq2seq.sequence_loss


def test_small_names_of_contrib():
    assert tf.contrib.util.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
    with tf.contrib.compiler.jit.experimental_jit_scope():
        tf.constant(1)
