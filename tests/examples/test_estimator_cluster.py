"""An estimator on a cluster with an evaluator, and alone."""

import os

from tests.support.examples import EXAMPLES, SECONDS, number_after, run_example
from tests.support.launching import launched


def test_the_evaluator_sees_the_target_reached(tmp_path):
    tasks = ["--ps", "1", "--chief", "--workers", "1", "--evaluator"]
    command = [
        "run",
        *tasks,
        str(EXAMPLES / "estimator_cluster.py"),
        "--",
        "--model_dir",
        str(tmp_path / "m"),
    ]
    with launched(tmp_path, *command) as launch:
        done = launch.end(SECONDS)
    assert done.code == 0, done.stdout + done.stderr
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "[evaluator/0] Final" in done.stdout
    assert "chief 0 has done its part" in done.stdout and "worker 0 has done its part" in done.stdout
    (made,) = os.listdir(tmp_path / "m" / "export" / "final")
    assert os.path.exists(tmp_path / "m" / "export" / "final" / made / "saved_model.pb")


def test_one_process_trains_and_evaluates_in_turn(tmp_path):
    done = run_example(tmp_path, "estimator_cluster", "--steps", "400")
    assert number_after("Final test accuracy", done.stdout) >= 0.88
