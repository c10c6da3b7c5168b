"""What a step repeats when servers of durable tasks are lost, in many orders of events, without a task or a socket."""

import random

import pytest

from tensorfleet.base import errors
from tensorfleet.cluster.master.step_machine import (
    Ask,
    Finish,
    RunBeside,
    RunHere,
    StageRule,
    StepMachine,
    StepRules,
    Wait,
)

DURABLE = ("/job:ps/task:0", "/job:ps/task:1")
WORKER = "/job:worker/task:1"
PS = DURABLE[0]


def machine_of(*stages, whole=None):
    return StepMachine(StepRules([StageRule(**stage) for stage in stages]), whole)


def remote(task=PS, waits=0, followers=(), **more):
    return {"task": task, "waits": waits, "followers": followers, **more}


def ask(machine, *stages):
    for stage in stages:
        assert machine.decide() == Ask(stage)
        machine.sent(stage)


# -- single decisions ---------------------------------------------------------------------------------


def test_what_was_not_answered_is_asked_again():
    machine = machine_of(remote(), remote(DURABLE[1]))
    ask(machine, 0, 1)
    assert machine.lost(PS, is_forgotten=False) == {0}
    ask(machine, 0)
    machine.done(1)
    machine.done(0)
    assert machine.decide() == Finish()


def test_a_stage_that_was_answered_is_not_asked_again():
    machine = machine_of(remote(followers=(1,)), {"task": None, "waits": 1, "followers": ()})
    ask(machine, 0)
    machine.done(0)
    assert machine.lost(PS) == set()
    assert machine.decide() == RunHere(1)


def test_what_the_lost_task_kept_for_a_later_stage_is_made_again():
    machine = machine_of(remote(followers=(1,)), remote(waits=1, needs=(0,)))
    ask(machine, 0)
    machine.done(0)
    ask(machine, 1)
    assert machine.lost(PS) == {0, 1}
    ask(machine, 0)
    assert machine.decide() == Wait()
    machine.done(0)
    ask(machine, 1)
    machine.done(1)
    assert machine.decide() == Finish()


def test_what_nobody_needs_there_any_more_is_not_made_again():
    machine = machine_of(remote(followers=(1,)), remote(waits=1, needs=(0,), followers=(2,)), remote(waits=1))
    for stage in (0, 1):
        ask(machine, stage)
        machine.done(stage)
    ask(machine, 2)
    assert machine.lost(PS) == {2}


def test_a_connection_that_was_cut_costs_no_values():
    machine = machine_of(remote(followers=(1,)), remote(waits=1, needs=(0,)))
    ask(machine, 0)
    machine.done(0)
    ask(machine, 1)
    assert machine.lost(PS, is_forgotten=False) == {1}


def test_what_another_task_has_sent_to_the_lost_one_is_sent_again():
    machine = machine_of(remote(WORKER), remote(waits=0, needs=(0,)))
    ask(machine, 0, 1)
    machine.done(0)
    assert machine.lost(PS) == {0, 1}


def test_what_is_on_its_way_to_the_lost_task_is_sent_again():
    machine = machine_of(remote(WORKER), remote(waits=0, needs=(0,)))
    ask(machine, 0, 1)
    assert machine.lost(PS) == {0, 1}


def test_a_stage_whose_results_did_not_arrive_runs_again_with_what_it_needs():
    machine = machine_of(
        remote(WORKER, followers=(1,)), remote(WORKER, waits=1, needs=(0,)), remote(needs=(1,))
    )
    ask(machine, 0, 2)
    machine.done(0)
    ask(machine, 1)
    assert machine.undelivered(1) == {0, 1}
    ask(machine, 0)
    assert machine.decide() == Wait()


def test_a_stage_that_would_change_something_twice_fails_the_step():
    machine = machine_of(remote(WORKER, repeatable=False), remote(needs=(0,)))
    ask(machine, 0, 1)
    machine.done(0)
    with pytest.raises(errors.AbortedError) as caught:
        machine.lost(PS)
    assert caught.value.message == (
        "/job:ps/task:0 was lost in the middle of a step that changed something in /job:worker/task:1, which cannot be done "
        "again. Run the step again."
    )


def test_a_loop_that_keeps_values_at_the_lost_task_fails_the_step():
    whole = machine_of({"task": None, "waits": 0, "followers": ()})
    iteration = machine_of(remote(holds=True), whole=whole)
    ask(iteration, 0)
    iteration.done(0)
    later = machine_of(remote(), whole=whole)
    ask(later, 0)
    with pytest.raises(errors.AbortedError, match="in the middle of a loop that keeps values there. Run"):
        later.lost(PS)


def test_every_task_hears_of_the_end_of_a_step_that_has_recovered():
    machine = machine_of(remote(), remote(WORKER))
    ask(machine, 0, 1)
    machine.lost(PS)
    ask(machine, 0)
    assert machine.over() == {PS, WORKER}


def test_a_step_that_has_lost_nothing_tells_nobody_of_its_end():
    machine = machine_of(remote(), remote(WORKER))
    ask(machine, 0, 1)
    assert machine.over() == set()


# -- random programs, losses at random moments --------------------------------------------------------


