"""Synchronous training whose replicas join, leave and die in any order: updates of the gradients of those that are there."""

import random

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.base.shapes import TensorShape
from tensorfleet.runtime.resources import ResourceManager
from tensorfleet.state.accumulators import Accumulator, TakeGradientAttempt
from tensorfleet.state.queue_members import Roster, RoundAttempt
from tensorfleet.state.queues import PutAttempt, Queue, TakeAttempt


class Replica:
    """A session that hands in gradients and takes tokens."""

    def __init__(self, training: "Training", name: str) -> None:
        self.training = training
        self.step = training.accumulator.step
        self.session = ResourceManager(name)
        self.member = None
        self.attempt = None

    def hand_in(self) -> None:
        """Hands in a gradient and begins to wait for a token."""
        training = self.training
        training.accumulator.apply(self.step, np.ones(1), owner=self.session.owner)
        if self.member is None:
            self.member = training.roster._join(self.session)
        self.attempt = TakeAttempt(1)
        with training.roster._lock:
            self.member.waiting.append(self.attempt)
            training.roster._look()
        training.queue.submit(self.attempt)

    def wake(self) -> None:
        """Goes on, if it has its token."""
        if self.attempt is None or not self.attempt.done:
            return
        assert self.attempt.error is None, self.attempt.error
        (self.step,) = self.training.queue.single(self.attempt.taken)
        self.training.steps_seen.append(int(self.step))
        self._stop_waiting()

    def die(self) -> None:
        """Its process is gone, whatever it did."""
        if self.attempt is not None:
            self.training.queue.withdraw(self.attempt)
            self._stop_waiting()
        if self.member is not None:
            self.member.clear()

    def _stop_waiting(self) -> None:
        with self.training.roster._lock:
            self.member.waiting.remove(self.attempt)
            self.training.roster._look()
        self.attempt = None


class Training:
    """The chief with one accumulator and the queue of tokens, one event at a time."""

    def __init__(self) -> None:
        self.queue = Queue("tokens", -1, [tf.int64], [TensorShape([])])
        self.roster = self.queue.roster = Roster(self.queue)
        self.roster.follows = True
        self.accumulator = Accumulator("gradients", TensorShape([1]), "MEAN")
        self.round: RoundAttempt | None = None
        self.updates: list[int] = []
        self.steps_seen: list[int] = []

    def chief(self) -> None:
        """Makes the update that is due, or begins to wait for the next."""
        if self.round is None:
            self.round = RoundAttempt()
            self.roster.rounds.submit(self.round)
        if not self.round.done:
            return
        self.round = None
        if self.accumulator.count:
            self.updates.append(self.accumulator.count)
            self.accumulator.submit(TakeGradientAttempt(1))
        token = (np.array([self.accumulator.step]),)
        tokens = self.roster.put(self.queue.rows(token), of_update=True)
        if tokens:
            self.queue.submit(PutAttempt(tokens))

    def lose_chief(self) -> None:
        """The chief dies; another will wait in its place."""
        if self.round is not None:
            self.roster.rounds.withdraw(self.round)
            self.round = None


@pytest.fixture
def training(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_REPLICA_SECONDS", "600")
    training = Training()
    yield training
    training.queue.clear()


def test_an_update_waits_for_all_that_are_there(training):
    a, b = Replica(training, "a"), Replica(training, "b")
    training.chief()
    a.hand_in()
    training.chief()
    assert training.updates == [1]  # b has not been seen yet
    a.wake()
    b.hand_in()
    training.chief()
    assert training.updates == [1]
    a.hand_in()
    training.chief()
    assert training.updates == [1, 1]  # b's first gradient was of the step before
    for replica in (a, b):
        replica.wake()
        replica.hand_in()
    training.chief()
    training.chief()
    assert training.updates == [1, 1, 2]


def test_who_dies_in_the_middle_of_a_step_is_not_waited_for(training):
    a, b = Replica(training, "a"), Replica(training, "b")
    for _ in range(2):
        a.hand_in()
        b.hand_in()
        training.chief()
        for replica in (a, b):
            replica.wake()
    a.hand_in()
    training.chief()
    assert not a.attempt.done
    b.die()
    training.chief()
    assert a.attempt.done
    a.wake()
    a.hand_in()
    training.chief()
    training.chief()
    assert a.attempt.done


@pytest.mark.parametrize("seed", range(40))
def test_training_goes_on_whoever_comes_and_goes(training, seed):
    draw = random.Random(seed)
    here: list[Replica] = [Replica(training, "first")]
    for number in range(300):
        event = draw.choice(["step"] * 8 + ["chief"] * 4 + ["join", "die", "lose chief"])
        if event == "join" and len(here) < 6:
            here.append(Replica(training, f"replica {number}"))
        elif event == "die" and len(here) > 1:
            here.pop(draw.randrange(len(here))).die()
        elif event == "lose chief":
            training.lose_chief()
        elif event == "chief":
            training.chief()
        else:
            replica = draw.choice(here)
            replica.wake()
            if replica.attempt is None:
                replica.hand_in()
    # From here on nobody comes or goes: each round of all replicas makes one update of all their gradients.
    for _ in range(4):
        training.updates.clear()
        for replica in here:
            replica.wake()
            if replica.attempt is None:
                replica.hand_in()
        training.chief()
        training.chief()
    assert training.updates == [len(here)]
    assert training.steps_seen, "nobody got a token"
    assert training.queue.look()[0] == 0
    assert not any(count > 6 + 1 for count in training.updates)


def test_replicas_wait_for_a_chief_that_has_gone_and_then_end_with_an_error(training):
    a = Replica(training, "a")
    chief = Replica(training, "chief")
    chief.hand_in()
    training.chief()
    chief.wake()
    a.hand_in()
    chief.die()
    training.roster.give_up()
    assert isinstance(a.attempt.error, tf.errors.FailedPreconditionError)
    assert (
        "the chief, which makes the updates, ended or was lost (chief have gone)" in a.attempt.error.message
    )


def test_replicas_that_have_gone_are_not_missed_while_the_chief_is_there(training):
    a, b = Replica(training, "a"), Replica(training, "b")
    training.roster._chief_mark = object()
    a.hand_in()
    b.hand_in()
    b.die()
    training.roster.give_up()
    assert not a.attempt.done
