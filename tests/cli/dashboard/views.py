"""Views of a fleet, as the collector makes them."""

from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tensorfleet.cli.dashboard.rates import rates_of
from tensorfleet.cli.dashboard.snapshots import snapshot_of


def view_of(fleet, now, states=None):
    """A simulated fleet, observed each second of the last eleven."""
    tasks = {}
    for label in fleet.labels:
        times = range(max(int(now) - 11, int(fleet.started)), int(now) + 1)
        tasks[label] = task_view(
            label, [fleet.stats(label, t) for t in times], (states or {}).get(label, "running"), now
        )
    return FleetView(float(now), tasks)


def task_view(label, reports, state="running", uptime=1000.0, **values):
    """A task by its reports, oldest first."""
    history = [snapshot_of(label, report, report["time"]) for report in reports]
    return TaskView(label, state, uptime, history[-1], rates_of(history), rates_of(history, 10.0), **values)
