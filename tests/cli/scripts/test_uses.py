"""Flags whose names say nothing, known by what the script does with them."""

import os
import subprocess
import sys

import pytest

from tensorfleet.cli.plan import (
    Place,
    Wishes,
    is_for_clusters,
    jobs_of,
    plan,
    starts_its_tasks,
    with_chief,
    with_jobs_of_its_own,
)
from tensorfleet.cli.scripts.uses import told_by_flags

CLUSTER = {"ps": [Place("h:1")], "worker": [Place("h:2"), Place("h:3")]}


@pytest.fixture
def script(tmp_path):
    def write(*lines):
        path = tmp_path / "train.py"
        path.write_text("\n".join(lines))
        return path

    return write


def names(path):
    return {role: flag.name for role, flag in told_by_flags(path).items()}


def last_arguments(path, count):
    return [task.command[-count:] for task in plan(Wishes(str(path)), CLUSTER, "")]


def test_what_reaches_a_server_is_the_job_and_the_index(script):
    path = script(
        "p.add_argument('--kind')",
        "p.add_argument('--n', type=int)",
        "p.add_argument('--steps', type=int)",
        "which = int(args.n)",
        "server = tf.train.Server(cluster, job_name=args.kind, task_index=which)",
    )
    assert names(path) == {"job_name": "kind", "task_index": "n"}
    assert is_for_clusters(path)
    assert last_arguments(path, 2)[2] == ["--kind=worker", "--n=1"]


def test_what_is_compared_with_ps_is_the_job(script):
    path = script(
        "p.add_argument('--mode')",
        "p.add_argument('--index', type=int)",
        "if args.mode == 'ps': tf.train.Server(cluster, 'ps', args.index)",
        "else: tf.train.Server(cluster, 'worker', args.index)",
    )
    assert names(path) == {"job_name": "mode", "task_index": "index"}


def test_a_flag_compared_with_ps_where_no_server_is_made_is_something_else(script):
    assert names(script("p.add_argument('--strategy')", "if args.strategy == 'ps': pass")) == {}


def test_what_reaches_a_cluster_is_where_its_tasks_are(script):
    path = script(
        "flags.DEFINE_string('here', '', '')",
        "flags.DEFINE_string('there', '', '')",
        "flags.DEFINE_integer('size', 1, '')",
        "servers, others = FLAGS.here.split(','), make(FLAGS.size)",
        "tf.train.Server(tf.train.ClusterSpec({'ps': servers, 'worker': FLAGS.there.split(',')}))",
    )
    assert names(path) == {"ps_hosts": "here", "worker_hosts": "there"}


def test_names_are_followed_through_calls_of_the_scripts_functions(script):
    path = script(
        "p.add_argument('--kind')",
        "p.add_argument('--n', type=int)",
        "def start(job, number): return tf.train.Server(cluster, job, number)",
        "start(args.kind, number=args.n)",
    )
    assert names(path) == {"job_name": "kind", "task_index": "n"}


def test_one_role_is_not_given_to_two_flags(script):
    path = script(
        "p.add_argument('--a', type=int)",
        "p.add_argument('--b', type=int)",
        "tf.train.Server(cluster, 'ps', args.a)",
        "tf.train.Server(cluster, 'worker', args.b)",
    )
    assert names(path) == {}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("json.loads(FLAGS.cluster_spec)", '{"ps": ["h:1"], "worker": ["h:2", "h:3"]}'),
        ("for j in FLAGS.cluster_spec.split(','): j.split('|')[1].split(';')", "ps|h:1,worker|h:2;h:3"),
        ("with open(FLAGS.cluster_spec) as f: json.load(f)", "{cluster_file}"),
    ],
)
def test_a_whole_cluster_comes_in_the_form_that_is_read(script, line, value):
    path = script("flags.DEFINE_string('cluster_spec', '', '')", line, "tf.train.Server(c)")
    assert last_arguments(path, 1)[0] == [f"--cluster_spec={value}"]


def test_a_cluster_that_is_wanted_in_a_file_is_in_one(script):
    path = script("import sys", "with open(sys.argv[1][3:]) as file: print(sys.argv[1][3:], file.read())")
    done = subprocess.run(
        [sys.executable, "-m", "tensorfleet", "--no-alias", str(path), "-c={cluster_file}"],
        env={**os.environ, "CLUSTER_SPEC": '{"worker": ["h:1"]}'},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    name, content = done.stdout.strip().split(" ", 1)
    assert content == '{"worker": ["h:1"]}'
    assert not os.path.exists(name)  # it went with the process


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("subprocess.Popen('python %s --task=%d' % (sys.argv[0], i), shell=True)", True),
        ("subprocess.check_call([sys.executable, __file__, '--task_index', str(i)])", True),
        ("command = ['python', __file__]\nsubprocess.Popen(command)", True),
        ("subprocess.Popen('./' + ' '.join(sys.argv) + ' --task_index=' + str(i), shell=True)", True),
        ("Process(target=run, args=('ps', 0)).start()", True),
        ("Process(target=read, args=(queue, 0)).start()", False),
        ("os.system('nvidia-smi')", False),
        ("sess.run('--task_index')", False),
    ],
)
def test_a_script_that_starts_its_tasks_as_processes_runs_once(script, line, alone):
    path = script(
        "p.add_argument('--task_index')",
        "tf.train.Server(tf.train.ClusterSpec({'worker': ['h:1', 'h:2']}), 'worker', args.task_index)",
        line,
    )
    assert is_for_clusters(path) is not alone
    assert starts_its_tasks(Wishes(str(path))) is alone


