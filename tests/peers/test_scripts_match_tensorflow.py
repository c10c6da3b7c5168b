"""The scripts that the launcher's tests run, run by TensorFlow itself: they say the same."""

import contextlib
import re
import signal
import socket
from pathlib import Path

import pytest

from tests.support.launching import launched, run

HERE = Path(__file__).parent

SCRIPTS = HERE.parent / "cli" / "programs"
LIBRARIES = ("tensorfleet", "tensorflow")


def script(name):
    return str(SCRIPTS / f"{name}.py")


def environment(library):
    """What makes the tasks of a run use this library."""
    if library == "tensorfleet":
        return {}
    return {"PYTHONPATH": str(HERE / "as_version_1"), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def alias(library):
    return [] if library == "tensorfleet" else ["--no-alias"]


def said(launch, pattern):
    """What tasks said that matches, in order of text."""
    return sorted(m[0] for line in launch.stdout.splitlines() if (m := re.search(pattern, line)))


@pytest.mark.flaky(
    reruns=2, reason="failed once on a loaded machine, with TensorFlow and TensorFleet processes on two cores"
)
@pytest.mark.parametrize(
    ("name", "ps", "workers", "arguments", "pattern"),
    [
        ("supervisor_flags", 1, 2, ["--train_steps", "80"], "training ended|test accuracy above.*"),
        ("tf_config", 1, 2, [], "ended at a count .*"),
        ("done_queues", 2, 2, [], "ps . received done .|ps .: quitting|worker . is done"),
        ("hard_coded_ports", 1, 2, [], "computed .*"),
        ("timeline_trace", 1, 1, [], "sum .*"),
        ("filtered_devices", 1, 2, [], "worker . ended"),
        ("sharded_ps", 2, 2, [], "parts on .*|loss falls: .*"),
    ],
)
def test_cluster_scripts(tmp_path, name, ps, workers, arguments, pattern):
    by_name = {}
    for library in LIBRARIES:
        options = ["--ps", str(ps), "--workers", str(workers), *alias(library)]
        directory = tmp_path / library
        directory.mkdir()
        done = run(directory, "run", *options, script(name), "--", *arguments, **environment(library))
        assert done.code == 0, done.stdout + done.stderr
        by_name[library] = said(done, pattern)
    assert by_name["tensorfleet"] == by_name["tensorflow"] != []


def test_synchronous_replicas(tmp_path):
    """TensorFlow's other worker waits for ever once the chief has ended: what the first says must do."""
    options = ["run", "--ps", "1", "--workers", "2", "--no-alias", script("monitored_sync")]
    with launched(tmp_path, *options, **environment("tensorflow")) as tasks:
        tasks.read_until("w is near 3: True")
        tasks.process.send_signal(signal.SIGINT)
        tasks.end()
    done = run(tmp_path, *options[:-2], options[-1])
    assert done.code == 0, done.stdout + done.stderr
    assert said(done, "w is near 3: .*") == ["w is near 3: True"] * 2


def test_five_servers_in_one_process(tmp_path):
    for library in LIBRARIES:
        options = ["run", "--ps", "0", "--workers", "1", *alias(library)]
        done = run(tmp_path, *options, script("five_servers"), **environment(library))
        assert done.code == 0, done.stdout + done.stderr
        assert said(done, "total .*") == ["total 60"]


def test_client_of_servers_that_run_elsewhere(tmp_path):
    for library in LIBRARIES:
        with contextlib.ExitStack() as held:
            sockets = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(2)]
            addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
        extra = {"TENSORFLEET_TOKEN": "of this test", **environment(library)}
        options = ["run", "--ps", "0", "--workers", "2", *alias(library)]
        tasks = [*options, script("bare_server"), "--", "{task_index}", *addresses]
        with launched(tmp_path, *tasks, **extra) as servers:
            servers.read_until("listening", 2)
            options = ["run", "--name", "client", "--ps", "0", "--workers", "1", *alias(library)]
            client = run(tmp_path, *options, script("in_graph_client"), "--", *addresses, **extra)
            assert client.code == 0, client.stdout + client.stderr
            assert said(client, "w settles .*") == ["w settles at the mean of the towers' targets: 0.50"]
            servers.process.send_signal(signal.SIGINT)
            servers.end()
