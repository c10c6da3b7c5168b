"""Checkpoints that survive crashes, full disks and damaged bytes; checkpoints of the older format; streaming."""

import builtins
import errno
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.api.summary import events
from tests.support.waiting import together

pytestmark = pytest.mark.slow  # left out by `make quick`

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "data"
ROOT = str(Path(tf.__file__).parent.parent)


def run(*command: str) -> str:
    path = os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("how", ["", "sharded", "step", "sharded step"])
def test_a_crash_at_any_change_to_the_disk_leaves_the_old_or_the_new_checkpoint(tmp_path, how):
    text = run(str(HERE / "programs" / "crashing_save.py"), str(tmp_path), *how.split())
    places, before = (int(word) for word in text.split() if word.isdigit())
    assert places > before > 3


def save_small(prefix: str) -> dict[str, np.ndarray]:
    values = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "n": np.array([1, -2], np.int64),
        "s": np.array([b"one", b"", b"three"], object),
    }
    for name, value in values.items():
        tf.get_variable(name, initializer=tf.constant(value))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, prefix, write_meta_graph=False, write_state=False)
    return values


def read_all(prefix: str) -> dict[str, np.ndarray]:
    reader = tf.train.NewCheckpointReader(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def test_no_changed_byte_of_an_index_goes_unnoticed(tmp_path):
    prefix = str(tmp_path / "model")
    save_small(prefix)
    index = Path(f"{prefix}.index")
    good = index.read_bytes()
    for i in range(len(good)):
        for bit in (0x01, 0x80):
            index.write_bytes(good[:i] + bytes([good[i] ^ bit]) + good[i + 1 :])
            with pytest.raises(tf.errors.OpError):
                read_all(prefix)
    index.write_bytes(good)
    read_all(prefix)


def test_no_changed_byte_of_the_data_goes_unnoticed(tmp_path):
    prefix = str(tmp_path / "model")
    values = save_small(prefix)
    data = Path(f"{prefix}.data-00000-of-00001")
    good = data.read_bytes()
    for i in range(len(good)):
        data.write_bytes(good[:i] + bytes([good[i] ^ (1 << i % 8)]) + good[i + 1 :])
        with pytest.raises(tf.errors.DataLossError):
            read_all(prefix)
    data.write_bytes(good)
    for name, value in read_all(prefix).items():
        np.testing.assert_array_equal(value, values[name])


class SmallDisk:
    """Files opened to write share so many bytes. Those with events, which another thread writes, have room of their own."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._real = builtins.open

    def open(self, file, mode="r", *args, **kwargs):
        result = self._real(file, mode, *args, **kwargs)
        limited = set(mode) & set("wxa+") and "tfevents" not in str(file)
        return SmallFile(self, result) if limited else result


class SmallFile:
    def __init__(self, disk: SmallDisk, file) -> None:
        self._disk, self._file = disk, file

    def write(self, data) -> int:
        size = memoryview(data).nbytes
        if size > self._disk.room:
            self._file.write(memoryview(data).cast("B")[: self._disk.room])
            self._disk.room = 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._disk.room -= size
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_training_goes_on_while_the_disk_is_full_and_the_last_checkpoint_stays(tmp_path, monkeypatch, caplog):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [256], initializer=tf.zeros_initializer())
    train = tf.group(v.assign_add(tf.ones([256])), tf.assign_add(step, 1))
    tf.summary.scalar("first", v[0])
    disk = SmallDisk(1 << 30)
    monkeypatch.setattr(builtins, "open", disk.open)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, save_summaries_steps=1
    ) as sess:
        for _ in range(4):
            sess.run(train)
        assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-4")
        disk.room = 700  # less than the variable
        with caplog.at_level("ERROR", logger="tensorflow"):
            for _ in range(6):
                sess.run(train)
        kept = tf.train.latest_checkpoint(str(tmp_path))
        assert kept.endswith("-4")
        np.testing.assert_array_equal(tf.train.load_variable(kept, "v"), np.full(256, 4.0))
        left = [*tmp_path.glob("**/*tempstate*"), *tmp_path.glob("*_temp_*")]
        assert not left, "nothing half-written takes up room"
        messages = [r.getMessage() for r in caplog.records if "Could not save a checkpoint" in r.getMessage()]
        assert messages
        assert "No space left on device" in messages[0]
        assert kept in messages[0]
        disk.room = 1 << 30
        for _ in range(2):
            sess.run(train)
    kept = tf.train.latest_checkpoint(str(tmp_path))
    assert kept.endswith("-12")
    np.testing.assert_array_equal(tf.train.load_variable(kept, "v"), np.full(256, 12.0))


@pytest.mark.parametrize("steps", [3, 4])  # of which the last is due for a checkpoint, or not
def test_training_whose_last_checkpoint_finds_no_room_has_failed(tmp_path, monkeypatch, steps):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [256], initializer=tf.zeros_initializer())
    train = tf.group(v.assign_add(tf.ones([256])), tf.assign_add(step, 1))
    disk = SmallDisk(1 << 30)
    monkeypatch.setattr(builtins, "open", disk.open)
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=2) as sess:
            sess.run(train)
            disk.room = 700  # less than the variable
            for _ in range(steps - 1):
                sess.run(train)
    message = raised.value.message
    assert f"last checkpoint, of step {steps}: {tmp_path}/model.ckpt-{steps}" in message
    assert "No space left on device" in message and f"The one before it is {tmp_path}/model.ckpt-0" in message


def test_a_checkpoint_that_found_no_room_is_saved_at_the_end_when_there_is_some(tmp_path, monkeypatch):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [256], initializer=tf.zeros_initializer())
    train = tf.group(v.assign_add(tf.ones([256])), tf.assign_add(step, 1))
    disk = SmallDisk(1 << 30)
    monkeypatch.setattr(builtins, "open", disk.open)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_checkpoint_steps=2) as sess:
        sess.run(train)
        disk.room = 700  # less than the variable
        sess.run(train)
        disk.room = 1 << 30
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-2")


def test_training_whose_last_summaries_find_no_room_has_failed_and_is_saved(tmp_path, monkeypatch):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
    tf.summary.scalar("step", step)
    room = [True]
    real = events.EventFile.write

    def write(self, added):
        if not room[0]:
            raise tf.errors.ResourceExhaustedError(None, None, f"{self._folder}; No space left on device")
        real(self, added)

    monkeypatch.setattr(events.EventFile, "write", write)
    wanted = {"checkpoint_dir": str(tmp_path), "save_checkpoint_steps": 2, "save_summaries_steps": 1}
    text = f"last summaries: {tmp_path}; No space left on device"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=text):
        with tf.train.MonitoredTrainingSession(**wanted) as sess:
            sess.run(train)
            room[0] = False
            sess.run(train)
            sess.run(train)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-3")
    room[0] = True
    with tf.train.MonitoredTrainingSession(
        **wanted
    ) as sess:  # lost in between, and written again: no failure
        room[0] = False
        sess.run(train)
        tf.summary.FileWriterCache.get(str(tmp_path)).flush()
        room[0] = True
        sess.run(train)


def test_saving_over_a_checkpoint_takes_its_place(tmp_path, session):
    prefix = str(tmp_path / "model")
    v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
    saver = tf.train.Saver()
    for n in range(5):
        session.run(v.assign([n, n, n]))
        saver.save(session, prefix)
        np.testing.assert_array_equal(tf.train.load_variable(prefix, "v"), [n, n, n])
        assert len({f.name.partition("-of-")[2] for f in tmp_path.glob("model.data-*")}) == 1
    session.run(v.assign([9, 9, 9]))
    saver.restore(session, prefix)
    np.testing.assert_array_equal(session.run(v), [4, 4, 4])


def test_checkpoints_of_the_older_format_are_read():
    path = str(DATA / "checkpoint_v1")
    assert tf.train.checkpoint_exists(path)
    expected = {
        "w": np.arange(12, dtype=np.float32).reshape(3, 4) / 8,
        "n": np.array([1, -2, 3000000000]),
        "half": np.array([1.5, -0.25]),
        "b": np.array([True, False, True]),
        "i": np.array([[7], [-9]], np.int32),
        "s": np.float32(2.5),
        "table": np.arange(10, dtype=np.float32).reshape(5, 2),
    }
    result = read_all(path)
    assert sorted(result) == sorted(expected)
    for name, value in expected.items():
        assert result[name].dtype == value.dtype
        np.testing.assert_array_equal(result[name], value)
    strings = tf.train.load_variable(str(DATA / "checkpoint_v1_strings"), "t")
    assert strings.tolist() == [b"a", b"bb"]
    assert b"table (DT_FLOAT) [5,2]" in tf.train.NewCheckpointReader(path).debug_string()


def test_variables_are_restored_from_the_older_format(session):
    w = tf.get_variable("w", [3, 4])
    table = tf.get_variable("table", [5, 2], partitioner=tf.fixed_size_partitioner(3))
    tf.train.Saver().restore(session, str(DATA / "checkpoint_v1"))
    np.testing.assert_array_equal(session.run(w), np.arange(12).reshape(3, 4) / 8)
    np.testing.assert_array_equal(session.run(tf.convert_to_tensor(table)), np.arange(10).reshape(5, 2))


def test_a_damaged_file_of_the_older_format_is_noticed(tmp_path):
    good = (DATA / "checkpoint_v1").read_bytes()
    path = tmp_path / "old"
    for i in range(0, len(good), 7):
        path.write_bytes(good[:i] + bytes([good[i] ^ 0x10]) + good[i + 1 :])
        with pytest.raises(tf.errors.DataLossError):
            read_all(str(path))


_STREAM = """
import resource, sys
import tensorfleet as tf

COUNT, MEGABYTES = 12, 16
for i in range(COUNT):
    tf.get_variable(f"v{i}", [MEGABYTES << 18], initializer=tf.ones_initializer())
saver = tf.train.Saver()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    saver.save(sess, sys.argv[1], write_meta_graph=False)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) / 1024)
"""


def test_a_large_model_is_saved_tensor_by_tensor(tmp_path):
    grown = float(run("-c", _STREAM, str(tmp_path / "model")))
    assert grown < 3 * 16, "at most some tensors at a time, of twelve"


def test_savers_of_one_name_take_turns(session, tmp_path):
    v = tf.Variable(tf.zeros([100]), name="v")
    savers = [tf.train.Saver() for _ in range(4)]
    session.run(v.initializer)

    def save(saver):
        for _ in range(5):
            saver.save(session, str(tmp_path / "model"), write_meta_graph=False, write_state=False)

    together(*(partial(save, saver) for saver in savers))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["model.data-00000-of-00001", "model.index"]
    savers[0].restore(session, str(tmp_path / "model"))
