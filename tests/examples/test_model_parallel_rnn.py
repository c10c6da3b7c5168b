"""A recurrent network with its layers on different tasks."""

from tests.support.examples import number_after, run_example


def test_layers_on_two_tasks_learn_together(tmp_path):
    done = run_example(tmp_path, "model_parallel_rnn", workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.85
    assert number_after("/job:worker/task:0           ", done.stdout) > 1000
    assert number_after("/job:worker/task:1           ", done.stdout) > 1000
