"""Several devices in each of several workers."""

import json
import os
import subprocess
import sys

from tensorfleet.testing.cluster import free_addresses
from tests.support.examples import EXAMPLES, SECONDS, number_after, run_example


def test_towers_of_all_workers_make_a_step_together(tmp_path):
    done = run_example(tmp_path, "towers", "--sync", "--steps", "300", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "/job:worker/task:1/device:CPU:1" in done.stdout


def test_the_parameter_server_ends_by_itself_when_the_workers_are_done():
    cluster = free_addresses(ps=1, worker=2)
    tasks = []
    for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        told = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "TF_CONFIG": told}
        command = [sys.executable, str(EXAMPLES / "towers.py")]
        tasks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    said = [task.communicate(timeout=SECONDS)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0, 0], said
    assert "is done (2 of 2)" in said[0]
    assert number_after("Final test accuracy", said[1]) >= 0.88
