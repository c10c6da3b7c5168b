"""Addresses of other machines in a script whose tasks are all here."""

import json

import pytest

import tensorfleet as tf
from tensorfleet.cluster.membership import address_rewriting as moving

ELSEWHERE = "240.0.0.{}:2222"  # addresses that nobody has
SPEC = {"ps": [ELSEWHERE.format(1)], "worker": [ELSEWHERE.format(2), ELSEWHERE.format(3)]}


@pytest.fixture(autouse=True)
def placed(monkeypatch):
    monkeypatch.setattr(moving, "_moved", {})
    monkeypatch.setenv(moving.PLACED, json.dumps({"ps": ["127.0.0.1:5"], "worker": ["127.0.0.1:6"]}))


def test_tasks_are_where_the_launcher_put_them(capsys):
    found = moving.here(tf.train.ClusterSpec(SPEC), "worker", 0)
    assert found.as_dict() == {"ps": ["127.0.0.1:5"], "worker": ["127.0.0.1:6", ELSEWHERE.format(3)]}
    said = capsys.readouterr().err
    assert "240.0.0.2:2222, where the script has worker/0, is not this machine" in said
    assert "cluster has 2 tasks of job worker, and 1 of them were started: use --workers 2." in said


def test_a_launcher_that_has_guessed_is_told_all_tasks(monkeypatch, tmp_path, capsys):
    made = tmp_path / "cluster.json"
    monkeypatch.setenv(moving.MADE, str(made))
    with pytest.raises(SystemExit):
        moving.here(tf.train.ClusterSpec(SPEC), "worker", 0)
    assert json.loads(made.read_text()) == {"ps": 1, "worker": 2}
    assert list(tmp_path.iterdir()) == [made] and not capsys.readouterr().err


def test_a_launcher_that_has_guessed_other_jobs_is_told_those_of_the_cluster(monkeypatch, tmp_path):
    made = tmp_path / "cluster.json"
    monkeypatch.setenv(moving.MADE, str(made))
    for job in ("ps", "worker"):
        with pytest.raises(SystemExit) as end:
            tf.train.Server({"master": ["localhost:1"], "slave": ["localhost:2"]}, job, 0)
        assert end.value.code
    assert json.loads(made.read_text()) == {"master": 1, "slave": 1}


def test_a_launcher_is_not_asked_for_more_tasks_than_a_machine_has_room_for(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(moving.MADE, str(tmp_path / "cluster.json"))
    many = {"ps": SPEC["ps"], "worker": [ELSEWHERE.format(i) for i in range(2, 40)]}
    moving.here(tf.train.ClusterSpec(many), "worker", 0)
    assert "use --workers 38." in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_target_in_the_script_moves_along():
    moving.here(tf.train.ClusterSpec(SPEC), "worker", 0)
    assert moving.moved("grpc://240.0.0.1:2222") == "grpc://127.0.0.1:5"
    assert moving.moved("grpc://240.0.0.9:2222") == "grpc://240.0.0.9:2222"


def test_ports_of_this_machine_are_left_as_they_are(capsys):
    spec = tf.train.ClusterSpec({"ps": ["localhost:2222"], "worker": ["127.0.0.1:2223"]})
    assert moving.here(spec, "worker", 0).as_dict() == spec.as_dict()
    assert not capsys.readouterr().err


def test_a_port_behind_the_address_that_a_task_was_told_is_dropped(capsys):
    spec = tf.train.ClusterSpec({"ps": ["127.0.0.1:5:2222"], "worker": ["127.0.0.1:6:2223"]})
    assert moving.here(spec, "worker", 0).as_dict() == {"ps": ["127.0.0.1:5"], "worker": ["127.0.0.1:6"]}
    assert moving.moved("grpc://127.0.0.1:6:2223") == "grpc://127.0.0.1:6"
    assert not capsys.readouterr().err


def test_a_chief_that_was_started_as_a_worker_is_not_missed(capsys):
    spec = tf.train.ClusterSpec({"ps": ["127.0.0.1:5"], "chief": ["127.0.0.1:6"]})
    moving.here(spec, "chief", 0)
    assert not capsys.readouterr().err
    moving.here(tf.train.ClusterSpec({"chief": ["127.0.0.1:7"]}), "chief", 0)
    assert "use --job chief=1" in capsys.readouterr().err


def test_without_a_launcher_nothing_moves(monkeypatch):
    monkeypatch.delenv(moving.PLACED)
    spec = tf.train.ClusterSpec(SPEC)
    assert moving.here(spec, "worker", 0).as_dict() == spec.as_dict()


def test_only_what_cannot_be_here_moves():
    spec = {"ps": ["240.0.0.1:2222"], "worker": ["127.0.0.1:2223"]}
    found = moving.here(tf.train.ClusterSpec(spec), "worker", 0)
    assert found.as_dict() == {"ps": ["127.0.0.1:5"], "worker": ["127.0.0.1:2223"]}


def test_a_parameter_server_of_a_script_that_makes_workers_only_serves(monkeypatch, capsys):
    made = tf.train.ServerDef(job_name="worker", task_index=0)
    made.cluster.CopyFrom(tf.train.ClusterSpec(SPEC).as_cluster_def())
    assert not moving.take_task_to_serve(made)
    monkeypatch.setenv(moving.SERVES, "ps/0")
    assert moving.take_task_to_serve(made) and (made.job_name, made.task_index) == ("ps", 0)
    assert "makes every task a worker: this one, ps/0, only serves." in capsys.readouterr().err
    assert not moving.take_task_to_serve(made)
    local = tf.train.ServerDef(job_name="local", task_index=0)
    local.cluster.CopyFrom(tf.train.ClusterSpec({"local": ["localhost:0"]}).as_cluster_def())
    assert not moving.take_task_to_serve(local)


def test_a_parameter_server_of_a_cluster_without_any_ends(capsys):
    with pytest.raises(SystemExit) as ended:
        tf.train.Server({"worker": ["localhost:2223"]}, job_name="ps", task_index=0)
    assert ended.value.code == 0
    assert "the script's cluster has worker, and no ps: this task is not needed." in capsys.readouterr().err
    with pytest.raises(tf.errors.InvalidArgumentError, match='Task 1 was not defined in job "ps"'):
        tf.train.Server({"ps": ["localhost:2222"]}, job_name="ps", task_index=1)


def test_a_chief_at_the_address_of_a_worker_is_no_further_task(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(moving.MADE, str(tmp_path / "cluster.json"))
    spec = {"chief": ["localhost:6"], "worker": ["localhost:6"], "ps": ["127.0.0.1:5"]}
    assert moving.here(tf.train.ClusterSpec(spec), "chief", 0).as_dict() == spec
    assert not list(tmp_path.iterdir()) and not capsys.readouterr().err


def test_a_task_of_a_job_that_is_empty_in_the_scripts_cluster_ends(capsys):
    with pytest.raises(SystemExit) as ended:
        tf.train.Server({"ps": ["localhost:2222"], "worker": []}, job_name="worker", task_index=0)
    assert ended.value.code == 0
    assert "the script's cluster has 0 of job worker: this task, worker/0, is not" in capsys.readouterr().err
