"""What the page shows of one moment."""

import json
import math
from dataclasses import replace

import pytest

from tensorfleet.cli.dashboard.overview import (
    FleetView,
    TaskView,
    at_end,
    busier,
    hottest,
    joined,
    now_json,
    point,
)
from tensorfleet.cli.dashboard.snapshots import snapshot_of
from tests.cli.dashboard.views import task_view, view_of
from tests.support.simulated_fleet import SimulatedFleet


def test_now_has_what_the_page_asks_for():
    shown = now_json(view_of(SimulatedFleet(started=0.0), 60), {"worker/1"}, [])
    assert set(shown) == {
        "time", "tasks", "traffic", "servers", "staleness", "queues", "variables", "findings",
    }  # fmt: skip
    assert shown["tasks"]["worker/1"]["is_straggler"] and not shown["tasks"]["worker/0"]["is_straggler"]
    assert shown["tasks"]["worker/0"]["steps_per_second"] == pytest.approx(10.0, rel=0.02)
    assert sum(shown["tasks"]["worker/0"]["parts"].values()) == pytest.approx(1.0, abs=1e-3)
    assert shown["tasks"]["ps/0"]["steps_per_second"] is None
    assert shown["servers"]["hottest"] == "ps/0"
    assert shown["servers"]["hottest_to_mean"] == pytest.approx(1.42, rel=0.02)
    assert shown["variables"][0]["name"] == "embeddings" and shown["variables"][0]["task"] == "ps/0"
    assert {(link["from"], link["to"]) for link in shown["traffic"]} == {
        (f"worker/{w}", f"ps/{p}") for w in range(3) for p in range(2)
    }
    json.dumps(shown, allow_nan=False)


def test_a_silent_task_has_no_rates_but_keeps_its_memory():
    shown = now_json(view_of(SimulatedFleet(started=0.0), 60, {"worker/2": "silent"}), set(), [])
    task = shown["tasks"]["worker/2"]
    assert task["state"] == "silent" and task["steps_per_second"] is None and task["memory_bytes"] > 0
    assert "worker/2" not in {link["from"] for link in shown["traffic"]}


def test_a_task_that_never_answered_is_shown():
    shown = now_json(FleetView(1.0, {"ps/0": TaskView("ps/0", "starting", error="refused")}), set(), [])
    assert shown["tasks"]["ps/0"]["state"] == "starting" and shown["tasks"]["ps/0"]["last_error"] == "refused"
    assert shown["servers"] == {"load": {}, "hottest": None, "hottest_to_mean": None}


def test_one_server_is_not_the_hottest():
    assert hottest({"ps/0": 5.0}) == (None, None)
    assert hottest({"ps/0": 0.0, "ps/1": 0.0}) == (None, None)
    assert hottest({"ps/0": 3.0, "ps/1": 1.0}) == ("ps/0", 1.5)


def test_a_point_has_the_curves():
    kept = point(view_of(SimulatedFleet(started=0.0), 60))
    assert set(kept["steps_per_second"]) == {"worker/0", "worker/1", "worker/2"}
    assert set(kept["server_bytes_per_second"]) == {"ps/0", "ps/1"}
    assert kept["global_step"] > 0 and set(kept["loss"]) == {"loss", "accuracy"}


def test_a_loss_that_is_nan_is_null():
    snapshot = snapshot_of("worker/0", {"scalars": {"loss": [3, math.nan]}}, 1.0)
    kept = point(FleetView(1.0, {"worker/0": TaskView("worker/0", "running", snapshot=snapshot)}))
    assert kept["loss"] == {"loss": None}


def test_two_hundred_tasks_are_not_more_than_a_page_can_take():
    shown = now_json(view_of(SimulatedFleet(40, 160, started=0.0), 60), set(), [])
    assert len(shown["tasks"]) == 200 and len(shown["traffic"]) == 1000 and len(shown["variables"]) == 50


def test_what_hooks_and_queues_write_by_themselves_is_no_loss():
    scalars = {"loss": [3, 1.5], "global_step/sec": [3, 90.0], "batch/fraction_of_32_full": [3, 0.5]}
    snapshot = snapshot_of("worker/0", {"scalars": scalars}, 1.0)
    fleet = FleetView(1.0, {"worker/0": TaskView("worker/0", "running", snapshot=snapshot)})
    assert point(fleet)["loss"] == {"loss": 1.5}


