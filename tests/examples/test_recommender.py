"""Sparse embeddings over four parameter servers."""

from tests.support.examples import number_after, run_example, try_example


def test_ratings_kept_back_are_foretold(tmp_path):
    done = try_example(tmp_path, "recommender", ps=4, workers=2)
    if (
        "could not be fetched" in done.stdout + done.stderr
    ):  # no network: with ratings of people who do not exist
        done = run_example(tmp_path, "recommender", "--data", "generated", "--epochs", "5", ps=4, workers=2)
    assert done.code == 0, done.stdout + done.stderr
    assert number_after("Final test AUC", done.stdout) >= 0.74
    assert "ps/task:3: 50000 rows" in done.stdout
