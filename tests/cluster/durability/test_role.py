"""Who leads: all orders of decisions and copies between two servers, and what each of them takes."""

import itertools

import pytest

import tensorfleet as tf
from tensorfleet.cluster.durability.role import Action, Role, State, Taken
from tensorfleet.cluster.messages import BEGINS, ENDS, GIVEN_UP, KEEPS

TASK = "/job:ps/replica:0/task:0"


def leading(epoch=1):
    role = Role(TASK, State.WAITING)
    role.on_lead(epoch, with_standby=False)
    return role


def standby(epoch=1, number=0):
    role = Role(TASK, State.STANDING_BY)
    role.on_copy(epoch, number, BEGINS)
    role.on_copy(epoch, number, ENDS)
    return role


def test_the_first_decision_lets_a_waiting_server_lead():
    role = Role(TASK, State.WAITING)
    assert role.on_lead(1, with_standby=True) is Action.COPY
    assert (role.state, role.epoch) == (State.LEADING, 1)


def test_a_decision_with_an_epoch_that_is_not_higher_is_refused():
    role = leading(epoch=3)
    for epoch in (0, 2, 3):
        with pytest.raises(tf.errors.FailedPreconditionError, match="knows of epoch 3"):
            role.on_lead(epoch, with_standby=False)
    assert role.epoch == 3


def test_a_standby_takes_over_only_with_all_of_the_state():
    role = Role(TASK, State.STANDING_BY)
    role.on_copy(1, 0, BEGINS)
    with pytest.raises(tf.errors.FailedPreconditionError, match="not complete"):
        role.on_lead(2, with_standby=False)
    role.on_copy(1, 0, ENDS)
    assert role.on_lead(2, with_standby=False) is Action.TAKE_OVER


def test_a_standby_that_leads_refuses_the_commits_of_the_server_before():
    role = standby()
    role.on_lead(2, with_standby=False)
    with pytest.raises(tf.errors.AbortedError, match=GIVEN_UP):
        role.on_copy(1, 1, 0)


def test_a_commit_that_comes_again_is_taken_once():
    role = standby(number=7)
    assert role.on_copy(1, 8, 0) is Taken.TAKE
    assert role.on_copy(1, 8, 0) is Taken.HAVE
    assert role.on_copy(1, 9, 0) is Taken.TAKE


def test_commits_must_follow_each_other():
    role = standby(number=7)
    assert role.on_copy(1, 8, 0) is Taken.TAKE
    for number in (7, 10):
        with pytest.raises(tf.errors.FailedPreconditionError, match="does not follow 8"):
            role.on_copy(1, number, 0)


def test_a_server_that_was_given_up_becomes_a_standby_with_the_copy_of_a_later_epoch():
    role = leading(epoch=1)
    assert role.on_copy(3, 20, BEGINS) is Taken.BEGIN
    assert role.state is State.STANDING_BY
    assert not role.complete
    role.on_copy(3, 21, ENDS)
    assert role.on_lead(4, with_standby=False) is Action.TAKE_OVER


def test_a_server_that_was_refused_never_leads_again_with_its_old_state():
    role = leading(epoch=1)
    role.on_refused()
    with pytest.raises(tf.errors.FailedPreconditionError, match="given up"):
        role.on_lead(5, with_standby=False)


def test_a_leader_that_stands_down_has_all_of_the_state_and_may_lead_again():
    role = leading(epoch=1)
    role.on_stand_down(2, 7)
    assert (role.state, role.complete, role.number) == (State.STANDING_BY, True, 7)
    with pytest.raises(tf.errors.FailedPreconditionError, match="knows of epoch 2"):
        role.on_lead(2, with_standby=False)
    assert role.on_lead(3, with_standby=False) is Action.TAKE_OVER


