"""Handwritten digits, read by workers over a parameter server."""

import pytest

from tensorfleet.testing.cluster import ProcessCluster
from tests.support.examples import EXAMPLES, number_after, run_example, try_example
from tests.support.tasks import output

pytestmark = pytest.mark.slow  # left out by `make quick`


def test_replicas_reach_their_target(tmp_path):
    flags = ["--train_steps", "400", "--train_dir", str(tmp_path), "--target", "0.9"]
    done = run_example(tmp_path, "mnist_replica", *flags, ps=1, workers=2)
    assert number_after("Final validation accuracy", done.stdout) >= 0.9
    assert (tmp_path / "checkpoint").exists()
    assert "logs are in runs/mnist_replica-" in done.stderr


def test_every_flag_of_a_synchronous_run_has_its_effect(tmp_path):
    sizes = ["--hidden_units", "64", "--batch_size", "50", "--learning_rate", "0.005", "--train_steps", "200"]
    flags = [*sizes, "--sync_replicas", "--replicas_to_aggregate", "1", "--num_gpus", "2", "--target", "0.85"]
    done = run_example(tmp_path, "mnist_replica", *flags, "--data_dir", str(tmp_path), ps=1, workers=2)
    assert number_after("Final validation accuracy", done.stdout) >= 0.85
    assert f"No MNIST files in {tmp_path}" in done.stdout
    assert "of 200   loss" in done.stdout


def test_fewer_gpus_than_workers_are_refused(tmp_path):
    done = try_example(tmp_path, "mnist_replica", "--num_gpus", "1", ps=1, workers=2)
    assert done.code == 1
    assert "number of gpus (1) is less than number of workers (2)" in done.stderr


def test_download_only_stops_after_the_data_are_read(tmp_path):
    done = run_example(tmp_path, "mnist_replica", "--download_only", ps=1, workers=1)
    assert "trained" not in done.stdout


def test_clients_train_on_servers_that_are_running(tasks):
    with ProcessCluster(ps=1, worker=2) as cluster:
        hosts = cluster.cluster
        flags = ["--existing_servers", "--job_name", "worker", "--train_steps", "300", "--target", "0.85"]
        flags += ["--ps_hosts", hosts["ps"][0], "--worker_hosts", ",".join(hosts["worker"])]
        script = EXAMPLES / "mnist_replica.py"
        clients = [tasks.start(script, *flags, "--task_index", index) for index in "01"]
        said = [output(client) for client in clients]
    assert number_after("Final validation accuracy", said[0]) >= 0.85
    assert "Worker 1 trained" in said[1]
