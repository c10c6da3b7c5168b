"""`/metrics`: what Prometheus's own parser reads of it, and what the documents say of it."""

import json
import math
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tensorfleet.cli.dashboard import metrics
from tensorfleet.cli.dashboard.finding_rules import RunObservation
from tensorfleet.cli.dashboard.findings import RunFinding
from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tensorfleet.cli.dashboard.snapshots import snapshot_of
from tests.cli.dashboard.views import view_of
from tests.support.simulated_fleet import SimulatedFleet
from tests.support.sources import ROOT

FINDINGS = [RunFinding(RunObservation("queue_empty batch", "warning", "worker/0", "text", "advice"), 1.0)]


def parsed(fleet, findings=()):
    """All samples by their name."""
    result = {}
    for family in text_string_to_metric_families(metrics.exposition(fleet, findings, changes={"joined": 2})):
        assert family.documentation and family.type != "unknown", family.name
        for sample in family.samples:
            result.setdefault(sample.name, []).append((sample.labels, sample.value))
    return result


@pytest.fixture(scope="module")
def samples():
    return parsed(view_of(SimulatedFleet(started=100.0), 160), FINDINGS)


def test_every_metric_has_samples_of_a_run(samples):
    names = {metric.full_name for metric in metrics.METRICS} | {
        f"{metrics.STALENESS}_bucket",
        metrics.FINDING,
        metrics.CHANGES,
    }
    assert names - set(samples) == set()


def test_values_are_the_counters(samples):
    assert dict(task="worker/0") in [labels for labels, _ in samples["tensorfleet_steps_total"]]
    assert [
        value for labels, value in samples["tensorfleet_steps_total"] if labels == {"task": "worker/0"}
    ] == [600.0]
    part = {"task": "worker/0", "part": "pull"}
    assert [v for labels, v in samples["tensorfleet_step_part_seconds_total"] if labels == part] == [
        pytest.approx(12.0)
    ]


def test_reads_from_shared_memory_are_traffic_of_the_reader_and_no_reads_of_the_server():
    class OneMachine(SimulatedFleet):
        def stats(self, label, now=None):
            report = super().stats(label, now)
            for peer in report["peers"]:
                peer["shared_variables"] = {"embeddings": [7, 1e15]}
                peer["received_bytes"] += 1e15
            return report

    told = parsed(view_of(OneMachine(started=100.0), 160))
    read = told["tensorfleet_variable_read_bytes_total"]
    assert read and all(0 < value < 1e15 for _, value in read)
    assert all(value >= 1e15 for _, value in told["tensorfleet_peer_received_bytes_total"])


def test_staleness_is_a_histogram_that_grows(samples):
    buckets = [
        (float(labels["le"]), value)
        for labels, value in samples[f"{metrics.STALENESS}_bucket"]
        if labels["worker"] == "worker/0" and labels["task"] == "ps/0"
    ]
    assert buckets == sorted(buckets) and buckets[-1][0] == math.inf
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    counts = [
        v
        for labels, v in samples[f"{metrics.STALENESS}_count"]
        if labels == {"task": "ps/0", "worker": "worker/0"}
    ]
    assert counts == [buckets[-1][1]]


def test_workers_that_come_and_go_are_counted(samples):
    assert samples[metrics.CHANGES] == [({"change": "joined"}, 2.0)]
    assert ({"task": "ps/0", "input": "input"}, 1.0) in samples["tensorfleet_shards_dealt_again_total"]


def test_findings_are_gauges(samples):
    assert samples[metrics.FINDING] == [
        ({"kind": "queue_empty", "subject": "batch", "severity": "warning", "task": "worker/0"}, 1.0)
    ]


def test_decisions_about_durable_tasks_are_counted():
    text = metrics.exposition(FleetView(1.0, {}), [], {"ps/0": 3, "ps/1": 1})
    assert 'tensorfleet_server_decisions_total{task="ps/0"} 3\n' in text
    assert 'tensorfleet_server_decisions_total{task="ps/1"} 1\n' in text


def test_names_that_break_the_format_are_escaped():
    name = 'a"b\\c\nd{}# HELP x'
    report = {"variables": [{"name": name, "bytes": 3}], "scalars": {name: [1, math.inf]}}
    view = TaskView("ps/0", "running", snapshot=snapshot_of("ps/0", report, 1.0))
    result = parsed(FleetView(1.0, {"ps/0": view}))
    assert result["tensorfleet_variable_bytes"] == [({"task": "ps/0", "variable": name}, 3.0)]
    assert result["tensorfleet_summary_value"] == [({"task": "ps/0", "tag": name}, math.inf)]


def test_a_task_that_is_silent_is_down():
    result = parsed(FleetView(1.0, {"ps/0": TaskView("ps/0", "silent"), "ps/1": TaskView("ps/1", "running")}))
    assert result["tensorfleet_task_up"] == [({"task": "ps/0"}, 0.0), ({"task": "ps/1"}, 1.0)]
    assert "tensorfleet_steps_total" not in result


def test_names_and_units_follow_prometheus():
    for metric in metrics.METRICS:
        assert re.fullmatch(r"tensorfleet_[a-z_]+", metric.full_name)
        assert metric.full_name.endswith("_total") is (metric.kind == "counter"), metric.name
    assert len({metric.name for metric in metrics.METRICS}) == len(metrics.METRICS)


def test_only_so_many_variables_are_exported():
    report = {"variables": [{"name": f"v{i}", "bytes": 3} for i in range(300)]}
    view = TaskView("ps/0", "running", snapshot=snapshot_of("ps/0", report, 1.0))
    assert len(parsed(FleetView(1.0, {"ps/0": view}))["tensorfleet_variable_bytes"]) == metrics.MAX_VARIABLES


def test_the_page_on_metrics_lists_exactly_these():
    rows = re.findall(
        r"^\| `(tensorfleet_\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$",
        (ROOT / "docs/metrics.md").read_text(),
        re.M,
    )
    expected = [(m.full_name, m.kind, ", ".join(m.labels), m.help) for m in metrics.METRICS]
    expected.append((metrics.STALENESS, "histogram", "task, worker", metrics.STALENESS_HELP))
    expected.append((metrics.CHANGES, "counter", "change", metrics.CHANGES_HELP))
    expected.append((metrics.FINDING, "gauge", "kind, subject, severity, task", metrics.FINDING_HELP))
    expected.append((metrics.DECISIONS, "counter", "task", metrics.DECISIONS_HELP))
    assert rows == expected


def test_grafana_asks_only_for_what_there_is(samples):
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) > 15
    for query in queries:
        names = re.findall(r"tensorfleet_\w+", query)
        assert names and set(names) <= set(samples), query
    labels = {label for values in samples.values() for each, _ in values for label in each}
    legends = {
        label
        for p in dashboard["panels"]
        for t in p["targets"]
        for label in re.findall(r"{{(\w+)}}", t["legendFormat"])
    }
    assert legends <= labels
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
