"""How many tasks of which job a run has."""

from importlib.metadata import version

import pytest

import tensorfleet as tf
from tensorfleet.cli.engines.base import RunOptions, TaskResources
from tensorfleet.cli.engines.registry import make_engine
from tensorfleet.cli.plan import Wishes
from tensorfleet.cli.run_request import RunRequest
from tensorfleet.cli.task_counts import Asked
from tests.support.launching import launched, run

ESTIMATOR = "import tensorflow as tf\ntf.estimator.train_and_evaluate(estimator, train, test)\n"
CLUSTER = "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')\ntf.train.Server(a, b)\n"


@pytest.fixture
def labels(tmp_path):
    def of(source, asked, cluster=None):
        script = tmp_path / "train.py"
        script.write_text(source)
        options = RunOptions("train", script, cluster_file=cluster)
        engine = make_engine("ssh" if cluster else "local", options)
        request = RunRequest.of(Wishes(str(script), []), asked, engine, TaskResources())
        return [task.label for task in request.tasks_at(engine.preview(request.wanted))]

    return of


def test_a_script_that_trains_and_evaluates_gets_an_evaluator(labels, capsys):
    assert labels(ESTIMATOR, Asked(ps=1, workers=2)) == ["ps/0", "chief/0", "worker/0", "evaluator/0"]
    assert (
        "calls train_and_evaluate. Starting an evaluator too (--no-evaluator for none)"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("source", "asked", "evaluators"),
    [
        (ESTIMATOR, Asked(ps=1, workers=2, evaluator=False), 0),
        (ESTIMATOR, Asked(ps=1, chief=True, workers=0, evaluator=True), 1),
        (ESTIMATOR, Asked(ps=0, workers=1), 0),  # one task trains and evaluates
        (ESTIMATOR, Asked(), 0),
        (CLUSTER, Asked(ps=1, workers=2), 0),
        (
            "import tensorflow as tf\ntf.contrib.learn.Experiment(a).train_and_evaluate()\n",
            Asked(workers=2),
            0,
        ),
    ],
)
def test_only_who_needs_an_evaluator_gets_one(labels, source, asked, evaluators):
    assert sum(label.startswith("evaluator") for label in labels(source, asked)) == evaluators


def test_a_cluster_file_without_an_evaluator_is_said_to_have_none(labels, tmp_path, capsys):
    file = tmp_path / "cluster.yaml"
    file.write_text("hosts: {a: 10.0.0.1}\njobs: {ps: {a: 1}, chief: {a: 1}, worker: {a: 1}}\n")
    assert labels(ESTIMATOR, Asked(), file) == ["ps/0", "chief/0", "worker/0"]
    assert f"Add a job evaluator with one task to {file}" in capsys.readouterr().err
    labels(ESTIMATOR, Asked(evaluator=False), file)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("asked", [Asked(ps=2, workers=0), Asked(workers=0)])
def test_parameter_servers_without_workers_are_refused(labels, asked, capsys):
    with pytest.raises(ValueError, match="The run has only parameter servers. Add for example --workers 1"):
        labels(CLUSTER, asked)
    assert capsys.readouterr().err == ""  # no advice beside it


def test_no_task_at_all_is_refused(labels):
    with pytest.raises(ValueError, match="The run has no tasks. Add for example --workers 1"):
        labels(CLUSTER, Asked(ps=0, workers=0))


def test_the_version_is_our_own_beside_tensorflows(tmp_path):
    message = run(tmp_path, "--version").stdout
    assert message.startswith(
        f"tensorfleet {tf.fleet.__version__} (TensorFlow {tf.__version__}'s API; Python "
    )
    assert tf.fleet.__version__ == version("tensorfleet")


WAITING = "import signal\nprint('waiting', flush=True)\nsignal.pause()\n"


def test_stop_needs_a_name_where_there_are_several_runs(tmp_path):
    (tmp_path / "wait.py").write_text(WAITING)
    with launched(tmp_path, "run", "--name", "a", "wait.py") as first:
        first.read_until("waiting")
        with launched(tmp_path, "run", "--name", "b", "wait.py") as second:
            second.read_until("waiting")
            refused = run(tmp_path, "stop")
            assert (refused.code, refused.stdout) == (2, "")
            assert refused.stderr == "There are several runs. Running: a, b. Give a name, or --all.\n"
            wrong = run(tmp_path, "stop", "a", "c")
            assert (wrong.code, wrong.stderr) == (1, "No run named c on this machine. Running: a, b.\n")
            assert run(tmp_path, "stop", "b").stdout == "b: stopped\n"
            second.end()
        assert run(tmp_path, "stop").stdout == "a: stopped\n"
        first.end()


def test_all_runs_are_stopped_when_asked_for(tmp_path):
    (tmp_path / "wait.py").write_text(WAITING)
    with launched(tmp_path, "run", "--name", "a", "wait.py") as first:
        with launched(tmp_path, "run", "--name", "b", "wait.py") as second:
            first.read_until("waiting")
            second.read_until("waiting")
            assert run(tmp_path, "stop", "--all").stdout == "a: stopped\nb: stopped\n"
            first.end()
            second.end()
