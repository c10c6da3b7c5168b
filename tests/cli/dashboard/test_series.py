"""The curves of the page."""

import contextlib

from tensorfleet.cli.dashboard.series import series_json, thinned
from tensorfleet.cli.dashboard.store import StatsStore


def curves_of(seconds, *arguments, **options):
    """The curves of a run of so many seconds."""
    with contextlib.closing(StatsStore(None)) as store:
        _fill(store, seconds)
        return series_json(store, *arguments, **options)


def _fill(store, seconds):
    for i in range(seconds):
        names = ["worker/0", "worker/1"] if i % 2 else ["worker/0"]
        store.add_point(
            1000.0 + i, {"global_step": i, "loss": {}, "steps_per_second": {name: 1.0 for name in names}}
        )


def test_a_missing_value_is_null():
    curves = curves_of(4, 1003.0, 600.0)
    assert curves["times"] == [1000.0, 1001.0, 1002.0, 1003.0]
    assert curves["series"]["global_step"] == [0, 1, 2, 3]
    assert curves["series"]["steps_per_second"] == {"worker/0": [1.0] * 4, "worker/1": [None, 1.0, None, 1.0]}
    assert curves["series"]["cpu_percent"] == {} and curves["series"]["loss"] == {}


def test_only_newer_points_are_given_after_since():
    assert curves_of(9, 1008.0, 600.0, since=1006.0)["times"] == [1007.0, 1008.0]
    assert curves_of(9, 1008.0, 2.5)["times"] == [1006.0, 1007.0, 1008.0]
    assert curves_of(9, 1008.0, 600.0, since=1008.0)["times"] == []


def test_a_long_time_is_thinned():
    points = [(float(i), {"global_step": i, "cpu_percent": {"a": float(i)}}) for i in range(1000)]
    few = thinned(points, 300)
    assert len(few) == 250 and few[-1] == (999.0, {"global_step": 999, "cpu_percent": {"a": 997.5}})
