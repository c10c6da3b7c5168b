"""What a run does when something happens: no process is needed to find out."""

import contextlib
import itertools
import random
import signal

import pytest

from tensorfleet.cli.policy import GiveBack, Policy, ScaleError, Seek, Send, Start

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


def elastic(workers=3, placed=2):
    """One server, and workers of which some have no place yet."""
    policy = Policy()
    policy.add("ps/0", True)
    for i in range(workers):
        policy.add(f"worker/{i}", False, elastic=True, placed=i < placed)
    return policy


def scalable(workers, begins):
    """One server, and workers of which some are there and the others are not wanted yet."""
    policy = Policy()
    policy.add("ps/0", True)
    for i in range(workers):
        policy.add(f"worker/{i}", False, elastic=True, placed=i < begins, parked=i >= begins)
    return policy


def test_a_worker_joins_when_there_is_a_place_for_it():
    policy = elastic()
    assert policy.seeking == ["worker/2"] and "worker/2" not in policy.running
    assert policy.on_place("worker/2", 5.0) == [Start("worker/2")]
    assert policy.seeking == [] and "worker/2" in policy.running
    assert policy.on_place("worker/2", 6.0) == []  # it has one


@pytest.mark.parametrize("code", [-KILL, -TERM, 137, 143])
def test_an_elastic_worker_that_was_taken_away_gets_another_place(code):
    policy = elastic(placed=3)
    assert policy.on_exit("worker/1", code, 60.0) == [Seek("worker/1")]
    assert policy.failure is None and policy.running == ["ps/0", "worker/0", "worker/2"]
    assert policy.on_place("worker/1", 61.0) == [Start("worker/1")]


def test_an_error_in_an_elastic_worker_is_a_failure():
    policy = elastic(placed=3)
    assert policy.on_exit("worker/1", 1, 60.0) == [Send(n, TERM) for n in ("ps/0", "worker/0", "worker/2")]
    assert policy.failure.label == "worker/1"


def test_the_run_goes_on_while_all_elastic_workers_wait_for_places():
    policy = elastic(workers=2)
    policy.on_exit("worker/0", -KILL, 60.0, lost=True)
    assert policy.on_exit("worker/1", -KILL, 61.0, lost=True) == [Seek("worker/1")]
    assert policy.running == ["ps/0"] and not policy.stopping


def test_a_finished_worker_ends_an_elastic_run_whoever_waits_for_a_place():
    policy = elastic()
    policy.on_exit("worker/0", 0, 60.0)
    assert policy.on_exit("worker/1", -KILL, 61.0, lost=True) == [Send("ps/0", TERM)]
    assert policy.on_place("worker/2", 62.0) == []
    policy.on_exit("ps/0", -TERM, 62.0)
    assert policy.exit_code == 0 and policy.failure is None


def test_a_run_that_is_scaled_to_more_workers_looks_for_places_for_them():
    policy = scalable(workers=4, begins=2)
    assert policy.seeking == []
    assert policy.on_scale(3, 1.0) == ([Seek("worker/2")], ["worker/2"], [])
    assert policy.on_place("worker/2", 2.0) == [Start("worker/2")]
    assert policy.on_scale(3, 3.0) == ([], [], [])


def test_a_run_that_is_scaled_to_fewer_workers_tells_the_last_ones_to_leave():
    policy = scalable(workers=4, begins=4)
    told = [Send("worker/2", TERM), Send("worker/3", TERM)]
    assert policy.on_scale(2, 1.0) == (told, [], ["worker/2", "worker/3"])
    assert policy.on_exit("worker/2", 143, 2.0) == [GiveBack("worker/2")]
    assert policy.deadline == 12.0
    assert policy.on_time(12.0) == [Send("worker/3", KILL)]
    assert policy.on_exit("worker/3", -KILL, 12.1) == [GiveBack("worker/3")]
    assert policy.failure is None and policy.running == ["ps/0", "worker/0", "worker/1"]
    policy.on_exit("worker/0", 0, 13.0)
    assert policy.on_exit("worker/1", 0, 14.0) == [Send("ps/0", TERM)]


def test_a_worker_that_is_wanted_again_while_it_leaves_comes_back_when_it_has_left():
    policy = scalable(workers=2, begins=2)
    policy.on_scale(1, 1.0)
    assert policy.on_scale(2, 2.0) == ([], ["worker/1"], [])
    assert policy.on_exit("worker/1", 143, 3.0) == [Seek("worker/1")]


def test_a_place_that_comes_when_the_worker_is_not_wanted_any_more_is_not_used():
    policy = scalable(workers=2, begins=1)
    policy.on_scale(2, 1.0)
    assert policy.on_scale(1, 2.0) == ([GiveBack("worker/1")], [], [])
    assert policy.on_place("worker/1", 3.0) == []


