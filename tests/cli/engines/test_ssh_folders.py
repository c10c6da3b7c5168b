"""Hosts of a cluster file that have another folder under a name are found, by a program that really runs there."""

import os
import sys

import pytest

from tensorfleet.cli.engines.ssh_folders import warn_of_folders
from tensorfleet.cli.hosts import Host

HERE = "sh -c"  # in the place of ssh


@pytest.fixture
def host(tmp_path):
    """A host whose tasks start in a folder of its own."""

    def make(name, via=HERE):
        (tmp_path / name).mkdir(exist_ok=True)
        return Host(name, "127.0.0.1", python=sys.executable, directory=str(tmp_path / name), via=via)

    return make


def test_hosts_with_folders_of_their_own_are_named(host, tmp_path):
    notes = []
    command = ["train.py", "--train_dir=run/1", f"--logdir={tmp_path}/shared/logs"]
    warn_of_folders([host("alpha"), host("beta"), host("gamma")], command, notes.append)
    assert notes == [
        "--train_dir run/1 is not shared: beta, gamma do not see the files that alpha writes there. "
        "Checkpoints need a folder that all nodes have."
    ]
    assert [os.listdir(tmp_path / name) for name in ("alpha", "beta", "gamma")] == [[], [], []]
    assert set(os.listdir(tmp_path)) == {"alpha", "beta", "gamma"}


def test_without_folders_or_other_hosts_nobody_is_asked(host, tmp_path):
    nobody = host("alpha", via="false")
    warn_of_folders([nobody, nobody], ["train.py", "--steps=3"], pytest.fail)
    warn_of_folders([nobody], ["train.py", "--train_dir=run"], pytest.fail)


@pytest.mark.parametrize("via", ["false", "true", "/nonexistent/ssh", "echo"])
def test_a_host_that_cannot_be_asked_is_told_of_by_its_tasks(host, tmp_path, via):
    for hosts in ([host("alpha"), host("beta", via)], [host("beta", via), host("alpha")]):
        warn_of_folders(hosts, ["train.py", "--train_dir=run"], pytest.fail)
    assert not os.listdir(tmp_path / "alpha")
