"""Nodes of a Ray cluster that have another folder under a name are found, by the methods that actors run there."""

import os
import types

import pytest

from tensorfleet.cli.engines.ray_folders import warn_of_folders
from tensorfleet.fleet.ray_tasks import TaskActor


class Node:
    """An actor as the launcher has it. A node with a `hidden` folder does not see what others write there."""

    def __init__(self, hidden=None):
        def sees(marks):
            unseen = [folder for folder, path in marks.items() if hidden and path.startswith(str(hidden))]
            return TaskActor.sees(None, marks) + unseen

        self.mark = _remote(lambda *arguments: TaskActor.mark(TaskActor, *arguments))
        self.unmark = _remote(lambda marks: TaskActor.unmark(None, marks))
        self.sees = _remote(sees)


def _remote(function):
    return types.SimpleNamespace(remote=lambda *arguments: lambda: function(*arguments))


@pytest.fixture
def reply():
    return types.SimpleNamespace(get=lambda asked, seconds: asked())


def test_a_node_with_another_folder_is_named(tmp_path, reply):
    here, there = tmp_path / "here", tmp_path / "shared"
    here.mkdir()
    there.mkdir()
    nodes = {"10.0.0.1": Node(), "10.0.0.2": Node(hidden=here), "10.0.0.3": Node()}
    notes = []
    command = ["train.py", f"--train_dir={here}/not/yet", f"--logdir={there}"]
    warn_of_folders(nodes, command, None, reply, notes.append)
    assert notes == [
        f"--train_dir {here}/not/yet is not shared: 10.0.0.2 does not see the files that 10.0.0.1 writes there. "
        "Checkpoints need a folder that all nodes have."
    ]
    assert os.listdir(here) == os.listdir(there) == []


def test_a_relative_folder_begins_where_the_tasks_do(tmp_path, reply):
    nodes = {"10.0.0.1": Node(), "10.0.0.2": Node(hidden=tmp_path)}
    notes = []
    warn_of_folders(nodes, ["train.py", "--train_dir", "run"], str(tmp_path), reply, notes.append)
    assert notes[0].startswith("--train_dir run is not shared: 10.0.0.2 does not see")
    assert not os.listdir(tmp_path)


def test_one_node_and_no_folders_are_not_asked(tmp_path, reply):
    nodes = {"10.0.0.1": object(), "10.0.0.2": object()}
    warn_of_folders(nodes, ["train.py", "--steps=3"], None, reply, pytest.fail)
    warn_of_folders({"10.0.0.1": object()}, ["train.py", f"--train_dir={tmp_path}"], None, reply, pytest.fail)


def test_a_node_that_is_gone_is_noticed_elsewhere(tmp_path, reply):
    def gone(*_):
        raise ConnectionError

    lost = types.SimpleNamespace(sees=_remote(gone))
    nodes = {"10.0.0.1": Node(), "10.0.0.2": lost}
    warn_of_folders(nodes, ["train.py", f"--train_dir={tmp_path}"], None, reply, pytest.fail)
    assert not os.listdir(tmp_path)
