"""A script for TensorFlow 1 as it is."""

from tests.support.examples import EXAMPLES, number_after, run_example


def test_the_unedited_script_trains_on_a_cluster(tmp_path):
    assert "import tensorflow as tf" in (EXAMPLES / "tf1_script.py").read_text()
    done = run_example(tmp_path, "tf1_script", "--log_dir", str(tmp_path / "train"), ps=1, workers=2)
    assert number_after("Test-Accuracy:", done.stdout) >= 0.86
    assert (tmp_path / "train" / "checkpoint").exists()
    assert done.stdout.count("Done\n") == 2
