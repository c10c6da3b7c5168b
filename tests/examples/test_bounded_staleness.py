"""Asynchronous training with a slow worker."""

import re

from tests.support.examples import number_after, run_example


def test_all_policies_train_and_waiting_bounds_how_stale_gradients_are(tmp_path):
    done = run_example(tmp_path, "bounded_staleness", "--bound", "2", ps=1, workers=3)
    assert number_after("the worst of the four,", done.stdout) >= 0.82
    rows = re.findall(r"(measure|scale|drop|wait) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+)", done.stdout)
    assert [policy for policy, _ in rows] == ["measure", "scale", "drop", "wait"]
    # Each of the two others can be from 3 steps behind to 3 steps ahead.
    assert int(rows[-1][1]) <= 2 * 2 * 3
