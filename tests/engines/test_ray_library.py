"""Training inside a Ray program, by `tensorfleet.fleet.ray.run`, on a real cluster of three nodes on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.engines.ray_cluster import SECONDS, ray_cluster, tasks_of, wait_until

pytestmark = pytest.mark.engines
ray = pytest.importorskip("ray")

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_training.py"
SMALL = {"CPU": 0.5}


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as cluster:
        ray.init(cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()


@pytest.fixture(autouse=True)
def _nothing_is_left(cluster):
    yield
    wait_until(lambda: not tasks_of(cluster), "the end of all tasks")
    wait_until(lambda: ray.available_resources().get("CPU") == 6, "the room that was given back")


def run(train_fn, *args, **options):
    from tensorfleet.fleet import ray as fleet_ray

    return fleet_ray.run(
        train_fn, *args, **{"resources_per_ps": SMALL, "resources_per_worker": SMALL, **options}
    )


def add_until(most):
    """A function that adds to a variable on the ps, with the other workers, until it is large."""

    def train(config=None):
        import tensorfleet as tf
        from tensorfleet.fleet import ray as fleet_ray

        task = fleet_ray.get_context()
        with tf.device("/job:ps/task:0"):
            total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
            more = tf.assign_add(total, 1.0)
        with tf.train.MonitoredTrainingSession(task.server.target, task.is_chief) as session:
            while session.run(more) < most:
                if config and task.index == config["fails"]:
                    raise ValueError(f"no luck for {task.index}")
        return task.index, task.workers, len(task.cluster["ps"])

    return train


def test_workers_train_together_and_their_results_come_in_order(cluster):
    assert run(add_until(50), ps=2, workers=3) == [(0, 3, 2), (1, 3, 2), (2, 3, 2)]


def test_a_function_gets_its_config_and_may_make_its_own_server(cluster):
    def train(config):
        import json
        import os

        import tensorfleet as tf

        told = json.loads(os.environ["TF_CONFIG"])
        server = tf.train.Server(told["cluster"], told["task"]["type"], told["task"]["index"])
        with tf.Session(server.target) as session, tf.device("/job:ps/task:0"):
            return session.run(tf.constant(config["number"]) + 1)

    assert run(train, {"number": 41}, workers=1) == [42]


def test_a_run_needs_no_ps(cluster):
    assert run(lambda: 3, ps=0, workers=1) == [3]


def test_the_first_failure_is_raised_with_its_task_and_its_error(cluster):
    from tensorfleet.fleet.ray import RunError

    with pytest.raises(RunError, match=r"worker/1 on [\d.]+ failed: ValueError: no luck for 1") as failure:
        run(add_until(1e9), {"fails": 1}, workers=2)
    assert failure.value.task == "worker/1"
    assert isinstance(failure.value.__cause__, ValueError)


def test_a_lost_ps_is_the_root_cause_of_what_its_workers_say(cluster):
    from tensorfleet.fleet.ray import RunError

    def kill_the_ps():
        wait_until(lambda: any("serve" in command for command in tasks_of(cluster)), "the ps")
        for process in cluster.processes():
            if process.cmdline()[0].startswith("ray::TrainingActor.serve"):
                os.kill(process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_ps)
    killer.start()
    with pytest.raises(RunError, match=r"ps/0 was lost: its Ray actor on node [\d.]+ is dead"):
        run(add_until(1e9), workers=2)
    killer.join(SECONDS)


def test_too_much_is_refused(cluster):
    from tensorfleet.fleet.ray import NoRoom

    with pytest.raises(NoRoom, match="No node of the Ray cluster can ever hold a task of job 'worker'"):
        run(lambda: 3, resources_per_worker={"CPU": 1, "GPU": 1})
    with pytest.raises(NoRoom, match="7 worker .1 CPU each"):
        run(lambda: 3, workers=7, resources_per_worker=None)


@pytest.mark.parametrize(("options", "message"), [({"workers": 0}, "workers=0"), ({"ps": -1}, "ps=-1")])
def test_wrong_numbers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(lambda: 3, **options)


def test_a_process_outside_of_a_run_has_no_context(monkeypatch):
    from tensorfleet.fleet.ray import get_context

    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(RuntimeError, match="not a task of tensorfleet.fleet.ray.run"):
        get_context()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_program_leaves_nothing(cluster, number):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, str(EXAMPLE), "--steps", "1000000000"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as program:
        wait_until(lambda: sum("train" in command for command in tasks_of(cluster)) == 2, "the training")
        program.send_signal(number)
        assert program.wait(SECONDS) != 0


def test_the_example_reaches_its_target(cluster):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation accuracy" in done.stdout


def test_importing_the_fleet_does_not_import_ray():
    program = "import sys, tensorfleet.fleet.ray, tensorfleet.cli.command\nassert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS)
