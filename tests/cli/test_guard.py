"""Who leads a durable parameter server: the decisions alone, and against a model of two servers in every order."""

import copy
import random
from collections import deque
from dataclasses import dataclass, replace

import pytest

from tensorfleet.cli.guard import (
    DeclareLost,
    Guard,
    LeadAccepted,
    LeadRefused,
    LeadUnheard,
    RestartSeat,
    SeatAnswered,
    SeatExited,
    SeatSilent,
    SeatStarted,
    SeatUp,
    Silence,
    TellLead,
    TellUser,
    TimePassed,
)


class Talk:
    """A guard, and the time that passes between its events."""

    def __init__(self):
        self.guard = Guard("ps/0", ["ps/0", "ps-standby/0"], 0.0, "starting a new standby")
        self.now = 0.0
        self.notes = []

    def on(self, *events, after=0.1):
        """The actions that follow from some events, but for notes."""
        actions = []
        for event in events:
            self.now += after
            actions += self.guard.on(event, self.now)
        self.notes += [action.text for action in actions if isinstance(action, TellUser)]
        return [action for action in actions if not isinstance(action, TellUser)]


@pytest.fixture
def begun():
    """A pair whose primary leads, with a complete standby."""
    talk = Talk()
    assert talk.on(SeatUp(0), SeatUp(1)) == [TellLead(0, 1, 1)]
    assert talk.on(LeadAccepted(1)) == []
    return talk


def test_the_primary_leads_when_both_are_up(begun):
    assert begun.notes == ["ps/0 leads with ps-standby/0 as its standby (epoch 1)."]
    assert begun.guard.deadline is None


def test_the_primary_leads_alone_when_its_standby_does_not_come_up():
    talk = Talk()
    assert talk.on(SeatUp(0)) == []
    assert talk.guard.deadline == pytest.approx(10.1)
    assert talk.on(TimePassed(), after=9.9) == []
    assert talk.on(TimePassed(), after=0.2) == [TellLead(0, 1, None)]
    assert talk.on(LeadAccepted(1)) == []
    assert talk.notes == ["ps-standby/0 is not up after 10 s; ps/0 leads alone until it is (epoch 1)."]
    assert talk.on(SeatUp(1)) == [TellLead(0, 2, 1)]


def test_a_primary_that_ends_before_it_led_is_left_to_the_run():
    talk = Talk()
    assert talk.on(SeatUp(1), SeatExited(0, "ended (exit code 1)")) == [DeclareLost(0, "")]


def test_a_standby_that_dies_at_the_start_is_started_again_and_waited_for():
    talk = Talk()
    assert talk.on(SeatExited(1, "died (signal 9)")) == [RestartSeat(1)]
    assert talk.on(SeatUp(0), SeatStarted(1)) == []
    assert talk.on(SeatUp(1)) == [TellLead(0, 1, 1)]


def test_the_standby_takes_over_at_once_when_the_primary_dies(begun):
    assert begun.on(SeatExited(0, "died (signal 9)")) == [TellLead(1, 2, None)]
    assert begun.on(LeadAccepted(2)) == [RestartSeat(0)]
    assert (
        begun.notes[-1]
        == "ps/0 died (signal 9); ps-standby/0 leads it now (epoch 2); starting a new standby."
    )
    assert begun.on(SeatStarted(0), SeatUp(0)) == [TellLead(1, 3, 0)]
    assert begun.on(LeadAccepted(3)) == []
    assert begun.notes[-1] == "ps-standby/0 leads with ps/0 as its standby (epoch 3)."
    assert begun.on(SeatExited(1, "died (signal 9)")) == [TellLead(0, 4, None)]


def test_the_standby_takes_over_from_a_silent_primary_which_is_then_started_again(begun):
    assert begun.on(SeatSilent(0, "did not answer for 1.0 s")) == [TellLead(1, 2, None)]
    assert begun.on(SeatAnswered(0)) == []
    assert begun.on(LeadAccepted(2)) == [RestartSeat(0)]
    assert begun.notes[-1].startswith("ps/0 did not answer for 1.0 s; ps-standby/0 leads it now")
    assert begun.on(SeatExited(0, "died (signal 9)"), SeatStarted(0)) == []


