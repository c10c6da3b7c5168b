"""When checkpoints are on disk, and what is left of them when the power goes."""

import os
import threading
import time

import pytest

import tensorfleet as tf
from tensorfleet.api.train import checkpoint_state
from tensorfleet.base.formats import atomic_files as whole_files


class Disk:
    """Tells in which order data files of a folder came to disk and were deleted; others may still be on their way."""

    def __init__(self, monkeypatch, folder):
        self.seen = []
        self._go = threading.Event()
        self._go.set()
        sync, remove = os.fsync, os.remove

        def fsync(file):
            path = os.readlink(f"/proc/self/fd/{file}")
            if ".data-" in path and path.startswith(str(folder)):
                assert self._go.wait(30)
                self._saw("synced", path)
            sync(file)

        def removed(path, *args, **kwargs):
            if ".data-" in str(path) and "tempstate" not in str(path) and str(path).startswith(str(folder)):
                self._saw("removed", str(path))
            remove(path, *args, **kwargs)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "remove", removed)

    def _saw(self, what, path):
        self.seen.append((what, os.path.basename(path).partition(".data")[0]))

    def stop(self):
        self._go.clear()

    def go(self):
        self._go.set()


@pytest.fixture
def disk(monkeypatch, tmp_path):
    return Disk(monkeypatch, tmp_path)


@pytest.fixture
def saving(tmp_path, session):
    """Saves the step's number as a variable."""
    v = tf.get_variable("v", [8], initializer=tf.zeros_initializer())

    def save(saver, step):
        session.run(v.assign([step] * 8))
        return saver.save(session, str(tmp_path / "model"), global_step=step)

    return save


def value(path):
    return float(tf.train.load_variable(path, "v")[0])


def test_a_save_does_not_wait_for_the_disk(tmp_path, saving, disk):
    disk.stop()
    path = saving(tf.train.Saver(), 1)
    assert disk.seen == []
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert value(path) == 1
    disk.go()
    whole_files.wait_for_disk()
    assert disk.seen == [("synced", "model-1")]


def test_a_checkpoint_is_deleted_when_the_one_before_the_latest_is_on_disk(saving, disk):
    saver = tf.train.Saver(max_to_keep=2)
    for step in range(1, 5):
        saving(saver, step)
    whole_files.wait_for_disk()
    for step in (3, 4):
        removed = disk.seen.index(("removed", f"model-{step - 2}"))
        assert disk.seen.index(("synced", f"model-{step - 1}")) < removed


def test_the_only_checkpoint_is_on_disk_before_the_last_one_is_deleted(saving, disk):
    saver = tf.train.Saver(max_to_keep=1)
    for step in range(1, 4):
        saving(saver, step)
    assert disk.seen == [
        ("synced", "model-1"),
        ("synced", "model-2"),
        ("removed", "model-1"),
        ("synced", "model-3"),
        ("removed", "model-2"),
    ]


def test_a_checkpoint_that_is_written_over_is_replaced_by_one_on_disk(tmp_path, session, disk):
    v = tf.get_variable("v", [8], initializer=tf.zeros_initializer())
    saver = tf.train.Saver()
    session.run(v.initializer)
    saver.save(session, str(tmp_path / "model"))
    whole_files.wait_for_disk()
    disk.seen.clear()
    saver.save(session, str(tmp_path / "model"))
    assert disk.seen[0] == ("synced", "model")


@pytest.fixture
def restarted(monkeypatch):
    """As if the machine had been started after all that was written so far."""
    monkeypatch.setattr(checkpoint_state, "_machine_started", lambda: time.time() + 60)


@pytest.mark.parametrize("lost", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("how", ["empty", "short", "gone"])
def test_after_a_power_cut_the_last_checkpoint_that_came_to_disk_is_the_latest(
    tmp_path, saving, restarted, caplog, lost, how
):
    saver = tf.train.Saver()
    paths = [saving(saver, step) for step in (1, 2)]
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[1]
    whole_files.wait_for_disk()
    file = tmp_path / f"model-2.{lost}"
    content = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(content[: len(content) // 2] if how == "short" else b"")
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[0]
    assert "going on from" in caplog.text
    assert value(tf.train.get_checkpoint_state(str(tmp_path)).model_checkpoint_path) == 1


def test_a_damaged_checkpoint_is_an_error_where_the_power_never_went(tmp_path, saving, session):
    saver = tf.train.Saver()
    path = [saving(saver, step) for step in (1, 2)][1]
    data = tmp_path / "model-2.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-4])
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    with pytest.raises(tf.errors.OpError):
        saver.restore(session, path)


def test_where_nothing_came_to_disk_the_latest_is_named_and_cannot_be_read(tmp_path, saving, restarted):
    path = saving(tf.train.Saver(), 1)
    (tmp_path / "model-1.index").write_bytes(b"")
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    with pytest.raises(tf.errors.DataLossError):
        tf.train.load_variable(path, "v")


def test_large_files_are_gone_at_once_and_their_room_soon(tmp_path):
    large = tmp_path / "large"
    large.write_bytes(bytes(whole_files._MIN_SLOW_FREE_BYTES))
    small = tmp_path / "small"
    small.write_bytes(b"1")
    whole_files.remove_files([str(large), str(small)])
    assert not list(tmp_path.iterdir())
    for thread in threading.enumerate():
        if thread.name == "free_disk":
            thread.join(30)
    held = [
        os.readlink(f"/proc/self/fd/{n}")
        for n in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{n}")
    ]
    assert not any(str(tmp_path) in path for path in held)
