"""A script's flags, read from its source."""

import pytest

from tensorfleet.cli.scripts.flags import (
    Flag,
    cluster_in,
    flags_of,
    jobs_named_in,
    positions_of,
    reads_tf_config,
    role_of,
    roles,
)

ABSL = """
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "where")
flags.DEFINE_string(flag_name="worker_hosts", default_value="", docstring="")
tf.app.flags.DEFINE_string('job_name', None, "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_float("rate", 0.1, "")
"""
ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--ps", nargs="+")
parser.add_argument("-w", "--workers", type=int)
parser.add_argument("--job")
parser.add_argument("--task", type=int, default=0)
parser.add_argument("data")
"""
CLICK = """
import click
@click.command()
@click.option("--job_name")
@click.option("--task_id", type=click.INT)
def main(job_name, task_id): pass
"""


def scan(tmp_path, source):
    path = tmp_path / "train.py"
    path.write_text(source)
    return flags_of(path)


def test_flags_of_absl(tmp_path):
    result = scan(tmp_path, ABSL)
    assert set(result) == {"ps_hosts", "worker_hosts", "job_name", "task_index", "rate"}
    assert result["task_index"].is_number and not result["job_name"].is_number
    assert set(roles(result)) == {"ps_hosts", "worker_hosts", "job_name", "task_index"}


def test_flags_of_argparse_with_other_spellings(tmp_path):
    result = roles(scan(tmp_path, ARGPARSE))
    assert result["ps_hosts"] == Flag("ps", many=True)
    assert result["job_name"].name == "job"
    assert result["task_index"].name == "task"
    assert result["worker_count"].name == "workers"  # a number: how many, not where
    assert "worker_hosts" not in result


def test_flags_are_known_by_the_names_that_the_script_reads_them_by(tmp_path):
    source = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--ps", dest="ps_hosts")
parser.add_argument("--wk", dest="worker_hosts")
parser.add_argument("--role", dest="job_name")
parser.add_argument("-r", "--rank", dest="task_index", type=int)
"""
    result = roles(scan(tmp_path, source))
    assert {role: flag.name for role, flag in result.items()} == {
        "ps_hosts": "ps",
        "worker_hosts": "wk",
        "job_name": "role",
        "task_index": "rank",
    }


def test_flags_of_click(tmp_path):
    result = roles(scan(tmp_path, CLICK))
    assert (result["job_name"].name, result["task_index"].name) == ("job_name", "task_id")


def test_flags_of_modules_beside_the_script_count(tmp_path):
    (tmp_path / "settings.py").write_text(ABSL)
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "more.py").write_text("from absl import flags\nflags.DEFINE_integer('num_workers', 1, '')\n")
    result = scan(tmp_path, "import os\nfrom settings import FLAGS\nfrom lib import more\n")
    assert {"job_name", "num_workers"} <= set(result)


def test_the_customary_name_goes_before_others(tmp_path):
    source = "flags.DEFINE_integer('worker_index', 0, '')\nflags.DEFINE_integer('task_index', 0, '')\n"
    assert roles(scan(tmp_path, source))["task_index"].name == "task_index"


def test_names_can_be_given():
    assert roles({}, {"job_name": "kind"}) == {"job_name": Flag("kind")}
    with pytest.raises(ValueError, match="unknown role 'jobs'. Use one of ps_hosts, "):
        roles({}, {"jobs": "kind"})


def test_a_script_that_does_not_parse_has_no_flags(tmp_path):
    assert scan(tmp_path, "print 'python 2'\n") == {}


def test_flags_defined_in_a_loop_over_their_names(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        'for name in ["--ps_hosts", "--worker_hosts"]:\n    parser.add_argument(name, help="--not_this")\n'
        'for name, text in {"job_name": "which", "task_index": "which"}.items():\n    flags.DEFINE_string(name, None, text)\n'
        'for word in ("--unused",):\n    print(word)\n'
    )
    assert set(roles(flags_of(script))) == {"ps_hosts", "worker_hosts", "job_name", "task_index"}
    assert "unused" not in flags_of(script)


