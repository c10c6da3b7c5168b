"""Servers that wait for tasks which never come, or never come back: they say so, and end by themselves."""

import itertools
import json
import os
import re
import signal
import subprocess
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.base import logging
from tensorfleet.cluster.membership import orphan
from tensorfleet.cluster.membership.orphan import EXIT_CODE, OrphanGuard, OrphanPolicy
from tensorfleet.testing.cluster import ProcessCluster, free_addresses
from tests.support.tasks import read_until
from tests.support.waiting import in_background

SECONDS = 120
W0, W1 = "worker 0", "worker 1"


def vigil(limit=300.0):
    return OrphanPolicy("the ps", limit, 0.0)


# -- decisions ----------------------------------------------------------------------------------------


def test_a_task_that_never_came_is_told_of_once_a_minute():
    watch = vigil(limit=0.0)
    told = [watch.look([W0], [], False, float(t)) for t in range(0, 301, 15)]
    lines = [verdict.line for verdict in told if verdict is not None]
    assert len(lines) == 5
    assert lines[0].startswith("the ps waits for worker 0, which has not come in 60 s.")
    assert "not come in 5 min" in lines[-1]
    assert not any(verdict.ends for verdict in told if verdict is not None)


def test_a_task_that_was_lost_is_told_of_with_when_it_was_seen():
    watch = vigil()
    assert watch.look([], [W0], False, 30.0) is None
    assert watch.look([W0], [], False, 45.0) is None
    verdict = watch.look([W0], [], False, 90.0)
    assert "worker 0, which was last seen 60 s ago" in verdict.line
    assert "it ends by itself in 4 min (TENSORFLEET_ORPHAN_SECONDS)" in verdict.line


def test_a_server_whose_launcher_died_ends_although_all_tasks_have_finished():
    watch = vigil()
    assert all(watch.look([], [], False, float(t)) is None for t in range(0, 1000, 15))  # its own end is near
    watch = vigil()
    assert all(watch.look([], [], False, float(t), stays=True) is None for t in range(0, 300, 15))
    assert watch.look([], [], True, 300.0, stays=True) is None
    verdict = watch.look([], [], False, 600.0, stays=True)
    assert verdict.ends and "nobody has used it for 5 min, and its launcher does not end it." in verdict.line


def test_tasks_that_are_there_are_not_told_of_and_the_end_is_not_near():
    watch = vigil(limit=30.0)
    assert all(watch.look([], [W0, W1], False, float(t)) is None for t in range(0, 1000, 15))
    verdict = watch.look([W1], [W0], False, 1000.0)
    assert "worker 1, which was last seen 10 s ago" in verdict.line and "ends by itself" not in verdict.line


@pytest.mark.parametrize("by", ["a task", "a client"])
def test_a_server_that_somebody_uses_does_not_end(by):
    watch = vigil(limit=30.0)
    for t in range(0, 1000, 15):
        verdict = watch.look([W1], [W0] if by == "a task" else [], by == "a client", float(t))
        assert verdict is None or not verdict.ends


def test_many_missing_tasks_make_one_short_line():
    verdict = vigil().look([f"worker {i}" for i in range(100)], [], False, 60.0)
    assert "and 97 more" in verdict.line and "worker 3" not in verdict.line


LOOKS = {
    "nobody": ([W0, W1], [], False),
    "one": ([W1], [W0], False),
    "both": ([], [W0, W1], False),
    "a client": ([W0, W1], [], True),
    "all finished": ([], [], False),
}


