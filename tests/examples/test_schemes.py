"""The four ways to train one network on several workers."""

import os
import subprocess
import sys

import pytest

from tests.support.examples import EXAMPLES, number_after, run_example


def test_one_graph_with_one_optimizer_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "in_graph_sync", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88


def test_one_graph_with_an_optimizer_per_copy_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "in_graph_async", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    steps = [number_after(f"Copy {i} on worker {i} made", done.stdout.replace("  ", " ")) for i in (0, 1)]
    assert sum(steps) >= 800 and min(steps) > 0


@pytest.mark.parametrize("name", ["between_graph_sync", "between_graph_async"])
def test_graphs_of_their_own_reach_the_target(tmp_path, name):
    done = run_example(tmp_path, name, ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "[worker/0] Final" in done.stdout and "[worker/1] Final" in done.stdout


def test_started_alone_it_says_how_to_start_it():
    environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    environment["PYTHONPATH"] = str(EXAMPLES.parent)
    command = [sys.executable, str(EXAMPLES / "in_graph_sync.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "tensorfleet run --ps 1 --workers 2" in done.stderr
