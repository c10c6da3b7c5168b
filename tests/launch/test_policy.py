"""What a run does when something happens: no process is needed to find out."""

import itertools
import signal

import pytest

from tensorfleet.launch.policy import Policy, Send, Start

TERM, KILL, INT = signal.SIGTERM, signal.SIGKILL, signal.SIGINT


def cluster(restarts=0, keep_going=False):
    policy = Policy(keep_going=keep_going)
    policy.add("ps/0", True, restarts)
    policy.add("worker/0", False, restarts)
    policy.add("worker/1", False, restarts)
    return policy


def test_servers_are_told_to_end_when_the_workers_have_ended():
    policy = cluster()
    assert policy.on_exit("worker/0", 0, 1.0) == []
    assert policy.on_exit("worker/1", 0, 2.0) == [Send("ps/0", TERM)]
    assert policy.exit_code is None
    assert policy.on_exit("ps/0", -TERM, 2.5) == []
    assert policy.exit_code == 0 and policy.failure is None


def test_a_server_that_does_not_end_is_killed_and_the_run_has_succeeded():
    policy = cluster()
    policy.on_exit("worker/0", 0, 1.0)
    policy.on_exit("worker/1", 0, 1.0)
    assert policy.deadline == 3.0
    assert policy.on_time(2.9) == []
    assert policy.on_time(3.0) == [Send("ps/0", KILL)]
    policy.on_exit("ps/0", -KILL, 3.1)
    assert policy.exit_code == 0


def test_a_server_that_ends_by_itself_is_no_failure():
    policy = cluster()
    policy.on_exit("ps/0", 0, 1.0)
    policy.on_exit("worker/0", 0, 1.0)
    policy.on_exit("worker/1", 0, 1.0)
    assert policy.exit_code == 0


def test_the_first_failure_stops_the_run_and_gives_the_exit_code():
    policy = cluster()
    assert policy.on_exit("worker/1", 3, 1.0) == [Send("ps/0", TERM), Send("worker/0", TERM)]
    policy.on_exit("worker/0", 1, 1.1)
    policy.on_exit("ps/0", -TERM, 1.2)
    assert policy.exit_code == 3
    assert (policy.failure.label, policy.failure.code, policy.failure.at) == ("worker/1", 3, 1.0)


def test_a_signal_that_ended_a_task_is_added_to_128():
    policy = cluster()
    policy.on_exit("ps/0", -KILL, 1.0)
    policy.on_exit("worker/0", -TERM, 1.1)
    policy.on_exit("worker/1", -TERM, 1.1)
    assert policy.exit_code == 137


def test_others_may_finish_after_a_failure():
    policy = cluster(keep_going=True)
    assert policy.on_exit("worker/1", 3, 1.0) == []
    assert policy.on_exit("worker/0", 0, 5.0) == [Send("ps/0", TERM)]
    policy.on_exit("ps/0", 0, 5.1)
    assert policy.exit_code == 3


def test_a_task_that_died_is_started_again_as_often_as_allowed():
    policy = cluster(restarts=1)
    assert policy.on_exit("worker/1", -KILL, 1.0) == [Start("worker/1")]
    assert "worker/1" in policy.running and policy.failure is None
    assert policy.on_exit("worker/1", 2, 2.0) == [Send("ps/0", TERM), Send("worker/0", TERM)]
    assert policy.failure.code == 2


def test_an_interrupt_asks_and_then_kills():
    policy = cluster()
    assert policy.on_signal(INT, 1.0) == [Send("ps/0", TERM), Send("worker/0", INT), Send("worker/1", INT)]
    policy.on_exit("worker/0", 1, 1.2)
    assert policy.on_time(2.5) == [Send("ps/0", KILL), Send("worker/1", KILL)]
    policy.on_exit("worker/1", -KILL, 2.6)
    policy.on_exit("ps/0", -KILL, 2.6)
    assert policy.exit_code == 130 and policy.failure is None


def test_a_second_interrupt_kills_at_once():
    policy = cluster()
    policy.on_signal(INT, 1.0)
    assert policy.on_signal(INT, 1.1) == [Send(n, KILL) for n in ("ps/0", "worker/0", "worker/1")]


def test_a_run_that_takes_too_long_is_stopped():
    policy = cluster()
    assert len(policy.on_timeout(9.0)) == 3
    for label in ("ps/0", "worker/0", "worker/1"):
        policy.on_exit(label, -TERM, 9.1)
    assert policy.exit_code == 124


def test_servers_alone_run_until_they_end():
    policy = Policy()
    policy.add("ps/0", True)
    policy.add("ps/1", True)
    assert policy.on_exit("ps/0", 0, 1.0) == []
    policy.on_exit("ps/1", 0, 2.0)
    assert policy.exit_code == 0


def orders_of_exits():
    """Every order in which two workers, one of which fails once, and a server that fails once can end."""
    exits = [("ps/0", -KILL), ("worker/0", 0), ("worker/1", 1), ("worker/1", 0)]
    for order in sorted(set(itertools.permutations(exits))):
        if order.index(("worker/1", 1)) < order.index(("worker/1", 0)):
            yield order


@pytest.mark.parametrize("order", list(orders_of_exits()))
def test_servers_stay_while_a_restart_is_to_come(order):
    policy = cluster(restarts=1)
    workers_left = {"worker/0", "worker/1"}
    for now, (label, code) in enumerate(order):
        if policy.exit_code is not None:
            break
        actions = policy.on_exit(label, code, float(now))
        if code == 0:
            workers_left.discard(label)
        sent = [action for action in actions if isinstance(action, Send)]
        if code and not policy.stopping:
            assert actions == [Start(label)]
        assert (sent == [Send("ps/0", TERM)]) == (not workers_left and code == 0)
        assert ("ps/0" in policy.running) or policy.stopping
    assert policy.failure is None


def test_a_worker_started_again_after_the_others_have_finished_has_its_servers():
    policy = cluster(restarts=2)
    assert policy.on_exit("worker/0", 0, 1.0) == []
    assert policy.on_exit("worker/1", 1, 2.0) == [Start("worker/1")]
    assert policy.on_exit("worker/1", 1, 3.0) == [Start("worker/1")]
    assert policy.running == ["ps/0", "worker/1"] and policy.deadline is None
    assert policy.on_exit("worker/1", 0, 4.0) == [Send("ps/0", TERM)]
