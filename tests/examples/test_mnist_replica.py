"""Handwritten digits, read by workers over a parameter server."""

from __future__ import annotations

import pytest
from running import number_after, run_example


@pytest.mark.parametrize("flags", [[], ["--sync_replicas"]])
def test_replicas_reach_their_target(tmp_path, flags):
    flags = ["--train_steps", "400", "--train_dir", str(tmp_path), *flags]
    done = run_example(tmp_path, "mnist_replica", *flags, ps=1, workers=2)
    assert number_after("Final validation accuracy", done.stdout) >= 0.92
    assert (tmp_path / "checkpoint").exists()
