"""`tensorfleet run --on ray` on a real Ray cluster of three nodes on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest

from tests.engines.ray_cluster import (
    TRAIN,
    actor_of,
    node_of,
    others_hold,
    pid_of,
    ray_cluster,
    tasks_of,
    wait_until,
)
from tests.support import launching

pytestmark = pytest.mark.engines
pytest.importorskip("ray")

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKER = ("--job_name=worker", "--task_index=0")
PS = ("--job_name=ps", "--task_index=0")


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as cluster:
        yield cluster


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    return "train.py"


@contextlib.contextmanager
def launched(cluster, directory, *arguments, **environment):
    """`tensorfleet run --on ray`; at the end of the block neither the machine nor the cluster has anything of it."""
    options = ("run", "--on", "ray", "--address", cluster.address, "--dashboard", "off")
    with launching.launched(directory, *options, *arguments, **environment) as launch:
        yield launch
    wait_until(lambda: not tasks_of(cluster), "the end of all tasks on the cluster")


def test_an_example_trains_to_its_accuracy(cluster, tmp_path):
    script = str(EXAMPLES / "mnist_replica.py")
    arguments = ("--ps", "2", "--workers", "2", script, "--", "--train_steps=400", "--target=0.85")
    with launched(cluster, tmp_path, *arguments) as run:
        run.end(240)
    assert run.code == 0, run.stdout + run.stderr
    assert "Final validation accuracy" in run.stdout
    assert "ray" not in run.stdout.lower() + run.stderr.lower()


def test_a_failure_is_reported_with_its_node_and_the_line_of_the_script(cluster, tmp_path):
    (tmp_path / "train.py").write_text(
        TRAIN.replace("while sess", "assert FLAGS.task_index == 0, 'no luck'\n        while sess")
    )
    with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", "train.py", "--until=1e9") as run:
        run.end()
    assert run.code == 1
    assert "FAILED: worker/1 on " in run.stderr
    assert "AssertionError: no luck" in run.stderr


def test_a_killed_worker_and_a_killed_ps_are_started_again(cluster, script, tmp_path):
    with launched(
        cluster, tmp_path, "--restart", "1", "--ps", "1", "--workers", "2", script, "--until=1e9"
    ) as run:
        run.read_until("began", 2)
        os.kill(pid_of(cluster, *WORKER), signal.SIGKILL)
        run.read_until("began", 3)
        os.kill(pid_of(cluster, *PS), signal.SIGKILL)
        run.read_until("ps/0 on")
        run.process.send_signal(signal.SIGINT)
        assert run.end().code == 130


def test_a_killed_worker_fails_a_run_without_restarts(cluster, script, tmp_path):
    with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", script, "--until=1e9") as run:
        run.read_until("began", 2)
        os.kill(pid_of(cluster, *WORKER), signal.SIGKILL)
        run.end()
    assert run.code == 137
    assert "worker/0 on" in run.stderr
    assert "was killed by SIGKILL" in run.stderr


def test_a_run_goes_on_when_a_node_dies(tmp_path):
    condition = "sess.run(more) < FLAGS.until"
    (tmp_path / "train.py").write_text(
        TRAIN.replace(condition, f"{condition} or not os.path.exists('enough')")
    )
    arguments = ("--restart", "2", "--ps", "2", "--workers", "2", "train.py", "--until=100")
    with ray_cluster(3) as cluster, launched(cluster, tmp_path, *arguments) as run:
        run.read_until("began", 2)
        homes = [node_of(pid_of(cluster, "--job_name=ps", f"--task_index={i}")) for i in (0, 1)]
        cluster.kill_node(next(home for home in homes if home in cluster.others))
        run.read_until("has died")
        (tmp_path / "enough").touch()
        run.end(120)
    assert run.code == 0, run.stdout + run.stderr


def test_a_worker_saves_when_its_node_is_drained_and_joins_elsewhere(tmp_path):
    (tmp_path / "train.py").write_text(
        TRAIN.replace(
            "while sess.run(more) < FLAGS.until:", "while not sess.should_stop():\n            sess.run(more)"
        )
    )
    with ray_cluster() as cluster:
        # Two tasks fit on the first node, which has to stay.
        options = ("--cpus-per-task", "1", "--ps", "1", "--workers", "1:4")
        with launched(cluster, tmp_path, *options, "train.py") as run:
            run.read_until("began", 4)
            index = next(i for i in (1, 2, 3) if node_of(_worker(cluster, i)) in cluster.others)
            node, before = node_of(_worker(cluster, index)), _worker(cluster, index)
            cluster.drain_node(node)
            cluster.add_node()
            run.read_until(f"worker/{index} is lost: node")
            run.read_until(f"worker/{index} on")
            wait_until(lambda: _worker(cluster, index) not in (None, before), "the successor")
            assert node_of(_worker(cluster, index)) != node
            run.process.send_signal(signal.SIGINT)
            assert run.end().code == 130
    assert f"[worker/{index}] tensorfleet: got SIGTERM; stopping after this step." in run.stdout
    assert "is being drained. Looking for another place." in run.stdout
    lines = run.stdout.splitlines()
    saved, lost = f"[worker/{index}] trained", next(line for line in lines if "is being drained" in line)
    assert lines.index(saved) < lines.index(lost)


def test_a_cluster_whose_head_dies_is_named(script, tmp_path):
    with ray_cluster(2) as cluster:
        with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", script, "--until=1e9") as run:
            run.read_until("began", 2)
            cluster.kill_head()
            run.end()
    assert run.code == 127
    told = run.stderr.splitlines()[-1]
    assert re.match(
        rf"tensorfleet: The head of the Ray cluster at {cluster.address} has not answered for \d+ s. Start the",
        told,
    )


def _worker(cluster, index):
    return pid_of(cluster, "--job_name=worker", f"--task_index={index}")


def test_ctrl_c_leaves_nothing(cluster, script, tmp_path):
    with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", script, "--until=1e9") as run:
        run.read_until("began", 2)
        run.process.send_signal(signal.SIGINT)
        assert run.end().code == 130


def test_a_killed_launcher_leaves_nothing(cluster, script, tmp_path):
    with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", script, "--until=1e9") as run:
        run.read_until("began", 2)
        run.process.send_signal(signal.SIGKILL)


def test_no_room_ends_as_asked(cluster, script, tmp_path):
    with others_hold(cluster, 1):
        with launched(cluster, tmp_path, "--wait", "0", "--ps", "2", "--workers", "3", script) as run:
            run.end()
    assert run.code == 127
    asked = r"Asked for 2 ps \(1 CPU each\) and 3 worker \(1 CPU each\); free: \d CPU of 6 CPU"
    assert re.match(f"tensorfleet: Ray has no room. {asked}", run.stderr)
    assert run.stderr.count("\n") == 1


def test_ctrl_c_ends_the_wait_for_room(cluster, script, tmp_path):
    with others_hold(cluster, 1):
        with launched(cluster, tmp_path, "--ps", "2", "--workers", "3", script) as run:
            assert "Waiting for room" in run.process.stderr.readline()
            run.process.send_signal(signal.SIGINT)
            assert run.end().code == 130


def test_a_run_that_waits_for_room_is_listed_and_can_be_stopped(cluster, script, tmp_path):
    with others_hold(cluster, 1):
        options = ("--name", "mine", "--ps", "2", "--workers", "3")
        with launched(cluster, tmp_path, *options, script) as run:
            assert "Waiting for room" in run.process.stderr.readline()
            assert "ps/1         waiting  no place yet" in launching.run(tmp_path, "ps").stdout
            assert launching.run(tmp_path, "stop", "mine").stdout == "mine: stopped\n"
            assert run.end().code == 143


def test_workers_join_when_there_is_room(cluster, script, tmp_path):
    with contextlib.ExitStack() as others:
        others.enter_context(others_hold(cluster, 1.5))
        with launched(
            cluster,
            tmp_path,
            "--cpus-per-task",
            "0.5",
            "--ps",
            "1",
            "--workers",
            "1:3",
            script,
            "--until=1e9",
        ) as run:
            run.read_until("began", 2)
            others.close()
            run.read_until("began", 3)
            os.kill(pid_of(cluster, "--job_name=worker", "--task_index=2"), signal.SIGKILL)
            run.read_until("began", 4)
            os.kill(actor_of(pid_of(cluster, "--job_name=worker", "--task_index=1")), signal.SIGKILL)
            run.read_until("began", 5)
            run.process.send_signal(signal.SIGINT)
            assert run.end().code == 130


def test_a_run_is_scaled_up_and_down_and_gives_its_room_back(cluster, script, tmp_path):
    options = (
        "--cpus-per-task",
        "1",
        "--ps",
        "1",
        "--workers",
        "1",
        "--max-workers",
        "3",
        "--name",
        "scaled",
    )
    with launched(cluster, tmp_path, *options, script, "--until=1e9") as run:
        run.read_until("began", 1)
        more = launching.run(tmp_path, "scale", "scaled", "--workers", "3")
        assert more.code == 0, more.stderr
        run.read_until("began", 3)
        fewer = launching.run(tmp_path, "scale", "scaled", "--workers", "1")
        assert fewer.code == 0, fewer.stderr
        run.read_until("has left.", 2)
        with others_hold(
            cluster, 2, nodes=1
        ):  # four tasks on three nodes of two processors leave none of them free
            run.process.send_signal(signal.SIGINT)
            assert run.end().code == 130


def test_an_unreachable_cluster_is_one_sentence(tmp_path, script):
    options = ("--on", "ray", "--address", "127.0.0.1:1", "--dashboard", "off", "--ps", "1", "--workers", "1")
    run = launching.run(tmp_path, "run", *options, script)
    assert run.code == 127
    assert run.stderr.startswith(
        "tensorfleet: Cannot reach a Ray cluster at 127.0.0.1:1: Connection refused."
    )
    assert run.stderr.count("\n") == 1


def test_a_cluster_with_a_token_lets_in_who_has_it(script, tmp_path):
    token, wrong = "a-token-of-ray-with-enough-letters", "not-that-token-of-ray"
    with ray_cluster(2, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token) as cluster:

        def run_with(**environment):
            with launched(cluster, tmp_path, "--ps", "1", "--workers", "2", script, **environment) as run:
                return run.end()

        run = run_with(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
        assert run.code == 0, run.stderr
        run = run_with(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=wrong)
        assert run.code == 127
        assert "does not let us in: the token is not that cluster's. Set RAY_AUTH_MODE=token" in run.stderr
        assert run.stderr.count("\n") == 1
        assert "does not let us in: it wants a token." in run_with().stderr
