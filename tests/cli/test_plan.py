"""What each task is told, in every customary form."""

import json
import subprocess
import sys

import pytest

from tensorfleet.cli.hosts import Host, read_cluster
from tensorfleet.cli.plan import (
    Place,
    Wishes,
    is_for_clusters,
    is_one_task,
    jobs_asked_for,
    jobs_of,
    plan,
    plan_again,
    plan_alone,
    servers_of,
)

CLUSTER = {
    "worker": [Place("127.0.0.1:2"), Place("127.0.0.1:3")],
    "ps": [Place("127.0.0.1:1")],
}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    lines = [
        f"flags.DEFINE_string('{n}', '', '')" for n in ("ps_hosts", "worker_hosts", "job_name", "task_index")
    ]
    path.write_text("\n".join(lines))
    return str(path)


def test_servers_come_first_and_tasks_are_numbered(script):
    assert [t.label for t in plan(Wishes(script), CLUSTER, "t")] == ["ps/0", "worker/0", "worker/1"]


def test_a_task_gets_its_flags_before_the_users(script):
    task = plan(Wishes(script, ["--steps", "5"]), CLUSTER, "t")[2]
    assert task.command[task.command.index(script) + 1 :] == [
        "--ps_hosts=127.0.0.1:1",
        "--worker_hosts=127.0.0.1:2,127.0.0.1:3",
        "--job_name=worker",
        "--task_index=1",
        "--steps",
        "5",
    ]


def test_a_script_that_counts_its_arguments_gets_the_users_first(tmp_path):
    path = tmp_path / "train.py"
    lines = ["flags.DEFINE_string('job_name', '', '')", "staleness = int(sys.argv[1])"]
    path.write_text("\n".join(lines))
    assert plan(Wishes(str(path), ["10"]), CLUSTER, "t")[0].command[-2:] == ["10", "--job_name=ps"]
    path.write_text("\n".join([lines[0], "tf.app.run(argv=[sys.argv[0]] + sys.argv[1:])"]))
    assert plan(Wishes(str(path), ["10"]), CLUSTER, "t")[0].command[-2:] == ["--job_name=ps", "10"]


def test_the_environment_says_it_too(script):
    environment = plan(Wishes(script), CLUSTER, "secret")[0].environment
    addresses = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    assert json.loads(environment["TF_CONFIG"]) == {"cluster": addresses, "task": {"type": "ps", "index": 0}}
    assert json.loads(environment["CLUSTER_SPEC"]) == addresses
    assert (environment["JOB_NAME"], environment["TASK_INDEX"]) == ("ps", "0")
    assert environment["TENSORFLEET_TOKEN"] == "secret"


