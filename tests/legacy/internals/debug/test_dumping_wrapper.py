"""Sessions that write what they compute."""

from pathlib import Path

import pytest

import tensorfleet as tf
from tensorfleet.base.protos import Event

debug = tf.python.debug


def dumped(run):
    """The tensors in the folder of a run, by their names."""
    result = {}
    for path in run.rglob("*_DebugIdentity_*"):
        event = Event.FromString(path.read_bytes())
        (value,) = event.summary.value
        result[value.node_name.removesuffix(":DebugIdentity")] = tf.make_ndarray(value.tensor)
    return result


def program():
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.name_scope("scope"):
        y = tf.multiply(x, 2.0, name="y")
    return x, tf.add(y, 1.0, name="z")


def test_every_run_has_a_folder_of_what_it_computed(tmp_path):
    x, z = program()
    with debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path)) as sess:
        assert sess.run(z, {x: [1.0, 2.0]}).tolist() == [3.0, 5.0]
        sess.run(z, {x: [0.0, 0.0]})
    first, second = sorted(tmp_path.iterdir(), key=lambda p: int(p.name.rpartition("_")[2]))
    assert dumped(first)["scope/y:0"].tolist() == [2.0, 4.0] and dumped(first)["z:0"].tolist() == [3.0, 5.0]
    assert dumped(second)["z:0"].tolist() == [1.0, 1.0]
    names = {p.name.rstrip("_0123456789") + "_" for p in first.iterdir()}
    assert names >= {"_tfdbg_core_metadata_sessionrun_", "_tfdbg_fetches_info_", "_tfdbg_feed_keys_info_"}


def test_only_what_is_of_interest(tmp_path):
    x, z = program()
    watch = lambda fetches, feeds: debug.WatchOptions(node_name_regex_whitelist="scope/")  # noqa: E731
    with debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path / "a"), watch_fn=watch) as sess:
        sess.run(z, {x: [1.0, 2.0]})
    (run,) = (tmp_path / "a").iterdir()
    assert set(dumped(run)) == {"scope/y:0", "scope/y/y:0"}


def test_a_hook_of_a_monitored_session(tmp_path):
    tf.train.get_or_create_global_step()
    x, z = program()
    hook = debug.DumpingDebugHook(str(tmp_path / "a"))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(z, {x: [1.0, 2.0]})
    runs = [dumped(run) for run in Path(tmp_path / "a").iterdir()]
    assert [r["z:0"].tolist() for r in runs if "z:0" in r] == [[3.0, 5.0]]


def test_the_folder_must_be_empty(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="points to a non-empty directory"):
        debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path))
    with pytest.raises(ValueError, match="points to a file"):
        debug.DumpingDebugWrapperSession(tf.Session(), str(tmp_path / "file"))
