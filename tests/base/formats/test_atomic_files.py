"""Files that are there as a whole or not at all, and when they are on disk."""

import os
import threading

import pytest

from tensorfleet.base.formats import atomic_files as whole_files


@pytest.fixture
def synced(monkeypatch):
    """The paths of files that were put on disk."""
    seen = []
    real = os.fsync

    def fsync(file):
        seen.append(os.readlink(f"/proc/self/fd/{file}").partition(".tempstate")[0])
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def write(path, text):
    with whole_files.whole_file(str(path)) as f:
        f.write(text)


def test_a_file_is_on_disk_before_it_takes_the_place_of_another(tmp_path, synced):
    path = tmp_path / "file"
    write(path, b"one")
    assert synced == []
    write(path, b"two")
    assert synced == [str(path), str(tmp_path)]
    assert path.read_bytes() == b"two"


def test_a_writer_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    write(path, b"one")
    with pytest.raises(RuntimeError, match="midway"), whole_files.whole_file(str(path)) as f:
        f.write(b"tw")
        raise RuntimeError("midway")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"one"


def test_files_come_to_disk_while_the_program_goes_on(tmp_path, synced, monkeypatch):
    path = tmp_path / "file"
    write(path, b"one")
    counted, go = os.fsync, threading.Event()

    def slow(file):
        assert go.wait(30)
        counted(file)

    monkeypatch.setattr(os, "fsync", slow)
    whole_files.sync_in_background([str(path)])
    assert synced == []
    go.set()
    whole_files.wait_for_disk()
    assert synced == [str(path), str(tmp_path)]


def test_a_disk_that_fails_behind_the_program_is_told_of(tmp_path, monkeypatch, caplog):
    path = tmp_path / "file"
    write(path, b"one")

    def broken(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with caplog.at_level("ERROR", logger="tensorflow"):
        whole_files.sync_in_background([str(path)])
        whole_files.wait_for_disk()
    assert f"{path}: Input/output error" in caplog.text
    assert "save again" in caplog.text


def test_a_file_that_was_deleted_meanwhile_is_nobodys_trouble(tmp_path, caplog):
    with caplog.at_level("ERROR", logger="tensorflow"):
        whole_files.sync_in_background([str(tmp_path / "gone")])
        whole_files.wait_for_disk()
    assert not caplog.text
