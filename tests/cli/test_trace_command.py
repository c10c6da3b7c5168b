"""`tensorfleet trace`: from a run's name or address to a file and a table."""

import json

import pytest
from typer.testing import CliRunner

import tensorfleet as tf
from tensorfleet.cli.command import app
from tensorfleet.cli.registry import Entry
from tensorfleet.cluster.transport import token
from tensorfleet.testing.chrome_trace import problems_of
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.waiting import in_background


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(token, "secured", token.Settings())


def trace(*arguments):
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


@pytest.fixture
def at_work():
    """A cluster of one task that a client in this process keeps busy."""
    with ProcessCluster(ps=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [100], initializer=tf.zeros_initializer())
            add = tf.assign_add(v, tf.ones([100]))
        with tf.Session(cluster.target("ps", 0)) as sess:
            sess.run(v.initializer)
            over = []

            def work():
                while not over:
                    sess.run(add)

            working = in_background(work)
            yield cluster
            over.append(True)
            working.result(60)


def test_a_run_is_traced_by_the_address_of_a_task(at_work, tmp_path):
    result = trace(at_work.target("ps", 0), "--steps", 5, "-o", tmp_path / "trace.json")
    assert result.exit_code == 0, result.output
    made = json.loads((tmp_path / "trace.json").read_text())
    assert not problems_of(made)
    assert made["otherData"]["steps_asked"] == 5
    assert "Slowest items" in result.output
    assert "Open it in https://ui.perfetto.dev" in result.output


def test_a_run_is_traced_by_its_name(at_work, tmp_path):
    entry = Entry("digits", "train.py", None)
    entry.update("ps/0", 12, at_work.cluster["ps"][0], "running")
    result = trace("digits", "--steps", 2, "--by-op", "-o", tmp_path / "trace.json")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "trace.json").read_text())["otherData"]["by_op"] is True
    assert "unfused" in result.output


def test_a_run_that_does_not_answer_is_an_error_with_its_task(tmp_path):
    entry = Entry("digits", "train.py", None)
    entry.update("ps/0", 12, "localhost:1", "running")
    result = trace("digits", "-o", tmp_path / "trace.json")
    assert result.exit_code == 1
    assert "ps/0 (localhost:1) cannot be reached" in result.output
    assert not (tmp_path / "trace.json").exists()


def test_a_run_without_addresses_is_told_what_to_do():
    entry = Entry("digits", "train.py", None)
    entry.update("main", 12, "", "running")
    result = trace("digits")
    assert result.exit_code == 2
    assert "tf.fleet.trace(session)" in " ".join(result.output.replace("│", " ").split())


def test_an_unknown_run_is_refused():
    result = trace("letters")
    assert result.exit_code == 2
    assert "No run named letters" in result.output


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    result = trace("digits", "-o", tmp_path / "nowhere" / "trace.json")
    assert result.exit_code == 2
    assert "no folder" in result.output
