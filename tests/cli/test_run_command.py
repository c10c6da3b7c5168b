"""The options of `tensorfleet run`, without running anything."""

import pytest
import yaml
from typer.testing import CliRunner

from tensorfleet.cli.command import app

SCRIPT = """
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.train.Server(None)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Calls the command in a folder with train.py; gives its exit code and what it printed."""
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENSORFLEET_TOKEN", raising=False)

    def call(*arguments):
        done = CliRunner().invoke(app, ["run", *arguments], env={"COLUMNS": "500", "NO_COLOR": "1"})
        return done.exit_code, done.output

    return call


@pytest.fixture(autouse=True)
def outside_of_pods(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_kubernetes_gets_a_job_for_each_task(run):
    options = (
        "--on",
        "kubernetes",
        "--image",
        "me/image",
        "--gpus-per-worker",
        "1",
        "--name",
        "mnist",
        "--print",
    )
    code, text = run(*options, "--ps", "1", "--workers", "2", "train.py", "--", "--steps", "5")
    assert code == 0, text
    objects = list(yaml.safe_load_all(text))
    jobs = [o for o in objects if o["kind"] == "Job"]
    assert [o["kind"] for o in objects].count("Secret") == 1 and len(jobs) == 3
    (container,) = jobs[2]["spec"]["template"]["spec"]["containers"]
    (workers,) = [word for word in container["command"] if word.startswith("--worker_hosts=")]
    assert workers.count(":2222") == 2 and "worker-1" in workers
    assert container["command"][-2:] == ["--steps", "5"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "nvidia.com/gpu" not in str(jobs[0])


def test_a_dry_run_shows_the_tasks_of_any_engine(run):
    code, text = run("--on", "slurm", "--dry-run", "--ps", "1", "--workers", "1", "train.py")
    assert code == 0
    assert "[ps/0] on NODE-0: " in text and "--worker_hosts=NODE-1:2222" in text
    assert "TENSORFLEET_TOKEN=..." in text


def test_workers_without_a_place_have_addresses_that_lead_nowhere(run):
    code, text = run("--dry-run", "--ps", "1", "--workers", "1:3", "train.py")
    assert code == 0 and text.count("[worker/") == 3


def test_a_dry_run_shows_the_commands_of_standbys(run):
    code, text = run("--dry-run", "--replicas", "1", "--ps", "2", "--workers", "1", "train.py")
    assert code == 0
    (line,) = [line for line in text.splitlines() if line.startswith("[ps-standby/1] ")]
    assert " -m tensorfleet standby --task ps/1 --listen 127.0.0.1:" in line
    assert "TENSORFLEET_TOKEN=..." in line and "TENSORFLEET_PLACES=" in line
    assert run("--dry-run", "--replicas", "0", "--ps", "1", "--workers", "1", "train.py")[1].count("[ps") == 1


def test_standbys_have_places_on_any_engine(run):
    code, text = run(
        "--on", "slurm", "--dry-run", "--replicas", "1", "--ps", "1", "--workers", "1", "train.py"
    )
    assert code == 0
    assert "[ps/0] on NODE-0: " in text and "[ps-standby/0] on NODE-1: " in text


def test_a_cluster_file_names_the_hosts_of_standbys(run, tmp_path):
    jobs = "{ps: {a: 1}, ps-standby: {b: 1}, worker: {a: 1}}"
    (tmp_path / "cluster.yaml").write_text(f"hosts: {{a: 10.0.0.1, b: 10.0.0.2}}\njobs: {jobs}\n")
    code, text = run("--cluster", "cluster.yaml", "--dry-run", "--replicas", "1", "train.py")
    assert code == 0, text
    assert "[ps-standby/0] on b (10.0.0.2): " in text and "--listen 10.0.0.2:2222" in text
    assert "ps-standby" not in text.partition("TF_CONFIG=")[2].partition(" ")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--replicas", "2", "--workers", "1", "train.py"),
            "A parameter server has no standby (0) or one (1), not 2. Use --replicas 1.",
        ),
        (
            ("--replicas", "1", "--ps", "0", "--workers", "1", "train.py"),
            "--replicas needs parameter servers, and this run of train.py has none. Add for example --ps 1",
        ),
        (
            ("--on", "kubernetes", "--print", "--replicas", "1", "--workers", "1", "train.py"),
            "Manifests have no launcher, which decides who leads a durable parameter server. Leave out --print",
        ),
        (
            ("--on", "kubernetes", "--replicas", "1", "--workers", "1", "train.py"),
            "This machine does not reach the pods, and so cannot tell which servers are alive. Start the command in a pod",
        ),
        (("--workers", "many", "train.py"), "'many' is not a number of workers. Write for example 4, or 2:8"),
        (("--workers", "5:2", "train.py"), "5:2 is not a range. Write the least first"),
        (("--workers", "0:2", "train.py"), "0:2 is not a range"),
        (
            ("--memory", "much", "--workers", "1", "train.py"),
            "'much' is not a size. Write for example 512M or 4G.",
        ),
        (("--on", "ssh", "train.py"), "ssh needs to know the hosts. Add --cluster cluster.yaml"),
        (("--on", "slrm", "train.py"), "No engine is named 'slrm'. Did you mean slurm?"),
        (("--on", "ray", "absent.py"), "No file absent.py"),
        (("--print", "--workers", "1", "train.py"), "local has no manifests. Use it with --on kubernetes."),
        (("--on", "kubernetes", "--print", "--workers", "1", "train.py"), "--image"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(run, arguments, message):
    code, text = run(*arguments)
    assert code == 2
    assert message in " ".join(text.replace("│", " ").split())