def test_a_run_ends_when_its_workers_have_finished_whoever_was_told_to_leave():
    policy = scalable(workers=2, begins=2)
    policy.on_scale(1, 1.0)
    policy.on_exit("worker/0", 0, 2.0)
    assert policy.on_exit("worker/1", 143, 3.0) == [Send("ps/0", TERM)]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "It needs at least one worker, not 0. `tensorfleet stop` ends a run."),
        (5, "It has room for 4 workers, not 5: .* Start it with --max-workers 5"),
    ],
)
def test_a_run_is_not_scaled_beyond_its_room(count, text):
    with pytest.raises(ScaleError, match=text):
        scalable(workers=4, begins=2).on_scale(count, 1.0)


def test_a_run_that_ends_is_not_scaled():
    policy = scalable(workers=2, begins=1)
    policy.on_signal(INT, 1.0)
    with pytest.raises(ScaleError, match="It is ending"):
        policy.on_scale(2, 2.0)


def test_a_run_with_a_fixed_number_of_workers_is_not_scaled():
    with pytest.raises(ScaleError, match="fixed number of workers. Start it with --max-workers"):
        cluster().on_scale(1, 1.0)


def test_who_joins_by_hand_gets_the_first_free_number_and_frees_it_at_its_end():
    policy = scalable(workers=4, begins=1)
    assert [policy.on_join(1.0), policy.on_join(1.0)] == ["worker/1", "worker/2"]
    assert policy.on_exit("worker/1", -KILL, 2.0) == [] and policy.failure is None
    assert policy.on_join(3.0) == "worker/1"
    assert policy.on_scale(4, 4.0) == ([Seek("worker/3")], ["worker/3"], [])
    with pytest.raises(ScaleError, match="All 4 numbers of workers are taken"):
        policy.on_join(5.0)


def test_a_number_that_is_wanted_when_a_worker_started_by_hand_leaves_is_taken_by_the_run():
    policy = scalable(workers=2, begins=1)
    policy.on_join(1.0)
    assert policy.on_scale(2, 2.0) == ([], [], [])
    assert policy.on_exit("worker/1", 0, 3.0) == [Seek("worker/1")]


def test_a_run_with_a_worker_started_by_hand_ends_when_that_ends_too():
    policy = scalable(workers=2, begins=1)
    policy.on_join(1.0)
    assert policy.on_exit("worker/0", 0, 2.0) == []
    with pytest.raises(ScaleError, match="ending"):
        policy.on_join(2.5)
    assert policy.on_exit("worker/1", 0, 3.0) == [Send("ps/0", TERM)]


def test_a_worker_that_is_killed_soon_after_each_start_is_a_failure():
    policy = elastic(placed=3)
    now = 100.0
    for _ in range(2):
        assert policy.on_exit("worker/1", -KILL, now) == [Seek("worker/1")]
        policy.on_place("worker/1", now)
        now += 1.0
    policy.on_exit("worker/1", -KILL, now)
    policy.on_place("worker/1", now)
    policy.on_exit("worker/1", -KILL, now + 1.0)
    assert policy.failure.label == "worker/1"


def test_a_task_whose_machine_is_lost_moves_three_times():
    policy = cluster()
    for now in (1.0, 2.0, 3.0):
        assert policy.on_exit("ps/0", -KILL, now, lost=True) == [Seek("ps/0")]
        assert policy.on_place("ps/0", now) == [Start("ps/0")]
    assert policy.on_exit("ps/0", -KILL, 4.0, lost=True) == [Send(f"worker/{i}", TERM) for i in (0, 1)]


def test_workers_that_wait_for_a_place_keep_the_servers():
    policy = cluster()
    policy.on_exit("worker/0", 0, 1.0)
    assert policy.on_exit("worker/1", -KILL, 2.0, lost=True) == [Seek("worker/1")]
    policy.on_place("worker/1", 3.0)
    assert policy.on_exit("worker/1", 0, 4.0) == [Send("ps/0", TERM)]


def test_a_run_in_which_every_task_waits_for_a_place_can_be_interrupted():
    policy = Policy()
    policy.add("worker/0", False, elastic=True)
    policy.on_exit("worker/0", -KILL, 60.0, lost=True)
    assert policy.on_signal(INT, 61.0) == [] and policy.exit_code == 130


