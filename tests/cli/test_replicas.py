"""Which standbys a run has, and how they are started."""

import json

import pytest

from tensorfleet.cli.engines.base import EngineNode, TaskResources, Wanted
from tensorfleet.cli.plan import Place, Wishes, plan
from tensorfleet.cli.replicas import check_standbys_in_file, with_standbys, with_standbys_wanted

SCRIPT = """
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
cluster = tf.train.ClusterSpec({"ps": [], "worker": []})
tf.train.Server(cluster)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def planned(script, node=None):
    """The tasks of two parameter servers with standbys and a worker, and the pairs."""
    cluster = {"ps": [Place("a:1", node), Place("b:1", node)], "worker": [Place("c:1", node)]}
    tasks = plan(Wishes(str(script), environment={"E": "1"}), cluster, "secret-token")
    places = {f"ps-standby/{i}": Place(f"s{i}:1", node) for i in range(2)}
    return with_standbys(tasks, places, script)


def test_each_parameter_server_has_a_standby_that_serves(script):
    tasks, pairs = planned(script)
    assert [task.label for task in tasks] == ["ps/0", "ps/1", "ps-standby/0", "ps-standby/1", "worker/0"]
    assert [task.serves for task in tasks] == [True] * 4 + [False]
    assert [pair.labels for pair in pairs] == [("ps/0", "ps-standby/0"), ("ps/1", "ps-standby/1")]
    assert tasks[3].address == "s1:1"


def test_both_servers_know_both_places_and_nobody_else_does(script):
    tasks, _ = planned(script)
    places = [json.loads(task.environment.get("TENSORFLEET_PLACES", "[]")) for task in tasks]
    assert places == [["a:1", "s0:1"], ["b:1", "s1:1"], ["a:1", "s0:1"], ["b:1", "s1:1"], []]


def test_a_standby_has_a_command_of_its_own_and_the_token(script):
    tasks, _ = planned(script, EngineNode("n", "/opt/python"))
    command, environment = tasks[2].command, tasks[2].environment
    assert command[:4] == ["/opt/python", "-m", "tensorfleet", "standby"]
    assert command[4:8] == ["--task", "ps/0", "--listen", "s0:1"]
    assert json.loads(command[9]) == {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
    assert environment["TENSORFLEET_TOKEN"] == "secret-token" and environment["E"] == "1"
    assert environment["CUDA_VISIBLE_DEVICES"] == "" and "TENSORFLEET_SERVES" not in environment


def test_a_parameter_server_is_started_again_as_a_standby_at_its_own_address(script):
    tasks, pairs = planned(script)
    again = pairs[1].as_standby(tasks[1])
    assert again.command[4:8] == ["--task", "ps/1", "--listen", "b:1"]
    assert (again.label, again.address) == ("ps/1", "b:1")


def test_a_standby_calls_the_jobs_as_the_script_does(script):
    script.write_text(SCRIPT.replace('{"ps": [], ', '{"PS": [], '))
    tasks, pairs = planned(script)
    assert tasks[2].command[5] == f"{pairs[0].job}/0" == "PS/0"
    assert "PS" in json.loads(tasks[2].command[9])


def test_standbys_are_asked_for_like_parameter_servers(script):
    wanted = [
        Wanted("ps", 0, True, TaskResources(2.0)),
        Wanted("worker", 0, False, TaskResources(2.0, gpus=1)),
    ]
    assert with_standbys_wanted(wanted, str(script)) == [
        wanted[0],
        Wanted("ps-standby", 0, True, TaskResources(2.0)),
        wanted[1],
    ]


def test_a_run_without_parameter_servers_has_no_standbys(script):
    with pytest.raises(ValueError, match="train.py has none. Add for example --ps 1"):
        with_standbys_wanted([Wanted("worker", 0, False)], str(script))


def test_a_script_with_addresses_of_its_own_has_no_standbys(script):
    addresses = '{"ps": ["localhost:2222"], "worker": ["localhost:2223"]}'
    script.write_text(f"import tensorflow as tf\ntf.train.Server(tf.train.ClusterSpec({addresses}))\n")
    with pytest.raises(ValueError, match="has the addresses of its tasks written in it"):
        with_standbys_wanted([Wanted("ps", 0, True)], str(script))


@pytest.mark.parametrize(
    ("counts", "durable", "error"),
    [
        ({"ps": 1, "ps-standby": 1}, False, "has a job ps-standby. Add --replicas 1"),
        ({"ps": 2, "ps-standby": 1}, True, "has 2 parameter servers and 1 standbys"),
        ({"ps": 1, "worker": 1}, True, "Add a job `ps-standby` with 1 tasks"),
    ],
)
def test_a_cluster_file_has_a_standby_for_each_parameter_server(tmp_path, counts, durable, error):
    with pytest.raises(ValueError, match=error):
        check_standbys_in_file(tmp_path / "cluster.yaml", counts, durable)