@pytest.mark.parametrize("state", [State.WAITING, State.STANDING_BY, State.GIVEN_UP])
def test_only_a_leader_stands_down(state):
    with pytest.raises(tf.errors.FailedPreconditionError, match="it does not lead"):
        Role(TASK, state).on_stand_down(1, 0)


def test_a_leader_does_not_stand_down_by_an_old_decision():
    with pytest.raises(tf.errors.FailedPreconditionError, match="knows of epoch 3"):
        leading(epoch=3).on_stand_down(3, 0)


def test_a_server_that_stood_down_takes_commits_from_the_one_that_has_the_same_state():
    role = leading(epoch=1)
    role.on_stand_down(2, 7)
    assert role.on_copy(3, 7, KEEPS) is Taken.HAVE
    assert role.on_copy(3, 8, 0) is Taken.TAKE


def test_a_standby_with_another_state_is_not_kept():
    for role in (standby(number=6), Role(TASK, State.STANDING_BY), Role(TASK, State.GIVEN_UP)):
        with pytest.raises(tf.errors.FailedPreconditionError, match="it is to have commit 7, and has"):
            role.on_copy(3, 7, KEEPS)
    with pytest.raises(tf.errors.AbortedError, match=GIVEN_UP):
        leading(epoch=4).on_copy(3, 7, KEEPS)


EVENTS = [("lead", server, with_standby) for server in (0, 1) for with_standby in (False, True)]
EVENTS += [("begin", server, None) for server in (0, 1)]
EVENTS += [("end", server, None) for server in (0, 1)]
EVENTS += [("commit", server, None) for server in (0, 1)]
EVENTS += [("stand down", server, None) for server in (0, 1)]
EVENTS += [("keep", server, None) for server in (0, 1)]


@pytest.mark.parametrize("first", EVENTS, ids=lambda event: "-".join(map(str, event)))
def test_in_no_order_of_events_two_servers_commit_in_one_epoch_or_a_commit_is_lost(first):
    """The guard's decisions have rising epochs; anything else may come at any time, or be late."""
    for rest in itertools.product(EVENTS, repeat=4):
        servers = [Role(TASK, State.WAITING), Role(TASK, State.STANDING_BY)]
        # What each has: the numbers of the commits that clients were told of.
        kept, told = [set(), set()], set()
        leaders = {}
        epoch, copying = 0, [False, False]
        for kind, server, with_standby in (first, *rest):
            role, other = servers[server], servers[1 - server]
            try:
                if kind == "lead":
                    epoch += 1
                    role.on_lead(epoch, with_standby)
                    assert leaders.setdefault(epoch, server) == server
                    assert told <= kept[server], "a server leads that lacks a commit"
                    copying = [False, False]
                elif kind == "keep" and role.state is State.STANDING_BY:
                    epoch += 1
                    role.need_to_take_over(epoch)
                    other.on_copy(epoch, role.number, KEEPS)
                    role.on_lead(epoch, with_standby=True)
                    assert leaders.setdefault(epoch, server) == server
                    assert told <= kept[server] & kept[1 - server], (
                        "a server leads or stands by that lacks a commit"
                    )
                elif role.state is not State.LEADING:
                    continue
                elif kind == "stand down" and other.complete and other.epoch == role.epoch:
                    epoch += 1
                    role.on_stand_down(epoch, other.number)
                elif kind == "begin":
                    other.on_copy(role.epoch, len(told), BEGINS)
                    kept[1 - server] = set()
                    copying[server] = True
                elif kind == "end" and copying[server]:
                    other.on_copy(role.epoch, max(len(told), other.number), ENDS)
                    kept[1 - server] = set(kept[server])
                elif kind == "commit" and other.complete and other.epoch == role.epoch:
                    number = other.number + 1
                    other.on_copy(role.epoch, number, 0)
                    commit = (role.epoch, number)
                    kept[0].add(commit)
                    kept[1].add(commit)
                    told.add(commit)
            except tf.errors.OpError as e:
                if e.message.startswith(GIVEN_UP):
                    role.on_refused()
