"""The decisions of a step over several tasks, in many orders of events. No task, socket or thread is involved."""

import random

import pytest

from tensorfleet.base import errors
from tensorfleet.cluster.master.step_machine import (
    Ask,
    Fail,
    Finish,
    RunBeside,
    RunHere,
    StageRule,
    StepMachine,
    StepRules,
    Wait,
)

TASKS = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:1")
CANCELLED = errors.CancelledError(None, None, "The session was closed.")


def rules(*stages):
    return StepRules([StageRule(**stage) for stage in stages])


def remote(task=TASKS[0], waits=0, followers=(), **more):
    return {"task": task, "waits": waits, "followers": followers, **more}


def own(waits=0, followers=(), **more):
    return {"task": None, "waits": waits, "followers": followers, **more}


def decided(machine):
    action = machine.decide()
    return type(action), getattr(action, "stage", None)


# -- single decisions ---------------------------------------------------------------------------------


def test_a_step_without_stages_is_finished_at_once():
    assert decided(StepMachine(rules())) == (Finish, None)


def test_other_tasks_are_asked_before_this_process_does_its_own_share():
    machine = StepMachine(rules(own(), remote(), own(), remote(TASKS[1])))
    for stage in (1, 3):
        assert decided(machine) == (Ask, stage)
        machine.sent(stage)
    assert decided(machine) == (RunHere, 0)


def test_a_stage_that_may_wait_runs_beside_when_there_is_more_to_do():
    machine = StepMachine(rules(remote(), own(blocks=True)))
    machine.decide()
    machine.sent(0)
    assert decided(machine) == (RunBeside, 1)
    assert decided(machine) == (Wait, None)


def test_a_stage_that_may_wait_runs_in_the_thread_of_the_caller_when_it_is_alone():
    assert decided(StepMachine(rules(own(blocks=True)))) == (RunHere, 0)


def test_what_is_read_without_asking_leaves_the_next_stage_alone():
    machine = StepMachine(rules(remote(followers=(1,)), own(waits=1, blocks=True)))
    assert decided(machine) == (Ask, 0)
    machine.done(0)  # read from shared memory: the task was never asked
    assert decided(machine) == (RunHere, 1)
    assert machine.failed()[1] == []


def test_a_stage_starts_when_the_last_of_those_it_waits_for_is_done():
    machine = StepMachine(rules(remote(followers=(2,)), remote(TASKS[1], followers=(2,)), own(waits=2)))
    for stage in (0, 1):
        machine.decide()
        machine.sent(stage)
    machine.done(1)
    assert decided(machine) == (Wait, None)
    machine.done(0)
    assert decided(machine) == (RunHere, 2)


def test_a_step_that_is_cancelled_before_its_first_stage_asks_nobody():
    machine = StepMachine(rules(remote()))
    assert machine.cancel(CANCELLED) == []
    assert machine.decide() == Fail(CANCELLED)


def test_a_step_that_is_cancelled_when_all_is_done_keeps_its_results():
    machine = StepMachine(rules(remote()))
    machine.decide()
    machine.sent(0)
    machine.done(0)
    machine.cancel(CANCELLED)
    assert decided(machine) == (Finish, None)


def test_a_step_that_is_cancelled_while_a_task_works_tells_that_task():
    machine = StepMachine(rules(remote(TASKS[1])))
    machine.decide()
    machine.sent(0)
    assert machine.cancel(CANCELLED) == [TASKS[1]]
    assert machine.decide() == Fail(CANCELLED)


def test_the_first_reason_counts():
    machine = StepMachine(rules(remote()))
    machine.cancel(CANCELLED)
    machine.cancel(errors.CancelledError(None, None, "Again."))
    assert machine.reason is CANCELLED


def test_the_error_of_a_stage_is_raised_and_not_the_cancelling_that_it_caused():
    machine = StepMachine(rules(remote()))
    failure = errors.InvalidArgumentError(None, None, "bad")
    assert machine.error_to_raise(failure, forced=False) is failure


def test_whoever_cancels_a_step_reads_the_reason():
    machine = StepMachine(rules(remote()))
    machine.cancel(CANCELLED)
    lost = errors.UnavailableError(None, None, "Socket closed")
    assert machine.error_to_raise(errors.CancelledError(None, None, "by the task"), False) is CANCELLED
    assert machine.error_to_raise(lost, forced=True) is CANCELLED
    assert machine.error_to_raise(lost, forced=False) is lost


def test_elements_of_a_queue_that_come_too_late_are_given_back():
    machine = StepMachine(rules(remote(takes=True), remote(TASKS[1])))
    for stage in (0, 1):
        machine.decide()
        machine.sent(stage)
    machine.failed()
    assert machine.late_answer(0, succeeded=True)
    assert not machine.late_answer(1, succeeded=True)


def test_a_dequeue_that_failed_has_nothing_to_give_back():
    machine = StepMachine(rules(remote(takes=True)))
    machine.decide()
    machine.sent(0)
    machine.failed()
    assert not machine.late_answer(0, succeeded=False)