def test_a_script_without_such_flags_gets_none(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("print(1)")
    task = plan(Wishes(str(path), ["x"]), CLUSTER, "t")[1]
    assert task.command[-2:] == [str(path), "x"]


def test_arguments_can_name_what_is_the_tasks_own(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("import sys; print(sys.argv)")
    task = plan(Wishes(str(path), ["{job_name}", "{task_index}", "{ps_hosts}"]), CLUSTER, "t")[2]
    assert task.command[-3:] == ["worker", "1", "127.0.0.1:1"]


def test_gpus_are_shared_out_among_workers(script, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    tasks = plan(Wishes(script, gpus_per_worker=2), CLUSTER, "t")
    assert [t.environment.get("CUDA_VISIBLE_DEVICES") for t in tasks] == ["", "0,1", "2,3"]


def test_only_the_gpus_that_the_launcher_may_use_are_given(script, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    tasks = plan(Wishes(script, gpus_per_worker=1), CLUSTER, "t")
    assert [t.environment.get("CUDA_VISIBLE_DEVICES") for t in tasks] == ["", "4", "6"]


def test_an_evaluator_is_no_part_of_the_cluster(script):
    task = plan(Wishes(script), {"chief": [Place("a:1")], **CLUSTER}, "t", [Place("")])[-1]
    assert task.label == "evaluator/0"
    config = json.loads(task.environment["TF_CONFIG"])
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert set(config["cluster"]) == {"chief", "ps", "worker"}


def test_an_evaluator_stays_when_the_cluster_is_planned_again(script):
    tasks = plan(Wishes(script), CLUSTER, "t", [Place("")])
    again = plan_again(Wishes(script), tasks, {"ps": 1, "worker": 3}, iter(range(1, 9)))
    assert [task.label for task in again] == ["ps/0", "worker/0", "worker/1", "worker/2", "evaluator/0"]


def test_secrets_are_not_shown(script):
    shown = plan(Wishes(script), CLUSTER, "s3cr3t")[0].shown()
    assert "s3cr3t" not in shown and "TENSORFLEET_TOKEN=..." in shown


def test_scripts_for_clusters_are_recognized(script, tmp_path):
    (tmp_path / "alone.py").write_text("import tensorflow as tf")
    from pathlib import Path

    assert is_for_clusters(Path(script))
    assert not is_for_clusters(tmp_path / "alone.py")
    (task,) = plan_alone(Wishes(str(tmp_path / "alone.py"), ["a"]))
    assert "TF_CONFIG" not in task.environment and task.command[-1] == "a"


def write(tmp_path, text):
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return path


def test_a_cluster_file_places_tasks_on_hosts(tmp_path):
    path = write(
        tmp_path,
        """
hosts:
  alpha: {address: 10.0.0.1, user: me, port: 2200, python: /opt/python, directory: /home/me}
  beta: 10.0.0.2
  gamma:
jobs:
  ps: [alpha]
  worker: {alpha: 1, beta: 2, gamma: 1}
""",
    )
    jobs = read_cluster(path)
    assert [h.name for h in jobs["worker"]] == ["alpha", "beta", "beta", "gamma"]
    alpha = jobs["ps"][0]
    assert alpha == Host("alpha", "10.0.0.1", "me", 2200, "/opt/python", "/home/me")
    command = alpha.reached(["/opt/python", "train.py", "a b"], {"K": "v w"})
    assert command[:3] == ["ssh", "-o", "BatchMode=yes"]
    assert command[-5:] == [
        "-p",
        "2200",
        "--",
        "me@10.0.0.1",
        "cd /home/me && exec env 'K=v w' /opt/python train.py 'a b'",
    ]


def test_hosts_can_be_reached_in_other_ways():
    host = Host("node1", "10.0.0.1", via="srun --overlap --nodes=1 --nodelist={address} sh -c")
    command = host.reached(["python3", "train.py"], {"K": "v"})
    assert command[:2] == ["srun", "--overlap"]
    assert command[-3:] == ["sh", "-c", "exec env K=v python3 train.py"]


def test_an_address_stays_one_word_of_the_command_it_is_put_into():
    host = Host("odd", "a b; reboot", via="srun --nodelist={address} sh -c")
    assert host.reached(["python3"], {})[:2] == ["srun", "--nodelist=a b; reboot"]


@pytest.mark.parametrize(
    "host",
    [
        "{address: -oProxyCommand=reboot}",
        '{address: "10.0.0.1; reboot"}',
        '{address: "a b"}',
        "{address: 10.0.0.1, user: -l}",
        '{address: 10.0.0.1, user: "$(reboot)"}',
        '{address: 10.0.0.1, port: "22 -oProxyCommand=reboot"}',
        "{address: 10.0.0.1, first_port: 70000}",
        '"-oProxyCommand=reboot"',
    ],
)
def test_what_is_no_name_of_a_host_is_refused(tmp_path, host):
    path = write(tmp_path, f"hosts:\n  alpha: {host}\njobs: {{worker: [alpha]}}\n")
    with pytest.raises(ValueError, match="host 'alpha' has an invalid (address|user|port|first_port) "):
        read_cluster(path)


def test_what_a_shell_would_read_arrives_as_it_was_written(tmp_path):
    odd = "a b'c\"$(touch oops)`touch oops`;touch oops\n#"
    there = Host("alpha", "10.0.0.1", directory=str(tmp_path)).reached(
        [sys.executable, "-c", "import os, sys; print(repr((os.environ['K'], sys.argv[1:])))", odd],
        {"K": odd},
    )[-1]
    done = subprocess.run(["sh", "-c", there], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == repr((odd, [odd])) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts: {a: 1.2.3.4}", "has no `jobs`"),
        ("jobs: {ps: {a: 1}}", "job 'ps' names host 'a', but `hosts` has only \\[\\]"),
        ("hosts: {a: {adress: x}}\njobs: {ps: {a: 1}}", "host 'a' has unknown keys \\['adress'\\]. Use only"),
        ("hosts: {a: x}\njobs: {ps: {a: many}}", "Give the number of tasks per host"),
        ("jobs: {}\nnodes: {}", "has unknown keys nodes. Use only `hosts` and `jobs`"),
        ("jobs: [", "is not valid YAML"),
    ],
)
def test_mistakes_in_a_cluster_file_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_cluster(write(tmp_path, text))


def test_arguments_without_names_are_put_in_their_places(tmp_path):
    path = tmp_path / "old.py"
    path.write_text("import sys\njob_name = sys.argv[1]\ntask = int(sys.argv[3])\n")
    assert is_for_clusters(path)
    task = plan(Wishes(str(path), ["data", "more"]), CLUSTER, "t")[2]
    assert task.command[-4:] == ["worker", "data", "1", "more"]
    own = plan(Wishes(str(path), ["x", "{task_index}", "{job_name}"]), CLUSTER, "t")[2]
    assert own.command[-3:] == ["x", "1", "worker"]


def test_a_script_that_reads_tf_config_is_for_clusters(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import os\nread(os.environ.get('TF_CONFIG'))\ntf.train.Server(x)\n")
    assert is_for_clusters(path)


def test_switches_are_set_for_the_tasks_they_name(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "parser.add_argument('--ps', action='store_true')\n"
        "parser.add_argument('--task', type=int)\n"
        "flags.DEFINE_bool('is_chief', True, '')\n"
    )
    assert is_for_clusters(path)
    items = [task.command[4:] for task in plan(Wishes(str(path), python="python"), CLUSTER, "t")]
    assert items == [
        ["--task=0", "--ps", "--nois_chief"],
        ["--task=0", "--is_chief"],
        ["--task=1", "--nois_chief"],
    ]


def test_a_script_whose_parser_refuses_the_flags_is_told_by_the_environment(tmp_path):
    path = tmp_path / "train.py"
    source = (
        "parser.add_argument('--data')\nargs = parser.{parse}()\n"
        "flags.DEFINE_string('job_name', os.environ['JOB_NAME'], '')\n"
        "flags.DEFINE_integer('task_index', os.environ['TASK_INDEX'], '')\n"
    )
    for parse, item in (
        ("parse_args", ["x"]),
        ("parse_known_args", ["--job_name=ps", "--task_index=0", "x"]),
    ):
        path.write_text(source.format(parse=parse))
        task = plan(Wishes(str(path), ["x"]), CLUSTER, "t")[0]
        assert task.command[4:] == item
        assert (task.environment["JOB_NAME"], task.environment["TASK_INDEX"]) == ("ps", "0")


def test_a_cluster_that_is_written_out_says_what_is_started(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "job, task_index = sys.argv[1], sys.argv[2]\nworkers = 'a:1,b:2,c:3'.split(',')\n"
        "spec = {'ps': ['d:%d' % i for i in range(3, 3 + 2)], 'worker': workers}\ncluster = tf.train.ClusterSpec(spec)\n"
    )
    assert jobs_of(path) == {"ps": 2, "worker": 3}
    both = path.read_text() + "other = tf.train.ClusterSpec({'worker': ['a:1']})\n"
    path.write_text(both)
    assert jobs_of(path) == {"ps": 1, "worker": 2}


def test_a_task_of_the_only_job_needs_no_name_of_its_job(tmp_path):
    path = tmp_path / "create_worker.py"
    path.write_text("task_number = int(sys.argv[1])\ntf.train.ClusterSpec({'local': ['a:1', 'a:2']})\n")
    assert is_for_clusters(path) and jobs_of(path) == {"local": 2}
    path.write_text("task_number = int(sys.argv[1])\ntf.train.ClusterSpec({'local': made()})\n")
    assert not is_for_clusters(path)


def test_addresses_of_jobs_by_other_names_go_to_their_flags(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("\n".join(f"flags.DEFINE_string('{n}_hosts', '', '')" for n in ("ps", "actor", "memory")))
    cluster = {"actor": [Place("h:1"), Place("h:2")], "learner": [Place("h:3")]}
    assert plan(Wishes(str(path)), cluster, "")[2].command[-2:] == ["--ps_hosts=", "--actor_hosts=h:1,h:2"]


def test_workers_that_are_asked_for_alone_get_the_servers_that_the_script_has(tmp_path):
    path = tmp_path / "train.py"
    flags = "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')\n"
    path.write_text(flags + "flags.DEFINE_string('ps_hosts', '', '')\n")
    assert servers_of(path) == 1
    path.write_text(flags + "tf.train.ClusterSpec({'ps': ['a:1', 'b:1'], 'worker': ['c:1']})\n")
    assert servers_of(path) == 2
    path.write_text(flags + "tf.train.ClusterSpec({'worker': ['c:1', 'd:1']})\n")
    assert servers_of(path) == 0
    config = "config = json.loads(os.environ['TF_CONFIG'])\ntf.train.ClusterSpec(config['cluster'])\n"
    path.write_text(config)
    assert servers_of(path) == 0
    path.write_text(config + "if config['task']['type'] == 'ps':\n    server.join()\n")
    assert servers_of(path) == 1


def test_a_tf_config_of_the_users_makes_a_script_that_reads_it_one_task(tmp_path, script, monkeypatch):
    path = tmp_path / "estimator.py"
    path.write_text("config = json.loads(os.environ['TF_CONFIG'])\ntf.train.Server(config['cluster'])\n")
    for config, one in (
        ('{"task": {"type": "ps", "index": 0}}', True),
        ("{}", False),
        ("", False),
        ("{", False),
    ):
        monkeypatch.setenv("TF_CONFIG", config)
        assert is_one_task(Wishes(str(path))) is one
        assert not is_one_task(Wishes(str(script)))


def test_variables_of_the_users_that_say_which_task_it_is_make_it_one_task(tmp_path, monkeypatch):
    path = tmp_path / "pods.py"
    path.write_text(
        "job, index, _ = os.environ['POD_NAME'].split('-', 2)\n"
        "tf.train.Server(ast.literal_eval(os.environ['CLUSTER_CONFIG']), job, int(index))\n"
    )
    assert not is_one_task(Wishes(str(path)))
    monkeypatch.setenv("POD_NAME", "worker-1-pod")
    assert not is_one_task(Wishes(str(path)))  # any pod has a name: its cluster is not told
    monkeypatch.setenv("CLUSTER_CONFIG", "{'worker': ['localhost:2222']}")
    assert is_one_task(Wishes(str(path)))


def test_a_rank_among_several_makes_a_script_that_reads_it_one_task(tmp_path, monkeypatch):
    path = tmp_path / "ranks.py"
    path.write_text(
        "rank, size = int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])\n"
        "if FLAGS.protocol == 'grpc+mpi':\n"
        "    rank = int(os.environ['OMPI_COMM_WORLD_RANK'])\n"
        "tf.train.Server({'worker': ['localhost:%d' % (8888 + i) for i in range(size)]}, 'worker', rank)\n"
    )
    for name in ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not is_one_task(Wishes(str(path)))
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert not is_one_task(Wishes(str(path)))  # of how many?
    monkeypatch.setenv("SLURM_NTASKS", "3")
    assert is_one_task(Wishes(str(path)))
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert not is_one_task(Wishes(str(path)))  # the batch script, whose tasks are not started yet
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    assert is_one_task(Wishes(str(path)))
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert not is_one_task(Wishes(str(path)))


def test_as_many_tasks_are_started_as_the_scripts_own_arguments_say(tmp_path):
    path = tmp_path / "counts.py"
    path.write_text(
        "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')\n"
        "flags.DEFINE_integer('num_ps', 1, '')\nflags.DEFINE_integer('num_workers', 1, '')\n"
        "tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)\n"
    )
    for arguments, counts in (
        ([], {"ps": 1, "worker": 2}),
        (["--num_ps=2", "--num_workers", "3"], {"ps": 2, "worker": 3}),
        (["--num_workers=many"], {"ps": 1, "worker": 2}),
    ):
        assert jobs_asked_for(Wishes(str(path), arguments)) == counts


def test_arguments_that_say_which_task_it_is_make_it_one_task(tmp_path, script):
    for arguments in (["--job_name=ps"], ["--task_index", "0", "--job_name", "worker"]):
        assert is_one_task(Wishes(str(script), arguments))
    for arguments in ([], ["--task_index=1"], ["--job_name={job_name}"], ["--job_name_of_mine=ps"]):
        assert not is_one_task(Wishes(str(script), arguments))
    path = tmp_path / "by_place.py"
    path.write_text("job, index = sys.argv[1], int(sys.argv[2])\ntf.train.Server({}, job, index)\n")
    assert is_one_task(Wishes(str(path), ["worker", "1"])) and not is_one_task(
        Wishes(str(path), ["data", "1"])
    )


def test_jobs_by_other_names_are_started_with_one_task_or_two(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("tf.train.ClusterSpec({'learner': a.split(','), 'actor': b.split(',')})\n")
    assert jobs_of(path) == {"learner": 1, "actor": 2}
    path.write_text("tf.train.ClusterSpec({'ps': a.split(','), 'actor': b.split(',')})\n")
    assert jobs_of(path) == {"ps": 1, "worker": 2}
    path.write_text("tf.train.ClusterSpec({'server': a.split(','), 'actor': b.split(','), 'learner': c})\n")
    assert jobs_of(path) == {"ps": 1, "actor": 2, "learner": 1}


@pytest.mark.parametrize(
    ("target", "told"), [("grpc://localhost:2223", False), ("grpc://localhost:9", True), ("", True)]
)
def test_a_script_that_connects_to_an_address_its_flags_have_by_default_keeps_those(tmp_path, target, told):
    path = tmp_path / "train.py"
    path.write_text(
        "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')\n"
        "flags.DEFINE_string('ps_hosts', 'localhost:2221,localhost:2222', '')\n"
        "flags.DEFINE_string('worker_hosts', default='localhost:2223, localhost:2224', help='')\n"
        f"tf.Session({target!r})\n"
    )
    assert jobs_of(path) == {"ps": 1 if told else 2, "worker": 2}
    command = plan(Wishes(str(path)), {"ps": [Place("h:1")], "worker": [Place("h:2")]}, "")[0].command
    assert ("--worker_hosts=h:2" in command) is told and "--job_name=ps" in command


def test_how_many_tasks_jobs_by_other_names_have_goes_to_their_flags(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("flags.DEFINE_integer('num_actors', 4, '')\nflags.DEFINE_integer('learner', 4, '')\n")
    cluster = {"actor": [Place("h:1"), Place("h:2")], "learner": [Place("h:3")]}
    assert plan(Wishes(str(path)), cluster, "")[0].command[-1:] == ["--num_actors=2"]


@pytest.mark.parametrize("define", ["DEFINE_string('{}', {!r}, '')", "add_argument('--{}', default={!r})"])
def test_flags_with_a_list_by_default_get_one(tmp_path, define):
    path = tmp_path / "train.py"
    path.write_text(f"x.{define.format('ps_hosts', '[]')}\nx.{define.format('worker_hosts', 'h:1')}\n")
    cluster = {"ps": [Place("h:1"), Place("h:2")], "worker": [Place("h:3")]}
    command = plan(Wishes(str(path)), cluster, "")[0].command
    assert command[-2:] == ['--ps_hosts=["h:1", "h:2"]', "--worker_hosts=h:3"]


@pytest.mark.parametrize(
    ("made", "jobs"),
    [
        ('tf.train.ClusterSpec({"PS": a, "worker": b})', ["PS", "worker"]),
        ('jobs = {"parameter_server": a, "work": b}\ntf.train.Server(jobs)', ["parameter_server", "work"]),
        ('tf.train.ClusterSpec({"ps": a, "worker": b})', ["ps", "worker"]),
        ('tf.train.ClusterSpec({"ps": a, "server": c, "trainer": b})', ["ps", "trainer"]),
        ('tf.train.ClusterSpec({"ps": a, "compute": b})', ["ps", "compute"]),
        ('tf.train.ClusterSpec({"ps": a, "chief": b})', ["ps", "worker"]),
    ],
)
def test_tasks_are_told_their_jobs_as_the_script_calls_them(tmp_path, made, jobs):
    path = tmp_path / "train.py"
    path.write_text(f"p.add_argument('--job_name')\np.add_argument('--task_index')\n{made}\n")
    tasks = plan(Wishes(str(path)), {"ps": [Place("h:1")], "worker": [Place("h:2")]}, "")
    assert [task.command[-2] for task in tasks] == [f"--job_name={job}" for job in jobs]
    assert [task.job for task in tasks] == ["ps", "worker"]
    assert list(json.loads(tasks[0].environment["TENSORFLEET_PLACED"])) == jobs


def test_what_a_script_adds_to_a_number_is_left_to_it(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "p.add_argument('--job_name')\np.add_argument('--task_index', type=int)\n"
        "p.add_argument('--worker-hosts-num', type=int, default=10)\nargs = p.parse_args()\n"
        "args.worker_hosts_num += 1\ntf.train.Server(cluster, args.job_name, args.task_index)\n"
    )
    cluster = {"ps": [Place("h:1")], "worker": [Place("h:2"), Place("h:3")]}
    assert "--worker-hosts-num=1" in plan(Wishes(str(path)), cluster, "")[0].command
    assert jobs_asked_for(Wishes(str(path), ["--worker-hosts-num=3"]))["worker"] == 4