def test_workers_may_save_on_their_servers_before_a_cluster_manager_ends_them():
    policy = cluster()
    policy.grace_seconds = 30.0
    assert policy.on_signal(TERM, 1.0) == [Send(n, TERM) for n in ("worker/0", "worker/1")]
    assert policy.deadline == 31.0
    assert policy.on_exit("worker/0", 143, 2.0) == []
    assert policy.on_exit("worker/1", 143, 3.0) == [Send("ps/0", TERM)]
    assert policy.deadline == 5.0
    policy.on_exit("ps/0", -TERM, 3.1)
    assert policy.exit_code == 143 and policy.failure is None


def test_a_worker_that_does_not_save_in_time_is_killed_with_its_servers():
    policy = cluster()
    policy.grace_seconds = 30.0
    policy.on_timeout(1.0)
    assert policy.on_time(31.0) == [Send(n, KILL) for n in ("ps/0", "worker/0", "worker/1")]
    for label in ("ps/0", "worker/0", "worker/1"):
        policy.on_exit(label, -KILL, 31.1)
    assert policy.exit_code == 124


@pytest.mark.parametrize("seed", range(300))
def test_random_runs_come_to_an_end_with_nothing_running(seed):
    """Whatever happens in whichever order: the run ends, and no task is started twice at a time."""
    draw = random.Random(seed)
    policy = Policy(keep_going=draw.random() < 0.3, grace_seconds=draw.choice([None, 5.0]))
    labels = ["ps/0", "ps/1", "worker/0", "worker/1", "worker/2"]
    comes_and_goes = draw.random() < 0.6
    for label in labels:
        is_worker = label.startswith("worker")
        placed = not (is_worker and comes_and_goes and draw.random() < 0.5)
        policy.add(
            label, not is_worker, draw.choice([0, 1]), elastic=is_worker and comes_and_goes, placed=placed
        )
    if not policy.running_workers():
        return
    alive, sought = set(policy.running), set(policy.seeking)
    for step in range(400):
        if policy.exit_code is not None:
            break
        now = float(step)
        happens = draw.random()
        actions = []
        if happens < 0.02:
            actions = policy.on_signal(draw.choice([INT, TERM]), now)
        elif happens < 0.1 and comes_and_goes:
            with contextlib.suppress(ScaleError):
                actions = policy.on_scale(draw.randint(1, 3), now).actions
        elif happens < 0.15 and comes_and_goes:
            with contextlib.suppress(ScaleError):
                label = policy.on_join(now)
                assert label not in alive
                alive.add(label)
        elif happens < 0.4 and sought:
            label = draw.choice(sorted(sought))
            sought.discard(label)
            actions = policy.on_place(label, now)
        elif alive:
            label = draw.choice(sorted(alive))
            alive.discard(label)
            actions = policy.on_exit(label, draw.choice([0, 0, 1, -KILL]), now, draw.random() < 0.2)
        else:
            actions = policy.on_time(now)
        for action in actions:
            if isinstance(action, Start):
                assert action.label not in alive
                alive.add(action.label)
            elif isinstance(action, Seek):
                assert action.label not in alive
                sought.add(action.label)
    if policy.exit_code is None:  # everybody waits for a place
        assert not alive or sought
        policy.on_signal(INT, 1000.0)
        for label in sorted(alive):
            policy.on_exit(label, -KILL, 1001.0)
    assert policy.exit_code is not None and policy.running == []


def durable(restarts=0, keep_going=False):
    """A parameter server with a standby, and a worker."""
    policy = Policy(keep_going=keep_going)
    policy.add("ps/0", True, restarts, durable=True)
    policy.add("ps-standby/0", True, restarts, durable=True)
    policy.add("worker/0", False)
    return policy


@pytest.mark.parametrize("label", ["ps/0", "ps-standby/0"])
def test_the_end_of_one_server_of_a_durable_task_is_no_failure(label):
    policy = durable()
    assert policy.on_exit(label, -KILL, 60.0) == []
    assert policy.failure is None and not policy.stopping
    assert policy.on_restart(label, 60.1) == [Start(label)]
    assert label in policy.running


def test_a_server_that_hangs_is_killed_and_started_again():
    policy = durable()
    assert policy.on_restart("ps/0", 60.0) == [Send("ps/0", KILL)]
    assert policy.on_restart("ps/0", 60.1) == []
    assert policy.on_exit("ps/0", -KILL, 60.2) == [Start("ps/0")]


def test_a_standby_that_lost_its_machine_gets_another_place_however_often():
    policy = durable()
    for now in range(60, 300, 60):
        assert policy.on_exit("ps-standby/0", -KILL, float(now), lost=True) == []
        assert policy.on_restart("ps-standby/0", now + 0.1) == [Seek("ps-standby/0")]
        assert policy.on_restart("ps-standby/0", now + 0.2) == []
        assert policy.on_place("ps-standby/0", now + 1.0) == [Start("ps-standby/0")]


