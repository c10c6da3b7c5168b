"""Each example reaches what its docstring promises, run by the command that it shows."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tensorfleet.testing.cluster import free_addresses
from tests.support.examples import EXAMPLES, SECONDS, number_after, run_example, try_example
from tests.support.launching import launched
from tests.support.tasks import output

pytestmark = pytest.mark.slow  # left out by `make quick`

# -- handwritten digits, read by one process ---------------------------------------------------------


def test_digits_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "digits")
    assert number_after("Final test accuracy", done.stdout) >= 0.97
    assert "\r" not in done.stdout  # progress overwrites its line on a terminal only


def test_digits_says_when_it_misses_its_target(tmp_path):
    done = try_example(tmp_path, "digits", "--steps", "2", "--batch_size", "8", "--seed", "3")
    assert done.code == 1
    assert number_after("Final test accuracy", done.stdout) < 0.97
    assert "The target was missed: try more --steps" in done.stderr


def test_digits_refuses_impossible_flags(tmp_path):
    done = try_example(tmp_path, "digits", "--steps", "0")
    assert done.code == 2
    assert "--steps and --batch_size must be at least 1" in done.stderr


# -- the four ways to train one network on several workers -------------------------------------------


def test_one_graph_with_one_optimizer_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "in_graph_sync", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88


def test_one_graph_with_an_optimizer_per_copy_reaches_its_target(tmp_path):
    done = run_example(tmp_path, "in_graph_async", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    steps = [number_after(f"Copy {i} on worker {i} made", done.stdout) for i in (0, 1)]
    assert sum(steps) >= 800 and min(steps) > 0


@pytest.mark.parametrize("name", ["between_graph_sync", "between_graph_async"])
def test_graphs_of_their_own_reach_the_target(tmp_path, name):
    done = run_example(tmp_path, name, ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "[worker/0] Final" in done.stdout and "[worker/1] Final" in done.stdout


def test_started_alone_it_says_how_to_start_it():
    environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    environment["PYTHONPATH"] = str(EXAMPLES.parent)
    command = [sys.executable, str(EXAMPLES / "in_graph_sync.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "tensorfleet run --ps 1 --workers 2" in done.stderr


# -- several devices in each of several workers ------------------------------------------------------


def test_towers_of_all_workers_make_a_step_together(tmp_path):
    done = run_example(tmp_path, "towers", "--sync", "--steps", "300", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "/job:worker/task:1/device:CPU:1" in done.stdout


def test_the_parameter_server_ends_by_itself_when_the_workers_are_done(tasks):
    cluster = free_addresses(ps=1, worker=2)
    order = (("ps", 0), ("worker", 0), ("worker", 1))
    started = [tasks.start(EXAMPLES / "towers.py", task=(cluster, job, index)) for job, index in order]
    said = [output(task) for task in started]
    assert "is done (2 of 2)" in said[0]
    assert number_after("Final test accuracy", said[1]) >= 0.88


# -- asynchronous training with a slow worker --------------------------------------------------------


def test_all_policies_train_and_waiting_bounds_how_stale_gradients_are(tmp_path):
    done = run_example(tmp_path, "bounded_staleness", "--bound", "2", ps=1, workers=3)
    assert number_after("the worst of the four,", done.stdout) >= 0.82
    rows = re.findall(r"(measure|scale|drop|wait) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+)", done.stdout)
    assert [policy for policy, _ in rows] == ["measure", "scale", "drop", "wait"]
    # Each of the two others can be from 3 steps behind to 3 steps ahead.
    assert int(rows[-1][1]) <= 2 * 2 * 3


# -- a recurrent network with its layers on different tasks ------------------------------------------


def test_layers_on_two_tasks_learn_together(tmp_path):
    done = run_example(tmp_path, "model_parallel_rnn", workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.85
    assert number_after("/job:worker/task:0           ", done.stdout) > 1000
    assert number_after("/job:worker/task:1           ", done.stdout) > 1000


# -- several networks that answer together -----------------------------------------------------------


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


# -- networks with different hyper-parameters on different devices -----------------------------------


def test_the_search_finds_a_good_choice_and_gives_up_the_bad_ones(tmp_path):
    done = run_example(tmp_path, "hyperparameter_search", "--plot", "search.svg")
    assert number_after("Final test accuracy", done.stdout) >= 0.9
    assert "Best: learning rate 0.3" in done.stdout
    assert "(  60)" in done.stdout and "( 900)" in done.stdout  # steps of the worst and of the best
    drawn = (tmp_path / "search.svg").exists()
    assert drawn == (importlib.util.find_spec("matplotlib") is not None)
    assert drawn or "No plot: it needs matplotlib" in done.stdout


# -- reinforcement learning over a queue -------------------------------------------------------------


def test_the_learner_gets_better_with_what_the_actors_send(tmp_path):
    done = run_example(tmp_path, "actors_and_learner", ps=1, workers=3)
    assert number_after("Final mean length", done.stdout) >= 150
    assert "Actor 1 played" in done.stdout and "Actor 2 played" in done.stdout


# -- sparse embeddings over four parameter servers ---------------------------------------------------


def test_ratings_kept_back_are_foretold(tmp_path):
    done = try_example(tmp_path, "recommender", ps=4, workers=2)
    if (
        "could not be fetched" in done.stdout + done.stderr
    ):  # no network: with ratings of people who do not exist
        done = run_example(tmp_path, "recommender", "--data", "generated", "--epochs", "5", ps=4, workers=2)
    assert done.code == 0, done.stdout + done.stderr
    assert number_after("Final test AUC", done.stdout) >= 0.74
    assert "ps/task:3: 50000 rows" in done.stdout


# -- a network of Flax with an optimizer of Optax ----------------------------------------------------


def test_a_flax_network_trains_on_a_parameter_server(tmp_path):
    done = run_example(tmp_path, "jax_models", ps=1, workers=2)
    assert number_after("Final test accuracy", done.stdout) >= 0.97
    assert "[worker/0] Made" in done.stdout and "[worker/1] Made" in done.stdout


# -- words as vectors, from a text that comes with Python --------------------------------------------


def test_words_used_alike_get_similar_vectors(tmp_path):
    done = run_example(tmp_path, "word2vec")
    assert number_after("Final share of true pairs above chance", done.stdout) >= 0.65
    assert "nearest neighbours" in done.stdout


# -- an estimator on a cluster with an evaluator, and alone ------------------------------------------


def test_the_evaluator_sees_the_target_reached(tmp_path):
    tasks = ["--ps", "1", "--chief", "--workers", "1", "--evaluator"]
    command = [
        "run",
        *tasks,
        str(EXAMPLES / "estimator_cluster.py"),
        "--",
        "--model_dir",
        str(tmp_path / "m"),
    ]
    with launched(tmp_path, *command) as launch:
        done = launch.end(SECONDS)
    assert done.code == 0, done.stdout + done.stderr
    assert number_after("Final test accuracy", done.stdout) >= 0.88
    assert "[evaluator/0] Final" in done.stdout
    assert "chief 0 has done its part" in done.stdout and "worker 0 has done its part" in done.stdout
    (result,) = os.listdir(tmp_path / "m" / "export" / "final")
    assert os.path.exists(tmp_path / "m" / "export" / "final" / result / "saved_model.pb")


def test_one_process_trains_and_evaluates_in_turn(tmp_path):
    done = run_example(tmp_path, "estimator_cluster", "--steps", "400")
    assert number_after("Final test accuracy", done.stdout) >= 0.88


# -- a script for TensorFlow 1 as it is --------------------------------------------------------------


def test_the_unedited_script_trains_on_a_cluster(tmp_path):
    assert "import tensorflow as tf" in (EXAMPLES / "tf1_script.py").read_text()
    done = run_example(tmp_path, "tf1_script", "--log_dir", str(tmp_path / "train"), ps=1, workers=2)
    assert number_after("Test-Accuracy:", done.stdout) >= 0.86
    assert (tmp_path / "train" / "checkpoint").exists()
    assert done.stdout.count("Done\n") == 2
