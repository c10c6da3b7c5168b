"""Every object that a run on Kubernetes makes is valid, by the schemas of three versions of Kubernetes."""

import contextlib
import json
import random

import pytest

from tensorfleet.cli.engines import kubernetes_manifests as manifests
from tensorfleet.cli.engines.base import RunOptions, TaskResources
from tensorfleet.cli.engines.child import free_ports
from tensorfleet.cli.engines.kubernetes_names import address_of, run_label
from tensorfleet.cli.engines.kubernetes_run import Preparation
from tensorfleet.cli.plan import Task
from tests.support.launching import launched

pytestmark = pytest.mark.engines

VERSIONS = ("1.25.0", "1.31.0", "1.37.0")
RUNS = 20
NAMES = ["digits", "My Run!", "x" * 90, "9", "-", "ümlaut", "a_b.c"]
JOBS = ["ps", "worker", "chief", "evaluator", "master", "Learner_1", "y" * 70]
ARGUMENTS = [
    "annotation=example.org/team=ml",
    "backoff_limit=0",
    "env_from_config_map=settings",
    "env_from_secret=keys",
    "fs_group=2000",
    "gpu_resource=amd.com/gpu",
    "grace=90",
    "image_pull_policy=Always",
    "image_pull_secret=registry",
    "label=team=ml",
    "limit.ephemeral-storage=10Gi",
    "lost=30",
    "node_selector=zone=a",
    'pod={"spec": {"dnsPolicy": "Default", "containers": [{"name": "task", "stdin": true}]}}',
    "priority_class=high",
    "probes=off",
    "python=/opt/venv/bin/python",
    "request.cpu=100m",
    "run_as_group=1000",
    "run_as_user=1000",
    "security=none",
    "service_account=trainer",
    "ship=1",
    "tls_secret=certificates",
    "toleration=gpu=yes:NoSchedule",
    "toleration=spot",
    "ttl=60",
    "volume=claim:data:/data",
    "volume=configMap:settings:/settings:ro",
    "volume=emptyDir:/scratch",
    "volume=hostPath:/mnt:/mnt",
    "volume=memory:2Gi:/dev/shm",
    "volume=nfs:server:/export:/nfs:ro",
    "volume=secret:keys:/keys",
    "workdir=/app",
]


def _runs(folder):
    """Runs with names, jobs and options of all kinds; the first one has nearly all options."""
    chance = random.Random(28)
    script = folder / "train.py"
    script.write_text("print('hello')\n")
    for number in range(RUNS):
        some = chance.sample(ARGUMENTS, chance.randint(0, len(ARGUMENTS)))
        arguments = some if number else [a for a in ARGUMENTS if a != "security=none"]
        limit = chance.choice((None, "2:00:00"))
        name = chance.choice(NAMES)
        options = RunOptions(
            name, script, image="registry/me/project:1", engine_arguments=arguments, time_limit=limit
        )
        yield (
            Preparation(options),
            [
                (
                    _task(run_label(name), job, index, script),
                    chance.choice((TaskResources(), TaskResources(0.5, 1 << 30, 2))),
                )
                for job in chance.sample(JOBS, chance.randint(1, len(JOBS)))
                for index in range(chance.randint(1, 3))
            ],
        )


def _task(run, job, index, script):
    environment = {
        "TENSORFLEET_TOKEN": "t" * 64,
        "TF_CONFIG": '{"cluster": {}}',
        "EMPTY": "",
        "DOLLAR": "$(A)",
    }
    command = ["python3", "-m", "tensorfleet", str(script)]
    return Task(job, index, address_of(run, job, index), command, environment)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(tmp_path, version):
    validate = pytest.importorskip("kubernetes_validate").validate
    names = set()
    for prepared, tasks in _runs(tmp_path):
        resources = {task.label: wanted for task, wanted in tasks}
        objects = prepared.objects([task for task, _ in tasks], resources)
        seats = [
            manifests.seat_job(prepared.run, "seat-s0", task.job, task.index, wanted)
            for task, wanted in tasks
        ]
        for thing in (*objects, *seats):
            validate(thing, version, strict=True)
            names.add(thing["metadata"]["name"])
            for value in thing["metadata"]["labels"].values():
                assert len(value) <= 63
    assert all(len(name) <= 63 for name in names)


READS_TF_CONFIG = """
import json, os, time
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.train.Server(config["cluster"], job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
    add = count.assign_add(1.0)
with tf.train.MonitoredTrainingSession(server.target, is_chief=task["type"] == "chief") as session:
    print(task["type"], "counts", session.run(add) >= 1.0, flush=True)
    while session.run(count) < 2.0:  # a task that begins after the end of another would wait for it
        time.sleep(0.05)
"""


def test_the_tf_config_of_a_tfjob_starts_the_task_that_it_names(tmp_path):
    (tmp_path / "train.py").write_text(READS_TF_CONFIG)
    jobs = ("ps", "chief", "worker")
    cluster = {job: [f"127.0.0.1:{port}"] for job, port in zip(jobs, free_ports(3), strict=True)}
    with contextlib.ExitStack() as stack:
        tasks = {}
        for job in jobs:  # as Kubeflow's training operator writes it
            config = {"cluster": cluster, "task": {"type": job, "index": 0}, "environment": "cloud"}
            given = {"TF_CONFIG": json.dumps(config), "TENSORFLEET_TOKEN": "one secret for all replicas"}
            arguments = ("run", "--dashboard", "off", "--name", job, "train.py")
            tasks[job] = stack.enter_context(launched(tmp_path, *arguments, **given))
        for job, task in tasks.items():
            assert task.end().code == 0, f"{job}: {task.stdout}{task.stderr}"
    assert "chief counts True" in tasks["chief"].stdout
    assert "worker counts True" in tasks["worker"].stdout
