"""The collector: with tasks that answer, are silent, die and come back; simulated ones, and real processes."""

import threading

import pytest

import tensorfleet as tf
from tensorfleet.base import errors
from tensorfleet.cli.dashboard.collector import StatsCollector
from tensorfleet.cluster.inspection.topics import Report
from tensorfleet.testing.cluster import ProcessCluster
from tests.support.simulated_fleet import SimulatedFleet
from tests.support.waiting import until


@pytest.fixture
def collect():
    """Makes collectors, which end with the test and leave no thread."""
    before, made = set(threading.enumerate()), []

    def make(*arguments, **options):
        made.append(StatsCollector(*arguments, **options))
        return made[-1]

    yield make
    for collector in made:
        collector.stop()
    assert not [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name.startswith("stats of")
    ]


def state(collector, label):
    return collector.view().tasks[label].state


def simulated(collect, ps=2, workers=3, launched="running", seconds=0.02):
    fleet = SimulatedFleet(ps, workers)
    collector = collect(fleet.connect, poll_seconds=seconds)
    for i, label in enumerate(fleet.labels):
        collector.update(label, f"h:{i}", i, launched)
    return fleet, collector


def test_rates_come_from_answers(collect):
    _, collector = simulated(collect)
    until(lambda: (rates := collector.view().tasks["worker/0"].rates) and rates.steps > 5)
    assert {view.state for view in collector.view().tasks.values()} == {"running"}
    assert collector.view().global_step is not None


def test_a_silent_task_does_not_delay_the_others(collect):
    """It holds up the thread that asks it, for as long as the test likes."""
    may_go_on, asked = threading.Event(), threading.Event()
    fleet = SimulatedFleet()

    class Asker:
        def __init__(self, label, address):
            self.label = label

        def ask(self, topic, options=None, seconds=1.0):
            if self.label == "ps/0":
                asked.set()
                assert may_go_on.wait(60)
            return Report(fleet.stats(self.label))

        def close(self):
            pass

    collector = collect(Asker, poll_seconds=0.02)
    try:
        for label in fleet.labels:
            collector.update(label, "h:1")
        assert asked.wait(60)
        until(lambda: all(collector.view().tasks[label].rates for label in fleet.labels if label != "ps/0"))
        assert state(collector, "ps/0") == "starting"
    finally:
        may_go_on.set()


def test_two_hundred_tasks_are_all_asked(collect):
    fleet, collector = simulated(collect, 40, 160, seconds=0.5)
    until(lambda: all(view.rates for view in collector.view().tasks.values()))
    assert len(collector.view().tasks) == 200 and not fleet.silent


def test_a_restarted_task_begins_again(collect):
    fleet, collector = simulated(collect, launched=None)
    until(lambda: collector.view().tasks["worker/0"].rates)
    fleet.restarted["worker/0"] = fleet.clock()
    until(lambda: collector.view().tasks["worker/0"].restarts == 1)
    until(lambda: (rates := collector.view().tasks["worker/0"].rates) and rates.steps > 0)
    assert collector.view().tasks["worker/0"].snapshot.steps < 10_000


def test_a_task_that_the_launcher_starts_again_counts_as_restarted(collect):
    _, collector = simulated(collect)
    until(lambda: state(collector, "worker/1") == "running")
    collector.update("worker/1", "h:3", 99, "running")
    assert collector.view().tasks["worker/1"].restarts == 1
    assert {facts.label: facts.pid for facts in collector.facts()}["worker/1"] == 99


@pytest.mark.parametrize(
    ("code", "launched", "shown"), [(0, "ended", "ended"), (3, "failed", "failed"), (-9, "failed", "dead")]
)
def test_the_launcher_knows_how_a_task_ended(collect, code, launched, shown):
    _, collector = simulated(collect)
    until(lambda: state(collector, "worker/1") == "running")
    collector.update("worker/1", "h:3", 1, launched, code)
    assert state(collector, "worker/1") == shown


def test_a_task_that_has_ended_is_not_asked_any_more(collect):
    fleet, collector = simulated(collect)
    until(lambda: state(collector, "worker/1") == "running")
    for label in fleet.labels:
        collector.update(label, "h:1", 1, "ended", 0)
    fleet.questions.clear()  # each thread may have a question under way
    until(lambda: len(fleet.questions) <= 5)
    number = len(fleet.questions)
    collector.update("worker/0", "h:1", 1, "running")
    until(lambda: len([q for q in fleet.questions[number:] if q[0] == "worker/0"]) > 5)
    assert not [q for q in fleet.questions[number + 5 :] if q[0] != "worker/0"]


