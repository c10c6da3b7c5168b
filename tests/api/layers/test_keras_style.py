"""`tf.layers.experimental`: layers that have variables of their own wherever they are made."""

import pytest

import tensorfleet as tf
from tensorfleet.api.layers import helpers

cells = tf.nn.rnn_cell
style = tf.layers.experimental


def _stacked():
    cell = cells.MultiRNNCell([cells.LSTMCell(2) for _ in range(2)])
    cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
    return cell


def test_cells_in_one_scope_have_variables_of_their_own():
    with style.keras_style_scope():
        with tf.variable_scope("same"):
            first = _stacked()
        with tf.variable_scope("same"):
            second = _stacked()
    names = [v.op.name for v in first.variables + second.variables]
    assert len(names) == len(set(names)) == 8
    assert not {id(v) for v in first.variables} & {id(v) for v in second.variables}


def test_without_it_they_would_be_the_same_variables():
    with tf.variable_scope("same"):
        _stacked()
    with pytest.raises(ValueError, match="already exists"), tf.variable_scope("same"):
        _stacked()


def test_a_layer_is_called_again_with_its_own_variables(session):
    with style.keras_style_scope():
        layer = tf.layers.Dense(1, kernel_initializer=tf.ones_initializer(), name="mine")
    first, second = layer(tf.ones([1, 2])), layer(tf.ones([1, 2]))
    session.run(tf.global_variables_initializer())
    assert [v.op.name for v in layer.variables] == ["mine/kernel", "mine/bias"]
    assert session.run([first, second]) == [[[2.0]], [[2.0]]]


def test_scopes_and_reuse_are_refused():
    with style.keras_style_scope():
        with pytest.raises(ValueError, match="reuse argument not allowed"):
            tf.layers.Dense(1, _reuse=True)
        with pytest.raises(ValueError, match="scope argument not allowed"):
            tf.layers.Dense(1, _scope="here")
        cell = cells.LSTMCell(2)
        with pytest.raises(ValueError, match="scope argument not allowed"):
            cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32), scope="here")


def test_it_can_be_set_for_all_layers_to_come(monkeypatch):
    monkeypatch.setattr(helpers, "_keras_style", False)
    style.set_keras_style()
    with tf.variable_scope("same"):
        _stacked()
    with tf.variable_scope("same"):
        _stacked()
