"""`tensorfleet guard` and `tensorfleet standby`: their options, without servers."""

import json

import pytest
from typer.testing import CliRunner

from tensorfleet.cli.command import app
from tensorfleet.cli.standby_command import cluster_of
from tensorfleet.cluster.durability import standby

CLUSTER = json.dumps({"ps": ["a:1", "b:1"], "worker": ["c:1"]})


def call(*arguments):
    """The exit code of a command, and its output as one line."""
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "300", "NO_COLOR": "1"})
    return done.exit_code, " ".join(done.output.replace("│", " ").split())


def test_a_standby_serves_its_task_at_its_own_address(monkeypatch):
    served = []
    monkeypatch.setattr(standby, "serve", lambda *given: served.append(given))
    code, text = call("standby", "--task", "ps/1", "--listen", "d:2", "--cluster", CLUSTER)
    assert code == 0, text
    ((cluster, job, index, address),) = served
    assert (cluster.as_dict(), job, index, address) == (json.loads(CLUSTER), "ps", 1, "d:2")


def test_a_cluster_may_be_in_a_file_as_in_tf_config(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"cluster": {"ps": {"3": "a:1"}}}))
    assert cluster_of(str(path), "ps", 3) == {"ps": {3: "a:1"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--task", "ps", "--listen", "d:2", "--cluster", CLUSTER),
            "'ps' is not a task. Write for example ps/0.",
        ),
        (("--task", "ps/2", "--listen", "d:2", "--cluster", CLUSTER), "The cluster has no task ps/2."),
        (
            ("--task", "ps/0", "--listen", "d", "--cluster", CLUSTER),
            "'d' is not an address. Write host:port.",
        ),
        (("--task", "ps/0", "--listen", "d:2", "--cluster", "{"), "This is not valid JSON"),
        (("--task", "ps/0", "--listen", "d:2", "--cluster", "absent"), "Cannot read absent: No such file"),
        (
            ("--task", "ps/0", "--listen", "d:2", "--cluster", '{"ps": "a:1"}'),
            "The tasks of 'ps' are 'a:1'. Give a list of addresses.",
        ),
    ],
)
def test_a_mistake_about_a_standby_is_named(arguments, message):
    code, text = call("standby", *arguments)
    assert code == 2 and message in text


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (("ps/0",), "'ps/0' does not name two servers. Write for example ps/0=alpha:2222,beta:2222."),
        (("ps/0=a:1",), "does not name two servers"),
        (("ps/0=a:1,a:1",), "ps/0 has one address twice. Its standby needs an address of its own."),
        (("ps/7=a:1,b:1",), "The cluster has no task ps/7."),
        (("ps/0=a:1,d:1", "ps/0=a:1,e:1"), "A task is named twice. Name each once."),
    ],
)
def test_a_mistake_about_guarded_tasks_is_named(tasks, message):
    options = [word for task in tasks for word in ("--task", task)]
    code, text = call("guard", "--cluster", CLUSTER, *options)
    assert code == 2 and message in text