def test_in_every_order_of_events_it_ends_after_as_long_as_nobody_was_there():
    """Each lasts 40 s, in looks 10 s apart; the limit is 60."""
    for order in itertools.product(LOOKS, repeat=5):
        watch, needed, told = vigil(limit=60.0), 0.0, 0.0
        for i in range(20):
            name, now = order[i // 4], 10.0 * (i + 1)
            verdict = watch.look(*LOOKS[name], now)
            if name != "nobody":
                needed = now
            should_end = now - needed >= 60.0
            assert (verdict is not None and verdict.ends) == should_end, order
            if should_end:
                break
            assert (verdict is not None) == (bool(LOOKS[name][0]) and now - told >= 60.0), order
            if verdict is not None:
                told = now


# -- processes ----------------------------------------------------------------------------------------


PS = """
    import json, sys
    import tensorfleet as tf
    from tensorfleet.cluster.membership import orphan

    orphan.NOTICE_SECONDS = float(sys.argv[3])
    server = tf.train.Server(json.loads(sys.argv[1]), "ps", int(sys.argv[2]))
    print("up", flush=True)
    server.join()
    print("never reached")
"""
WORKER = """
    import json, sys, threading
    import tensorfleet as tf

    server = tf.train.Server(json.loads(sys.argv[1]), "worker", int(sys.argv[2]))
    print("serves", flush=True)
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with tf.Session(server.target) as sess:
        sess.run(v.initializer)
        print("trains", flush=True)
        threading.Event().wait(600)
"""


@pytest.fixture
def programs(tmp_path):
    for name, text in (("ps", PS), ("worker", WORKER)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    return tmp_path


def spec_of(**jobs):
    return json.dumps(free_addresses(**jobs))


def test_a_ps_whose_worker_never_comes_says_so_and_ends_with_a_code_that_tells(tasks, programs, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_ORPHAN_SECONDS", "3")
    ps = tasks.start(programs / "ps.py", spec_of(ps=1, worker=1), 0, 0.5)
    text, _ = ps.communicate(timeout=SECONDS)
    assert ps.returncode == EXIT_CODE, text
    assert "waits for /job:worker/replica:0/task:0 (localhost:" in text and "has not come in" in text
    assert "ends by itself, with exit code 69" in text and "never reached" not in text


@pytest.fixture
def training(tasks, programs, monkeypatch):
    """Two ps and two workers: one trains, with one of the ps; the other has not come. Their servers and the worker."""
    monkeypatch.setenv("TENSORFLEET_ORPHAN_SECONDS", "8")
    spec = spec_of(ps=2, worker=2)
    worker = tasks.start(programs / "worker.py", spec, 0)
    assert read_until(worker, lambda line: "serves" in line)
    servers = [tasks.start(programs / "ps.py", spec, i, 0.5) for i in range(2)]
    assert read_until(worker, lambda line: "trains" in line)
    for ps in servers:
        read_until(ps, only_the_other_is_missing)
    return servers, worker


def only_the_other_is_missing(line):
    return "waits for" in line and "worker/replica:0/task:1" in line and "worker/replica:0/task:0" not in line


def test_a_ps_whose_worker_was_killed_says_so_and_ends(training):
    servers, worker = training
    os.kill(worker.pid, signal.SIGKILL)
    for ps in servers:
        text, _ = ps.communicate(timeout=SECONDS)
        assert ps.returncode == EXIT_CODE, text
        assert re.search(r"task:0 \(localhost:\d+\), which was last seen \d+ s ago", text)
        assert "ends by itself, with exit code 69" in text


def test_a_ps_stays_while_a_worker_is_there_whoever_else_is_missing(training):
    servers, _ = training
    for _ in range(24):  # longer than it would wait for nobody
        for ps in servers:
            read_until(ps, only_the_other_is_missing)
    assert [ps.poll() for ps in servers] == [None, None]


def test_a_join_in_another_thread_raises(serve, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_ORPHAN_SECONDS", "0.5")
    server = serve(free_addresses(ps=1, worker=1), "ps", 0)
    with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0 ends by itself"):
        in_background(server.join).result(SECONDS)


def test_a_server_that_waits_for_nobody_of_another_job_stays(serve, monkeypatch):
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *args: lines.append(text % args))
    monkeypatch.setattr(orphan, "NOTICE_SECONDS", 0.25)
    monkeypatch.setenv("TENSORFLEET_ORPHAN_SECONDS", "0.5")
    server = serve(free_addresses(worker=2), "worker", 0)
    joined = in_background(server.join)
    with pytest.raises(TimeoutError):
        joined.result(2.0)
    tf.fleet.stop_server(server.target)
    joined.result(SECONDS)
    assert lines == []


def test_a_client_without_a_server_keeps_a_ps():
    with ProcessCluster(
        ps=1, worker=1, here=[("worker", 0)], env={"TENSORFLEET_ORPHAN_SECONDS": "2"}
    ) as cluster:
        with tf.Session(cluster.target("ps", 0)) as sess:
            x = tf.placeholder(tf.float32, [])
            assert sess.run(x + 1.0, {x: 1.0}) == 2.0
            with pytest.raises(subprocess.TimeoutExpired):
                cluster.process("ps", 0).wait(5.0)


def test_a_worker_that_has_no_place_yet_is_not_waited_for(serve):
    server = serve(
        {"ps": ["localhost:0"], "worker": ["localhost:0", "worker-1.unplaced.invalid:2222"]}, "ps", 0
    )
    guard = OrphanGuard(server)
    assert guard._has_place(("worker", 0)) and not guard._has_place(("worker", 1))
