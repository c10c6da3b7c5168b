"""The examples do what they say, run as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(*command: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


def accuracy(output: str) -> float:
    found = re.search(r"Final test accuracy ([\d.]+)", output)
    assert found is not None, output
    return float(found[1])


def test_digits_reaches_its_target():
    done = run(str(EXAMPLES / "digits.py"))
    assert done.returncode == 0, done.stderr
    assert accuracy(done.stdout) >= 0.97
    assert "\r" not in done.stdout  # progress overwrites its line on a terminal only


def test_digits_says_when_it_misses_its_target():
    done = run(str(EXAMPLES / "digits.py"), "--steps", "2", "--batch_size", "8", "--seed", "3")
    assert done.returncode == 1
    assert accuracy(done.stdout) < 0.97
    assert "The target was missed: try more --steps" in done.stderr


def test_digits_refuses_impossible_flags():
    done = run(str(EXAMPLES / "digits.py"), "--steps", "0")
    assert done.returncode == 2
    assert "--steps and --batch_size must be at least 1" in done.stderr


@pytest.mark.parametrize("flags", [[], ["--sync_replicas"]])
def test_replicas_reach_their_target(tmp_path, flags):
    command = ["-m", "tensorfleet", "run", "--ps", "1", "--workers", "2", "--log-dir", str(tmp_path / "logs")]
    script = [str(EXAMPLES / "mnist_replica.py"), "--", "--train_steps", "400", "--train_dir", str(tmp_path)]
    done = run(*command, *script, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"Final validation accuracy ([\d.]+)", done.stdout)
    assert found is not None and float(found[1]) >= 0.92, done.stdout
    assert (tmp_path / "checkpoint").exists()


def test_examples_show_their_launch_command():
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/{path.name}" in path.read_text().split('"""')[1]
