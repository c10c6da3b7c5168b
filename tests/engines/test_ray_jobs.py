"""`ray job submit` of a whole run, to the job server of a real Ray cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tensorfleet.cli.engines.child import free_ports
from tests.engines.ray_cluster import SECONDS, TRAIN, ray_cluster, tasks_of, wait_until

pytestmark = pytest.mark.engines
pytest.importorskip("ray")
for needed in ("aiohttp_cors", "opencensus", "opentelemetry", "virtualenv"):
    pytest.importorskip(needed, reason="the job server needs ray[default]")


@pytest.fixture(scope="module")
def server():
    (port,) = free_ports(1)
    # One node: several on one machine share the folder of unpacked jobs, and each removes what it does not use itself.
    with ray_cluster(1, job_port=port) as cluster:
        server = cluster, f"http://127.0.0.1:{port}"
        # The server answers before it has the agent that starts jobs.
        wait_until(
            lambda: ray_command(server, "submit", "--", "true").returncode == 0, "an agent", 4 * SECONDS
        )
        yield server


def ray_command(server, *arguments, **options):
    cluster, address = server
    command = [sys.executable, "-m", "ray.scripts.scripts", "job", arguments[0], "--address", address]
    return subprocess.run(
        [*command, *arguments[1:]],
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        check=False,
    )


def submit(server, folder, *arguments, sends=True):
    run = [
        sys.executable,
        "-m",
        "tensorfleet",
        "run",
        "--on",
        "ray",
        "--dashboard",
        "off",
        "--cpus-per-task",
        "0.5",
    ]
    options = ["--submission-id", folder.name, *(["--working-dir", str(folder)] if sends else [])]
    no_wait = ["--no-wait"] * ("--until=1e9" in arguments)
    return ray_command(server, "submit", *options, *no_wait, "--", *run, *arguments)


def test_a_job_brings_its_folder_and_trains(server, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.replace("import os", "import beside, os"))
    (tmp_path / "beside.py").touch()
    done = submit(server, tmp_path, "--ps", "1", "--workers", "2", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[worker/0] trained" in done.stdout
    assert tasks_of(server[0]) == []


@pytest.mark.parametrize("grows", [False, True])
def test_a_job_without_a_working_directory_takes_the_folder_of_its_script(server, tmp_path, grows):
    """Where it is on the only machine, or as a copy where others may join."""
    (tmp_path / "train.py").write_text(TRAIN.replace("import os", "import beside, os"))
    (tmp_path / "beside.py").write_text("print('beside is', __file__)")
    counts = ("--ps", "1", "--workers", "2", "--log-dir", str(tmp_path / "logs"))
    growing = ("--engine-arg", "autoscaling=1") if grows else ()
    done = submit(server, tmp_path, *counts, *growing, str(tmp_path / "train.py"), sends=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[worker/0] trained" in done.stdout
    assert (f"Ray sends a copy of {tmp_path} to the nodes." in done.stdout) is grows
    assert (f"beside is {tmp_path}/beside.py" in done.stdout) is not grows
    assert tasks_of(server[0]) == []


def test_a_job_without_a_working_directory_says_how_to_send_its_script(server, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    done = submit(server, tmp_path, "--ps", "1", "--workers", "1", "train.py", sends=False)
    assert done.returncode != 0
    said = " ".join(done.stdout.replace("│", " ").split())
    assert "No file train.py in " in said
    assert "ray job submit sends no files without --working-dir: add --working-dir FOLDER" in said


def test_a_job_that_fails_says_so(server, tmp_path):
    (tmp_path / "train.py").write_text(
        TRAIN.replace("while sess", "raise ValueError('no luck')\n        while sess")
    )
    done = submit(server, tmp_path, "--ps", "1", "--workers", "1", "train.py")
    assert done.returncode != 0
    assert "ValueError: no luck" in done.stdout


def test_a_job_that_is_stopped_leaves_nothing(server, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    submit(server, tmp_path, "--ps", "1", "--workers", "2", "train.py", "--until=1e9")
    wait_until(lambda: len(tasks_of(server[0])) >= 6, "the tasks")
    ray_command(server, "stop", tmp_path.name)
    wait_until(lambda: not tasks_of(server[0]), "the end of all tasks")