@pytest.mark.parametrize(
    "event", [SeatExited(1, "died (signal 9)"), SeatSilent(1, "did not answer for 1.0 s")]
)
def test_the_primary_goes_on_alone_without_its_standby(begun, event):
    assert begun.on(event) == [TellLead(0, 2, None)]
    assert begun.on(LeadAccepted(2)) == [RestartSeat(1)]
    assert "ps/0 goes on alone (epoch 2); starting a new standby." in begun.notes[-1]
    assert begun.on(SeatStarted(1), SeatUp(1)) == [TellLead(0, 3, 1)]


def test_a_standby_without_a_copy_is_never_told_to_lead(begun):
    begun.on(
        SeatExited(1, "died (signal 9)"),
        LeadAccepted(2),
        SeatStarted(1),
        SeatSilent(0, "did not answer for 1.0 s"),
    )
    assert begun.on(SeatUp(1)) == []
    text = "ps/0 and its standby are both gone: updates since the last checkpoint are lost."
    assert begun.on(SeatExited(0, "died (signal 9)")) == [DeclareLost(0, text)]


def test_a_standby_whose_copy_may_be_complete_is_asked_and_may_refuse(begun):
    begun.on(SeatExited(1, "died (signal 9)"), LeadAccepted(2), SeatStarted(1))
    assert begun.on(SeatUp(1)) == [TellLead(0, 3, 1)]
    assert begun.on(SeatExited(0, "died (signal 9)")) == [TellLead(1, 4, None)]
    lost, again = begun.on(LeadRefused(4, "its copy is not complete."))
    assert isinstance(lost, DeclareLost) and lost.seat == 0 and again == RestartSeat(1)
    assert begun.notes[-1] == "ps-standby/0 cannot lead ps/0: its copy is not complete."


def test_a_silent_primary_leads_on_when_the_standby_has_refused(begun):
    begun.on(SeatExited(1, "died (signal 9)"), LeadAccepted(2), SeatStarted(1), SeatUp(1))
    assert begun.on(SeatSilent(0, "did not answer for 1.0 s")) == [TellLead(1, 4, None)]
    assert begun.on(LeadRefused(4, "its copy is not complete.")) == []
    assert begun.on(SeatAnswered(0)) == [TellLead(0, 5, None)]
    assert begun.on(LeadAccepted(5)) == [RestartSeat(1)]


def test_a_primary_that_may_have_been_replaced_never_leads_again(begun):
    assert begun.on(SeatSilent(0, "did not answer for 1.0 s")) == [TellLead(1, 2, None)]
    assert begun.on(SeatAnswered(0), LeadUnheard(2)) == []
    lost, again = begun.on(SeatExited(1, "died (signal 9)"))
    assert isinstance(lost, DeclareLost) and again == RestartSeat(1)


def test_a_decision_that_nobody_answered_is_taken_again_with_another_epoch(begun):
    begun.on(SeatExited(0, "died (signal 9)"))
    assert begun.on(LeadUnheard(2)) == []
    assert begun.guard.deadline == pytest.approx(begun.now + 0.2)
    assert begun.on(TimePassed(), after=0.3) == [TellLead(1, 3, None)]
    assert begun.on(LeadAccepted(2)) == []
    assert not begun.guard.is_settled


def test_an_adoption_is_given_up_when_the_new_standby_dies(begun):
    begun.on(SeatExited(1, "died (signal 9)"), LeadAccepted(2), SeatStarted(1), SeatUp(1))
    assert begun.on(SeatExited(1, "died (signal 9)")) == [TellLead(0, 4, None)]
    assert begun.on(LeadUnheard(3), LeadAccepted(4)) == [RestartSeat(1)]


def test_a_lost_task_begins_anew_with_the_next_epoch(begun):
    begun.on(SeatExited(1, "died (signal 9)"))
    lost, again = begun.on(SeatExited(0, "died (signal 9)"))
    assert isinstance(lost, DeclareLost) and again == RestartSeat(1)
    assert begun.on(SeatStarted(1), SeatUp(1)) == []
    assert begun.on(SeatStarted(0)) == []
    assert begun.on(SeatUp(0)) == [TellLead(0, 3, 1)]


