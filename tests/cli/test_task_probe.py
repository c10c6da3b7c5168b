"""A task that answers `/healthz` and `/metrics` by itself."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tensorfleet.cli.engines.child import free_ports

KEY = "a key of sixteen or more"
SCRIPT = """
import sys
import tensorfleet as tf
v = tf.Variable(0.0)
with tf.Session() as sess:
    sess.run(v.initializer)
    for _ in range(7):
        sess.run(tf.assign_add(v, 1.0))
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def task(tmp_path):
    """Starts a task with some settings, and waits until its steps are done."""
    running = []

    def start(**settings: str) -> subprocess.Popen:
        import os

        script = tmp_path / "train.py"
        script.write_text(SCRIPT)
        process = subprocess.Popen(
            [sys.executable, "-m", "tensorfleet", str(script)],
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in running:
        process.communicate()


def get(port: int, path: str, key: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_task_answers_probes_without_a_key_and_metrics_with_one(task):
    (port,) = free_ports(1)
    task(TENSORFLEET_METRICS=f"127.0.0.1:{port}", TENSORFLEET_DASHBOARD_KEY=KEY)
    assert get(port, "/healthz") == (200, '{"status": "ok"}')
    assert get(port, "/metrics")[0] == get(port, "/metrics", "another key")[0] == 401
    assert get(port, "/")[0] == 404
    status, text = get(port, "/metrics", KEY)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    (steps,) = families["tensorfleet_steps"].samples
    assert status == 200
    assert (steps.labels, steps.value) == ({"task": "main/0"}, 8.0)


def test_metrics_without_a_key_are_refused_with_what_to_set(task):
    (port,) = free_ports(1)
    task(TENSORFLEET_METRICS=str(port))
    status, text = get(port, "/metrics")
    assert status == 401
    assert "Set TENSORFLEET_DASHBOARD_KEY" in text


@pytest.mark.parametrize("place", ["nonsense", "127.0.0.1:99999"])
def test_a_place_that_cannot_be_used_is_a_warning(task, place):
    process = task(TENSORFLEET_METRICS=place)
    _, log = process.communicate()
    assert f"No metrics at {place} (TENSORFLEET_METRICS)" in log
    assert process.returncode == 0


def test_a_port_in_use_is_a_warning(task):
    (port,) = free_ports(1)
    task(TENSORFLEET_METRICS=str(port))
    second = task(TENSORFLEET_METRICS=str(port))
    _, log = second.communicate()
    assert "in use" in log
