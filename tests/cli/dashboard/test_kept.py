"""What is kept of the tasks for when the run is over, and when they are asked for it."""

import itertools
import random

import pytest

from tensorfleet.cli.dashboard.kept import MAX_GRAPHS, MAX_NODES, KeptReports

GRAPH = {"version": "a", "sessions": [{"session": "s", "graph": [{"name": "x"}]}], "left_out": 0}
SETTINGS = {"settings": [{"name": "TENSORFLEET_WIRE", "value": ""}]}
STATS = {"incarnation": 1, "variables": [{"name": "v", "version": 7}]}
EMPTY = {"settings": {"settings": []}, "graph": {"sessions": []}, "stats": {"incarnation": 1}}
FULL = {"settings": SETTINGS, "graph": GRAPH, "stats": STATS}
WORKER = "worker/0"


def asked(reports, now, label=WORKER, labels=(WORKER,)):
    """The topic that is asked for now."""
    question = reports.wanted(label, labels, now)
    return question and question.topic


def with_settings():
    reports = KeptReports()
    reports.took(WORKER, "settings", SETTINGS, 0.0, 1000.0)
    return reports


def test_settings_are_asked_for_once_and_then_graphs():
    reports = KeptReports()
    assert asked(reports, 0.0) == "settings"
    reports.took(WORKER, "settings", SETTINGS, 0.0, 1000.0)
    assert asked(reports, 0.0) == "graph"
    reports.took(WORKER, "graph", GRAPH, 0.0, 1000.0)
    assert asked(reports, 0.5) is None
    assert {asked(reports, float(now)) for now in range(5, 5000)} == {"graph"}


def test_another_process_is_asked_for_its_settings_again():
    reports = with_settings()
    reports.took(WORKER, "stats", STATS, 0.0, 1000.0)
    assert asked(reports, 1.0) == "settings"
    reports.took(WORKER, "settings", SETTINGS, 1.0, 1001.0)
    reports.took(WORKER, "stats", STATS, 2.0, 1002.0)
    assert asked(reports, 2.0) == "graph"
    reports.took(WORKER, "stats", {**STATS, "incarnation": 2}, 3.0, 1003.0)
    assert asked(reports, 3.0) == "settings"


def seconds_between_questions(reports, content, seconds=1000):
    """The gaps between the questions for a graph, if each is answered with the same."""
    times = []
    for now in range(seconds):
        if asked(reports, float(now)) == "graph":
            times.append(now)
            reports.took(WORKER, "graph", content, float(now), 1000.0 + now)
    return [after - before for before, after in itertools.pairwise(times)]


def test_a_task_without_a_graph_is_asked_each_second():
    assert set(seconds_between_questions(with_settings(), EMPTY["graph"])) == {1}


def test_a_graph_that_stays_the_same_is_asked_for_ever_more_seldom():
    reports = with_settings()
    reports.took(WORKER, "graph", GRAPH, 0.0, 1000.0)
    gaps = seconds_between_questions(reports, {"version": "a", "is_unchanged": True})
    assert gaps == sorted(gaps) and gaps[0] <= 4 and gaps[-1] == 60


def test_the_version_that_is_kept_is_not_told_again():
    reports = with_settings()
    assert reports.wanted(WORKER, [WORKER], 0.0).options == {"nodes": MAX_NODES, "unless": ""}
    reports.took(WORKER, "graph", GRAPH, 0.0, 1000.0)
    assert reports.wanted(WORKER, [WORKER], 60.0).options["unless"] == "a"
    reports.took(WORKER, "graph", {"version": "a", "is_unchanged": True}, 60.0, 1060.0)
    assert reports.report(WORKER, "graph") == {**GRAPH, "kept_at": 1060.0}


def test_a_graph_that_takes_too_long_is_asked_for_in_part_and_later():
    reports = with_settings()
    nodes = []
    for now in range(1000):
        question = reports.wanted(WORKER, [WORKER], float(now))
        if question is not None:
            nodes.append(question.options["nodes"])
            reports.failed(WORKER, "graph", float(now))
    assert nodes[:4] == [20_000, 5000, 1250, 1000] and nodes[-1] == 1000 and len(nodes) < 30


def test_the_graphs_of_workers_go_before_those_of_servers():
    labels = [f"ps/{i}" for i in range(20)] + [f"worker/{i}" for i in range(6)] + ["chief/0"]
    reports, chosen = KeptReports(), []
    for label in labels:
        reports.took(label, "settings", SETTINGS, 0.0, 1000.0)
        if asked(reports, 0.0, label, labels) == "graph":
            chosen.append(label)
    assert len(chosen) == MAX_GRAPHS
    assert set(chosen) == {"chief/0", *(f"worker/{i}" for i in range(6)), "ps/0"}


@pytest.mark.parametrize("topic", ["settings", "graph", "stats"])
def test_an_empty_report_replaces_no_other(topic):
    reports = KeptReports()
    reports.took(WORKER, topic, FULL[topic], 0.0, 1000.0)
    reports.took(WORKER, topic, EMPTY[topic], 1.0, 1001.0)
    assert reports.report(WORKER, topic) == {**FULL[topic], "kept_at": 1000.0}


@pytest.mark.parametrize("content", [{}, {"sessions": 3}, {"sessions": "x"}, {"is_unchanged": True}])
def test_a_graph_of_the_wrong_shape_is_not_kept(content):
    reports = with_settings()
    reports.took(WORKER, "graph", content, 0.0, 1000.0)
    assert reports.report(WORKER, "graph") == {}


def test_only_what_has_changed_is_told_and_all_at_the_end():
    reports = with_settings()
    assert [topic for _, topic, _ in reports.all(only_changed=True)] == ["settings"]
    assert list(reports.all(only_changed=True)) == []
    reports.took(WORKER, "stats", STATS, 0.0, 1000.0)
    assert [topic for _, topic, _ in reports.all(only_changed=True)] == ["stats"]
    assert {topic for _, topic, _ in reports.all()} == {"settings", "stats"}


def test_nothing_is_kept_of_a_task_that_has_told_nothing():
    assert KeptReports().report("worker/9", "graph") == {}
    assert with_settings().report(WORKER, "stacks") == {}


@pytest.mark.parametrize("seed", range(50))
def test_in_any_order_of_events_the_last_full_report_is_kept(seed):
    chance, reports, last, now = random.Random(seed), KeptReports(), {}, 0.0
    for number in range(200):
        now += chance.random() * 3
        topic = chance.choice(["settings", "graph", "stats"])
        match chance.choice(["full", "empty", "failed", "unchanged", "asked"]):
            case "full":
                last[topic] = {**FULL[topic], "incarnation": chance.randrange(3), "number": number}
                reports.took(WORKER, topic, last[topic], now, 1000.0)
            case "empty":
                reports.took(WORKER, topic, EMPTY[topic], now, 1000.0)
            case "failed":
                reports.failed(WORKER, topic, now)
            case "unchanged":
                reports.took(WORKER, "graph", {"is_unchanged": True}, now, 1000.0)
            case "asked":
                assert asked(reports, now) in (None, "settings", "graph")
        assert {topic: reports.report(WORKER, topic) for topic in last} == {
            topic: {**content, "kept_at": 1000.0} for topic, content in last.items()
        }
        # However it went, within the longest pause it is asked again.
        assert asked(reports, now + 60.0) is not None
