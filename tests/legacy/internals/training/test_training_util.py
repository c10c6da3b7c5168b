"""What tests put in place of parts of TensorFlow's packages for training."""

from unittest import mock

from tensorfleet.python.training import checkpoint_management, saver

import tensorfleet as tf


def test_a_saver_goes_by_the_clock_that_a_test_puts_in_its_module(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess, mock.patch.object(saver, "time") as clock:
        tf.Variable(1.0).initializer.run()
        clock.time.return_value = 1000.0
        keeper = saver.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1)
        clock.time.return_value += 3601
        first, second, third = (keeper.save(sess, str(tmp_path / name)) for name in "abc")
        assert [checkpoint_management.checkpoint_exists(p) for p in (first, second, third)] == [
            True,
            False,
            True,
        ]


def test_the_clock_is_put_back_after_a_test():
    import time

    with mock.patch.object(checkpoint_management, "time"):
        pass
    assert checkpoint_management.time is time
    with tf.Graph().as_default():
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), "nowhere", 2)
        assert abs(manager._preserved - time.time()) < 3600
