"""Programs that use the parameter servers without a graph reach their targets."""

from tests.support.examples import number_after, run_example


def test_a_network_of_flax_trains_on_several_servers(tmp_path):
    done = run_example(tmp_path, "library_flax", "--epochs", "25", ps=2, workers=2)
    assert number_after("Test accuracy", done.stdout) >= 0.95
    assert done.stdout.count("is done") == 2


def test_it_trains_with_all_gradients_together_too(tmp_path):
    flags = ["--epochs", "30", "--consistency", "bsp"]
    done = run_example(tmp_path, "library_flax", *flags, ps=1, workers=2)
    assert number_after("Test accuracy", done.stdout) >= 0.95


def test_the_servers_run_ftrl_on_the_rows_of_hashed_features(tmp_path):
    done = run_example(tmp_path, "sparse_ftrl", "--batches", "200", ps=2, workers=2)
    assert number_after("Area under the curve", done.stdout) >= 0.75
    assert number_after("done:", done.stdout) > 10_000
