"""The debugger's sessions and hooks."""

import pytest

import tensorfleet as tf

debug = tf.python.debug


@pytest.fixture
def bad():
    """A placeholder, and a sum in which its logarithm is not a number when it is fed a negative one."""
    x = tf.placeholder(tf.float32, [])
    return x, tf.add(tf.log(x, name="root"), 1.0, name="sum")


def test_a_wrapped_session_names_what_its_filter_finds(session, bad, capsys):
    x, y = bad
    wrapped = debug.LocalCLIDebugWrapperSession(session)
    wrapped.add_tensor_filter("has_inf_or_nan", debug.has_inf_or_nan)
    assert wrapped.run({"y": y}, {x: 1.0}) == {"y": 1.0}
    assert "nobody types" in capsys.readouterr().err
    assert wrapped.run({"y": y}, {x: 1.0}) == {"y": 1.0}
    assert capsys.readouterr().err == ""
    wrapped.run(y, {x: -1.0})
    assert "has_inf_or_nan: 2 tensors, the first: root:0 (Log), sum:0 (Add)" in capsys.readouterr().err
    assert wrapped.graph is session.graph


def test_a_wrapped_session_is_a_session(bad):
    x, y = bad
    with debug.LocalCLIDebugWrapperSession(
        tf.Session(), ui_type="readline", config_file_path=None
    ) as wrapped:
        assert wrapped.run(y, {x: 1.0}) == y.eval({x: 1.0}) == 1


def test_a_hook_names_what_its_filter_finds(bad, capsys):
    x, y = bad
    hook = debug.LocalCLIDebugHook(config_file_path=None)
    hook.add_tensor_filter("bad", debug.has_inf_or_nan)
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(y, {x: -1.0})
    assert "bad: 2 tensors, the first: root:0" in capsys.readouterr().err
