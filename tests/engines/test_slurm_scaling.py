"""Runs on a real Slurm that are scaled: the room of workers that left, or are not wanted any more, goes back."""

from __future__ import annotations

import signal

import pytest

from tests.engines.slurm_cluster import CPUS, FOREVER, TRAIN, is_installed, slurm_cluster, started, wait_until
from tests.support.launching import launched

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(not is_installed(), reason="there is no Slurm here: run tools/engines.sh"),
]


@pytest.fixture(scope="module")
def cluster():
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def _scale(cluster, project, name, workers, *options):
    with launched(
        project, "scale", name, "--workers", str(workers), *options, **cluster.environment
    ) as launch:
        launch.end()
    return launch


def test_a_run_that_is_scaled_up_and_down_gives_its_jobs_back(cluster, project):
    options = ("--name", "scaled", "--ps", "1", "--workers", "1", "--max-workers", "3")
    with started(cluster, project, *options, "train.py", "--", FOREVER) as launch:
        launch.read_until("began at", 1)
        first = cluster.busy()
        for began in (3, 5):  # once more: what was given back can be asked for again
            assert _scale(cluster, project, "scaled", 3).code == 0
            launch.read_until("began at", began)
            assert len(cluster.busy().splitlines()) == 3
            fewer = _scale(cluster, project, "scaled", 1)
            assert fewer.code == 0, fewer.stdout + fewer.stderr
            wait_until(lambda: cluster.busy() == first, "the end of the workers' jobs", cluster.jobs)
        launch.process.send_signal(signal.SIGINT)
        assert launch.end().code == 130, launch.stdout + launch.stderr
    assert "is lost" not in launch.stdout + launch.stderr
    assert "No place for" not in launch.stdout + launch.stderr


def test_a_worker_that_is_not_wanted_any_more_leaves_the_queue(cluster, project):
    options = ("--name", "queued", "--ps", "1", "--workers", "1", "--max-workers", "3")
    with started(cluster, project, *options, "train.py", "--", FOREVER) as launch:
        launch.read_until("began at", 1)
        with cluster.allocation(f"-n{2 * CPUS - 2}"):
            others = cluster.busy()
            waited = _scale(cluster, project, "queued", 3, "--wait", "1")
            assert "There has been no room for worker/1 and worker/2" in waited.stderr
            wait_until(lambda: cluster.busy().count("PENDING") == 2, "both requests", cluster.jobs)
            assert _scale(cluster, project, "queued", 1).code == 0
            wait_until(lambda: cluster.busy() == others, "the end of the requests", cluster.jobs)
            _scale(cluster, project, "queued", 2, "--wait", "0")
            wait_until(lambda: cluster.busy().count("PENDING") == 1, "a new request", cluster.jobs)
        launch.read_until("began at", 2)
        launch.process.send_signal(signal.SIGINT)
        assert launch.end().code == 130, launch.stdout + launch.stderr
    assert "No place for" not in launch.stdout + launch.stderr


def test_a_worker_that_left_makes_room_in_the_allocation_that_the_run_is_in(cluster, project):
    options = ("--name", "within", "--time", "5", "--ps", "1", "--workers", "1", "--max-workers", "3")
    with (
        cluster.allocation("-N2", "-n4") as job,
        started(cluster, project, *options, "train.py", "--", FOREVER, **job) as launch,
    ):
        launch.read_until("began at", 1)
        for began in (3, 5):
            assert _scale(cluster, project, "within", 3).code == 0
            launch.read_until("began at", began)
            assert _scale(cluster, project, "within", 1).code == 0
            launch.read_until("has left.", began - 1)
        assert len(cluster.busy().splitlines()) == 1
        launch.process.send_signal(signal.SIGINT)
        assert launch.end().code == 130, launch.stdout + launch.stderr
    assert (
        f"Ignoring --time 5: this run uses Slurm job {job['SLURM_JOB_ID']}, which it is in." in launch.stderr
    )
