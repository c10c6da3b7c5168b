"""Several devices in each of several workers."""

from __future__ import annotations

import pytest
from running import number_after, run_example


@pytest.mark.parametrize("flags", [[], ["--sync", "--steps", "300"]])
def test_towers_reach_the_target_and_the_parameter_server_ends_by_itself(tmp_path, flags):
    done = run_example(tmp_path, "towers", *flags, ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "/job:worker/task:1/device:CPU:1" in done.stdout
    assert "is done (2 of 2)" in done.stdout
