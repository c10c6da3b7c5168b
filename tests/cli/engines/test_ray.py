"""What the Ray engine decides without Ray: its arguments, the folder that travels, and what it says of a wrong address."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tensorfleet.cli.engines import ray_connection
from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.ray import RayEngine
from tensorfleet.cli.engines.ray_options import is_larger, read_options, shipped

PS, WORKER = Wanted("ps", 0, True), Wanted("worker", 0, False)


def test_arguments_are_for_every_task_or_for_those_of_a_job():
    options = read_options(
        ["resources.disk=1", "ps.resources.disk=2", "ps.label_selector.ray.io/market-type=on-demand"]
    )
    assert options.resources_of(WORKER) == {"disk": 1.0}
    assert options.resources_of(PS) == {"disk": 2.0}
    assert options.labels_of(PS) == {"ray.io/market-type": "on-demand"}
    assert options.labels_of(WORKER) == {}


def test_a_runtime_environment_has_texts_lists_and_variables():
    options = read_options(
        [
            "runtime_env.pip=a==1,b",
            'runtime_env.uv={"packages": ["c"]}',
            "runtime_env.env_vars.A=x=y",
            "runtime_env.env_vars.B=2",
            "runtime_env.image_uri=me/image",
        ]
    )
    assert options.runtime_env == {
        "pip": ["a==1", "b"],
        "uv": {"packages": ["c"]},
        "env_vars": {"A": "x=y", "B": "2"},
        "image_uri": "me/image",
    }


def test_other_arguments_have_a_folder_and_a_growing_cluster():
    options = read_options(["directory=/shared", "autoscaling=true"])
    assert (options.directory, options.autoscaling) == ("/shared", True)
    assert not read_options(["autoscaling=0"]).autoscaling


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("resources", "does not have the form KEY=VALUE"),
        ("=1", "does not have the form KEY=VALUE"),
        ("resources.disk=much", "'much' is not an amount. Give a number above 0."),
        ("resources.disk=-1", "'-1' is not an amount"),
        ("resources.=1", "no argument 'resources.'"),
        ("colour=red", "no argument 'colour'. It knows resources.NAME"),
        ("num_cpus=2", "no argument 'num_cpus'. Use --cpus-per-task."),
        ("max_restarts=2", "Use --restart."),
        ("runtime_env.pip=[1", "is not valid JSON"),
    ],
)
def test_a_wrong_argument_is_told(argument, message):
    with pytest.raises(EngineError) as error:
        read_options([argument])
    assert message in str(error.value)


def test_the_folder_of_a_script_travels_and_that_of_its_package(tmp_path):
    script = tmp_path / "project" / "train.py"
    module = tmp_path / "project" / "trainer" / "task.py"
    module.parent.mkdir(parents=True)
    for path in (script, module, module.with_name("__init__.py")):
        path.touch()
    folder = tmp_path / "project"
    assert (shipped(script).folder, shipped(script).script) == (folder, "train.py")
    assert (shipped(module).folder, shipped(module).script) == (folder, "trainer/task.py")
    assert shipped(script, str(tmp_path)).script == "project/train.py"
    command = ["python", "-m", "tensorfleet", str(script), "--data", "d"]
    assert shipped(script).command(command, script) == [
        "python",
        "-m",
        "tensorfleet",
        "train.py",
        "--data",
        "d",
    ]


def test_a_script_that_cannot_travel_is_told(tmp_path):
    with pytest.raises(EngineError, match="No file .*train.py"):
        shipped(tmp_path / "train.py")
    (tmp_path / "train.py").touch()
    (tmp_path / "other").mkdir()
    with pytest.raises(EngineError, match="is not in .*other, the folder that is sent to Ray"):
        shipped(tmp_path / "train.py", str(tmp_path / "other"))


def test_a_large_folder_is_noticed_without_hidden_ones(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "pack").write_bytes(bytes(2000))
    (tmp_path / "data").write_bytes(bytes(500))
    assert not is_larger(tmp_path, 1000)
    (tmp_path / "more").write_bytes(bytes(600))
    assert is_larger(tmp_path, 1000)


@pytest.fixture
def engine(tmp_path):
    (tmp_path / "train.py").touch()
    return lambda **options: RayEngine(RunOptions("test", tmp_path / "train.py", **options))


def test_without_ray_the_engine_says_how_to_get_it(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    one = engine(address="auto")
    with pytest.raises(EngineError, match=r"Ray is not installed.*pip install 'tensorfleet\[ray\]'"):
        one.reserve([WORKER], None)
    one.close()
    one.close()


def test_the_address_is_the_users_or_that_of_the_environment(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert ray_connection.chosen_address(None) == "auto"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert ray_connection.chosen_address(None) == "10.0.0.1:6379"
    assert ray_connection.chosen_address("10.0.0.2:6379") == "10.0.0.2:6379"


def test_a_task_needs_one_processor_unless_told_otherwise(engine):
    one = engine(engine_arguments=["resources.disk=1"])
    assert one._seat(WORKER).bundle == {"CPU": 1.0, "disk": 1.0}
    needs = TaskResources(cpus=0.25, memory_bytes=1 << 30, gpus=2)
    seat = one._seat(Wanted("worker", 0, False, needs))
    assert seat.bundle == {"CPU": 0.25, "GPU": 2, "memory": 1 << 30, "disk": 1.0}
    assert seat.has_own_cpus


def test_the_logs_of_runs_do_not_travel(engine, tmp_path):
    one = engine(log_dir=tmp_path / "runs" / "test")
    one._shipped = shipped(tmp_path / "train.py")
    assert one._own_files() == ["/runs"]
    other = engine(log_dir=Path("/elsewhere/runs/test"))
    other._shipped = one._shipped
    assert other._own_files() == []


def test_a_failed_installation_is_one_sentence():
    from tensorfleet.cli.engines.ray import _reason_of_setup

    report = (
        "Failed to set up runtime environment.\n[Node 10.0.0.1] Traceback (most recent call last):\n  File x\n"
        "RuntimeError: Run cmd[1] failed with the following details.\n"
        "    ERROR: Could not find a version that satisfies the requirement nosuch (from versions: none)\n"
        "    ERROR: No matching distribution found for nosuch\n\n"
    )
    assert _reason_of_setup(report) == "No matching distribution found for nosuch"
    assert _reason_of_setup("The node is full.") == "The node is full"
    assert _reason_of_setup("") == "Ray gives no reason"


def test_a_file_with_the_token_that_is_not_there_is_named(engine, monkeypatch, tmp_path):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "absent"))
    with pytest.raises(
        EngineError, match="RAY_AUTH_TOKEN_PATH names .*/absent, which does not exist. Put the token"
    ):
        engine(address="auto").reserve([WORKER], None)


@pytest.mark.parametrize(
    ("config", "brings", "sends_nothing"),
    [
        (None, False, False),
        ('{"runtime_env": {"working_dir": "gcs://package.zip"}, "metadata": {}}', True, False),
        ('{"runtime_env": {"pip": ["a"]}, "metadata": {}}', False, True),
        ('{"runtime_env": null}', False, True),
        ("[]", False, True),
        ("{", False, True),
    ],
)
def test_a_job_without_a_working_directory_has_sent_nothing(monkeypatch, config, brings, sends_nothing):
    monkeypatch.delenv("RAY_JOB_CONFIG_JSON_ENV_VAR", raising=False)
    if config is not None:
        monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", config)
    assert ray_connection.brings_folder() is brings
    advice = " ray job submit sends no files without --working-dir: add --working-dir FOLDER, or give a path that this machine has."
    assert ray_connection.advice_of_job() == (advice if sends_nothing else "")