def test_what_counts_the_workers_is_their_number(script):
    path = script(
        "p.add_argument('--num_tasks', type=int)",
        "cluster = {'worker': ['localhost:%d' % (2223 + i) for i in range(args.num_tasks)]}",
        "os.environ['TF_CONFIG'] = json.dumps(cluster)",
    )
    assert names(path) == {"worker_count": "num_tasks"}
    assert last_arguments(path, 1)[0] == ["--num_tasks=2"]


@pytest.mark.parametrize(
    ("hosts", "jobs"),
    [
        ("['localhost:2222']", {"ps": 1, "worker": 2, "chief": 1}),
        ("[workers[0]]", {"ps": 1, "worker": 2}),
    ],
)
def test_a_chief_at_an_address_of_its_own_is_started_beside_the_workers(script, hosts, jobs):
    path = script(
        "p.add_argument('--job_name')",
        "p.add_argument('--task_index', type=int)",
        f"cluster = {{'ps': ['localhost:2221'], 'chief': {hosts}, 'worker': workers}}",
        "os.environ['TF_CONFIG'] = json.dumps({'cluster': cluster})",
        "tf.estimator.train_and_evaluate(estimator, a, b)",
    )
    assert with_chief(path, jobs_of(path)) == jobs


RANKED = (
    "p.add_argument('--index', type=int, help='node')",
    "role = 'ps' if args.index == 0 else 'worker'",
    "cluster = tf.train.ClusterSpec({'ps': nodes[:1], 'worker': nodes[1:]})",
)


def test_a_script_that_finds_its_job_by_a_number_is_told_that_among_all_tasks(script):
    path = script(*RANKED, "server = tf.train.Server(cluster, job_name=role, task_index=index)")
    assert names(path) == {"rank": "index"}
    assert is_for_clusters(path)
    assert last_arguments(path, 1) == [["--index=0"], ["--index=1"], ["--index=2"]]


def test_a_parameter_server_knows_that_it_is_one_unless_it_was_only_told_a_number(script):
    result = script("DEFINE_string('job_name', '', '')")
    serving = [task.environment.get("TENSORFLEET_SERVES") for task in plan(Wishes(str(result)), CLUSTER, "")]
    assert serving == ["ps/0", None, None]
    path = script(*RANKED, "server = tf.train.Server(cluster, job_name=role, task_index=index)")
    assert "TENSORFLEET_SERVES" not in plan(Wishes(str(path)), CLUSTER, "")[0].environment


def test_a_number_beside_a_job_that_is_written_out_is_one_within_that_job(script):
    path = script(*RANKED, "server = tf.train.Server(cluster, job_name='worker', task_index=args.index)")
    assert names(path) == {"task_index": "index"}


def test_the_number_among_all_tasks_can_be_asked_for(script):
    path = script("import tensorflow as tf")
    tasks = plan(Wishes(str(path), arguments=["--node={rank}"]), CLUSTER, "")
    assert [task.command[-1] for task in tasks] == ["--node=0", "--node=1", "--node=2"]


ACTORS = ("cluster = tf.train.ClusterSpec({'learner': learners, 'actor': actors})",)
ASKED = {"ps": 1, "worker": 3}


def test_jobs_by_other_names_take_the_place_of_servers_and_workers(script):
    path = script(*ACTORS, "DEFINE_string('job_name', '', '')", "DEFINE_integer('task_index', 0, '')")
    assert with_jobs_of_its_own(path, ASKED) == {"learner": 1, "actor": 3}
    assert with_jobs_of_its_own(path, {"ps": 0, "worker": 0, "actor": 2}) == {
        "ps": 0,
        "worker": 0,
        "actor": 2,
    }


def test_jobs_by_other_names_beside_parameter_servers_take_the_place_of_workers(script):
    path = script(
        "tf.train.ClusterSpec({'ps': a, 'learner': b, 'actor': c})", "DEFINE_integer('task', 0, '')"
    )
    assert with_jobs_of_its_own(path, {"ps": 2, "worker": 3}) == {"ps": 2, "learner": 1, "actor": 3}


def test_a_script_whose_tasks_have_no_numbers_gets_one_of_each_job(script):
    path = script(*ACTORS, "DEFINE_enum('job_name', 'learner', ['learner', 'actor'], '')")
    assert is_for_clusters(path)
    assert jobs_of(path) == with_jobs_of_its_own(path, ASKED) == {"learner": 1, "actor": 1}


def test_jobs_whose_tasks_are_written_out_are_started_as_they_are_written(script):
    path = script(
        "cluster = tf.train.ClusterSpec({'learner': ['localhost:1'], 'actor': ['localhost:2', 'localhost:3']})",
        "server = tf.train.Server(cluster, sys.argv[1], int(sys.argv[2]))",
    )
    assert with_jobs_of_its_own(path, ASKED) == {"learner": 1, "actor": 2}
    assert with_jobs_of_its_own(script("tf.train.ClusterSpec({'ps': a, 'worker': b})"), ASKED) == ASKED


def test_a_task_is_named_by_job_and_number_where_the_flag_for_it_is_so_by_default(script):
    path = script(
        "DEFINE_string('task', 'worker:0', '')",
        "job, index = FLAGS.task.split(':')",
        "server = tf.train.Server({'ps': a, 'worker': b}, job, int(index))",
    )
    assert is_for_clusters(path)
    assert [t.command[-1] for t in plan(Wishes(str(path)), CLUSTER, "")] == [
        "--task=ps:0",
        "--task=worker:0",
        "--task=worker:1",
    ]
