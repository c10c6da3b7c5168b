"""Stages of steps that were not recorded are left out, with all that is inside them."""

from tensorfleet.fleet.recorded_steps import recorded_steps, without_other_steps

STEPS = {("s", 2)}


def event(kind, began, ended, thread=1, **args):
    return [kind, kind, began, ended, thread, args]


def stage(began, ended, step, thread=1, session="s"):
    return event("stage", began, ended, thread, session=session, step=step)


def test_the_recorded_steps_are_those_of_sessions():
    assert (
        recorded_steps([event("step", 0, 1, session="s", step=2), event("step", 1, 2), stage(0, 1, 1)])
        == STEPS
    )


def test_a_stage_of_another_step_goes_with_what_is_inside_it():
    kept = [stage(10, 20, 2), event("segment", 11, 12)]
    others = [stage(0, 9, 1), event("segment", 1, 2), stage(30, 40, 3), event("wait", 31, 40)]
    assert without_other_steps(kept + others, STEPS) == kept


def test_what_other_threads_do_meanwhile_stays():
    kept = [event("input", 1, 2, thread=2)]
    assert without_other_steps([stage(0, 9, 1), *kept], STEPS) == kept


def test_sessions_that_were_not_recorded_keep_all_their_stages():
    kept = [stage(0, 9, 1, session="elsewhere")]
    assert without_other_steps(kept, STEPS) == kept


def test_a_transfer_of_another_step_goes_wherever_it_is():
    assert without_other_steps([event("receive", 0, 1, session="s", step=1)], STEPS) == []