def test_after_a_loss_a_standby_with_an_old_copy_is_started_anew(begun):
    begun.on(
        SeatSilent(0, "did not answer for 1.0 s"),
        LeadAccepted(2),
        SeatStarted(0),
        SeatUp(0),
        SeatExited(1, "died"),
    )
    lost, again = begun.on(LeadRefused(4, "no."))
    assert isinstance(lost, DeclareLost) and lost.seat == 1 and again == RestartSeat(1)
    assert begun.on(SeatExited(0, "died"), SeatStarted(0)) == []
    assert begun.on(SeatUp(0), SeatStarted(1)) == []
    assert begun.on(SeatUp(1)) == [TellLead(0, 5, 1)]


def test_a_guard_that_is_started_anew_finds_the_leader():
    talk = Talk()
    assert talk.on(SeatUp(0, stands_by=True)) == []
    assert talk.on(SeatUp(1, epoch=7)) == [TellLead(1, 8, 0)]


def test_a_standby_does_not_begin_a_task():
    talk = Talk()
    assert talk.on(SeatUp(0, stands_by=True), TimePassed(), after=20.0) == []
    assert talk.notes == ["ps/0 is a standby, and has no state to lead with. Start the script of ps/0 there."]


def test_the_user_is_told_of_a_primary_that_is_never_reached():
    talk = Talk()
    assert talk.guard.deadline == 30.0
    assert talk.on(SeatUp(1), TimePassed(), TimePassed(), after=20.0) == []
    assert len(talk.notes) == 1 and talk.notes[0].startswith("ps/0 was not reached for 30 s:")


def test_a_leader_that_refuses_is_asked_again_and_the_user_told_once(begun):
    begun.on(SeatExited(1, "died"))
    for epoch in (2, 3, 4):
        assert begun.on(LeadRefused(epoch, "it knows epoch 9.")) == []
        assert begun.on(TimePassed(), after=1.1) == [TellLead(0, epoch + 1, None)]
    assert sum("refuses to lead" in note for note in begun.notes) == 1


def test_time_in_which_nobody_looked_is_no_silence():
    silence = Silence(0.0)
    assert not silence.look(60.0)
    assert not any(silence.look(60.0 + n * 0.2) for n in range(1, 3))
    assert silence.look(60.8)
    silence.answered(60.9)
    assert not silence.look(61.1)


# -- against a model of two servers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """A life of a server, as docs/decisions/0033 wants it."""

    state: str = "starting"  # up, stopped, dead
    epoch: int = 0
    leads: bool = False
    standby: bool = False  # the leader has one, and waits for it
    #: the last commit that it has; None for an empty or incomplete copy
    commits: int | None = None
    copies: int = 0  # the epoch of a copy under way


@dataclass(frozen=True)
class World:
    """Two servers, messages under way, and what clients were told."""

    servers: tuple = (Server(), Server())
    #: decisions on their way to a server: (seat, epoch, standby)
    leads: tuple = ()
    #: what the guard will hear
    heard: tuple = ()
    told: int = 0  # commits that clients know of
    leaders: frozenset = frozenset()  # (epoch, seat) that ever took a decision
    restarts: frozenset = frozenset()
    lost: bool = False
    losses: int = 0

    def server(self, seat, **changes):
        """The world with another state of a server."""
        servers = list(self.servers)
        servers[seat] = replace(servers[seat], **changes)
        return replace(self, servers=tuple(servers))

    def hears(self, *events):
        """The world in which the guard is going to hear that."""
        return replace(self, heard=self.heard + events)


def obeyed(world, actions):
    """The world after the actions of the guard."""
    for action in actions:
        match action:
            case TellLead(seat, epoch, standby):
                world = replace(world, leads=(*world.leads, (seat, epoch, standby)))
            case RestartSeat(seat):
                assert seat not in world.restarts, "a seat is restarted twice"
                world = killed(replace(world, restarts=world.restarts | {seat}), seat)
            case DeclareLost():
                assert not world.lost
                world = killed(world, 0)
                world = replace(world, lost=True, losses=world.losses + 1)
    return world


def killed(world, seat):
    """The world in which nothing is left of a seat; the guard hears of it."""
    if world.servers[seat].state == "dead":
        return world
    heard = SeatExited(seat, "died"), *([LeadUnheard(e)] if (e := world.servers[seat].copies) else [])
    return world.server(seat, state="dead", copies=0).hears(*heard)