class World:
    """Tasks with the values of one step, some of which are lost while the machine's actions are carried out."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = self.random.randint(1, 10)
        self.tasks = [self.random.choice((None, *DURABLE, *DURABLE, WORKER)) for _ in range(self.count)]
        self.before = [set() for _ in range(self.count)]
        self.needs = [set() for _ in range(self.count)]
        for i in range(self.count):
            for j in range(i):
                if self.random.random() < 2 / self.count:
                    self._connect(j, i)
        # A worker repeats what changes nothing; a durable task remembers.
        self.repeatable = [task != WORKER or self.random.random() < 0.7 for task in self.tasks]
        self.machine = StepMachine(StepRules([self._rule(i) for i in range(self.count)]))
        self.there = {task: set() for task in (*DURABLE, WORKER)}
        self.asked, self.beside, self.over = set(), set(), set()
        self.runs = [0] * self.count
        self.delivered = [set() for _ in range(self.count)]
        self.losses = 0

    def _connect(self, j, i):
        if None in (self.tasks[i], self.tasks[j]):
            self.before[i].add(j)  # through the client, which keeps it
        elif self.tasks[i] == self.tasks[j]:
            self.before[i].add(j)
            self.needs[i].add(j)
        else:
            self.needs[i].add(j)
            if self.random.random() < 0.3:  # it has to be over for another reason too
                self.before[i].add(j)

    def _rule(self, i):
        followers = [j for j in range(self.count) if i in self.before[j]]
        blocks = self.tasks[i] is None and self.random.random() < 0.3
        return StageRule(
            self.tasks[i],
            len(self.before[i]),
            followers,
            blocks,
            needs=sorted(self.needs[i]),
            repeatable=self.repeatable[i],
        )

    def receivers(self, i):
        """The tasks that get the results of a stage."""
        return {self.tasks[j] for j in range(self.count) if i in self.needs[j]}

    def begin(self, i):
        self.runs[i] += 1
        self.delivered[i] = set()
        assert self.repeatable[i] or self.runs[i] == 1, "what cannot be repeated runs once"
        assert self.before[i] <= self.over, "a stage starts after those it waits for"
        kept = {j for j in self.needs[i] if self.tasks[j] == self.tasks[i]}
        if self.tasks[i] is not None:
            assert kept <= self.there[self.tasks[i]], "what it needs of its own task is there"
        else:
            assert self.runs[i] == 1, "this process has lost nothing"

    def deliver(self, i):
        """A stage under way has sent its results to one more task."""
        left = sorted(self.receivers(i) - self.delivered[i])
        if left and self.needs[i] <= self.there[self.tasks[i]]:
            to = self.random.choice(left)
            self.there[to].add(i)
            self.delivered[i].add(to)

    def can_end(self, i):
        return self.tasks[i] is None or self.needs[i] <= self.there[self.tasks[i]]

    def end(self, i):
        self.asked.discard(i)
        self.beside.discard(i)
        self.over.add(i)
        for to in self.receivers(i) - self.delivered[i]:
            self.there[to].add(i)
        self.machine.done(i)
        own = {j for j in range(self.count) if self.tasks[j] == self.tasks[i]}
        if self.tasks[i] is not None and own <= self.over and not self.machine.has_recovered:
            self.there[self.tasks[i]].clear()  # after its last stage

    def again(self, stages):
        self.asked -= stages
        self.over -= stages

    def lose(self):
        """A durable task is lost, or just a connection to it; who was sending to it fails."""
        task = self.random.choice(DURABLE)
        is_forgotten = self.random.random() < 0.8
        self.losses += 1
        if is_forgotten:
            self.there[task].clear()
        self.again(self.machine.lost(task, is_forgotten))
        for i in sorted(self.asked):
            if i in self.asked and task in self.receivers(i) and self.random.random() < 0.5:
                self.again(self.machine.undelivered(i))

    def step(self, action):
        match action:
            case Ask(i):
                self.machine.sent(i)
                self.begin(i)
                self.asked.add(i)
            case RunHere(i):
                self.begin(i)
                self.end(i)
            case RunBeside(i):
                self.begin(i)
                self.beside.add(i)
            case Wait():
                for i in sorted(self.asked):
                    if self.random.random() < 0.3:
                        self.deliver(i)
                ready = [i for i in sorted(self.asked | self.beside) if self.can_end(i)]
                assert ready, "somebody waits for what nobody makes"
                self.end(self.random.choice(ready))
            case Finish():
                return True
        return False

    def run(self, losses):
        moments = {self.random.randint(0, 3 * self.count) for _ in range(losses)}
        for moment in range(20 * self.count + 20):
            if moment in moments:
                self.lose()
            if self.step(self.machine.decide()):
                return
        raise AssertionError("the step never ends")


@pytest.mark.parametrize("block", range(20))
def test_a_step_that_loses_tasks_at_any_moment_ends_with_every_stage_done(block):
    aborted = 0
    for seed in range(block * 100, block * 100 + 100):
        world = World(seed)
        try:
            world.run(losses=world.random.randint(1, 3))
        except errors.AbortedError:
            assert not all(world.repeatable), f"seed {seed}"
            aborted += 1
            continue
        assert world.over == set(range(world.count)), f"seed {seed}"
        if world.machine.has_recovered:
            assert world.machine.over() == {
                t for t, n in zip(world.tasks, world.runs, strict=True) if t and n
            }
    assert aborted < 30


def test_a_step_that_loses_nothing_runs_every_stage_once():
    for seed in range(300):
        world = World(seed)
        world.run(losses=0)
        assert world.runs == [1] * world.count, f"seed {seed}"
