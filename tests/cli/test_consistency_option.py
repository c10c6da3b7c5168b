"""`tensorfleet run --consistency`: unedited scripts under each of its values."""

import re
from pathlib import Path

import pytest
import typer

from tensorfleet.cli.consistency_option import told_consistency
from tests.support.launching import run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VALUES = (
    "bsp",
    "backup:1",
    "ssp:4",
    "ssp:2 scale",
    "asp",
    "asp drop:8",
    "auto",
    "bsp dense, asp sparse",
    "asp after 50 bsp",
)


def under(tmp_path, value, script, *arguments, workers=2, options=()):
    launch = ("run", "--ps", "1", "--workers", str(workers), *options, "--consistency", value, str(script))
    done = run(tmp_path, *launch, "--", *arguments)
    assert done.code == 0, done.stdout + done.stderr
    assert "This script trains with the consistency" in done.stdout + done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
def test_a_script_with_a_monitored_session_trains_under_each_value(tmp_path, value):
    done = under(
        tmp_path,
        value,
        ROOT / "examples" / "mnist_replica.py",
        *("--train_steps", "150", "--target", "0.8", "--data_dir", str(tmp_path / "none")),
    )
    assert "Final validation accuracy" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
def test_a_script_with_a_supervisor_trains_under_each_value(tmp_path, value):
    done = under(
        tmp_path, value, HERE / "programs" / "supervisor_flags.py", "--train_steps", "120", workers=3
    )
    assert done.stdout.count("test accuracy above 0.7: True") == 3
    steps = [int(n) for n in re.findall(r"training ended \(global step: (\d+)\)", done.stdout)]
    assert len(steps) == 3
    assert min(steps) >= 120


@pytest.mark.slow
@pytest.mark.parametrize("value", ["asp", "ssp:2"])
@pytest.mark.parametrize("name", ["monitored_sync", "counted_sync_steps"])
def test_a_script_with_synchronous_replicas_trains_otherwise(tmp_path, name, value):
    done = under(tmp_path, value, HERE / "programs" / f"{name}.py")
    said = {"monitored_sync": "w is near 3: True", "counted_sync_steps": "made all steps"}
    assert done.stdout.count(said[name]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("value", ["bsp", "ssp:1"])
def test_a_worker_that_is_killed_does_not_stop_the_others(tmp_path, value):
    done = under(tmp_path, value, HERE / "programs" / "dying_worker.py", options=("--restart", "1"))
    assert "worker/1 died; restarting it." in done.stdout
    assert done.stdout.count("ended after step") == 2


@pytest.mark.slow
def test_a_script_without_an_optimizer_is_told_that_nothing_has_changed(tmp_path):
    script = HERE / "programs" / "tf_config.py"
    done = run(tmp_path, "run", "--ps", "1", "--workers", "2", "--consistency", "ssp:4", str(script))
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.count("--consistency ssp:4 has changed nothing in this task") == 2


def test_a_text_with_a_typo_is_refused_before_anything_starts(tmp_path):
    script = HERE / "programs" / "tf_config.py"
    done = run(tmp_path, "run", "--ps", "1", "--workers", "2", "--consistency", "spp:4", str(script))
    assert done.code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "Invalid value for --consistency: consistency is 'spp:4'. Did you mean 'ssp:4'?" in said


def test_tasks_are_told_the_plain_text():
    assert told_consistency(" SSP:4 ", False) == {"TENSORFLEET_CONSISTENCY": "ssp:4"}
    assert told_consistency(None, True) == {}


def test_a_bound_below_zero_is_refused():
    with pytest.raises(typer.BadParameter, match="The number in 'ssp:-1' must be 0 or more, not -1"):
        told_consistency("ssp:-1", False)


def test_another_tensorflow_has_no_consistency():
    with pytest.raises(typer.BadParameter, match="Leave out --no-alias or --consistency"):
        told_consistency("bsp", True)