def taken(world, lead):
    """The world after a decision has arrived."""
    seat, epoch, standby = lead
    world = replace(world, leads=tuple(one for one in world.leads if one != lead))
    server = world.servers[seat]
    if server.state == "dead" or server.state == "starting":
        return world.hears(LeadUnheard(epoch))
    if epoch <= server.epoch:
        return world.hears(LeadRefused(epoch, "old."))
    if server.commits is None:
        return world.hears(LeadRefused(epoch, "not complete."))
    assert not any(e == epoch and s != seat for e, s in world.leaders), "two leaders in one epoch"
    world = replace(world, leaders=world.leaders | {(epoch, seat)})
    world = world.server(seat, epoch=epoch, leads=True, standby=False, copies=0)
    assert server.commits >= world.told or world.lost, "an incomplete copy leads"
    if standby is None:
        return world.hears(LeadAccepted(epoch))
    return world.server(seat, copies=epoch)


def copied(world, seat):
    """The world after a leader has copied its state to its new standby."""
    other, epoch = 1 - seat, world.servers[seat].copies
    mine, stands = world.servers[seat], world.servers[other]
    world = world.server(seat, copies=0)
    if stands.state != "up" or stands.epoch >= epoch:
        return world.hears(LeadRefused(epoch, "its standby is gone."))
    world = world.server(other, epoch=epoch, leads=False, commits=mine.commits, standby=False)
    world = world.server(seat, standby=True)
    return world.hears(LeadAccepted(epoch))


def committed(world, seat):
    """The world after a leader has committed something and told its client, or the same one if it cannot."""
    mine, stands = world.servers[seat], world.servers[1 - seat]
    if mine.standby:
        if stands.state != "up" or stands.epoch != mine.epoch or stands.leads or stands.commits is None:
            return world
        world = world.server(1 - seat, commits=mine.commits + 1)
    world = world.server(seat, commits=mine.commits + 1)
    assert mine.commits == world.told, "an update is lost"
    return replace(world, told=world.told + 1)


def moves(world, faults):
    """What may happen next, by name; the guard hears in an order of its own."""
    result = {}
    for i, event in enumerate(world.heard):
        # What one server says comes in order.
        about = getattr(event, "seat", "leads")
        if any(getattr(e, "seat", "leads") == about for e in world.heard[:i]):
            continue
        result[f"hear {event}"] = (event, replace(world, heard=world.heard[:i] + world.heard[i + 1 :]))
    for lead in world.leads:
        result[f"arrive {lead}"] = (None, taken(world, lead)) if _answers(world, lead[0]) else None
        if faults:
            result[f"drop {lead}"] = (
                None,
                replace(world, leads=tuple(one for one in world.leads if one != lead)).hears(
                    LeadUnheard(lead[1])
                ),
            )
    for seat, server in enumerate(world.servers):
        if server.state == "starting" and seat not in world.restarts:
            up = world.server(seat, state="up", commits=_first_commits(world, seat))
            result[f"up {seat}"] = (None, up.hears(SeatUp(seat)))
        if server.state == "up" and server.copies:
            result[f"copied {seat}"] = (None, copied(world, seat))
        if server.state == "up" and server.leads and not server.copies:
            done = committed(world, seat)
            if done is not world and world.told < 4:
                result[f"commit {seat}"] = (None, done)
        if server.state == "stopped":
            result[f"go on {seat}"] = (None, world.server(seat, state="up").hears(SeatAnswered(seat)))
        if faults and server.state != "dead":
            result[f"die {seat}"] = (None, killed(world, seat))
        if faults and server.state == "up":
            stopped = world.server(seat, state="stopped")
            result[f"stop {seat}"] = (None, stopped.hears(SeatSilent(seat, "did not answer for 1.0 s")))
        if seat in world.restarts and not _exits(world, seat):
            result[f"restart {seat}"] = (SeatStarted(seat), _restarted(world, seat))
    if world.lost and not _exits(world, 0):
        fresh = replace(_restarted(world, 0), lost=False, restarts=world.restarts - {0}, told=0)
        result["begin anew"] = (SeatStarted(0), fresh.server(0, commits=0))
    return {name: move for name, move in result.items() if move is not None}


