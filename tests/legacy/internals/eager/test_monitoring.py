"""Numbers that libraries keep about themselves."""

import pytest

import tensorfleet as tf

monitoring = tf.python.eager.monitoring


def test_a_value_is_kept_for_each_label():
    used = monitoring.BoolGauge("/lib/used", "Whether it was used.", "agent")
    used.get_cell("dqn").set(True)
    assert used.get_cell("dqn").value() is True and used.get_cell("ppo").value() is False
    with pytest.raises(ValueError, match="expects taking 1 labels, but got 0"):
        used.get_cell()


def test_a_counter_grows():
    calls = monitoring.Counter("/lib/calls", "How often.")
    calls.get_cell().increase_by(2)
    calls.get_cell().increase_by(3)
    assert calls.get_cell().value() == 5
