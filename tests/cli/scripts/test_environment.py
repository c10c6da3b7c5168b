"""Scripts that learn their task from variables of the environment, under the names of their managers."""

import json

import pytest

from tensorfleet.cli.plan import Place, Wishes, is_for_clusters, plan
from tensorfleet.cli.scripts.environment import variables_of

CLUSTER = {"worker": [Place("h:3"), Place("h:4")], "ps": [Place("h:2")]}


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def told(path, *names):
    """What each task is told by these variables, as the launcher starts them: servers first."""
    tasks = plan(Wishes(str(path)), CLUSTER, "secret")
    return [tuple(task.environment.get(name) for name in names) for task in tasks]


def test_the_names_of_a_manager(script):
    path = script(
        "import os, json\n"
        "cluster = tf.train.ClusterSpec(json.loads(os.environ['TF_CLUSTER_DEF']))\n"
        "role = os.environ.get('TF_ROLE')\nindex = int(os.getenv('TF_INDEX', 0))\n"
    )
    assert is_for_clusters(path)
    assert told(path, "TF_ROLE", "TF_INDEX") == [("ps", "0"), ("worker", "0"), ("worker", "1")]
    spec = json.loads(told(path, "TF_CLUSTER_DEF")[0][0])
    assert spec == {"ps": ["h:2"], "worker": ["h:3", "h:4"]}


def test_names_that_a_module_has_as_constants(script):
    script("import os\nKIND = 'TYPE'\njob, index = os.environ[KIND], os.environ['INDEX']\n", "params.py")
    path = script("import params\nserver = tf.train.Server(cluster, params.job)\n")
    assert told(path, "TYPE", "INDEX") == [("ps", "0"), ("worker", "0"), ("worker", "1")]


def test_a_word_of_the_manager_before_the_names(script):
    path = script("import os\njob = os.environ['YARNTF_JOB_NAME']\ni = os.environ['YARNTF_TASK_INDEX']\n")
    names = ("YARNTF_JOB_NAME", "YARNTF_TASK_INDEX")
    assert told(path, *names) == [("ps", "0"), ("worker", "0"), ("worker", "1")]


def test_paddles_names_for_roles_and_addresses(script):
    path = script(
        "import os\nrole = os.getenv('TRAINING_ROLE')\nnumber = int(os.getenv('PADDLE_TRAINER_ID', '0'))\n"
        "servers = os.getenv('PADDLE_PSERVERS_IP_PORT_LIST').split(',')\n"
        "trainers, own = os.getenv('PADDLE_TRAINER_ENDPOINTS'), (os.getenv('POD_IP'), os.getenv('PADDLE_PORT'))\n"
        "server = tf.train.Server({'ps': servers}, 'ps' if role == 'PSERVER' else 'worker', number)\n"
    )
    assert is_for_clusters(path)
    names = ("TRAINING_ROLE", "PADDLE_TRAINER_ID", "PADDLE_PORT")
    assert told(path, *names) == [("PSERVER", "0", "2"), ("TRAINER", "0", "3"), ("TRAINER", "1", "4")]
    lists = ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "POD_IP")
    assert told(path, *lists)[0] == ("h:2", "h:3,h:4", "h")


def test_slurm_gives_each_task_a_machine(script):
    path = script(
        "import os\nfrom tensorflow.train import Server\n"
        "nodes, own = os.environ['SLURM_JOB_NODELIST'], os.environ['SLURMD_NODENAME']\n"
        "rank, count = os.environ['SLURM_PROCID'], os.environ['SLURM_NTASKS']\ntf.train.ClusterSpec({})\n"
    )
    names = ("SLURM_JOB_NODELIST", "SLURMD_NODENAME", "SLURM_PROCID", "SLURM_NTASKS")
    assert is_for_clusters(path)
    assert told(path, *names) == [("node[1-3]", f"node{i + 1}", str(i), "3") for i in range(3)]


def test_a_resolver_reads_its_manager_for_the_script(script):
    path = script(
        "resolver = tf.distribute.cluster_resolver.SlurmClusterResolver({'ps': 1, 'worker': 2})\n"
        "tf.train.Server(resolver.cluster_spec(), *resolver.get_task_info())\n"
    )
    names = ("SLURM_JOB_NODELIST", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE")
    assert is_for_clusters(path)
    assert told(path, *names) == [("node[1-3]", str(i), "3", "1") for i in range(3)]


def test_variables_of_other_meaning_are_left_alone(script):
    path = script("import os\nkind = os.environ['TYPE']\nos.environ['TF_INDEX'] = '0'\nprint('TF_ROLE')\n")
    assert variables_of(path) == {}
    assert not is_for_clusters(path)
    assert told(path, "TYPE") == [(None,)] * 3


def test_a_pod_is_named_by_job_and_number(script):
    path = script(
        "import os\njob, index = os.environ['POD_NAME'].split('-')\ntf.train.Server(cluster, job, int(index))\n"
    )
    assert is_for_clusters(path)
    assert told(path, "POD_NAME") == [("ps-0",), ("worker-0",), ("worker-1",)]


def test_a_pod_of_a_controller_has_a_part_of_a_name_behind_its_number(script):
    path = script(
        "import os\npod = os.environ.get('POD_NAME')\njob, index, _ = pod.split('-', 2)\n"
        "tf.train.Server(cluster, job, int(index))\n"
    )
    assert is_for_clusters(path)
    assert told(path, "POD_NAME") == [("ps-0-pod",), ("worker-0-pod",), ("worker-1-pod",)]
