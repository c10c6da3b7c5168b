"""A run that waits for its places: it is listed, and a signal ends it as it ends a run that has begun."""

import os
import signal
from pathlib import Path

import pytest

from tensorfleet.cli import registry
from tensorfleet.cli.engines.base import RunEngine, RunOptions, TaskResources
from tensorfleet.cli.output import Output
from tensorfleet.cli.plan import Wishes
from tensorfleet.cli.run import RunSettings
from tensorfleet.cli.run_request import PlannedRun, RunRequest
from tensorfleet.cli.task_counts import Asked


class Waiting(RunEngine):
    """An engine without room. It is told to end while the run waits."""

    name = "waiting"

    def __init__(self, number):
        super().__init__(RunOptions("mine", Path("train.py")))
        self.number = number
        self.listed = []
        self.closed = 0

    def reserve(self, wanted, listener):
        self.listed = list(registry.runs())
        os.kill(os.getpid(), self.number)
        raise AssertionError("the signal was not heard")

    def start(self, task, listener):
        raise AssertionError("no task has a place")

    def seek(self, wanted, listener):
        raise AssertionError("no task has a place")

    def close(self):
        self.closed += 1


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Plans a run with a number that the engine sends itself; gives the engine and what the run ends with."""
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import os\nprint(os.environ['TF_CONFIG'])\n")

    def go(number):
        engine = Waiting(number)
        request = RunRequest.of(Wishes(script="train.py"), Asked(ps=1, workers=2), engine, TaskResources())
        planned = PlannedRun(request, engine, RunSettings("mine", "train.py"), Output, False)
        return engine, planned.to_its_end(None)

    return go


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_run_that_waits_for_room(run, number, capfd):
    before = signal.getsignal(number)
    engine, code = run(number)
    assert code == 128 + number
    assert engine.closed
    assert capfd.readouterr().err == f"tensorfleet: Got {number.name}; stopping.\n"
    assert signal.getsignal(number) is before


def test_a_run_that_waits_for_room_is_listed(run):
    (listed,) = run(signal.SIGTERM)[0].listed
    assert (listed["name"], listed["engine"], listed["launcher"]) == ("mine", "waiting", os.getpid())
    assert {label: task["state"] for label, task in listed["tasks"].items()} == {
        "ps/0": "waiting",
        "worker/0": "waiting",
        "worker/1": "waiting",
    }
    assert not list(registry.runs())