def test_reads_from_shared_memory_count_for_the_server():
    """They send no message: only the reader knows of them."""
    peers = [{"task": "ps/0", "sent_bytes": 0, "received_bytes": 0}]

    def worker(time, received):
        return {"time": time, "steps": {"count": 5}, "peers": [peers[0] | {"received_bytes": received}]}

    server = [{"time": t, "server": {"sent_bytes": t}} for t in (1.0, 2.0)]
    view = FleetView(
        2.0,
        {
            "ps/0": task_view("ps/0", server),
            "worker/0": task_view("worker/0", [worker(1.0, 0), worker(2.0, 700)]),
            "worker/1": task_view("worker/1", [worker(1.0, 0), worker(2.0, 300)]),
        },
    )
    assert view.server_load == {"ps/0": 1000.0}


def fleet_at(time, *running):
    fleet = view_of(SimulatedFleet(1, 2, started=0.0), 30)
    tasks = {n: v if n in running else replace(v, state="ended") for n, v in fleet.tasks.items()}
    return FleetView(time, tasks)


def test_the_load_of_a_run_that_has_ended_is_that_before_its_tasks_ended():
    busy = fleet_at(1.0, "ps/0", "worker/0", "worker/1")
    assert busier(busy, fleet_at(2.0, "ps/0")) is busy
    assert busier(busy, fleet_at(3.0)) is busy
    later = fleet_at(60.0, "ps/0", "worker/0")
    assert busier(busy, later) is later, "one worker has ended long before the others"
    over = now_json(fleet_at(4.0), set(), [])
    end = at_end(over, now_json(busy, set(), []))
    assert not over["traffic"] and not over["servers"]["load"] and not over["tasks"]["worker/0"]["parts"]
    assert end["traffic"] and end["servers"]["load"] and end["tasks"]["worker/0"]["parts"]
    assert end["tasks"]["worker/0"]["state"] == "ended" and end["time"] == 4.0
    assert not over["tasks"]["worker/0"]["seconds_per_step"] and end["tasks"]["worker/0"]["seconds_per_step"]


def test_a_straggler_of_a_run_that_has_ended_stays_marked():
    busy = now_json(fleet_at(1.0, "ps/0", "worker/0", "worker/1"), {"worker/1"}, [])
    end = at_end(now_json(fleet_at(2.0), set(), []), busy)
    assert [end["tasks"][f"worker/{i}"]["is_straggler"] for i in range(2)] == [False, True]


def test_the_time_outside_of_steps_is_told():
    def moment(time, count, seconds):
        steps = {"count": count, "seconds": seconds, "parts": {"compute": seconds}}
        return {"time": time, "incarnation": 1, "steps": steps}

    worker = task_view("worker/0", [moment(10.0, 0, 0.0), moment(14.0, 8, 1.0)])
    shown = now_json(FleetView(14.0, {"worker/0": worker}), set(), [])["tasks"]["worker/0"]
    assert (shown["seconds_per_step"], shown["between_fraction"]) == (0.5, 0.75)


def test_variables_have_the_reads_from_shared_memory_of_all_workers():
    def server(time):
        return {"time": time, "incarnation": 1, "variables": [{"name": "w", "bytes": 40}]}

    def worker(time, reads):
        peer = {"task": "ps/0", "shared_variables": {"w": [reads, 40 * reads]}}
        return {"time": time, "incarnation": 1, "peers": [peer]}

    views = {
        "ps/0": task_view("ps/0", [server(10.0), server(12.0)]),
        "worker/0": task_view("worker/0", [worker(10.0, 0), worker(12.0, 20)]),
    }
    (shown,) = now_json(joined(FleetView(12.0, views)), set(), [])["variables"]
    assert (shown["reads_per_second"], shown["bytes_per_second"]) == (10.0, 400.0)


def test_a_task_that_has_ended_does_not_complain_that_it_does_not_answer():
    lost = "worker/0 (h:1) was lost: Socket closed."
    views = {state: TaskView("worker/0", state, error=lost) for state in ("ended", "dead")}
    told = {
        state: now_json(FleetView(1.0, {"worker/0": view}), set(), [])["tasks"]["worker/0"]["last_error"]
        for state, view in views.items()
    }
    assert told == {"ended": None, "dead": lost}
