"""Runs of other machines with the same home folder, and batch jobs: listed, told apart, stopped."""

import json
import os
import socket

import pytest

from tensorfleet.cli import distant_runs, registry
from tensorfleet.cli.distant_runs import is_own_job, stop_distant
from tensorfleet.cli.engines.base import EngineError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "runs"))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return tmp_path / "runs"


@pytest.fixture
def slurm(monkeypatch):
    """The jobs that Slurm has. What it is asked to cancel is cancelled."""
    jobs, asked = {}, []

    def answer(command):
        asked.append(command)
        jobs.pop(command[-1], None)
        return ""

    monkeypatch.setattr(distant_runs, "own_jobs", lambda: dict(jobs))
    monkeypatch.setattr(distant_runs, "answer", answer)
    return jobs, asked


def submit(name, job):
    registry.Entry(name, "train.py", None, engine="slurm").submitted(job, ["ps/0", "worker/0"])


def on_host(host, name, folder):
    """A run whose launcher is on that machine, which has no such process here."""
    registry.Entry(name, "train.py", None, engine="slurm").update("worker/0", 0, "n7:2222", "running")
    (path,) = folder.glob(f"{name}-[0-9]*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "host": host, "launcher": 4, "started": "1"}))
    return path


def test_a_job_in_the_queue_is_listed_with_its_state(folder, slurm):
    slurm[0]["7"] = "PENDING"
    submit("mine", "7")
    (run,) = distant_runs.distant_runs()
    assert (run.name, run.job, run.where) == ("mine", "7", "Slurm job 7, PENDING")
    assert list(run.tasks) == ["ps/0", "worker/0"]
    assert not list(registry.runs())


def test_a_job_that_has_ended_is_listed_no_more(folder, slurm):
    submit("mine", "7")
    assert not distant_runs.distant_runs()
    assert not list(folder.iterdir())


def test_jobs_are_listed_while_slurm_does_not_answer(folder, monkeypatch):
    def away():
        raise EngineError("Slurm's controller does not answer.")

    monkeypatch.setattr(distant_runs, "own_jobs", away)
    submit("mine", "7")
    assert [run.where for run in distant_runs.distant_runs()] == ["Slurm job 7, UNKNOWN"]


def test_a_launcher_on_another_machine_is_listed_and_its_file_stays(folder, slurm):
    path = on_host("n7", "mine", folder)
    assert not list(registry.runs())
    assert path.exists()
    (run,) = distant_runs.distant_runs()
    assert (run.where, run.tasks["worker/0"]["state"]) == ("launcher 4 on n7", "running")


def test_a_launcher_that_has_shown_no_sign_for_long_is_listed_no_more(folder, slurm):
    path = on_host("n7", "mine", folder)
    os.utime(path, (1, 1))
    assert not distant_runs.distant_runs()
    assert not path.exists()


def test_a_sign_is_shown_now_and_then(folder, slurm):
    entry = registry.Entry("mine", "train.py", None)
    entry.update("worker/0", 1, None, "running")
    (path,) = folder.iterdir()
    os.utime(path, (1, 1))
    entry.beat(entry._beaten + 1)
    assert path.stat().st_mtime == 1
    entry.beat(entry._beaten + 61)
    assert path.stat().st_mtime > 1


def test_a_job_and_its_launcher_are_one_run(folder, slurm):
    slurm[0]["7"] = "RUNNING"
    submit("mine", "7")
    on_host("n7", "mine", folder)
    (run,) = distant_runs.distant_runs()
    assert run.where == "Slurm job 7, RUNNING, launcher 4 on n7"


def test_a_job_whose_launcher_is_on_this_machine_is_no_distant_run(folder, slurm):
    slurm[0]["7"] = "RUNNING"
    submit("mine", "7")
    registry.Entry("mine", "train.py", None, engine="slurm").update("worker/0", 0, None, "running")
    assert not distant_runs.distant_runs()
    assert [run["host"] for run in registry.runs()] == [socket.gethostname()]


@pytest.mark.parametrize(
    "state, command, told",
    [
        ("PENDING", ["scancel", "7"], "cancelled (Slurm job 7, PENDING)"),
        ("RUNNING", ["scancel", "--batch", "--signal=TERM", "7"], "stopped (Slurm job 7)"),
    ],
)
def test_a_job_is_stopped_so_that_its_tasks_may_save(folder, slurm, state, command, told):
    jobs, asked = slurm
    jobs["7"] = state
    submit("mine", "7")
    (run,) = distant_runs.distant_runs()
    assert stop_distant(run) == told
    assert asked == [command]
    assert not list(folder.iterdir())


def test_a_job_that_does_not_end_is_cancelled(folder, slurm, monkeypatch):
    jobs, asked = slurm
    jobs["7"] = "RUNNING"
    monkeypatch.setattr(distant_runs, "own_jobs", lambda: {"7": "RUNNING"})
    submit("mine", "7")
    (run,) = distant_runs.distant_runs()
    assert stop_distant(run, patience=0.0) == "cancelled (Slurm job 7, RUNNING)"
    assert asked[-1] == ["scancel", "7"]


def test_a_run_of_another_machine_says_where_to_stop_it(folder, slurm):
    on_host("n7", "mine", folder)
    (run,) = distant_runs.distant_runs()
    with pytest.raises(
        EngineError, match=r"mine was started on n7 \(launcher 4\). Stop it there, with tensorfleet stop"
    ):
        stop_distant(run)


def test_the_launcher_of_a_job_may_have_the_name_of_its_job(folder, slurm, monkeypatch):
    submit("mine", "7")
    assert not is_own_job("mine")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert is_own_job("mine") and not is_own_job("other")