def test_a_task_that_keeps_something_for_an_iteration_hears_of_the_end_of_the_whole_step():
    whole = StepMachine(rules(own()))
    iteration = StepMachine(rules(remote(TASKS[2], holds=True)), whole)
    iteration.decide()
    iteration.sent(0)
    iteration.done(0)
    assert iteration.over() == set()
    assert whole.over() == {TASKS[2]}
    assert whole.over() == set()


# -- random programs in random orders -----------------------------------------------------------------


class World:
    """Carries out the actions of a machine, and lets stages end in any order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = self.random.randint(1, 12)
        self.before = [
            {j for j in range(i) if self.random.random() < 1.5 / self.count} for i in range(self.count)
        ]
        self.stages = [self._stage(i) for i in range(self.count)]
        self.machine = StepMachine(StepRules(self.stages))
        self.asked, self.beside, self.over = set(), set(), set()
        self.begun, self.asked_tasks = [], set()

    def _stage(self, i):
        task = self.random.choice((None, *TASKS))
        return StageRule(
            task=task,
            waits=len(self.before[i]),
            followers=[j for j in range(i + 1, self.count) if i in self.before[j]],
            blocks=task is None and self.random.random() < 0.5,
            holds=task is not None and self.random.random() < 0.2,
            takes=task is not None and self.random.random() < 0.3,
        )

    def begin(self, i):
        assert i not in self.begun, "a stage starts once"
        assert self.before[i] <= self.over, "a stage starts after those it waits for"
        self.begun.append(i)

    def end(self, i):
        self.asked.discard(i)
        self.beside.discard(i)
        self.over.add(i)
        self.machine.done(i)

    def carry_out(self, action):
        """Carries out one action; gives whether the step is over."""
        match action:
            case Ask(i):
                assert self.stages[i].task is not None
                self.begin(i)
                if self.random.random() < 0.3:  # read from shared memory
                    self.end(i)
                else:
                    self.machine.sent(i)
                    self.asked.add(i)
                    self.asked_tasks.add(self.stages[i].task)
            case RunHere(i):
                assert self.stages[i].task is None
                assert not (self.stages[i].blocks and (self.asked or self.beside)), (
                    "nobody would hear the others"
                )
                self.begin(i)
                self.end(i)
            case RunBeside(i):
                assert self.stages[i].task is None and self.stages[i].blocks
                self.begin(i)
                self.beside.add(i)
            case Wait():
                under_way = sorted(self.asked | self.beside)
                assert under_way, "to wait for nothing would be to wait for ever"
                for i in self.random.sample(under_way, self.random.randint(1, len(under_way))):
                    self.end(i)
            case Finish():
                return True
        return False

    def run(self, before_each=lambda: None):
        """Runs to the end, or to the reason why it was cancelled."""
        for _ in range(10 * self.count + 10):
            before_each()
            action = self.machine.decide()
            if isinstance(action, Fail):
                return action.reason
            if self.carry_out(action):
                return None
        raise AssertionError("the step never ends")


@pytest.mark.parametrize("block", range(10))
def test_every_stage_runs_once_and_the_step_ends_in_any_order(block):
    for seed in range(block * 100, block * 100 + 100):
        world = World(seed)
        assert world.run() is None
        assert sorted(world.begun) == list(range(world.count)), f"seed {seed}"
        assert not world.asked and not world.beside
        held = {s.task for i, s in enumerate(world.stages) if s.holds and s.task in world.asked_tasks}
        assert world.machine.over() <= held


@pytest.mark.parametrize("block", range(10))
def test_a_step_that_is_cancelled_at_any_moment_ends_and_tells_every_task_that_was_asked(block):
    for seed in range(block * 100, block * 100 + 100):
        world = World(seed)
        moment = world.random.randint(0, 2 * world.count)
        moments = iter(range(10 * world.count + 20))

        def maybe_cancel(world=world, moments=moments, moment=moment):
            if next(moments) == moment:
                assert set(world.machine.cancel(CANCELLED)) == world.asked_tasks

        reason = world.run(maybe_cancel)
        if reason is None:
            assert sorted(world.begun) == list(range(world.count)), f"seed {seed}"
            continue
        assert reason is CANCELLED
        told, tasks = world.machine.failed()
        assert told is CANCELLED and set(tasks) == world.asked_tasks
        assert world.machine.error_to_raise(reason, False) is CANCELLED


@pytest.mark.parametrize("block", range(10))
def test_after_a_failure_nothing_starts_and_late_answers_are_settled(block):
    for seed in range(block * 100, block * 100 + 100):
        world = World(seed)
        for _ in range(world.random.randint(0, 2 * world.count)):
            if world.carry_out(world.machine.decide()):
                break
        error = errors.UnavailableError(None, None, "Socket closed")
        reason, tasks = world.machine.failed()
        assert isinstance(reason, errors.CancelledError) and set(tasks) == world.asked_tasks
        assert world.machine.error_to_raise(error, False) is error
        for i in list(world.asked):
            succeeded = world.random.random() < 0.5
            assert world.machine.late_answer(i, succeeded) == (succeeded and world.stages[i].takes)
            world.asked.discard(i)
        action = world.machine.decide()
        assert isinstance(action, (Wait, Finish)), f"seed {seed}: {action} after the failure"
        assert world.machine.over() <= world.asked_tasks
