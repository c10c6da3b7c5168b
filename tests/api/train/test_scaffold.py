"""Scaffolds: what a monitored session needs, given or made."""

import pytest

import tensorfleet as tf


def test_a_scaffold_fills_in_what_is_missing(session):
    scaffold = tf.train.Scaffold()
    tf.Variable(1, name="my_var")
    tf.Variable(2, name="my_local_var", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    scaffold.finalize()
    assert isinstance(scaffold.init_op, tf.Operation)
    assert isinstance(scaffold.local_init_op, tf.Operation)
    assert isinstance(scaffold.saver, tf.train.Saver)
    assert scaffold.summary_op is scaffold.init_fn is scaffold.init_feed_dict is None
    assert tf.get_default_graph().finalized
    assert set(session.run(scaffold.ready_op)) == {b"my_var", b"my_local_var"}
    assert set(session.run(scaffold.ready_for_local_init_op)) == {b"my_var"}
    session.run(scaffold.init_op)
    assert session.run(scaffold.ready_for_local_init_op).size == 0
    session.run(scaffold.local_init_op)
    assert session.run(scaffold.ready_op).size == 0


def test_scaffolds_share_what_they_made():
    tf.Variable([1])
    first = tf.train.Scaffold().finalize()
    second = tf.train.Scaffold().finalize()
    for name in ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "saver"):
        assert getattr(first, name) is getattr(second, name)


def test_two_candidates_are_one_too_many():
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver([tf.Variable([1])]))
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver([tf.Variable([1])]))
    with pytest.raises(RuntimeError, match="More than one item"):
        tf.train.Scaffold().finalize()
    tf.add_to_collection(tf.GraphKeys.SUMMARY_OP, tf.constant(1))
    tf.add_to_collection(tf.GraphKeys.SUMMARY_OP, tf.constant(1))
    with pytest.raises(RuntimeError, match="More than one item in the collection .*summary_op=item"):
        tf.train.Scaffold(saver=tf.train.Saver()).finalize()


def test_a_scaffold_is_copied():
    tf.Variable([1])
    result = tf.train.Scaffold(init_fn=lambda scaffold, sess: (scaffold, sess)).finalize()
    copy = tf.train.Scaffold(copy_from_scaffold=result, local_init_op=result.init_op)
    assert copy.init_op is result.init_op
    assert copy.local_init_op is result.init_op
    assert copy.init_fn("sess") == (copy, "sess")
    with pytest.raises(TypeError, match="copy_from_scaffold is not a Scaffold instance"):
        tf.train.Scaffold(copy_from_scaffold=1)