def _answers(world, seat):
    return world.servers[seat].state != "stopped"


def _first_commits(world, seat):
    """The script's own server begins with nothing, which is all there is; a standby has no copy."""
    return world.servers[seat].commits


def _exits(world, seat):
    """Whether the launcher has not heard of the end of a seat's life yet: it starts none before."""
    return any(isinstance(e, SeatExited) and e.seat == seat for e in world.heard)


def _restarted(world, seat):
    """A new life, as a standby. The edge tells nothing of the old one any more."""
    heard = tuple(e for e in world.heard if getattr(e, "seat", None) != seat)
    world = replace(world, restarts=world.restarts - {seat}, heard=heard)
    servers = list(world.servers)
    servers[seat] = Server()
    return replace(world, servers=tuple(servers))


def step(guard, world, move, seconds=0.01):
    """The guard and the world after a move."""
    event, world = move
    guard = copy.copy(guard)
    if event is not None:
        world = obeyed(world, guard.on(event, guard._now + seconds))
    return guard, world


def first():
    """A guard and two servers that are being started."""
    guard = Guard("ps/0", ["ps/0", "ps-standby/0"], 0.0, "restarting")
    return guard, World().server(0, commits=0)


def key(guard, world):
    """What distinguishes two situations."""
    state = {name: value for name, value in vars(guard).items() if name not in ("_actions", "_reason")}
    for name in ("_retry_at", "_up_since", "_began", "_now"):  # how long ago, as far as it matters
        then = state[name]
        state[name] = then if then is None else min(guard._now - then, 30.0) // 10
    state["_retry_at"] = guard._retry_at > guard._now
    return repr(sorted(state.items())), world


def calm(guard, world):
    """Lets everything that is under way come to its end, without faults and commits, and time pass."""
    for _ in range(100):
        possible = [m for name, m in moves(world, faults=False).items() if not name.startswith("commit")]
        possible = sorted(possible, key=lambda move: not isinstance(move[0], (SeatExited, SeatStarted)))
        before = key(guard, world)
        guard, world = step(guard, world, possible[0] if possible else (TimePassed(), world), 40.0)
        if not possible and key(guard, world) == before:
            return guard, world
    raise AssertionError(f"it never comes to rest: {world}")


def check_calm(guard, world):
    """When nothing is under way any more, somebody leads with a standby, and takes what clients send."""
    guard, world = calm(guard, world)
    assert guard.is_settled and guard.leader is not None, f"nobody leads: {world}"
    assert guard.has_copy, f"nobody stands by: {world}"
    leader = world.servers[guard.leader]
    assert leader.leads and leader.state == "up"
    assert committed(world, guard.leader) is not world


def test_every_order_of_events_keeps_every_update():
    """All orders of moves with up to two faults, from the start and from a pair that is complete."""
    seen = set()
    for begin, depth in ((first(), 9), (calm(*first()), 11)):
        waiting = deque([(*begin, 0, 2)])
        while waiting:
            guard, world, deep, faults = waiting.popleft()
            if deep == depth:
                continue
            possible = {"time": (TimePassed(), world), **moves(world, faults=faults > 0)}
            for name, move in possible.items():
                after = step(guard, world, move, 12.0 if name == "time" else 0.01)
                left = faults - name.startswith(("die", "stop", "drop"))
                known = (*key(*after), left)
                if known not in seen:
                    seen.add(known)
                    waiting.append((*after, deep + 1, left))
                    check_calm(*after)
    print(len(seen))
    assert len(seen) > 5000


@pytest.mark.parametrize("seed", range(20))
def test_long_random_runs_keep_every_update(seed):
    chance = random.Random(seed)
    guard, world = first()
    for _ in range(400):
        possible = moves(world, faults=chance.random() < 0.15)
        name = chance.choice([*sorted(possible), "time"])
        seconds = chance.choice([0.01, 0.1, 1.0, 12.0])
        guard, world = step(guard, world, possible.get(name, (TimePassed(), world)), seconds)
        if world.told == 4:  # begin to count again
            servers = tuple(replace(s, commits=s.commits and s.commits - 4) for s in world.servers)
            world = replace(world, told=0, servers=servers)
    check_calm(guard, world)