@pytest.mark.parametrize("written", ['"--" + name', '"--%s" % name', 'f"--{name}"'])
def test_flags_of_a_loop_may_get_their_dashes_in_it(tmp_path, written):
    script = tmp_path / "train.py"
    names = '"ps_hosts", "worker_hosts", "job_name", "task_index"'
    script.write_text(f"for name in ({names}):\n    parser.add_argument({written}, default='')\n")
    assert set(roles(flags_of(script))) == {"ps_hosts", "worker_hosts", "job_name", "task_index"}


def test_flags_of_optparse_with_dashes(tmp_path):
    source = """
parser.add_option("-j", "--job-type", type="string", default="worker")
parser.add_option("--task-index", type="int", default=0)
parser.add_option("--workers", type="string")
parser.add_option("--ps-ip-port", action="store")
"""
    result = roles(scan(tmp_path, source))
    assert {role: flag.name for role, flag in result.items()} == {
        "ps_hosts": "ps-ip-port",
        "worker_hosts": "workers",
        "job_name": "job-type",
        "task_index": "task-index",
    }
    assert not result["worker_hosts"].is_number


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("PS_HOSTS", "ps_hosts"),
        ("parameter_servers", "ps_hosts"),
        ("worker-addresses", "worker_hosts"),
        ("task_mode", "job_name"),
        ("worker_num", "worker_count"),
        ("num_ps_hosts", "ps_count"),
        ("worker_id", "task_index"),
        ("replica_id", "task_index"),
        ("my_ps_hosts", "ps_hosts"),
        ("strwork_hosts", "worker_hosts"),
        ("ps_port", None),
        ("batch", None),
        ("index_file", None),
    ],
)
def test_customary_names(name, role):
    assert role_of(name) == role


@pytest.mark.parametrize(
    "source",
    [
        "def main(argv):\n    job_name = argv[1]\n    task = int(argv[2])\nmain(sys.argv)\n",
        "from sys import argv\njob_name, task_index = argv[1], int(argv[2])\n",
        "script, job_name, task_index = sys.argv\n",
    ],
)
def test_places_in_argv_by_other_names(tmp_path, source):
    (tmp_path / "train.py").write_text(source)
    assert positions_of(tmp_path / "train.py") == {1: "job_name", 2: "task_index"}


def test_places_in_what_argv_is_cut_to_are_not_known(tmp_path):
    (tmp_path / "train.py").write_text("def main(argv):\n    job_name = argv[1]\nmain(sys.argv[1:])\n")
    assert positions_of(tmp_path / "train.py") == {}


def test_places_in_argv(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\nargs = sys.argv\ntask_index = int(args[1])\nis_ps = args[2]\njob = str(sys.argv[3])\n"
    )
    assert positions_of(script) == {1: "task_index", 3: "job_name"}
    script.write_text(
        "import sys, tf\ntf.train.Server(c, job_name=sys.argv[1], task_index=int(sys.argv[2]))\n"
    )
    assert positions_of(script) == {1: "job_name", 2: "task_index"}
    script.write_text("import sys\nverbose = sys.argv[1] == 'x'\ndata = sys.argv[2]\n")
    assert positions_of(script) == {}


def test_places_of_argparse(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "p.add_argument('config')\np.add_argument('job', choices=['ps'])\np.add_argument('-v')\np.add_argument('task', type=int)\n"
    )
    assert positions_of(script) == {2: "job_name", 3: "task_index"}


