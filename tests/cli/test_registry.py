"""The list of runs: nobody else can put a process on it."""

import json
import os

import pytest

from tensorfleet.cli import registry


@pytest.fixture
def folder(tmp_path, monkeypatch):
    result = tmp_path / "runs"
    monkeypatch.setenv("TENSORFLEET_STATE", str(result))
    return result


@pytest.fixture
def entry(folder):
    result = registry.Entry("mine", "train.py", None)
    result.update("worker/0", 1, None, "running")
    return result


def test_a_run_is_listed_while_it_lasts(entry, folder):
    assert [run["name"] for run in registry.runs()] == ["mine"]
    assert folder.stat().st_mode & 0o777 == 0o700
    entry.remove()
    assert not list(registry.runs())


def test_a_folder_in_which_others_can_write_is_not_believed(entry, folder):
    folder.chmod(0o777)
    assert not list(registry.runs())
    registry.Entry("other", "train.py", None).update("worker/0", 1, None, "running")
    assert len(list(folder.iterdir())) == 1


def test_a_folder_of_another_user_is_not_believed(entry, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not list(registry.runs())


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"launcher": "x", "started": 1}', "7", "\0"])
def test_files_that_make_no_sense_are_passed_over(entry, folder, content):
    (folder / "odd.json").write_text(content)
    assert [run["name"] for run in registry.runs()] == ["mine"]


def test_a_run_of_an_earlier_process_of_the_same_number_is_taken_away(entry, folder):
    (path,) = folder.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "started": "long ago"}))
    assert not list(registry.runs()) and not path.exists()
