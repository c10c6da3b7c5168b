import re
import sys

import pytest


def flags_of(script, monkeypatch, *arguments):
    run = script("run")
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: name)
    return run.read_flags()


def test_works_of_the_peers_are_those_of_the_list(script):
    run = script("run")
    for peer in run.PEERS:
        text = (run.HERE / f"{run.PEERS[peer]}.py").read_text()
        named = set(re.findall(r'^    "(\w+)":', text.partition("\nWORKS")[2], re.M))
        assert named == {name for name in run.WORKS if run.can_run(peer, name)}
        assert named > {"mlp100", "transformer", "wide_deep_ids", "start"}


def test_each_size_is_a_row_of_its_own_and_only_the_full_one_has_a_floor(script):
    jobs = script("run").jobs_for(["mlp100", "add"], ["jax"], ["half", "full", "double"])
    rows = [job.rows["seconds"] for job in jobs]
    assert [(r.name, r.size, r.floor) for r in rows] == [
        ("mlp100", "half", None),
        ("mlp100", "full", 1.3),
        ("mlp100", "double", None),
        ("add", "full", 5),
    ]


def test_a_peer_is_measured_only_where_it_has_the_work(script):
    mlp, add = script("run").jobs_for(["mlp100", "add"], ["torch", "jax"], ["full"])
    assert mlp.libraries == ["tensorflow", "tensorfleet", "torch", "jax"]
    assert add.libraries == ["tensorflow", "tensorfleet"]


def test_memory_comes_from_the_process_of_its_work(script):
    (job,) = script("run").jobs_for(["memory_transformer"], [], ["full"])
    assert job.name == "transformer"
    assert job.rows["bytes"].name == "memory_transformer"
    assert job.rows["bytes"].unit == "bytes"


def test_a_work_named_with_its_memory_is_measured_once(script):
    (job,) = script("run").jobs_for(["resnet", "memory_resnet"], [], ["full"])
    assert set(job.rows) == {"seconds", "bytes"}


def test_sizes_and_libraries_are_read_from_lists(script, monkeypatch):
    flags = flags_of(script, monkeypatch, "--against", "torch,jax", "--size", "double,half", "mlp100")
    assert flags.against == ["torch", "jax"]
    assert flags.size == ["half", "full", "double"]
    assert flags_of(script, monkeypatch).size == ["full"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "theano"], "there is no theano; choose from torch, jax"),
        (["--size", "huge"], "there is no huge; choose from half, full, double"),
        (["mlp7"], "there is no work mlp7"),
        (["--write", "mlp100"], "--write needs every work"),
        (["--write", "--rounds", "2"], "--write needs at least 3 rounds"),
        (["--rounds", "0"], "--rounds must be at least 1"),
    ],
)
def test_flags_that_make_no_sense_are_refused(script, monkeypatch, capsys, arguments, message):
    with pytest.raises(SystemExit):
        flags_of(script, monkeypatch, *arguments)
    assert message in capsys.readouterr().err