def test_a_script_that_reads_tf_config(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("c = json.loads(os.environ['TF_CONFIG'])\nserver = tf.train.Server(c['cluster'])\n")
    assert reads_tf_config(script)
    script.write_text("os.environ['TF_CONFIG'] = json.dumps(c)\nserver = tf.train.Server(c)\n")
    assert not reads_tf_config(script)
    script.write_text("c = json.loads(os.environ.get('TF_CONFIG', '{}'))\nprint(c)\n")
    assert not reads_tf_config(script)


def test_a_script_that_joins_its_cluster_is_one_for_clusters(tmp_path):
    script = tmp_path / "train.py"
    for call in ("fleet.join()", "tf.fleet.join(timeout=60)"):
        script.write_text(f"with {call} as cluster:\n    pass\n")
        assert reads_tf_config(script)
    script.write_text("path = os.path.join(a, b)\nthread.join()\n")
    assert not reads_tf_config(script)


def test_switches_tell_what_a_task_is_and_take_no_value(tmp_path):
    result = scan(
        tmp_path,
        """
parser.add_argument("--ps", action="store_true", default=False)
parser.add_argument("--workers", type=int)
tf.app.flags.DEFINE_boolean("is_chief", True, "")
tf.app.flags.DEFINE_bool("ps_hosts_from_file", False, "")
""",
    )
    assert roles(result) == {
        "worker_count": Flag("workers", is_number=True),
        "is_ps": Flag("ps", is_switch=True),
        "is_chief": Flag("is_chief", is_switch=True, negates=True),
    }


def test_short_names_of_places_count_beside_one_of_the_job(tmp_path):
    path = tmp_path / "train.py"
    names = ("server", "worker", "jobname", "index")
    path.write_text("\n".join(f"parser.add_argument('{name}')" for name in names))
    assert positions_of(path) == {1: "ps_hosts", 2: "worker_hosts", 3: "job_name", 4: "task_index"}
    path.write_text("parser.add_argument('server')\nparser.add_argument('id')\n")
    assert positions_of(path) == {}


@pytest.mark.parametrize(
    "defined",
    [
        "p.add_argument('--ps', help='Number of parameter servers')\np.add_argument('--workers', help='how many')",
        "p.add_argument('--ps', default=1)\np.add_argument('--workers', default=2)",
        "flags.DEFINE_string('ps', '1', 'The number of servers')\nflags.DEFINE_string('workers', '2', 'num workers')",
    ],
)
def test_a_text_that_is_a_number_by_its_help_or_default_says_how_many(tmp_path, defined):
    path = tmp_path / "train.py"
    path.write_text(defined)
    assert list(roles(flags_of(path))) == ["ps_count", "worker_count"]


@pytest.mark.parametrize(
    ("imported", "made"),
    [
        ("from settings import hosts, workers", "{'ps': hosts, 'worker': workers}"),
        ("import settings", "{'ps': settings.hosts, 'worker': settings.workers}"),
        ("from settings import *", "cluster"),
        ("import conf.settings, settings", "settings.cluster"),
    ],
)
def test_a_cluster_may_be_written_out_in_a_module_beside_the_script(tmp_path, imported, made):
    hosts = "hosts = ['a:1']\nworkers = ['a:2', 'a:3', 'b:2']\n"
    (tmp_path / "settings.py").write_text(f"{hosts}cluster = {{'ps': hosts, 'worker': workers}}\n")
    path = tmp_path / "train.py"
    path.write_text(f"{imported}\ncluster_spec = tf.train.ClusterSpec({made})\n")
    assert cluster_in(path) == {"ps": 1, "worker": 3}
    assert jobs_named_in(path) == ["ps", "worker"]


@pytest.mark.parametrize(
    "server", ["tf.train.Server(spec, who, int(nth))", "tf.train.Server(spec, job_name=who, task_index=nth)"]
)
def test_places_are_known_by_what_reaches_a_server(tmp_path, server):
    path = tmp_path / "train.py"
    path.write_text(f"who, nth = sys.argv[2], int(sys.argv[1])\nserver = {server}\n")
    assert positions_of(path) == {2: "job_name", 1: "task_index"}


def test_a_flag_for_a_file_of_hosts_is_told_no_addresses(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("p.add_argument('--hosts', default='hosts.txt')\np.add_argument('--task_index')\n")
    assert list(roles(flags_of(path))) == ["task_index"]
    path.write_text("p.add_argument('--hosts', default='h:1,h:2')\np.add_argument('--task_index')\n")
    assert list(roles(flags_of(path))) == ["task_index", "hosts"]
