"""Printing and saving watched tensors: a disk that is full ends the command, and the watch."""

import numpy as np
import pytest

from tensorfleet.cli.debugging.watch import watch_tensors
from tensorfleet.cluster.inspection.topics import Report


class _Failed(Exception):
    pass


class _Questions:
    label = "worker/0"

    def __init__(self):
        self.asked = []

    def ask(self, topic, options=None, seconds=0.0):
        return Report({"id": "7", "tensors": [{"name": "y:0", "task": None}]})

    def ask_other(self, label, topic, options=None, seconds=0.0):
        self.asked.append((topic, options["id"]))
        seen = {"name": "y:0", "step": 1, "array": 0}
        return Report({"seen": [seen], "done": True, "dropped": 0}, [np.ones(3)])

    def fail(self, text):
        raise _Failed(text)


def test_a_value_that_cannot_be_written_is_said_and_the_watch_ends(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    questions = _Questions()
    with pytest.raises(_Failed, match="Cannot write to .*: No space left on device"):
        watch_tensors(questions, ["y"], False, tmp_path, 1, 60.0)
    assert questions.asked[-1] == ("withdraw", "7")
