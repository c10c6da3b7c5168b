"""Words as vectors, from a text that comes with Python."""

from tests.support.examples import number_after, run_example


def test_words_used_alike_get_similar_vectors(tmp_path):
    done = run_example(tmp_path, "word2vec")
    assert number_after("Final share of true pairs above chance", done.stdout) >= 0.65
    assert "nearest neighbours" in done.stdout
