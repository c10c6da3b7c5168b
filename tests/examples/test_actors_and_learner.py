"""Reinforcement learning over a queue."""

from tests.support.examples import number_after, run_example


def test_the_learner_gets_better_with_what_the_actors_send(tmp_path):
    done = run_example(tmp_path, "actors_and_learner", ps=1, workers=3)
    assert number_after("Final mean length", done.stdout) >= 150
    assert "Actor 1 played" in done.stdout and "Actor 2 played" in done.stdout
