"""Networks with different hyper-parameters on different devices."""

import importlib.util

from tests.support.examples import number_after, run_example


def test_the_search_finds_a_good_choice_and_gives_up_the_bad_ones(tmp_path):
    done = run_example(tmp_path, "hyperparameter_search", "--plot", "search.svg")
    assert number_after("Final test accuracy", done.stdout) >= 0.9
    assert "Best: learning rate 0.3" in done.stdout
    assert "(  60)" in done.stdout and "( 900)" in done.stdout  # steps of the worst and of the best
    drawn = (tmp_path / "search.svg").exists()
    assert drawn == (importlib.util.find_spec("matplotlib") is not None)
    assert drawn or "No plot: it needs matplotlib" in done.stdout