def test_a_standby_that_dies_again_and_again_is_started_later_each_time():
    policy = durable()
    pauses = []
    now = 0.0
    for _ in range(7):
        policy.on_exit("ps-standby/0", 1, now + 1.0)
        actions = policy.on_restart("ps-standby/0", now + 1.0)
        if actions:
            now += 1.0
            continue
        pauses.append(policy.deadline - now - 1.0)
        assert policy.on_time(policy.deadline - 0.1) == []
        now = policy.deadline
        assert policy.on_time(now) == [Start("ps-standby/0")]
    assert pauses == [10.0, 20.0, 40.0, 60.0, 60.0]
    assert policy.deadline is None


def test_nothing_is_started_again_when_the_servers_are_told_to_end():
    policy = durable()
    for now in (1.0, 2.0, 3.0):
        policy.on_exit("ps-standby/0", 1, now)
        policy.on_restart("ps-standby/0", now)
    assert policy.deadline == 13.0
    assert policy.on_exit("worker/0", 0, 4.0) == [Send("ps/0", TERM)]
    assert not policy.serving
    policy.on_exit("ps/0", -TERM, 4.1)
    assert policy.exit_code == 0 and policy.failure is None
    assert policy.on_time(13.0) == []


def test_servers_of_a_durable_task_are_started_again_while_workers_save():
    policy = durable()
    policy.grace_seconds = 30.0
    assert policy.on_signal(TERM, 60.0) == [Send("worker/0", TERM)]
    assert policy.serving
    assert policy.on_exit("ps/0", -KILL, 61.0) == []
    assert policy.on_restart("ps/0", 61.1) == [Start("ps/0")]
    assert policy.on_exit("worker/0", 143, 62.0) == [Send("ps/0", TERM), Send("ps-standby/0", TERM)]


def test_a_task_whose_servers_are_both_gone_fails_the_run():
    policy = durable()
    policy.on_exit("ps-standby/0", -KILL, 59.0)
    policy.on_exit("ps/0", -KILL, 60.0)
    assert policy.on_lost("ps/0", "ps/0", 60.1) == [Send("worker/0", TERM)]
    assert (policy.failure.label, policy.failure.exit_code) == ("ps/0", 137)


def test_a_task_whose_servers_are_both_gone_begins_anew_where_restarts_are_left():
    policy = durable(restarts=1)
    policy.on_exit("ps/0", -KILL, 60.0)
    assert policy.on_lost("ps/0", "ps/0", 60.1) == [Start("ps/0")]
    policy.on_exit("ps/0", -KILL, 90.0)
    assert policy.on_lost("ps/0", "ps/0", 90.1) == [Send("ps-standby/0", TERM), Send("worker/0", TERM)]


def test_a_standby_in_the_place_of_the_primary_is_killed_when_the_task_begins_anew():
    policy = durable(restarts=1)
    policy.on_exit("ps-standby/0", -KILL, 60.0)
    assert policy.on_lost("ps/0", "ps-standby/0", 60.1) == [Send("ps/0", KILL)]
    assert policy.on_exit("ps/0", -KILL, 60.2) == [Start("ps/0")]


def test_a_task_that_lost_its_machine_and_its_standby_gets_another_place():
    policy = durable()
    policy.on_exit("ps/0", -KILL, 60.0, lost=True)
    assert policy.on_lost("ps/0", "ps/0", 60.1) == [Seek("ps/0")]
    assert policy.failure is None


def test_a_place_that_is_being_looked_for_is_for_the_task_that_begins_anew():
    policy = durable(restarts=1)
    policy.on_exit("ps/0", -KILL, 60.0, lost=True)
    policy.on_restart("ps/0", 60.1)
    policy.on_exit("ps-standby/0", -KILL, 61.0)
    assert policy.on_lost("ps/0", "ps-standby/0", 61.1) == []
    assert policy.on_place("ps/0", 62.0) == [Start("ps/0")]


def test_a_durable_server_that_ends_by_itself_before_it_led_is_no_failure():
    policy = durable()
    policy.on_exit("ps/0", 0, 1.0)
    assert policy.on_lost("ps/0", "ps/0", 1.1) == []
    policy.on_exit("worker/0", 0, 2.0)
    policy.on_exit("ps-standby/0", -TERM, 2.1)
    assert policy.exit_code == 0


def test_others_may_finish_after_the_loss_of_a_durable_task():
    policy = durable(keep_going=True)
    policy.on_exit("ps/0", 3, 1.0)
    assert policy.on_lost("ps/0", "ps/0", 1.1) == []
    assert policy.failure.code == 3 and not policy.stopping
