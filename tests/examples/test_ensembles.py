"""Several networks that answer together."""

from tests.support.examples import number_after, run_example


def test_the_mean_opinion_is_better_than_the_mean_network(tmp_path):
    done = run_example(tmp_path, "ensemble_in_graph")
    reached = number_after("Final test accuracy", done.stdout)
    assert reached >= 0.9
    assert reached > number_after("of the mean network", done.stdout)


def test_the_slowest_network_is_not_waited_for(tmp_path):
    done = run_example(tmp_path, "ensemble_over_queues", chief=True, ps=1, workers=3)
    assert number_after("Final accuracy of the mean opinion", done.stdout) >= 0.85
    assert number_after("network 2:", done.stdout) >= 1  # answers that came too late
    assert done.stdout.count("no more questions") == 3
