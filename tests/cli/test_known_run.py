"""A run is found by its name, by being the only one, or by the address of a task."""

import json
import os
import stat

import pytest
import typer
from typer.testing import CliRunner

from tensorfleet.cli.command import app
from tensorfleet.cli.known_run import find_run
from tensorfleet.cli.registry import Entry, directory
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.cluster.transport import token
from tensorfleet.testing.cluster import ProcessCluster


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(token, "secured", token.Settings())


def registered(name: str, secret: str = "") -> Entry:
    entry = Entry(name, "train.py", None, secret)
    entry.update("ps/0", 12, "localhost:2222", "running")
    return entry


def test_the_only_run_needs_no_name():
    registered("digits")
    run = find_run(None)
    assert (run.name, run.address("ps/0")) == ("digits", "localhost:2222")


def test_the_token_of_a_run_is_used_and_is_readable_by_its_owner_only():
    registered("digits", "a secret of this run alone")
    find_run("digits")
    assert token.token() == b"a secret of this run alone"
    (path,) = directory().glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["token"] == "a secret of this run alone"


def test_a_name_that_no_run_has_is_refused_with_those_that_run():
    registered("digits")
    with pytest.raises(typer.BadParameter, match="No run named letters on this machine. Running: digits"):
        find_run("letters")


def test_several_runs_need_a_name(monkeypatch):
    registered("digits")
    registered("letters")
    with pytest.raises(typer.BadParameter, match="several runs. Running: digits, letters"):
        find_run(None)


def test_a_task_that_the_run_does_not_have_is_refused():
    registered("digits")
    with pytest.raises(typer.BadParameter, match="digits has no task ps/9. Its tasks are ps/0"):
        find_run("digits").address("ps/9")


def test_a_cluster_started_by_hand_is_found_by_any_of_its_tasks():
    with ProcessCluster(ps=2) as cluster:
        run = find_run(cluster.target("ps", 1))
        assert sorted(run.addresses) == ["ps/0", "ps/1"]
        assert "time_ns" in ask("ps/0", run.address("ps/0"), "clock").content


def test_nobody_at_an_address_is_an_error_that_names_it():
    with pytest.raises(typer.BadParameter, match="grpc://localhost:1"):
        find_run("grpc://localhost:1")


def test_two_runs_of_one_name_are_told_apart_by_address():
    for launcher in ("a", "b"):
        entry = registered("digits")
        entry.path = entry.path.with_name(f"digits-{launcher}.json")
        entry.update("ps/0", 12, "localhost:2222", "running")
    with pytest.raises(typer.BadParameter, match="3 runs are named digits .*grpc://127.0.0.1:2222"):
        find_run("digits")


def test_a_second_run_of_one_name_is_refused(tmp_path):
    entry = registered("digits")
    (tmp_path / "train.py").touch()
    command = ["run", "--name", "digits", str(tmp_path / "train.py")]
    refused = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
    assert refused.exit_code == 2
    assert f"A run named digits is going on (launcher {os.getpid()}). Stop it with" in refused.output
    entry.remove()