def test_a_task_of_another_version_is_running_and_says_what_is_missing(collect):
    class Asker:
        def __init__(self, label, address):
            pass

        def ask(self, topic, options=None, seconds=1.0):
            raise errors.InvalidArgumentError(None, None, "No topic 'stats' to inspect. There are clock.")

        def close(self):
            pass

    collector = collect(Asker, poll_seconds=0.02)
    collector.update("ps/0", "h:1")
    until(lambda: state(collector, "ps/0") == "running")
    assert "No topic" in collector.view().tasks["ps/0"].error


@pytest.mark.parametrize("content", [{}, {"version": 99}, {"steps": "x", "variables": 3}])
def test_nonsense_does_not_end_the_polling(collect, content):
    answers = iter([Report(content), None])

    class Asker:
        def __init__(self, label, address):
            pass

        def ask(self, topic, options=None, seconds=1.0):
            return next(answers, Report(SimulatedFleet(started=1.0).stats("ps/0")))

        def close(self):
            pass

    collector = collect(Asker, poll_seconds=0.02)
    collector.update("ps/0", "h:1")
    until(lambda: (view := collector.view().tasks["ps/0"]).snapshot and view.snapshot.variables)


def test_a_task_without_an_address_is_what_the_launcher_says(collect):
    collector = collect()
    collector.update("main/0", None, 7, "running")
    assert state(collector, "main/0") == "running"
    with pytest.raises(KeyError):
        collector.address("worker/0")


def test_the_last_reports_of_a_task_are_kept(collect):
    _, collector = simulated(collect)
    until(lambda: len(collector.reports()) == 5 + 5 + 2)  # workers have no variables
    assert collector.report("worker/0", "graph")["sessions"][0]["graph"][0]["name"] == "worker/0/x"
    assert collector.report("ps/1", "settings")["settings"][0]["value"] == "ps/1"
    version = collector.report("ps/0", "stats")["variables"][0]["version"]
    until(lambda: collector.report("ps/0", "stats")["variables"][0]["version"] > version)
    collector.clear()
    assert collector.reports() == [] and collector.report("ps/0", "graph") == {}


def test_a_task_that_tells_no_graph_runs_and_is_not_asked_all_the_time(collect):
    fleet = SimulatedFleet()
    told, questions = fleet.ask, []

    def ask(label, address, topic, options=None, seconds=10.0):
        if topic == "graph":
            questions.append(label)
            raise errors.DeadlineExceededError(None, None, f"{label} did not answer.")
        return told(label, address, topic, options, seconds)

    fleet.ask = ask
    collector = collect(fleet.connect, poll_seconds=0.02)
    collector.update("worker/0", "h:1", 1, "running")
    until(lambda: len([q for q in fleet.questions if q[1] == "stats"]) > 50)
    assert len(questions) < 25 and state(collector, "worker/0") == "running"
    assert collector.view().tasks["worker/0"].error is None


def test_the_graph_and_settings_of_real_tasks_are_kept(collect):
    with ProcessCluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
        collector = collect(poll_seconds=0.1)
        for job in ("ps", "worker"):
            collector.update(f"{job}/0", cluster.target(job, 0).removeprefix("grpc://"))
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run(v.initializer)
            until(lambda: collector.report("ps/0", "graph") and collector.report("ps/0", "stats"))
        until(lambda: collector.report("worker/0", "settings"))
        (kept,) = collector.report("ps/0", "graph")["sessions"]
    assert "v" in {node["name"] for node in kept["graph"]}
    assert [variable["name"] for variable in collector.report("ps/0", "stats")["variables"]] == ["v"]


def test_a_killed_task_is_dead_a_stopped_one_silent_and_both_come_back(collect):
    with ProcessCluster(ps=2, worker=1) as cluster:
        collector = collect(poll_seconds=0.1)
        places = {"ps/0": ("ps", 0), "ps/1": ("ps", 1), "worker/0": ("worker", 0)}
        for label, (job, index) in places.items():
            collector.update(label, cluster.target(job, index).removeprefix("grpc://"))
        until(lambda: all(view.rates for view in collector.view().tasks.values()))
        cluster.kill("ps", 0)
        cluster.stop("ps", 1)
        until(lambda: state(collector, "ps/0") == "dead" and state(collector, "ps/1") == "silent")
        assert state(collector, "worker/0") == "running"
        cluster.resume("ps", 1)
        cluster.start("ps", 0)
        until(lambda: state(collector, "ps/0") == state(collector, "ps/1") == "running")
        until(lambda: collector.view().tasks["ps/0"].restarts == 1)
        assert collector.view().tasks["ps/1"].restarts == 0
